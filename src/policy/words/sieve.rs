//! Tells from a request's raw bytes where a sensitive word can be at all, without taking the JSON
//! apart.
//!
//! Nearly every request holds none, and that should cost little. So the bytes are folded block by
//! block and searched at once for the [`needle`] of every word and for what every regular
//! expression needs ([`expression`](super::expression)). Where nothing is found, there is no word;
//! where something is, the texts around it are looked at closely. What could hide a needle in JSON
//! counts as found: an escape `\u…` of a character that needles hold, of a letter, or of a
//! backslash.
//!
//! Words that no needle stands for are always suspected.

use std::ops::Range;

use memchr::memmem::Finder;

use super::expression::{Need, Wanted};
use super::many::{self, Group};
use super::needle::LONGEST;
use super::run::{Run, Set};
use super::{Kinds, needle};
use crate::policy::fold::{ascii_length, fold_char, fold_tail, ideographs};

/// Bytes that are searched together: they and what they are folded into stay near the core.
pub(super) const BLOCK: usize = 8 * 1024;
/// So much of a block is searched again with the next: no needle, run or escape is longer.
const KEPT: usize = LONGEST;
/// After so many findings in one block it is suspected of everything.
const MANY: usize = 32;
/// Bytes that are looked through together for rare characters.
const OTHERS_BLOCK: usize = 128;

/// Where in a body what kinds of words can be.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Suspects {
    /// In order; neighbours may overlap.
    pub(super) places: Vec<(Range<usize>, Kinds)>,
    /// What has to be looked for everywhere.
    pub(super) always: Kinds,
}

impl Suspects {
    /// The body holds no word.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty() && self.always == 0
    }

    /// Where texts have to be looked at, of a body of `len` bytes.
    #[must_use]
    pub fn ranges(&self, len: usize) -> Vec<Range<usize>> {
        if self.always != 0 {
            return std::iter::once(0..len).collect();
        }
        self.places.iter().map(|(range, _)| range.clone()).collect()
    }

    /// A word can be in what lies at `span`.
    #[must_use]
    pub fn touch(&self, span: &Range<usize>) -> bool {
        self.of(span) != 0
    }

    pub(super) fn of(&self, span: &Range<usize>) -> Kinds {
        let first = self.places.partition_point(|(range, _)| range.end <= span.start);
        let here = self.places.iter().skip(first).take_while(|(range, _)| range.start < span.end);
        here.fold(self.always, |kinds, (_, kind)| kinds | kind)
    }
}

/// Made from the words in effect.
#[derive(Debug, Default)]
pub(super) struct Sieve {
    groups: Vec<Group>,
    kinds: Vec<Kinds>,
    runs: Vec<(Run, Kinds)>,
    /// Folded characters beyond ASCII that stand for a byte of a run, in order; no ideographs.
    others: Vec<char>,
    /// The bytes with which these begin.
    other_leads: Set,
    /// The lowest of them.
    first_other: u8,
    unicode_escape: Option<Finder<'static>>,
    /// Bytes that needles and runs hold.
    holds: Set,
    beyond_ascii: bool,
    all: Kinds,
    always: Kinds,
}

/// What a sieve is made from.
#[derive(Debug, Default)]
pub(super) struct Mesh {
    pub(super) needles: Vec<(Vec<u8>, Kinds)>,
    pub(super) runs: Vec<(Run, Kinds)>,
    pub(super) others: Vec<char>,
    pub(super) always: Kinds,
}

impl Mesh {
    /// A folded word.
    pub(super) fn word(&mut self, folded: &str, kind: Kinds) {
        match needle::of_word(folded) {
            Some(needle) => self.needles.push((needle, kind)),
            None => self.always |= kind,
        }
    }

    /// A regular expression, of which `wanted` is known.
    pub(super) fn expression(&mut self, wanted: Option<Wanted>, kind: Kinds) {
        let Some(Wanted { needs, others }) = wanted else {
            self.always |= kind;
            return;
        };
        self.others.extend(others);
        for need in needs {
            match need {
                Need::Needle(needle) => self.needles.push((needle, kind)),
                Need::Run(places) => match Run::new(&places) {
                    Some(run) => self.runs.push((run, kind)),
                    None => self.always |= kind,
                },
            }
        }
    }
}

impl Sieve {
    /// A sieve that suspects everything of what it cannot hold.
    pub(super) fn new(mesh: Mesh) -> Self {
        let Mesh { needles, runs, mut others, mut always } = mesh;
        others.sort_unstable();
        others.dedup();
        let strings: Vec<Vec<u8>> = needles.iter().map(|(needle, _)| needle.clone()).collect();
        let groups = many::groups(&strings).unwrap_or_else(|_| {
            always |= needles.iter().fold(0, |all, (_, kind)| all | kind);
            Vec::new()
        });
        // Of two needles of which one begins the other, either may be found.
        let begins = |a: &[u8], b: &[u8]| a.starts_with(b) || b.starts_with(a);
        let kinds = strings.iter().map(|string| {
            let hidden = needles.iter().filter(|(needle, _)| begins(string, needle));
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
        let all = kinds.iter().chain(runs.iter().map(|(_, kind)| kind)).fold(0, |all, kind| all | kind);
        let unicode_escape = (all != 0).then(|| Finder::new(b"\\u").into_owned());
        Self { groups, kinds, runs, others, other_leads, first_other, unicode_escape, holds, beyond_ascii, all, always }
    }

    /// What is suspected of a body of which nothing has been looked at.
    pub(super) const fn suspects(&self) -> Suspects {
        Suspects { places: Vec::new(), always: self.always }
    }

    /// Goes through a stretch of a body, which begins at `from` and cuts no string; `block` is
    /// [`BLOCK`] but in tests.
    pub(super) fn sift<'b>(
        &self,
        (from, parts): (usize, impl Iterator<Item = &'b [u8]>),
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
                // A character's folded form is no shorter than a third of it, and one may have
                // waited for its rest.
                suspects.places.push((at.saturating_sub(3 * KEPT + 4).max(from)..end, kinds));
            }
            at = end;
            let passed = whole.saturating_sub(KEPT);
            folded.drain(..passed);
            whole -= passed;
        }
    }

    /// What can be in a stretch of folded bytes, of which those from `fresh` on are new.
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
        if !self.others.is_empty() && kinds != self.all && self.has_others(text.get(fresh..).unwrap_or_default()) {
            kinds = self.all;
        }
        kinds
    }

    /// Everything, when somebody wrote what a needle may hold as an escape.
    fn escapes(&self, text: &[u8]) -> Kinds {
        let Some(finder) = &self.unicode_escape else { return 0 };
        let hides = finder.find_iter(text).any(|at| {
            let digits = text.get(at + 2..at + 6).and_then(|digits| std::str::from_utf8(digits).ok());
            digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).is_some_and(|code| self.is_hidden(code))
        });
        if hides { self.all } else { 0 }
    }

    fn is_hidden(&self, code: u32) -> bool {
        let Some(c) = char::from_u32(code) else { return self.beyond_ascii };
        if code >= 0x80 && self.beyond_ascii {
            return true;
        }
        // Letters, digits and backslashes may be part of an escape within the text.
        let held = |c: char| u8::try_from(c).is_ok_and(|byte| byte.is_ascii() && self.holds.has(byte));
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
            // Most letters of most scripts come before them.
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
