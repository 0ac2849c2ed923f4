//! The blocks of a stream that have begun and not ended, by the provider's numbers.
//!
//! Blocks usually follow each other, and nothing is announced. If one begins within another, their
//! pieces may come mixed: from then on [`Event::Turn`] tells whose piece follows, and
//! [`Event::Done`] which block has ended before the others.

use super::event::{Event, Sink};
use super::number;
use crate::formats::json_read::Json;

/// The open blocks. Of numbers that are 64 apart, only one is open at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenBlocks {
    /// The block whose pieces come.
    current: u64,
    open: u64,
    mixed: bool,
}

/// A block's number, as the provider writes it.
pub fn block_number(index: Option<Json<'_>>) -> Option<u64> {
    number::parse(index?.get())
}

impl OpenBlocks {
    /// A block begins, and no other one is open.
    pub fn start(&mut self, index: Option<u64>) {
        let current = index.unwrap_or_default();
        *self = Self { current, open: bit(current), mixed: false };
    }

    /// As [`OpenBlocks::start`], for a call that may begin later than it is announced.
    pub fn start_mixed(&mut self, index: Option<u64>, sink: &mut Sink<'_>) {
        self.start(index);
        self.mixed = true;
        sink(Event::Turn(self.current));
    }

    /// A block begins. Whether it does within others, which is announced.
    pub fn join(&mut self, index: Option<u64>, sink: &mut Sink<'_>) -> bool {
        let Some(index) = index.filter(|index| self.open & !bit(*index) != 0) else {
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

    /// What follows is of this block.
    pub fn turn(&mut self, index: Option<u64>, sink: &mut Sink<'_>) {
        let is_another = |index: &u64| *index != self.current && self.open & bit(*index) != 0;
        if let Some(index) = index.filter(|index| self.mixed && is_another(index)) {
            self.current = index;
            sink(Event::Turn(index));
        }
    }

    /// Whether the block of this number is open; the current one if there is no number.
    pub fn is_open(&self, index: Option<u64>) -> bool {
        self.open & bit(index.unwrap_or(self.current)) != 0
    }

    /// Whether pieces of several blocks may come.
    pub const fn are_mixed(&self) -> bool {
        self.mixed
    }

    /// The block whose pieces come.
    pub const fn current(&self) -> u64 {
        self.current
    }

    /// A block ends. Whether other blocks go on, which is announced.
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

/// The bit of a block's number.
pub const fn bit(index: u64) -> u64 {
    1 << (index % 64)
}
