//! Validates and compiles an operator's regular expressions, for sensitive words and error rules.
//!
//! The engine needs time linear in the text, whatever the pattern. It refuses what it cannot match
//! in that time (look-around, back-references); this module returns a plain reason. Also refused
//! are patterns that overload other engines (an unbounded repeat within an unbounded repeat), since
//! a pattern may be copied elsewhere; patterns that compile to a large program; and those that
//! match the empty text, as they would match everything.
//!
//! Letter case is ignored. `^` and `$` are the text's ends; with `(?m)` they are those of a line.
//! `(?-i)` makes letter case significant.

use regex::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};
use regex_syntax::ast::{self, Ast, ErrorKind, RepetitionKind, RepetitionRange};

/// Longest pattern, characters.
pub const MAX_LENGTH: usize = 500;
/// Largest compiled pattern, and all patterns of one kind together, bytes.
const MAX_COMPILED: usize = 256 * 1024;
const MAX_COMPILED_TOGETHER: usize = 16 * 1024 * 1024;
/// Memory of the engine's cache, for each set and thread that uses it, in bytes.
const CACHE: usize = 8 * 1024 * 1024;

/// Why a regular expression is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternFault {
    /// More than [`MAX_LENGTH`] characters.
    #[error("the pattern is longer than {MAX_LENGTH} characters")]
    TooLong,
    /// A repeat without an upper bound within another one, such as `(a+)+`.
    #[error(
        "a repeat without an upper bound stands within another one, as in (a+)+: bound one of them"
    )]
    NestedRepeat,
    /// Look-ahead or look-behind, which the engine does not have.
    #[error("look-around, as in (?=…) or (?<!…), is not supported")]
    LookAround,
    /// A back-reference, which the engine does not have.
    #[error("back-references, as in \\1, are not supported")]
    BackReference,
    /// The compiled pattern, or a set of patterns, exceeds its bound in bytes.
    #[error("the pattern is too complex: its repeats or character classes make it too large")]
    TooLarge,
    /// The pattern can match without any character.
    #[error("the pattern can match without any character, so it would match everything")]
    MatchesEmpty,
    /// The text is not a regular expression. The value is the engine's reason, in one line.
    #[error("this is not a regular expression: {0}")]
    Syntax(String),
}

/// Checks and compiles one pattern.
///
/// # Errors
/// Why the pattern is refused.
pub fn compile(pattern: &str) -> Result<Regex, PatternFault> {
    if pattern.chars().count() > MAX_LENGTH {
        return Err(PatternFault::TooLong);
    }
    let parsed = ast::parse::Parser::new().parse(pattern).map_err(|error| match error.kind() {
        ErrorKind::UnsupportedLookAround => PatternFault::LookAround,
        ErrorKind::UnsupportedBackreference => PatternFault::BackReference,
        kind => PatternFault::Syntax(kind.to_string()),
    })?;
    if nests(&parsed, false) {
        return Err(PatternFault::NestedRepeat);
    }
    let built = RegexBuilder::new(pattern).case_insensitive(true).size_limit(MAX_COMPILED).build();
    let regex = built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => PatternFault::TooLarge,
        other => PatternFault::Syntax(last_line(&other.to_string())),
    })?;
    // `\b` and other assertions take no character: they match in nearly every text.
    if regex_syntax::parse(pattern).is_ok_and(|hir| hir.properties().minimum_len() == Some(0)) {
        return Err(PatternFault::MatchesEmpty);
    }
    Ok(regex)
}

/// Compiles many patterns into one automaton, which finds all that match in one pass.
///
/// # Errors
/// [`PatternFault::TooLarge`] when they are too large together.
pub fn compile_set<'p>(
    patterns: impl IntoIterator<Item = &'p str>,
) -> Result<RegexSet, PatternFault> {
    RegexSetBuilder::new(patterns)
        .case_insensitive(true)
        .size_limit(MAX_COMPILED_TOGETHER)
        .dfa_size_limit(CACHE)
        .build()
        .map_err(|_| PatternFault::TooLarge)
}

/// Whether an unbounded repeat is nested in another; `inside`: within one already. The parser
/// bounds the depth.
fn nests(ast: &Ast, inside: bool) -> bool {
    match ast {
        Ast::Repetition(repeat) => {
            let unbounded = match &repeat.op.kind {
                RepetitionKind::ZeroOrOne => false,
                RepetitionKind::ZeroOrMore | RepetitionKind::OneOrMore => true,
                RepetitionKind::Range(range) => matches!(range, RepetitionRange::AtLeast(_)),
            };
            (inside && unbounded) || nests(&repeat.ast, inside || unbounded)
        }
        Ast::Group(group) => nests(&group.ast, inside),
        Ast::Alternation(either) => either.asts.iter().any(|ast| nests(ast, inside)),
        Ast::Concat(all) => all.asts.iter().any(|ast| nests(ast, inside)),
        _ => false,
    }
}

/// The engine prints a syntax error on several lines, the reason last.
fn last_line(text: &str) -> String {
    let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    line.trim().trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dangerous_patterns_are_refused_each_with_its_reason() {
        let long = "a".repeat(MAX_LENGTH + 1);
        let cases: &[(&str, &str)] = &[
            ("(a+)+$", "NestedRepeat"),
            ("(a*)*", "NestedRepeat"),
            ("([a-zA-Z]+)*", "NestedRepeat"),
            ("(a|aa|b*)+$", "NestedRepeat"),
            ("(.*a){3,}", "NestedRepeat"),
            ("^(([a-z])+.)+[A-Z]([a-z])+$", "NestedRepeat"),
            ("(?:x{2,}y)*z", "NestedRepeat"),
            ("((a{1,3})*b)+", "NestedRepeat"),
            ("(?=secret)x", "LookAround"),
            ("(?!secret)x", "LookAround"),
            ("(?<=secret)x", "LookAround"),
            ("(?<!secret)x", "LookAround"),
            (r"(a)\1", "BackReference"),
            ("((((a{50}){50}){50}){50})", "TooLarge"),
            (r"\p{L}{1000}", "TooLarge"),
            ("(x{1,900}){1,900}y", "TooLarge"),
            (&long, "TooLong"),
            ("a*", "MatchesEmpty"),
            ("(foo)?", "MatchesEmpty"),
            ("", "MatchesEmpty"),
            ("^", "MatchesEmpty"),
            ("(unclosed", "Syntax"),
            ("[z-a]", "Syntax"),
            ("(?>atomic)", "Syntax"),
            (r"\p{NoSuchClass}", "Syntax"),
            ("a{3,2}", "Syntax"),
        ];
        for (pattern, reason) in cases {
            let fault = compile(pattern).expect_err(pattern);
            let kind = format!("{fault:?}");
            assert_eq!(kind.split('(').next(), Some(*reason), "{pattern}: {fault}");
            assert!(!fault.to_string().contains('\n'), "{fault}");
        }
    }

    #[test]
    fn patterns_of_daily_use_are_taken() {
        for (pattern, text) in [
            (r"\bpass(word|phrase)s?\b", "the PassPhrases are"),
            (r"^\d{3}-\d{2}-\d{4}$", "123-45-6789"),
            (r"(a|b)+c", "ABC"),
            (r"([a-z]{1,63}\.)+corp", "www.example.corp"),
            (r"(?:\d{1,3}\.){3}\d{1,3}", "at 10.0.0.1 now"),
            (r"敏感.{0,5}词", "敏感的词"),
            (r"\p{Han}{2,}", "汉字"),
            ("STRASSE|straße", "STRAẞE"),
        ] {
            assert!(compile(pattern).unwrap().is_match(text), "{pattern}");
        }
    }

    #[test]
    fn a_bad_pattern_elsewhere_costs_linear_time_here() {
        // Refused above; compiled without the check, to show that even then it takes linear time.
        let regex = RegexBuilder::new("(a+)+$").build().unwrap();
        assert!(!regex.is_match(&("a".repeat(200_000) + "!")));
    }

    #[test]
    fn sets_are_bounded_too() {
        let patterns: Vec<String> = (0..400).map(|n| format!(r"\w{{20}}{n}")).collect();
        assert_eq!(
            compile_set(patterns.iter().map(String::as_str)).unwrap_err(),
            PatternFault::TooLarge
        );
        assert!(compile_set(["one", "two"]).unwrap().matches("and TWO").matched(1));
    }
}
