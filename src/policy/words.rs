//! Finds an operator's sensitive words in texts, all of them in one pass over each text.
//!
//! Words of the kind `contains` are one automaton (Aho-Corasick), `exact` ones a table of whole texts, regular expressions one
//! set. Letter case is ignored by the rule of [`super::fold`] (by the engine's own rule for regular expressions). What is
//! found is a word's id: neither the word nor the text goes on from here.

use std::collections::HashMap;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use regex::RegexSet;

use super::fold::{fold, fold_into};
use super::pattern::{self, PatternFault};
use crate::domain::ids::WordId;
use crate::domain::matching::MatchType;
use crate::domain::word::SensitiveWord;

/// Up to so many bytes of words the fastest automaton is built; it takes some hundred bytes of memory for each.
const FAST_MAX: usize = 64 * 1024;

/// The words in force, ready to be looked for.
#[derive(Debug, Default)]
pub struct Words {
    source: Vec<SensitiveWord>,
    contains: Option<AhoCorasick>,
    contains_ids: Vec<WordId>,
    exact: HashMap<Box<str>, WordId>,
    /// No longer text can be one of `exact`, bytes.
    exact_longest: usize,
    patterns: Option<RegexSet>,
    pattern_ids: Vec<WordId>,
    faults: Vec<String>,
}

/// How many words of each kind are in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WordCounts {
    pub contains: usize,
    pub exact: usize,
    pub regex: usize,
}

impl Words {
    /// Compiles the enabled ones. A word that cannot be is left out and named in [`Words::faults`]: what is entered is
    /// checked before, so that takes another version's hand.
    #[must_use]
    pub fn compile(source: Vec<SensitiveWord>) -> Self {
        let mut words = Self { source, ..Self::default() };
        let mut contains = Vec::new();
        let mut patterns = Vec::new();
        for word in words.source.iter().filter(|word| word.is_enabled) {
            match word.match_type {
                MatchType::Contains => {
                    contains.push(fold(&word.word));
                    words.contains_ids.push(word.id);
                }
                MatchType::Exact => {
                    let text = fold(word.word.trim());
                    words.exact_longest = words.exact_longest.max(text.len());
                    words.exact.insert(text.into(), word.id);
                }
                MatchType::Regex => match pattern::compile(&word.word) {
                    Ok(_) => {
                        patterns.push(word.word.as_str());
                        words.pattern_ids.push(word.id);
                    }
                    Err(fault) => words.faults.push(format!("sensitive word {}: {fault}", word.id)),
                },
            }
        }
        if !contains.is_empty() {
            match automaton(&contains) {
                Ok(built) => words.contains = Some(built),
                Err(error) => words.faults.push(format!("the sensitive words: {error}")),
            }
        }
        if !patterns.is_empty() {
            match pattern::compile_set(patterns) {
                Ok(set) => words.patterns = Some(set),
                Err(fault) => words.faults.push(format!("the sensitive words that are regular expressions: {fault}")),
            }
        }
        words
    }

    /// What these were made from, disabled words included.
    #[must_use]
    pub fn all(&self) -> &[SensitiveWord] {
        &self.source
    }

    /// No text can hold any.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.contains.is_none() && self.exact.is_empty() && self.patterns.is_none()
    }

    #[must_use]
    pub fn counts(&self) -> WordCounts {
        WordCounts {
            contains: self.contains_ids.len(),
            exact: self.source.iter().filter(|w| w.is_enabled && w.match_type == MatchType::Exact).count(),
            regex: self.pattern_ids.len(),
        }
    }

    /// What could not be put in force, and why.
    #[must_use]
    pub fn faults(&self) -> &[String] {
        &self.faults
    }

    /// A look for the words through any number of texts.
    #[must_use]
    pub fn search(&self) -> Search<'_> {
        Search { words: self, folded: String::new() }
    }
}

/// Checks a regular expression together with those that are in force already.
///
/// # Errors
/// Why it is refused.
pub fn check_pattern<'p>(new: &'p str, others: impl Iterator<Item = &'p str>) -> Result<(), PatternFault> {
    pattern::compile(new)?;
    pattern::compile_set(others.chain([new])).map(|_| ())
}

fn automaton(words: &[String]) -> Result<AhoCorasick, aho_corasick::BuildError> {
    let small = words.iter().map(String::len).sum::<usize>() <= FAST_MAX;
    // Texts of ASCII alone are searched as they are, without a folded copy.
    let mut builder = AhoCorasick::builder();
    builder.ascii_case_insensitive(true).kind(small.then_some(AhoCorasickKind::DFA)).build(words)
}

/// See [`Words::search`]; keeps its memory between texts.
pub struct Search<'w> {
    words: &'w Words,
    folded: String,
}

impl Search<'_> {
    /// A word that `text` holds, if it holds one.
    pub fn find(&mut self, text: &str) -> Option<WordId> {
        let words = self.words;
        let trimmed = text.trim();
        // Folding makes no text shorter than a third.
        let maybe_exact = !words.exact.is_empty() && trimmed.len() <= words.exact_longest.saturating_mul(3);
        let ascii = text.is_ascii();
        if (words.contains.is_some() && !ascii) || maybe_exact {
            self.folded.clear();
            fold_into(text, &mut self.folded);
        }
        let folded = if ascii { text } else { self.folded.as_str() };
        if let Some(hit) = words.contains.as_ref().and_then(|all| all.find(folded)) {
            return words.contains_ids.get(hit.pattern().as_usize()).copied();
        }
        if maybe_exact && let Some(id) = words.exact.get(self.folded.trim()) {
            return Some(*id);
        }
        let set = words.patterns.as_ref()?;
        // Whether any matches is cheaper to know than which.
        if !set.is_match(text) {
            return None;
        }
        set.matches(text).iter().next().and_then(|at| words.pattern_ids.get(at)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::clock::Timestamp;

    fn word(id: i64, match_type: MatchType, word: &str) -> SensitiveWord {
        SensitiveWord {
            id: WordId(id),
            word: word.to_owned(),
            match_type,
            description: String::new(),
            is_enabled: true,
            created_at: Timestamp(0),
            updated_at: Timestamp(0),
        }
    }

    fn words() -> Words {
        let mut off = word(9, MatchType::Contains, "switched off");
        off.is_enabled = false;
        Words::compile(vec![
            word(1, MatchType::Contains, "Bomb"),
            word(2, MatchType::Contains, "straße"),
            word(3, MatchType::Contains, "机密"),
            word(4, MatchType::Exact, "Launch Codes"),
            word(5, MatchType::Exact, "Ω"),
            word(6, MatchType::Regex, r"\bproject\s+x\d+\b"),
            off,
        ])
    }

    #[test]
    fn words_of_each_kind_are_found_whatever_their_case() {
        let words = words();
        let mut search = words.search();
        for (text, found) in [
            ("how to build a BOMB", Some(1)),
            ("é BoMb", Some(1)),
            ("the STRASSE, é", Some(2)),
            ("strasse", Some(2)),
            ("这是机密文件", Some(3)),
            ("  launch codes\n", Some(4)),
            ("the launch codes", None),
            ("ω", Some(5)),
            ("ω ω", None),
            ("on Project  X42.", Some(6)),
            ("on projection X42", None),
            ("switched off", None),
            ("bo mb", None),
            ("", None),
        ] {
            assert_eq!(search.find(text).map(|id| id.0), found, "{text}");
        }
        assert_eq!(words.counts(), WordCounts { contains: 3, exact: 2, regex: 1 });
        assert!(words.faults().is_empty());
    }

    #[test]
    fn a_bad_stored_pattern_is_named_and_the_others_stay_in_force() {
        let words = Words::compile(vec![word(1, MatchType::Regex, "(a+)+"), word(2, MatchType::Regex, "ab")]);
        assert!(words.faults()[0].starts_with("sensitive word 1:"), "{:?}", words.faults());
        assert_eq!(words.search().find("AB"), Some(WordId(2)));
        assert!(Words::compile(Vec::new()).is_empty());
    }

    #[test]
    fn patterns_are_checked_together() {
        assert!(check_pattern("a|b", ["c"].into_iter()).is_ok());
        assert_eq!(check_pattern("(a*)*", std::iter::empty()), Err(PatternFault::NestedRepeat));
        let many: Vec<String> = (0..300).map(|n| format!(r"\w{{20}}{n}")).collect();
        assert_eq!(check_pattern("z", many.iter().map(String::as_str)), Err(PatternFault::TooLarge));
    }
}
