//! The calls of a stream that have begun and not ended, by the provider's numbers of their blocks.
//!
//! Calls usually follow each other, and nothing is announced. If one begins within another, their
//! pieces may come mixed: from then on [`Event::Turn`] tells whose piece follows, and
//! [`Event::Done`] which call has ended before the others.

use super::event::{Event, Sink};
use super::number;
use crate::formats::json_read::Json;

/// The open calls with a number below 64; others are not told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenCalls {
    /// The call whose pieces come.
    current: u64,
    open: u64,
    /// Those of which some arguments have come.
    begun: u64,
    mixed: bool,
}

/// A block's number, as the provider writes it.
#[must_use]
pub fn block_number(index: Option<Json<'_>>) -> Option<u64> {
    number::parse(index?.get())
}

impl OpenCalls {
    /// A call begins, and no other one is open.
    pub fn start(&mut self, index: Option<u64>) {
        let current = index.unwrap_or_default();
        *self = Self { current, open: bit(current), begun: 0, mixed: false };
    }

    /// A call begins. Whether it does within others, which is announced.
    pub fn join(&mut self, index: Option<u64>, sink: &mut Sink<'_>) -> bool {
        let Some(index) = index.filter(|index| self.open != 0 && bit(*index) & !self.open != 0)
        else {
            return false;
        };
        if !std::mem::replace(&mut self.mixed, true) {
            sink(Event::Turn(self.current));
        }
        sink(Event::Turn(index));
        self.open |= bit(index);
        self.current = index;
        true
    }

    /// What follows is of this call.
    pub fn turn(&mut self, index: Option<u64>, sink: &mut Sink<'_>) {
        let is_another = |index: &u64| *index != self.current && self.open & bit(*index) != 0;
        if let Some(index) = index.filter(|index| self.mixed && is_another(index)) {
            self.current = index;
            sink(Event::Turn(index));
        }
    }

    /// Some arguments of the current call come.
    pub fn begin(&mut self) {
        self.begun |= bit(self.current);
    }

    /// Whether some arguments of the current call have come; `None` if calls are not mixed.
    #[must_use]
    pub fn has_begun(&self) -> Option<bool> {
        self.mixed.then_some(self.begun & bit(self.current) != 0)
    }

    /// A block ends. Whether other calls go on, which is announced.
    pub fn go_on_after(&mut self, index: Option<u64>, sink: &mut Sink<'_>) -> bool {
        let ended = index.unwrap_or(self.current);
        let was_open = self.open & bit(ended) != 0;
        self.open &= !bit(ended);
        let others_go_on = self.mixed && self.open != 0;
        if others_go_on && was_open {
            sink(Event::Done(ended));
        }
        others_go_on
    }
}

/// The bit of a call's number; none above 63.
#[must_use]
pub fn bit(index: u64) -> u64 {
    u32::try_from(index).ok().and_then(|index| 1_u64.checked_shl(index)).unwrap_or(0)
}
