//! The amount that a reply has generated so far, and its tokens if the final figures never come.
//!
//! The rule: visible text and arguments of calls count by their length ([`count::from_len`]).
//! Reasoning counts by the highest of these:
//!
//! - its text (thinking, reasoning text or summary), by its length;
//! - the service's own estimate of hidden reasoning, if it sends one;
//! - its sealed form (encrypted reasoning, redacted thinking, signatures): 3 tokens for each 16
//!   characters of Base64, which are 12 bytes, at 4 bytes to a token;
//! - if it was only announced, or only summarised, and nothing else came: 1024 tokens for each
//!   block, the lowest effort of docs/conversion.md and the lowest budget that the native service
//!   accepts.

use super::tag::UsageTag;
use crate::formats::count;
use crate::formats::scan::{Found, Kind};

/// Tokens of a block of reasoning that was only announced.
const ANNOUNCED: u64 = 1024;

/// Bytes of output, as JSON has them.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Output {
    /// Text, arguments and visible reasoning.
    pub(super) all: usize,
    /// The part of it that was reasoning.
    pub(super) thinking: usize,
    /// The part of that which is only a summary.
    pub(super) summary: usize,
    /// Reasoning that only its provider can read.
    pub(super) sealed: usize,
    /// Tokens of hidden reasoning, as the service estimates them.
    pub(super) hinted: u64,
    /// Blocks of reasoning that were begun.
    pub(super) announced: u64,
    /// responses: an item is open, and some of it came as deltas.
    item_open: bool,
    item_counted: bool,
}

impl Output {
    /// Tokens of text and calls.
    pub(super) const fn visible(&self) -> u64 {
        count::from_len(self.all.saturating_sub(self.thinking))
    }

    /// Tokens of reasoning.
    pub(super) fn reasoning(&self) -> u64 {
        let hidden = self.sealed == 0 && self.hinted == 0 && self.thinking == self.summary;
        let floor = if hidden { self.announced.saturating_mul(ANNOUNCED) } else { 0 };
        let sealed = (self.sealed as u64).saturating_mul(3) / 16;
        count::from_len(self.thinking).max(sealed).max(self.hinted).max(floor)
    }

    /// A delta arrived.
    pub(super) const fn item_reported(&mut self) {
        self.item_counted = true;
    }

    /// An item begins.
    pub(super) const fn item_begins(&mut self, items: &Items) {
        self.announced += items.reasoning;
        (self.item_open, self.item_counted) = (true, false);
    }

    /// An item is complete: the parts that no delta contained are counted. Returns the bytes of its
    /// text and of its reasoning.
    pub(super) const fn item_ends(&mut self, items: &Items) -> (usize, usize) {
        let (open, reported) = (self.item_open, self.item_counted);
        (self.item_open, self.item_counted) = (false, false);
        self.sealed += items.sealed;
        if !open {
            self.announced += items.reasoning;
        }
        if reported { (0, 0) } else { self.words_of(items) }
    }

    /// A complete reply's items, none of which was counted before.
    pub(super) const fn all_items(&mut self, items: &Items) -> (usize, usize) {
        self.sealed += items.sealed;
        self.announced += items.reasoning;
        self.words_of(items)
    }

    const fn words_of(&mut self, items: &Items) -> (usize, usize) {
        self.summary += items.summary;
        (items.text, items.thinking + items.summary)
    }
}

/// A responses item, as far as it is read.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct ItemSoFar {
    is_reasoning: bool,
    is_search: bool,
    is_file_search: bool,
    is_image: bool,
    is_code: bool,
    failed: bool,
    /// A hash of the container in which code ran.
    pub(super) container: u64,
    /// It is a search that only opened a page or searched within one.
    looked: bool,
    pub(super) text: usize,
    pub(super) summary: usize,
    pub(super) sealed: usize,
}

impl ItemSoFar {
    pub(super) fn word(&mut self, found: &Found<'_, UsageTag>) {
        if found.kind != Kind::String {
            return;
        }
        match found.tag {
            UsageTag::ItemType => {
                self.is_reasoning = found.text == b"reasoning";
                self.is_search = found.text == b"web_search_call";
                self.is_file_search = found.text == b"file_search_call";
                self.is_image = found.text == b"image_generation_call";
                self.is_code = found.text == b"code_interpreter_call";
            }
            UsageTag::ItemStatus => self.failed = found.text == b"failed",
            _ => self.looked = found.text != b"search",
        }
    }
}

impl ItemSoFar {
    /// The container in which its code ran, if it is code.
    pub(super) fn used(&self) -> Option<u64> {
        self.is_code.then_some(self.container)
    }
}

/// All items in an event or a complete reply.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Items {
    pub(super) any: bool,
    pub(super) text: usize,
    pub(super) thinking: usize,
    pub(super) summary: usize,
    pub(super) sealed: usize,
    pub(super) reasoning: u64,
    /// Searches that are billed: the vendor charges for the action `search` alone.
    pub(super) searches: u64,
    /// Searches in files, and images, that did not fail.
    pub(super) files: u64,
    pub(super) images: u64,
}

impl Items {
    pub(super) const fn add(&mut self, item: &ItemSoFar) {
        self.any = true;
        if item.is_reasoning {
            self.thinking += item.text;
            self.reasoning += 1;
        } else {
            self.text += item.text;
        }
        self.summary += item.summary;
        self.sealed += item.sealed;
        if item.is_search && !item.failed && !item.looked {
            self.searches += 1;
        }
        self.files += (item.is_file_search && !item.failed) as u64;
        self.images += (item.is_image && !item.failed) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::Output;

    #[test]
    fn reasoning_counts_by_what_was_seen_of_it() {
        let output = |thinking, summary, sealed, announced| Output {
            all: thinking + 360,
            thinking,
            summary,
            sealed,
            announced,
            ..Output::default()
        };
        for (of, reasoning) in [
            (output(0, 0, 0, 0), 0),
            (output(3600, 0, 0, 1), 1000),
            (output(0, 0, 1600, 1), 300),
            (output(3600, 0, 1600, 1), 1000),
            (output(0, 0, 0, 2), 2048),
            (output(360, 360, 0, 1), 1024),
            (output(36_000, 36_000, 0, 1), 10_000),
        ] {
            assert_eq!((of.reasoning(), of.visible()), (reasoning, 100), "{of:?}");
        }
    }
}
