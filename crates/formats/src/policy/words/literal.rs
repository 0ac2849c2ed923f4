//! A literal: a part of a word that occurs in a request's raw bytes wherever the word occurs in a
//! text.
//!
//! In JSON a text's characters may be written as escapes. Characters that must or may have a short
//! escape (quotes, backslashes, slashes, control characters) are in no literal; the prefilter
//! itself detects unnecessary `\u…` escapes. So a literal is searched in a complete body at once,
//! without parsing its strings. It is cut where its first bytes are rarest in prompts.
//!
//! See docs/decisions/20-words-in-raw-json.md.

/// Longest literal, in bytes.
pub(super) const LONGEST: usize = 32;
/// A shorter one would occur nearly everywhere.
const SHORTEST: usize = 2;
/// The engine filters by this many first bytes.
const HEAD: usize = 4;

/// Frequent bytes of prompts (text, code, Chinese in UTF-8), the most frequent first.
const FREQUENT: &[u8] =
    b" etaoinsrhldcumfpgwybvk.,-_()=':;0123456789{}[]\xe4\xe5\xe6\xe7\xe8\xe9\xef\xe3xjqz";

/// The rarity of a byte in prompts: 1 for the most frequent ones.
pub(super) fn rarity(byte: u8) -> usize {
    FREQUENT.iter().position(|frequent| *frequent == byte).map_or(9, |at| 1 + at / 8)
}

/// Whether a literal may contain the character.
pub(super) const fn is_plain(c: char) -> bool {
    !matches!(c, '\0'..='\x1f' | '"' | '\\' | '/' | '\x7f')
}

/// The literal of a folded word.
pub(super) fn of_word(folded: &str) -> Option<Vec<u8>> {
    best(folded.split(|c| !is_plain(c)).map(str::as_bytes)).map(|(_, literal)| literal)
}

/// The best literal within several byte strings, each of which may be cut anywhere, and its score.
pub(super) fn best<'s>(strings: impl Iterator<Item = &'s [u8]>) -> Option<(usize, Vec<u8>)> {
    let cuts = strings.flat_map(|string| {
        let starts = 0..=string.len().saturating_sub(HEAD);
        starts.filter_map(|start| string.get(start..string.len().min(start + LONGEST)))
    });
    let cuts = cuts.filter(|cut| cut.len() >= SHORTEST);
    let rated =
        cuts.map(|cut| (cut.iter().take(HEAD).map(|byte| rarity(*byte)).sum::<usize>(), cut));
    rated.max_by_key(|(rate, cut)| (*rate, cut.len())).map(|(rate, cut)| (rate, cut.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_literal_has_nothing_that_may_be_an_escape_and_begins_rarely() {
        for (word, literal) in [
            ("the zebra", "zebra"),
            ("forbidden phrase 7", "se 7"),
            ("a/b", ""),
            ("\"x\"", ""),
            ("tell \"nobody\" this", "body"),
            ("c:\\path\\to\\file", "path"),
            ("密", "密"),
            ("ab", "ab"),
            ("line\nfeed", "feed"),
            ("", ""),
        ] {
            assert_eq!(
                String::from_utf8_lossy(&of_word(word).unwrap_or_default()),
                literal,
                "{word}"
            );
        }
        assert_eq!(of_word(&"q".repeat(500)).unwrap().len(), LONGEST);
    }
}
