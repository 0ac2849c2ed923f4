//! The pieces of a request body: cut after messages, blocks, items and tools, so that what a client
//! sends again is the same piece again, whatever precedes and follows it.
//!
//! A large block is a separate piece; smaller ones are combined. Each piece begins and ends outside
//! of strings, and all of them together are the complete body.

use std::ops::Range;

/// Smaller blocks are combined with those that follow.
const LARGE: usize = 1024;
/// Less than this, such as the brackets between two messages, is combined with the large block
/// after it.
const LITTLE: usize = 64;

/// Where the pieces end, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pieces {
    ends: Vec<usize>,
    /// The end of the last block, large or small.
    last: usize,
}

impl Pieces {
    /// A block ends before `at`, outside of all strings.
    pub(super) fn block_ends(&mut self, at: usize) {
        let begun = self.begun();
        if at - self.last >= LARGE && self.last - begun >= LITTLE {
            self.ends.push(self.last);
        }
        if at - self.begun() >= LARGE {
            self.ends.push(at);
        }
        self.last = at;
    }

    /// The body ends here.
    pub(super) fn body_ends(&mut self, len: usize) {
        self.block_ends(len);
        if self.begun() < len {
            self.ends.push(len);
        }
    }

    fn begun(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// The ranges of the pieces, in order.
    pub fn spans(&self) -> impl Iterator<Item = Range<usize>> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| start..*end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(blocks: &[usize]) -> Vec<(usize, usize)> {
        let mut pieces = Pieces::default();
        let mut at = 0;
        for len in blocks {
            at += len;
            pieces.block_ends(at);
        }
        pieces.body_ends(at + 10);
        pieces.spans().map(|span| (span.start, span.end)).collect()
    }

    #[test]
    fn large_blocks_stand_alone_and_small_ones_together() {
        assert_eq!(spans(&[]), [(0, 10)]);
        assert_eq!(spans(&[100]), [(0, 110)]);
        assert_eq!(spans(&[2000]), [(0, 2000), (2000, 2010)]);
        assert_eq!(spans(&[100, 2000, 5]), [(0, 100), (100, 2100), (2100, 2115)]);
        assert_eq!(spans(&[2000, 5, 2000]), [(0, 2000), (2000, 4005), (4005, 4015)]);
        assert_eq!(
            spans(&[600, 600, 600, 1024]),
            [(0, 1200), (1200, 1800), (1800, 2824), (2824, 2834)]
        );
    }

    #[test]
    fn what_follows_or_goes_before_leaves_large_blocks_alone() {
        let is_large =
            |(start, end): &(usize, usize)| (3000..3000 + LITTLE).contains(&(end - start));
        let large = |blocks: &[usize]| spans(blocks).into_iter().filter(is_large).count();
        assert_eq!(large(&[50, 3000, 2, 3000, 7, 3000]), 3);
        assert_eq!(large(&[50, 700, 3000, 2, 3000, 900, 7, 3000, 4000, 8]), 3);
    }
}
