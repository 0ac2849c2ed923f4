//! A search for the words: first through a complete body, then through the suspected texts of it.

use std::ops::Range;

use super::prefilter::{BLOCK, Suspects};
use super::{CONTAINS, EXACT, FIRST_PATTERN, Kinds, REST, Words};
use crate::domain::ids::WordId;
use crate::policy::fold::fold_tail;

/// See [`Words::search`]; keeps its memory between texts.
pub struct Search<'w> {
    pub(super) words: &'w Words,
    pub(super) folded: Vec<u8>,
}

impl Search<'_> {
    /// Where a word can be in a body of valid JSON, given in stretches: the start of each, and its
    /// parts. They are in order and cut no string.
    pub fn suspects<'b, P>(&mut self, stretches: impl IntoIterator<Item = (usize, P)>) -> Suspects
    where
        P: Iterator<Item = &'b [u8]>,
    {
        let prefilter = &self.words.prefilter;
        let mut suspects = prefilter.suspects();
        for (from, parts) in stretches {
            prefilter.scan(from, parts, &mut suspects, &mut self.folded, BLOCK);
        }
        suspects
    }

    /// A word that `text` contains, if any.
    pub fn find(&mut self, text: &str) -> Option<WordId> {
        self.look(text, Kinds::MAX)
    }

    /// The same for a text at `span` of the body that `suspects` describes.
    pub fn find_suspected(
        &mut self,
        text: &str,
        span: &Range<usize>,
        suspects: &Suspects,
    ) -> Option<WordId> {
        self.look(text, suspects.of(span))
    }

    fn look(&mut self, text: &str, kinds: Kinds) -> Option<WordId> {
        let words = self.words;
        // Folding shortens no text to less than a third.
        let may_be_exact = kinds & EXACT != 0
            && !words.exact.is_empty()
            && text.trim().len() <= words.exact_longest.saturating_mul(3);
        let may_contain = kinds & CONTAINS != 0 && !words.contains.is_empty();
        if may_be_exact || may_contain {
            self.folded.clear();
            self.folded.extend_from_slice(text.as_bytes());
            fold_tail(&mut self.folded, 0);
        }
        if may_contain
            && let Some((_, number)) =
                words.contains.iter().find_map(|group| group.find(&self.folded, 0))
        {
            return words.contains_ids.get(number).copied();
        }
        if may_be_exact
            && let Ok(folded) = std::str::from_utf8(&self.folded)
            && let Some(id) = words.exact.get(folded.trim())
        {
            return Some(*id);
        }
        let single = words.patterns.iter().zip(FIRST_PATTERN..);
        for ((pattern, id), bit) in single {
            if kinds >> bit & 1 == 1 && pattern.is_match(text) {
                return Some(*id);
            }
        }
        let set = words.rest.as_ref().filter(|_| kinds & REST != 0)?;
        // Whether any matches is cheaper to find out than which.
        if !set.is_match(text) {
            return None;
        }
        set.matches(text).iter().next().and_then(|at| words.rest_ids.get(at)).copied()
    }
}
