//! What a reply costs: tokens × rates, plus the fee per request, × the provider's multiplier.
//!
//! Decimals are exact and rounded once, at the end, to nano-USD. What is charged for a rate that a price entry does not name:
//!
//! | rate | falls back to |
//! |---|---|
//! | input, output, per request | nothing is charged |
//! | cache write, five minutes | input |
//! | cache write, one hour | cache write, five minutes |
//! | cache read | input |
//! | image tokens in, out | input, output |
//! | any long-context rate | the same rate of the base, and then as above |
//!
//! The fall-backs are plain rates, never invented factors: an operator whose provider charges a premium for cache writes
//! names it in the price entry. The long-context rates hold for the whole request, not for the part beyond the threshold.

use rust_decimal::Decimal;

use crate::domain::money::NanoUsd;
use crate::domain::price::{Rates, Tier};
use crate::domain::usage::Usage;

pub use super::price::{Belief, PriceProblem, rates_from_json};

/// Input (fresh and cached together) beyond which the long-context rates hold.
pub const LONG_CONTEXT_TOKENS: u64 = 200_000;

/// A priced reply, with the sum's parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cost {
    pub total: NanoUsd,
    /// One line for each kind that was used; before the multiplier.
    pub lines: Vec<CostLine>,
}

/// One kind of use: `amount` = `tokens` × `rate`, in USD, before the multiplier and unrounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CostLine {
    pub kind: CostKind,
    /// Tokens, or 1 for the fee per request.
    pub tokens: u64,
    pub rate: Decimal,
    pub amount: Decimal,
}

/// What a cost line charges for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CostKind {
    Input,
    ImageInput,
    CacheWrite5m,
    CacheWrite1h,
    CacheRead,
    Output,
    ImageOutput,
    Request,
}

impl CostKind {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::ImageInput => "image_input",
            Self::CacheWrite5m => "cache_write_5m",
            Self::CacheWrite1h => "cache_write_1h",
            Self::CacheRead => "cache_read",
            Self::Output => "output",
            Self::ImageOutput => "image_output",
            Self::Request => "request",
        }
    }
}

/// Prices one reply and shows how. A negative multiplier counts as zero.
#[must_use]
pub fn price(rates: &Rates, usage: &Usage, multiplier: Decimal) -> Cost {
    let lines = charges(rates, usage)
        .into_iter()
        .filter(|(_, tokens, rate)| *tokens > 0 && !rate.is_zero())
        .map(|(kind, tokens, rate)| CostLine { kind, tokens, rate, amount: amount(tokens, rate) })
        .collect();
    Cost { total: total(rates, usage, multiplier), lines }
}

/// As [`price`], the total alone: no allocation, for the request path.
///
/// Never negative; an amount beyond the range of [`NanoUsd`] becomes its largest value.
#[must_use]
pub fn total(rates: &Rates, usage: &Usage, multiplier: Decimal) -> NanoUsd {
    let sum = charges(rates, usage)
        .into_iter()
        .filter(|(_, tokens, rate)| *tokens > 0 && !rate.is_zero())
        .fold(Decimal::ZERO, |sum, (_, tokens, rate)| sum.checked_add(amount(tokens, rate)).unwrap_or(Decimal::MAX));
    let charged = sum.checked_mul(multiplier.max(Decimal::ZERO)).unwrap_or(Decimal::MAX);
    NanoUsd::from_decimal(charged).unwrap_or(NanoUsd(i64::MAX)).max(NanoUsd::ZERO)
}

fn amount(tokens: u64, rate: Decimal) -> Decimal {
    Decimal::from(tokens).checked_mul(rate).unwrap_or(Decimal::MAX)
}

/// Every kind with its quantity and its rate, fall-backs resolved.
fn charges(rates: &Rates, usage: &Usage) -> [(CostKind, u64, Decimal); 8] {
    let tier = if is_long_context(usage) { rates.above_200k } else { Tier::default() };
    let input = tier.input.or(rates.input).unwrap_or_default();
    let output = tier.output.or(rates.output).unwrap_or_default();
    let cache_write_5m = tier.cache_write_5m.or(rates.cache_write_5m).unwrap_or(input);
    let cache_write_1h = tier.cache_write_1h.or(rates.cache_write_1h).unwrap_or(cache_write_5m);
    let cache_read = tier.cache_read.or(rates.cache_read).unwrap_or(input);
    // Image tokens are a part of input and output: taken out of them, so that they are charged once.
    let image_input = usage.image_input.min(usage.input);
    let image_output = usage.image_output.min(usage.output);
    [
        (CostKind::Input, usage.input - image_input, input),
        (CostKind::ImageInput, image_input, rates.image_input.unwrap_or(input)),
        (CostKind::CacheWrite5m, usage.cache_write_5m, cache_write_5m),
        (CostKind::CacheWrite1h, usage.cache_write_1h, cache_write_1h),
        (CostKind::CacheRead, usage.cache_read, cache_read),
        (CostKind::Output, usage.output - image_output, output),
        (CostKind::ImageOutput, image_output, rates.image_output.unwrap_or(output)),
        (CostKind::Request, 1, rates.per_request.unwrap_or_default()),
    ]
}

fn is_long_context(usage: &Usage) -> bool {
    let parts = [usage.cache_write_5m, usage.cache_write_1h, usage.cache_read];
    parts.into_iter().fold(usage.input, u64::saturating_add) > LONG_CONTEXT_TOKENS
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, proptest};
    use serde_json::json;

    use super::*;

    fn rates(entry: serde_json::Value) -> Rates {
        rates_from_json(&entry, Belief::Usual).unwrap()
    }

    fn full() -> Rates {
        rates(json!({
            "input_cost_per_token": 3e-6, "output_cost_per_token": 1.5e-5,
            "cache_creation_input_token_cost": 3.75e-6, "cache_creation_input_token_cost_above_1hr": 6e-6,
            "cache_read_input_token_cost": 3e-7,
            "input_cost_per_token_above_200k_tokens": 6e-6, "output_cost_per_token_above_200k_tokens": 2.25e-5,
            "cache_creation_input_token_cost_above_200k_tokens": 7.5e-6,
            "cache_read_input_token_cost_above_200k_tokens": 6e-7,
        }))
    }

    #[test]
    fn totals_equal_the_sums_done_by_hand() {
        let plain = rates(json!({"input_cost_per_token": 3e-6, "output_cost_per_token": 1.5e-5}));
        let image = rates(json!({
            "input_cost_per_token": 5e-6, "input_cost_per_image_token": 1e-5,
            "output_cost_per_token": 2e-5, "output_cost_per_image_token": 4e-5, "input_cost_per_request": 0.005,
        }));
        let usage = |input, output, write_5m, write_1h, read| Usage {
            input,
            output,
            cache_write_5m: write_5m,
            cache_write_1h: write_1h,
            cache_read: read,
            ..Usage::default()
        };
        let picture = Usage { image_input: 40, image_output: 1_000, ..usage(100, 1_200, 0, 0, 0) };
        let cases = [
            ("input and output", plain, usage(1_000, 500, 0, 0, 0), "1", 10_500_000),
            // 1000 × (1 write, 1 read) at the input rate: 0.003 + 0.003 + 0.003
            ("cache without rates", plain, usage(0, 0, 1_000, 1_000, 1_000), "1", 9_000_000),
            // 0.003 + 0.0075 + 0.00375 + 0.006 + 0.0003
            ("every kind", full(), usage(1_000, 500, 1_000, 1_000, 1_000), "1", 20_550_000),
            ("exactly 200 000 is not long", full(), usage(200_000, 1, 0, 0, 0), "1", 600_015_000),
            // 100 001 × 6e-6 + 100 000 × 6e-7 + 10 × 2.25e-5
            ("cached input counts for the tier", full(), usage(100_001, 10, 0, 0, 100_000), "1", 660_231_000),
            // the base names one hour, the tier does not: 300 000 × 6e-6
            ("a tier falls back to the base", full(), usage(0, 0, 0, 300_000, 0), "1", 1_800_000_000),
            // 60 × 5e-6 + 40 × 1e-5 + 200 × 2e-5 + 1000 × 4e-5 + 0.005
            ("images and a fee", image, picture, "1", 49_700_000),
            ("multiplier", plain, usage(1_000, 500, 0, 0, 0), "0.35", 3_675_000),
            // 1 × 3e-6 × 0.0001 = 3e-10 → 0; 2 × … = 6e-10 → 1
            ("rounded down at the end", plain, usage(1, 0, 0, 0, 0), "0.0001", 0),
            ("rounded up at the end", plain, usage(2, 0, 0, 0, 0), "0.0001", 1),
            ("free", plain, usage(9, 9, 9, 9, 9), "0", 0),
            ("negative multiplier", plain, usage(9, 9, 9, 9, 9), "-1", 0),
        ];
        for (name, rates, usage, multiplier, nanos) in cases {
            let multiplier: Decimal = multiplier.parse().unwrap();
            assert_eq!(total(&rates, &usage, multiplier), NanoUsd(nanos), "{name}");
            assert_eq!(price(&rates, &usage, multiplier).total, NanoUsd(nanos), "{name}");
        }
    }

    #[test]
    fn one_rounding_for_the_whole_sum() {
        // Each part is 0.4 nano-USD: rounded one by one they would vanish.
        let tiny = rates(json!({"input_cost_per_token": 4e-10, "output_cost_per_token": 4e-10}));
        let usage = Usage { input: 1, output: 1, cache_read: 1, ..Usage::default() };
        assert_eq!(total(&tiny, &usage, Decimal::ONE), NanoUsd(1));
    }

    #[test]
    fn lines_show_what_was_charged_and_add_up() {
        let usage = Usage { input: 10, output: 20, cache_read: 30, reasoning: 15, ..Usage::default() };
        let cost = price(&full(), &usage, Decimal::ONE);
        let kinds: Vec<_> = cost.lines.iter().map(|l| (l.kind.as_str(), l.tokens)).collect();
        assert_eq!(kinds, [("input", 10), ("cache_read", 30), ("output", 20)], "reasoning is inside output");
        let sum: Decimal = cost.lines.iter().map(|l| l.amount).sum();
        assert_eq!(NanoUsd::from_decimal(sum), Some(cost.total));
    }

    #[test]
    fn absurd_figures_saturate() {
        let usage = Usage { input: u64::MAX, output: u64::MAX, cache_read: u64::MAX, ..Usage::default() };
        let dear = rates(json!({"input_cost_per_token": 1, "output_cost_per_token": 1}));
        assert_eq!(total(&dear, &usage, Decimal::MAX), NanoUsd(i64::MAX));
    }

    proptest! {
        #[test]
        fn more_tokens_never_cost_less(tokens in any::<[u32; 5]>(), more in any::<[u32; 5]>(), nanos in any::<[u32; 5]>()) {
            let rate = |i: usize| Some(Decimal::new(i64::from(nanos[i]), 12));
            let doubled = |i: usize| Some(Decimal::new(i64::from(nanos[i]) * 2, 12));
            let rates = Rates {
                input: rate(0), output: rate(1), cache_write_5m: rate(2), cache_write_1h: rate(3), cache_read: rate(4),
                above_200k: Tier { input: doubled(0), output: doubled(1), ..Tier::default() },
                ..Rates::default()
            };
            let usage = |t: [u64; 5]| Usage {
                input: t[0], output: t[1], cache_write_5m: t[2], cache_write_1h: t[3], cache_read: t[4], ..Usage::default()
            };
            let less = total(&rates, &usage(tokens.map(u64::from)), Decimal::ONE);
            let sum = std::array::from_fn(|i| u64::from(tokens[i]) + u64::from(more[i]));
            prop_assert!(less >= NanoUsd::ZERO);
            prop_assert!(total(&rates, &usage(sum), Decimal::ONE) >= less);
        }
    }
}
