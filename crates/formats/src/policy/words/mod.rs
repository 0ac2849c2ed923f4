//! Finds an operator's sensitive words in clients' requests.
//!
//! In two steps. A [`prefilter`] scans the raw body once and fast, and returns where a word can be;
//! nearly always that is nowhere. Then the texts at those positions are decoded from the JSON and
//! searched exactly: `contains` words all at once, `exact` ones by a table of complete texts,
//! regular expressions one by one, or as one set if the prefilter can derive nothing from them.
//! Letter case is ignored by the rule of [`super::fold`] (by the engine's own rule for regular
//! expressions). The result is a word's id: neither the word nor the text leaves this module.
//!
//! Most of a request was sent before, and pieces that were [`cleared`] are not searched again.

mod cleared;
mod expression;
mod fingerprint;
mod literal;
mod many;
mod prefilter;
mod run;
mod search;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use regex::{Regex, RegexSet};

use self::cleared::Cleared;
use self::many::Group;
use self::prefilter::{Prefilter, PrefilterBuilder};
use super::fold::fold;
use super::pattern::{self, PatternFault};
use crate::domain::ids::WordId;
use crate::domain::matching::MatchType;
use crate::domain::word::SensitiveWord;

pub use self::cleared::Fingerprint;
pub use self::prefilter::Suspects;
pub use self::search::Search;

/// A set of kinds of words, one bit for each: the two plain kinds, single regular expressions, the
/// set of the others.
type Kinds = u64;
const CONTAINS: Kinds = 1;
const EXACT: Kinds = 2;
const FIRST_PATTERN: u32 = 2;
const MOST_PATTERNS: usize = 61;
const REST: Kinds = 1 << 63;

/// The words in effect, ready for searching.
#[derive(Debug, Default)]
pub struct Words {
    source: Vec<SensitiveWord>,
    contains: Vec<Group>,
    contains_ids: Vec<WordId>,
    exact: HashMap<Box<str>, WordId>,
    /// The longest text that can equal one of `exact`, in bytes.
    exact_longest: usize,
    /// Regular expressions that the prefilter can suspect, and all others.
    patterns: Vec<(Regex, WordId)>,
    rest: Option<RegexSet>,
    rest_ids: Vec<WordId>,
    prefilter: Prefilter,
    cleared: Cleared,
    faults: Vec<String>,
}

/// How many words of each kind are in effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WordCounts {
    /// Words that are searched within texts.
    pub contains: usize,
    /// Words that are compared with complete texts.
    pub exact: usize,
    /// Regular expressions.
    pub regex: usize,
}

impl Words {
    /// Compiles the enabled words. One that cannot be compiled is left out and listed in
    /// [`Words::faults`]: words are checked when they are entered, so only another version can have
    /// stored it.
    pub fn compile(source: Vec<SensitiveWord>) -> Self {
        let mut words = Self::default();
        let mut builder = PrefilterBuilder::default();
        let (mut contains, mut rest) = (Vec::new(), Vec::new());
        for word in source.iter().filter(|word| word.is_enabled) {
            match word.match_type {
                MatchType::Contains => {
                    let text = fold(&word.word);
                    builder.word(&text, CONTAINS);
                    contains.push(text.into_bytes());
                    words.contains_ids.push(word.id);
                }
                MatchType::Exact => {
                    let text = fold(word.word.trim());
                    builder.word(&text, EXACT);
                    words.exact_longest = words.exact_longest.max(text.len());
                    words.exact.insert(text.into(), word.id);
                }
                MatchType::Regex => match pattern::compile(&word.word) {
                    Ok(regex) => words.pattern(word, regex, &mut builder, &mut rest),
                    Err(fault) => words.faults.push(format!("sensitive word {}: {fault}", word.id)),
                },
            }
        }
        match many::groups(&contains) {
            Ok(groups) => words.contains = groups,
            Err(error) => words.faults.push(format!("the sensitive words: {error}")),
        }
        if !rest.is_empty() {
            match pattern::compile_set(rest) {
                Ok(set) => words.rest = Some(set),
                Err(fault) => words
                    .faults
                    .push(format!("the sensitive words that are regular expressions: {fault}")),
            }
        }
        words.prefilter = Prefilter::new(builder);
        words.source = source;
        words
    }

    fn pattern<'s>(
        &mut self,
        word: &'s SensitiveWord,
        regex: Regex,
        builder: &mut PrefilterBuilder,
        rest: &mut Vec<&'s str>,
    ) {
        let required = expression::required(&word.word);
        let bit = FIRST_PATTERN + u32::try_from(self.patterns.len()).unwrap_or(u32::MAX);
        if required.is_some() && self.patterns.len() < MOST_PATTERNS {
            builder.expression(required, 1 << bit);
            self.patterns.push((regex, word.id));
        } else {
            builder.expression(required, REST);
            rest.push(word.word.as_str());
            self.rest_ids.push(word.id);
        }
    }

    /// The source of these words, including disabled ones.
    pub fn all(&self) -> &[SensitiveWord] {
        &self.source
    }

    /// No text can contain any.
    pub fn is_empty(&self) -> bool {
        self.contains.is_empty()
            && self.exact.is_empty()
            && self.patterns.is_empty()
            && self.rest.is_none()
    }

    /// The enabled words that were compiled, by kind.
    pub fn counts(&self) -> WordCounts {
        WordCounts {
            contains: self.contains_ids.len(),
            exact: self
                .source
                .iter()
                .filter(|w| w.is_enabled && w.match_type == MatchType::Exact)
                .count(),
            regex: self.patterns.len() + self.rest_ids.len(),
        }
    }

    /// Words that are not in effect, and why.
    pub fn faults(&self) -> &[String] {
        &self.faults
    }

    /// The fingerprint of a piece of a body, given in any number of parts.
    pub fn fingerprint<'b>(&self, parts: impl Iterator<Item = &'b [u8]>) -> Fingerprint {
        self.cleared.fingerprint(parts)
    }

    /// The same piece was searched before, and none of its strings contained a word.
    pub fn has_cleared(&self, piece: Fingerprint) -> bool {
        self.cleared.holds(piece)
    }

    /// Records that none of the strings of this piece contains a word, whatever their role. Never
    /// call it for a piece with a string that was skipped because it was not text: it may be one
    /// elsewhere.
    pub fn clear(&self, piece: Fingerprint) {
        self.cleared.note(piece);
    }

    /// A search for the words through any number of texts.
    pub fn search(&self) -> Search<'_> {
        Search { words: self, folded: Vec::new() }
    }
}

/// Checks a regular expression together with those already in effect.
///
/// # Errors
/// Why the pattern is refused.
pub fn check_pattern<'p>(
    new: &'p str,
    others: impl Iterator<Item = &'p str>,
) -> Result<(), PatternFault> {
    pattern::compile(new)?;
    pattern::compile_set(others.chain([new])).map(|_| ())
}
