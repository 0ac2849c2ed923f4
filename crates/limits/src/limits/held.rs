//! An amount that is spent, and one that is reserved in addition.

use std::ops::{Add, AddAssign, Neg, SubAssign};

use crate::domain::money::NanoUsd;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct HeldAmounts {
    pub(super) spent: NanoUsd,
    pub(super) reserved: NanoUsd,
}

impl HeldAmounts {
    pub(super) const NONE: Self = Self { spent: NanoUsd::ZERO, reserved: NanoUsd::ZERO };

    pub(super) const fn spent(spent: NanoUsd) -> Self {
        Self { spent, reserved: NanoUsd::ZERO }
    }

    pub(super) const fn reserved(reserved: NanoUsd) -> Self {
        Self { spent: NanoUsd::ZERO, reserved }
    }

    /// The amount that limits are compared with.
    pub(super) fn both(self) -> NanoUsd {
        self.spent + self.reserved
    }
}

impl Add for HeldAmounts {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { spent: self.spent + other.spent, reserved: self.reserved + other.reserved }
    }
}

impl AddAssign for HeldAmounts {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for HeldAmounts {
    fn sub_assign(&mut self, other: Self) {
        *self += -other;
    }
}

impl Neg for HeldAmounts {
    type Output = Self;
    fn neg(self) -> Self {
        Self { spent: -self.spent, reserved: -self.reserved }
    }
}
