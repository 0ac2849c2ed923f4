//! Events that only bring another text than the one before: what they add is known without reading
//! their JSON.
//!
//! An event is read once. If it changed nothing but the length of the output, by the length of one
//! text, then so does each event of its [`Pattern`] that directly follows: the findings that it meets
//! are the same.

use std::ops::Range;

use super::output::Output;
use super::tally::Tally;
use crate::formats::sse::{Pattern, RawText};

/// An event that was read, and what an event of its pattern adds.
#[derive(Debug)]
pub(super) struct Repeated {
    pattern: Pattern,
    added: Added,
}

/// The lengths that a text adds to, besides that of all output.
#[derive(Debug, Clone, Copy)]
struct Added {
    thinking: bool,
    summary: bool,
}

impl Repeated {
    /// Learns from an event that was just read. `text`: the range of a text of it. `before` and
    /// `now`: the findings before and after it. `None` if it changed more than a length.
    pub(super) fn learn(
        event: &[u8],
        text: Range<usize>,
        mut before: Tally,
        now: &Tally,
    ) -> Option<Self> {
        let (was, is) = (before.output, now.output);
        let added =
            Added { thinking: is.thinking > was.thinking, summary: is.summary > was.summary };
        added.add(&mut before.output, text.len());
        if text.is_empty() || before != *now {
            return None;
        }
        Some(Self { pattern: Pattern::new(event, text)?, added })
    }

    /// The text of the event at the start of `bytes`, and what follows it, if it is of the pattern.
    pub(super) fn first<'d>(&self, bytes: &'d [u8]) -> Option<(RawText<'d>, &'d [u8])> {
        self.pattern.text(bytes)
    }

    /// The text of an event of the pattern.
    pub(super) fn text<'d>(&self, event: &'d [u8]) -> Option<RawText<'d>> {
        self.first(event).filter(|(_, rest)| rest.is_empty()).map(|(text, _)| text)
    }

    /// Adds an event with this text.
    pub(super) fn add(&self, text: RawText<'_>, tally: &mut Tally) {
        self.added.add(&mut tally.output, text.bytes().len());
    }
}

impl Added {
    const fn add(self, output: &mut Output, len: usize) {
        output.all += len;
        if self.thinking {
            output.thinking += len;
        }
        if self.summary {
            output.summary += len;
        }
    }
}
