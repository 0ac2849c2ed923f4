//! Finds in a request's raw bytes where a sensitive word can be at all, without parsing the JSON.
//!
//! Nearly every request contains none, so this must be cheap. The bytes are folded block by block
//! and searched at once for the [`literal`] of every word and for the needs of every regular
//! expression ([`expression`](super::expression)). If nothing is found, there is no word; otherwise
//! the texts around it are searched exactly. Anything in JSON that could hide a literal counts as
//! found: an escape `\u…` of a character that literals contain, of a letter, or of a backslash.
//!
//! Words without a literal are always suspected.
//!
//! `aho-corasick` does the search ([`many`]); folding and the escapes of JSON are ours. Its
//! automaton alone over the raw bytes, with ASCII letters folded, costs 4.0 instructions per byte
//! with 50 words (bench/RESULTS.md). It would not find a word behind an escape or in another
//! script's upper case.

use std::ops::Range;

use memchr::memmem::Finder;

use super::expression::{Need, Required};
use super::literal::LONGEST;
use super::many::{self, Group};
use super::run::{Run, Set};
use super::{Kinds, literal};
use crate::policy::fold::{ascii_length, fold_char, fold_tail, ideographs};

/// Bytes that are searched together: they and their folded form stay in the core's cache.
pub(super) const BLOCK: usize = 8 * 1024;
/// Bytes of a block that are searched again with the next: no literal, run or escape is longer.
const KEPT: usize = LONGEST;
/// After this many findings a block is suspected of everything.
const MANY: usize = 32;
/// Bytes that are scanned together for rare characters.
const OTHERS_BLOCK: usize = 128;

/// Where in a body which kinds of words can be.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Suspects {
    /// In order; neighbours may overlap.
    pub(super) places: Vec<(Range<usize>, Kinds)>,
    /// The kinds that must be searched everywhere.
    pub(super) always: Kinds,
}

impl Suspects {
    /// The body contains no word.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty() && self.always == 0
    }

    /// The ranges whose texts must be searched, of a body of `len` bytes.
    pub fn ranges(&self, len: usize) -> Vec<Range<usize>> {
        if self.always != 0 {
            return std::iter::once(0..len).collect();
        }
        self.places.iter().map(|(range, _)| range.clone()).collect()
    }

    /// A word can be in the text at `span`.
    pub fn touch(&self, span: &Range<usize>) -> bool {
        self.of(span) != 0
    }

    pub(super) fn of(&self, span: &Range<usize>) -> Kinds {
        let first = self.places.partition_point(|(range, _)| range.end <= span.start);
        let here = self.places.iter().skip(first).take_while(|(range, _)| range.start < span.end);
        here.fold(self.always, |kinds, (_, kind)| kinds | kind)
    }
}

/// Built from the words in effect.
#[derive(Debug, Default)]
pub(super) struct Prefilter {
    groups: Vec<Group>,
    kinds: Vec<Kinds>,
    runs: Vec<(Run, Kinds)>,
    /// Folded non-ASCII characters that may stand for a byte of a run, in order; no ideographs.
    others: Vec<char>,
    /// The first bytes of these.
    other_leads: Set,
    /// The lowest of them.
    first_other: u8,
    unicode_escape: Option<Finder<'static>>,
    /// The bytes of literals and runs.
    holds: Set,
    beyond_ascii: bool,
    all: Kinds,
    always: Kinds,
}

/// What a prefilter is built from.
#[derive(Debug, Default)]
pub(super) struct PrefilterBuilder {
    pub(super) literals: Vec<(Vec<u8>, Kinds)>,
    pub(super) runs: Vec<(Run, Kinds)>,
    pub(super) others: Vec<char>,
    pub(super) always: Kinds,
}

impl PrefilterBuilder {
    /// Adds a folded word.
    pub(super) fn word(&mut self, folded: &str, kind: Kinds) {
        match literal::of_word(folded) {
            Some(literal) => self.literals.push((literal, kind)),
            None => self.always |= kind,
        }
    }

    /// Adds a regular expression with the derived `required`.
    pub(super) fn expression(&mut self, required: Option<Required>, kind: Kinds) {
        let Some(Required { needs, others }) = required else {
            self.always |= kind;
            return;
        };
        self.others.extend(others);
        for need in needs {
            match need {
                Need::Literal(literal) => self.literals.push((literal, kind)),
                Need::Run(places) => match Run::new(&places) {
                    Some(run) => self.runs.push((run, kind)),
                    None => self.always |= kind,
                },
            }
        }
    }
}

impl Prefilter {
    /// A prefilter that suspects everything that it cannot hold.
    pub(super) fn new(builder: PrefilterBuilder) -> Self {
        let PrefilterBuilder { literals, runs, mut others, mut always } = builder;
        others.sort_unstable();
        others.dedup();
        let strings: Vec<Vec<u8>> = literals.iter().map(|(literal, _)| literal.clone()).collect();
        let groups = many::groups(&strings).unwrap_or_else(|_| {
            always |= literals.iter().fold(0, |all, (_, kind)| all | kind);
            Vec::new()
        });
        // Of two literals, one a prefix of the other, either may be found.
        let begins = |a: &[u8], b: &[u8]| a.starts_with(b) || b.starts_with(a);
        let kinds = strings.iter().map(|string| {
            let hidden = literals.iter().filter(|(literal, _)| begins(string, literal));
            hidden.fold(0, |all, (_, kind)| all | kind)
        });
        let kinds: Vec<Kinds> = kinds.collect();
        let mut holds = Set::default();
        strings.iter().flatten().for_each(|byte| holds.add(*byte));
        runs.iter().flat_map(|(run, _)| run.bytes()).for_each(|byte| holds.add(byte));
        let mut other_leads = Set::default();
        others.iter().for_each(|c| other_leads.add(c.encode_utf8(&mut [0; 4]).as_bytes()[0]));
        let first_other = other_leads.bytes().next().unwrap_or(u8::MAX);
        let beyond_ascii = !others.is_empty() || holds.bytes().any(|byte| !byte.is_ascii());
        let all =
            kinds.iter().chain(runs.iter().map(|(_, kind)| kind)).fold(0, |all, kind| all | kind);
        let unicode_escape = (all != 0).then(|| Finder::new(b"\\u").into_owned());
        Self {
            groups,
            kinds,
            runs,
            others,
            other_leads,
            first_other,
            unicode_escape,
            holds,
            beyond_ascii,
            all,
            always,
        }
    }

    /// The suspects of a body that has not been scanned.
    pub(super) const fn suspects(&self) -> Suspects {
        Suspects { places: Vec::new(), always: self.always }
    }

    /// Scans a stretch of a body, which begins at `from` and cuts no string; `block` is [`BLOCK`]
    /// except in tests.
    pub(super) fn scan<'b>(
        &self,
        from: usize,
        parts: impl Iterator<Item = &'b [u8]>,
        suspects: &mut Suspects,
        folded: &mut Vec<u8>,
        block: usize,
    ) {
        if self.all & !self.always == 0 {
            return;
        }
        folded.clear();
        let (mut whole, mut at) = (0, from);
        for part in parts.flat_map(|chunk| chunk.chunks(block)) {
            let fresh = whole;
            folded.extend_from_slice(part);
            whole = fold_tail(folded, fresh);
            let text = folded.get(..whole).unwrap_or_default();
            let kinds = self.look(text, fresh);
            let end = at + part.len();
            if kinds != 0 {
                // A character's folded form is at least a third as long, and one may have been
                // incomplete.
                suspects.places.push((at.saturating_sub(3 * KEPT + 4).max(from)..end, kinds));
            }
            at = end;
            let passed = whole.saturating_sub(KEPT);
            folded.drain(..passed);
            whole -= passed;
        }
    }

    /// The kinds that can be in a stretch of folded bytes, of which those from `fresh` on are new.
    fn look(&self, text: &[u8], fresh: usize) -> Kinds {
        let mut kinds = self.escapes(text);
        for group in &self.groups {
            let mut from = 0;
            for found in 0.. {
                let Some((start, number)) = group.find(text, from) else { break };
                kinds |= self.kinds.get(number).copied().unwrap_or(self.all);
                if kinds == self.all || found == MANY {
                    return self.all;
                }
                from = start + 1;
            }
        }
        for (run, kind) in &self.runs {
            if kinds & kind != *kind && run.is_in(text) {
                kinds |= kind;
            }
        }
        if !self.others.is_empty()
            && kinds != self.all
            && self.has_others(text.get(fresh..).unwrap_or_default())
        {
            kinds = self.all;
        }
        kinds
    }

    /// Everything, if a character that a literal may contain is written as an escape.
    fn escapes(&self, text: &[u8]) -> Kinds {
        let Some(finder) = &self.unicode_escape else { return 0 };
        let hides = finder.find_iter(text).any(|at| {
            let digits =
                text.get(at + 2..at + 6).and_then(|digits| std::str::from_utf8(digits).ok());
            digits
                .and_then(|digits| u32::from_str_radix(digits, 16).ok())
                .is_some_and(|code| self.is_hidden(code))
        });
        if hides { self.all } else { 0 }
    }

    fn is_hidden(&self, code: u32) -> bool {
        let Some(c) = char::from_u32(code) else { return self.beyond_ascii };
        if code >= 0x80 && self.beyond_ascii {
            return true;
        }
        // Letters, digits and backslashes may be part of an escape within the text.
        let held =
            |c: char| u8::try_from(c).is_ok_and(|byte| byte.is_ascii() && self.holds.has(byte));
        fold_char(c).any(|c| c.is_ascii_alphanumeric() || c == '\\' || held(c))
    }

    fn has_others(&self, text: &[u8]) -> bool {
        let is_other = |letter: &[u8]| {
            let letter = std::str::from_utf8(letter).unwrap_or_default();
            letter.chars().any(|c| self.others.binary_search(&c).is_ok())
        };
        let mut at = 0;
        while at < text.len() {
            let end = text.len().min(at + OTHERS_BLOCK);
            // Most letters of most scripts precede them.
            if text[at..end].iter().fold(0, |highest, byte| highest.max(*byte)) < self.first_other {
                at = end;
            }
            while at < end {
                at += ascii_length(&text[at..]);
                at += ideographs(text, at);
                let Some(&lead) = text.get(at).filter(|byte| !byte.is_ascii()) else { continue };
                let len = match lead {
                    0xf0.. => 4,
                    0xe0..0xf0 => 3,
                    0xc0..0xe0 => 2,
                    _ => 1,
                };
                if self.other_leads.has(lead) && text.get(at..at + len).is_some_and(is_other) {
                    return true;
                }
                at += len;
            }
        }
        false
    }
}
