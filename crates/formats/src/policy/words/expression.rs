//! What a text must contain, ignoring letter case, for a regular expression to match it: a
//! literal, or a run of places.
//!
//! Derived from the engine's own syntax tree, which has both cases of each letter. The engine
//! checks all other conditions, on texts in which this was found. An expression for which nothing
//! can be derived (`\p{Han}{2,}`) has to be tried on every text.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, ClassUnicode, Hir, HirKind};

use super::literal::{self, LONGEST, is_plain};
use super::run::Set;
use crate::policy::fold::{fold_char, has_no_case};

/// Every matching text contains one of these.
pub(super) type Needs = Vec<Need>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Need {
    /// Bytes of the folded text.
    Literal(Vec<u8>),
    Run(Vec<Set>),
}

/// Maximum alternatives that are searched for; and maximum places that are read of an expression.
const MOST: usize = 16;
const PLACES: usize = 256;
/// Larger classes are too common to be a place, and much larger ones are not even read.
const LARGEST_SET: u32 = 12;
const LARGEST_CLASS: u32 = 1000;
/// A run that scores less than this (a known byte scores seven) occurs in every prompt.
const LEAST: u32 = 13;

/// The needs of a match, and the non-ASCII characters that may stand for a byte of a run.
#[derive(Debug, Default)]
pub(super) struct Required {
    pub(super) needs: Needs,
    pub(super) others: Vec<char>,
}

/// The needs of a match of `pattern`; `None` if none can be derived.
pub(super) fn required(pattern: &str) -> Option<Required> {
    let tree = ParserBuilder::new().case_insensitive(true).build().parse(pattern).ok()?;
    let mut reader = ExpressionReader { others: Vec::new() };
    let (_, needs) = reader.needs(&tree)?;
    let runs = needs.iter().any(|need| matches!(need, Need::Run(_)));
    Some(Required { needs, others: if runs { reader.others } else { Vec::new() } })
}

/// A part of an expression.
enum ExpressionPiece {
    Place(Set),
    /// Unknown characters between two places.
    Gap,
    Either(u32, Needs),
}

struct ExpressionReader {
    others: Vec<char>,
}

impl ExpressionReader {
    /// The best needs of a part, and their score.
    fn needs(&mut self, tree: &Hir) -> Option<(u32, Needs)> {
        let mut pieces = Vec::new();
        self.read(tree, &mut pieces);
        let mut best: Option<(u32, Needs)> = None;
        let mut offer = |rate: u32, needs: Needs| {
            if best.as_ref().is_none_or(|(had, _)| rate > *had) {
                best = Some((rate, needs));
            }
        };
        let mut run = Vec::new();
        for piece in pieces.into_iter().chain([ExpressionPiece::Gap]) {
            if let ExpressionPiece::Place(set) = piece {
                run.push(set);
                continue;
            }
            if let Some((rate, need)) = of_run(&run) {
                offer(rate, vec![need]);
            }
            run.clear();
            if let ExpressionPiece::Either(rate, needs) = piece {
                offer(rate, needs);
            }
        }
        best
    }

    fn read(&mut self, tree: &Hir, out: &mut Vec<ExpressionPiece>) {
        if out.len() > PLACES {
            out.push(ExpressionPiece::Gap);
            return;
        }
        match tree.kind() {
            // Neither consumes any text.
            HirKind::Empty | HirKind::Look(_) => {}
            HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
                Ok(text) => text.chars().for_each(|c| character(c, out)),
                Err(_) => out.push(ExpressionPiece::Gap),
            },
            HirKind::Class(Class::Unicode(class)) => self.class(class, out),
            HirKind::Class(Class::Bytes(class)) => match class.to_unicode_class() {
                Some(class) => self.class(&class, out),
                None => out.push(ExpressionPiece::Gap),
            },
            HirKind::Capture(group) => self.read(&group.sub, out),
            HirKind::Concat(parts) => parts.iter().for_each(|part| self.read(part, out)),
            HirKind::Repetition(repeat) => {
                let times = repeat.min.min(u32::try_from(LONGEST).unwrap_or(u32::MAX));
                let whole = repeat.max == Some(times);
                (0..times).for_each(|_| self.read(&repeat.sub, out));
                if !whole {
                    // The first repeats touch the part before, the last ones the part after.
                    out.push(ExpressionPiece::Gap);
                    (0..times).for_each(|_| self.read(&repeat.sub, out));
                }
            }
            HirKind::Alternation(ways) => {
                let each: Option<Vec<_>> = ways.iter().map(|way| self.needs(way)).collect();
                out.push(each.and_then(either).map_or(ExpressionPiece::Gap, |(rate, needs)| {
                    ExpressionPiece::Either(rate, needs)
                }));
            }
        }
    }

    fn class(&mut self, class: &ClassUnicode, out: &mut Vec<ExpressionPiece>) {
        let size: u32 =
            class.iter().map(|range| u32::from(range.end()) - u32::from(range.start()) + 1).sum();
        if size > LARGEST_CLASS {
            out.push(ExpressionPiece::Gap);
            return;
        }
        // All cases of one letter count as one.
        let mut folded: Vec<String> = class
            .iter()
            .flat_map(|r| r.start()..=r.end())
            .map(|c| fold_char(c).collect())
            .collect();
        folded.sort_unstable();
        folded.dedup();
        if let [one] = folded.as_slice() {
            return one.chars().for_each(|c| character(c, out));
        }
        let mut set = Set::default();
        let mut others = Vec::new();
        for text in &folded {
            let mut chars = text.chars();
            match (chars.next(), chars.next()) {
                (Some(c), None) if is_plain(c) && c.is_ascii() => set.add(c as u8),
                (Some(c), None) if !c.is_ascii() && !has_no_case_here(c) => others.push(c),
                _ => return out.push(ExpressionPiece::Gap),
            }
        }
        if set.len() == 0 || set.len() > LARGEST_SET {
            return out.push(ExpressionPiece::Gap);
        }
        self.others.append(&mut others);
        out.push(ExpressionPiece::Place(set));
    }
}

/// Characters that are too frequent to be searched for alone.
const fn has_no_case_here(c: char) -> bool {
    has_no_case(c) && !matches!(c, '\u{ff10}'..='\u{ff19}')
}

fn character(c: char, out: &mut Vec<ExpressionPiece>) {
    for c in fold_char(c) {
        if is_plain(c) {
            out.extend(
                c.encode_utf8(&mut [0; 4])
                    .bytes()
                    .map(|byte| ExpressionPiece::Place(Set::of(byte))),
            );
        } else {
            out.push(ExpressionPiece::Gap);
        }
    }
}

fn either(ways: Vec<(u32, Needs)>) -> Option<(u32, Needs)> {
    let rate = ways.iter().map(|(rate, _)| *rate).min()?;
    let needs: Needs = ways.into_iter().flat_map(|(_, needs)| needs).collect();
    (needs.len() <= MOST).then_some((rate, needs))
}

/// The best of consecutive places: a literal of at least three bytes, or else all of them.
fn of_run(places: &[Set]) -> Option<(u32, Need)> {
    let letters: Vec<Option<u8>> = places.iter().map(Set::single).collect();
    let words: Vec<Vec<u8>> = letters
        .split(Option::is_none)
        .map(|word| word.iter().flatten().copied().collect())
        .collect();
    if let Some((rate, literal)) =
        literal::best(words.iter().map(Vec::as_slice).filter(|word| word.len() >= 3))
    {
        return Some((64 + u32::try_from(rate).unwrap_or(0), Need::Literal(literal)));
    }
    let run = places.get(places.len().saturating_sub(LONGEST)..)?;
    let rate = run.iter().map(|set| if set.len() == 1 { 7 } else { 6 - set.len().ilog2() }).sum();
    let rare_byte = match run {
        [one] => one.single().is_some_and(|byte| literal::rarity(byte) == 9),
        _ => false,
    };
    (rate >= LEAST || rare_byte).then(|| (rate, Need::Run(run.to_vec())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(pattern: &str) -> Option<String> {
        let text = |need: Need| match need {
            Need::Literal(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Need::Run(places) => {
                let place = |set: &Set| {
                    set.single()
                        .map_or_else(|| format!("[{}]", set.len()), |b| char::from(b).to_string())
                };
                places.iter().map(place).collect()
            }
        };
        Some(required(pattern)?.needs.into_iter().map(text).collect::<Vec<_>>().join(" or "))
    }

    #[test]
    fn what_a_match_takes_is_read_from_the_expression() {
        for (pattern, takes) in [
            (r"secret-[0-9]{6}\b", "ret-"),
            (r"\bAKIA[0-9A-Z]{16}\b", "akia"),
            (r"\bpass(word|phrase)s?\b", "word or phrase"),
            (r"(alpha|beta)\d", "alpha or beta"),
            (r"\b\d{3}-\d{2}-\d{4}\b", "[10][10][10]-[10][10]-[10][10][10][10]"),
            (r"1[3-9]\d{5}", "1[7][10][10][10][10][10]"),
            (r"\d{3,}x", "[10][10][10]x"),
            (r"(?:\d{1,3}\.){3}\d{1,3}", "[10].[10]"),
            (r"[\w.+-]+@[\w-]+\.\w+", "@"),
            ("STRASSE|straße", "stra"),
            ("(?-i)ABC", "abc"),
            (r"\p{Han}{2,}", ""),
            (r"[a-z]{4}", ""),
            (r".*\d", ""),
            ("(alpha)?b|c", ""),
            ("a/b", ""),
        ] {
            assert_eq!(said(pattern).unwrap_or_default(), takes, "{pattern}");
        }
        assert_eq!(required(r"敏.{0,5}词").unwrap().needs, [Need::Literal("敏".into())]);
        let others = required(r"\d{9}").unwrap().others;
        assert!(others.contains(&'\u{ff15}') && others.contains(&'٣'));
        assert!(required(r"[0-9]{9}").unwrap().others.is_empty());
    }
}
