//! Money: integer nano-USD at rest, decimals in arithmetic, never a float.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Neg, Sub, SubAssign};

use arrayvec::ArrayString;
use rust_decimal::prelude::ToPrimitive;
use rust_decimal::{Decimal, RoundingStrategy};
use serde::{Deserialize, Serialize};

/// Billionths of a US dollar (10⁻⁹ USD). Range about ±9.2 billion USD.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NanoUsd(pub i64);

/// Decimal places of a [`NanoUsd`].
const PLACES: u32 = 9;
const PER_USD: u64 = 10_u64.pow(PLACES);

impl NanoUsd {
    /// No money.
    pub const ZERO: Self = Self(0);
    /// Nano-USD in one US dollar.
    pub const PER_USD: i64 = 1_000_000_000;

    /// The most that one request costs, wherever costs are counted: ten million dollars. Absurd
    /// figures from an upstream must not overflow the sums.
    pub const MAX_OF_REQUEST: Self = Self::usd(10_000_000);

    /// An amount of whole dollars. More than 9.2 billion overflow: for constants only.
    pub const fn usd(dollars: i64) -> Self {
        Self(dollars * Self::PER_USD)
    }

    /// Rounds to the nearest nano-USD, halves away from zero. `None` when out of range.
    pub fn from_decimal(usd: Decimal) -> Option<Self> {
        let rounded = usd.round_dp_with_strategy(PLACES, RoundingStrategy::MidpointAwayFromZero);
        (rounded.checked_mul(Decimal::from(Self::PER_USD))?).to_i64().map(Self)
    }

    /// The exact amount in USD, with nine decimal places.
    pub fn to_decimal(self) -> Decimal {
        Decimal::new(self.0, PLACES)
    }

    /// The sum; the nearest representable amount if it is out of range. `+` does the same.
    #[must_use]
    #[inline]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference, which may be negative; the nearest representable amount if it is out of
    /// range. `-` does the same.
    #[must_use]
    #[inline]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Exact USD without trailing zeros: `0.00123`.
    ///
    /// By hand, and without an allocation: every request writes its cost and its limits, and
    /// `write!` with a computed width takes several hundred instructions.
    #[must_use]
    pub fn text(self) -> ArrayString<24> {
        let (whole, parts) = (self.0.unsigned_abs() / PER_USD, self.0.unsigned_abs() % PER_USD);
        let mut text = ArrayString::new();
        // The longest amount has 21 characters.
        if self.0 < 0 {
            text.push('-');
        }
        text.push_str(itoa::Buffer::new().format(whole));
        if parts != 0 {
            // The leading 1 stands for the zeros after the point, and is left out.
            let mut buffer = itoa::Buffer::new();
            let digits = buffer.format(PER_USD + parts).trim_end_matches('0').get(1..);
            text.push('.');
            text.push_str(digits.unwrap_or_default());
        }
        text
    }
}

/// As [`NanoUsd::text`].
impl fmt::Display for NanoUsd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl Add for NanoUsd {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        self.saturating_add(other)
    }
}

impl AddAssign for NanoUsd {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for NanoUsd {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        self.saturating_sub(other)
    }
}

impl SubAssign for NanoUsd {
    #[inline]
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Neg for NanoUsd {
    type Output = Self;
    #[inline]
    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}

impl Sum for NanoUsd {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_round_to_the_nearest_nano_dollar() {
        let cases = [
            ("0.0000000014", 1),
            ("0.0000000015", 2),
            ("-0.0000000015", -2),
            ("12.5", 12_500_000_000),
        ];
        for (text, nanos) in cases {
            let decimal: Decimal = text.parse().unwrap_or_default();
            assert_eq!(NanoUsd::from_decimal(decimal), Some(NanoUsd(nanos)), "{text}");
        }
        assert_eq!(NanoUsd::from_decimal(Decimal::MAX), None);
    }

    #[test]
    fn display_is_exact_and_short() {
        assert_eq!(NanoUsd(1_230_000).to_string(), "0.00123");
        assert_eq!(NanoUsd::usd(5).to_string(), "5");
        // The same text as a decimal's, for any amount.
        let ends = [
            i64::MIN,
            i64::MAX,
            0,
            1,
            -1,
            10,
            100_000_000,
            -1_000_000_001,
            999_999_999,
            -10_500_000_000,
        ];
        for nanos in ends.into_iter().chain((0..64).map(|shift| 0x5555_5555_5555_5555 >> shift)) {
            let amount = NanoUsd(nanos);
            assert_eq!(amount.to_string(), amount.to_decimal().normalize().to_string(), "{nanos}");
        }
    }
}
