//! Text without its letter case, so that an operator's pattern and a client's text can be compared.
//!
//! The rule: each letter is converted to upper case and then to lower case, by Unicode's tables. So
//! `É` is `é`, `ß` and `ẞ` are `ss`, and all three sigmas are one. Accents are kept, and nothing is
//! composed or decomposed: `é` as one character and as two differ.
//!
//! Prompts are long and mix scripts, so [`fold_tail`] works in place. Nearly every letter is as
//! long as its lower-case form, which is in a table for two-byte letters; East Asian scripts have
//! no case at all. Only a text with one of the few others (`ı`, `K`) is rewritten.

use std::sync::LazyLock;

/// `text` without its letter case.
pub fn fold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if has_no_case(c) {
            out.push(c);
        } else {
            out.extend(fold_char(c));
        }
    }
    out
}

/// One character without its case: up to three.
pub fn fold_char(c: char) -> impl Iterator<Item = char> {
    // The capital sharp s is the only letter whose lower-case form has a different capital.
    let c = if c == 'ẞ' { 'ß' } else { c };
    c.to_uppercase().flat_map(char::to_lowercase)
}

/// Folds the UTF-8 text after the index `from` in place, and returns the index after its last
/// complete character: the text may end within one, which stays as it is.
pub fn fold_tail(text: &mut Vec<u8>, from: usize) -> usize {
    let Some(tail) = text.get_mut(from..) else { return text.len() };
    tail.make_ascii_lowercase();
    if let Some(end) = fold_letters(tail) {
        return from + end;
    }
    let rest = text.split_off(from);
    for part in rest.utf8_chunks() {
        text.extend_from_slice(fold(part.valid()).as_bytes());
        let end = text.len();
        text.extend_from_slice(part.invalid());
        // Within a text nothing is invalid; at its end this is a character that continues in the
        // next part.
        if !part.invalid().is_empty() {
            return end;
        }
    }
    text.len()
}

/// The same in place for a text without ASCII capitals; `None` if a letter's lower-case form has
/// another length.
fn fold_letters(text: &mut [u8]) -> Option<usize> {
    let two_bytes = &**TWO_BYTES;
    let mut at = 0;
    while at < text.len() {
        at += ascii_length(&text[at..]);
        loop {
            at += ideographs(text, at);
            let Some(&lead) = text.get(at).filter(|byte| !byte.is_ascii()) else { break };
            match lead {
                ..0xe0 => {
                    let Some(letter) = text[at..].first_chunk_mut::<2>() else { return Some(at) };
                    let small =
                        two_bytes[usize::from(lead & 0x1f) << 6 | usize::from(letter[1] & 0x3f)];
                    if small == [0, 0] {
                        return None;
                    }
                    *letter = small;
                    at += 2;
                }
                _ => {
                    let len = if lead < 0xf0 { 3 } else { 4 };
                    let Some(letter) = text.get_mut(at..at + len) else { return Some(at) };
                    fold_long(letter)?;
                    at += len;
                }
            }
        }
    }
    // Only an ideograph is skipped before it is known to be complete.
    Some(if at > text.len() { at - 3 } else { at })
}

/// A character of three or four bytes, in place.
fn fold_long(letter: &mut [u8]) -> Option<()> {
    let rest = letter.iter().skip(1).fold(0, |code, byte| code << 6 | u32::from(byte & 0x3f));
    let first = letter.first().map_or(0, |lead| u32::from(*lead));
    let code =
        if letter.len() == 3 { (first & 0x0f) << 12 | rest } else { (first & 0x07) << 18 | rest };
    let c = char::from_u32(code)?;
    if has_no_case(c) {
        return Some(());
    }
    let (mut small, mut len) = ([0; 16], 0);
    for c in fold_char(c) {
        len += c.encode_utf8(small.get_mut(len..)?).len();
    }
    letter.copy_from_slice(small.get(..len).filter(|small| small.len() == letter.len())?);
    Some(())
}

/// The lower-case forms of U+0080 to U+07FF, by code; zeros if they do not take two bytes.
static TWO_BYTES: LazyLock<Box<[[u8; 2]; 0x800]>> = LazyLock::new(|| {
    let mut all = Box::new([[0; 2]; 0x800]);
    for c in '\u{80}'..'\u{800}' {
        let small: String = fold_char(c).collect();
        all[c as usize] = small.as_bytes().try_into().unwrap_or_default();
    }
    all
});

/// How many bytes precede the first that is not ASCII.
pub fn ascii_length(text: &[u8]) -> usize {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let mut at = 0;
    // Between two words of another script these are few.
    while let Some(word) = text[at..].first_chunk::<8>() {
        let high = u64::from_le_bytes(*word) & HIGH;
        if high != 0 {
            return at + high.trailing_zeros() as usize / 8;
        }
        at += 8;
        while let Some(block) = text[at..].first_chunk::<32>().filter(|block| block.is_ascii()) {
            at += block.len();
        }
    }
    at + text[at..].iter().take_while(|byte| byte.is_ascii()).count()
}

/// How many bytes after `at` are characters of U+3000 to U+9FFF, which have no case; the last may
/// be incomplete.
pub fn ideographs(text: &[u8], at: usize) -> usize {
    let mut end = at;
    while text.get(end).is_some_and(|lead| matches!(lead, 0xe3..=0xe9)) {
        end += 3;
    }
    end - at
}

/// East Asian scripts, punctuation and pictures have no letter case: most such texts need no table
/// look-up.
pub const fn has_no_case(c: char) -> bool {
    matches!(c, '\u{2000}'..='\u{20ff}' | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}' | '\u{ff00}'..='\u{ff20}'
        | '\u{1f000}'..='\u{1faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_place(text: &str) -> String {
        let mut out = b"KEPT".to_vec();
        out.extend_from_slice(text.as_bytes());
        assert_eq!(fold_tail(&mut out, 4), out.len(), "{text}");
        String::from_utf8(out).unwrap().strip_prefix("KEPT").unwrap().to_owned()
    }

    #[test]
    fn letters_lose_their_case_and_nothing_else_changes() {
        for (text, folded) in [
            ("", ""),
            ("Plain TEXT 1", "plain text 1"),
            ("ÉÈ été", "éè été"),
            ("Straße STRASSE STRAẞE", "strasse strasse strasse"),
            ("ὈΔΥΣΣΕΎΣ ς", "ὀδυσσεύσ σ"),
            ("ПРИВЕТ", "привет"),
            ("敏感词 ABC 한국", "敏感词 abc 한국"),
            ("\u{212a}elvin ſ", "kelvin s"),
            ("a\u{301}", "a\u{301}"),
            ("DIYARBAKIR ILIK ılık İ", "diyarbakir ilik ilik i\u{307}"),
            (
                "A line of more than thirty-two letters, Ａnd 🦓 ÉTÉ “Ω”",
                "a line of more than thirty-two letters, ａnd 🦓 été “ω”",
            ),
        ] {
            assert_eq!(fold(text), folded, "{text}");
            assert_eq!(in_place(text), folded, "{text}");
        }
    }

    #[test]
    fn in_place_every_letter_becomes_what_it_becomes_elsewhere() {
        let letters = ('\u{1}'..'\u{20000}').chain(('\u{20000}'..=char::MAX).step_by(211));
        for c in letters {
            let exact: String = fold_char(c).collect();
            assert!(!has_no_case(c) || exact == c.to_string(), "{c:?}");
            assert_eq!(exact.chars().flat_map(fold_char).collect::<String>(), exact, "{c:?}");
            assert_eq!(in_place(&format!("ä{c}B")), format!("ä{exact}b"), "{c:?}");
        }
    }

    #[test]
    fn a_letter_that_is_cut_waits_for_its_rest() {
        for text in ["aß", "K敏", "ıé", "ıK", "🦓", "ı🦓"] {
            for cut in 0..text.len() {
                let mut out = text.as_bytes()[..cut].to_vec();
                let whole = fold_tail(&mut out, 0);
                out.extend_from_slice(&text.as_bytes()[cut..]);
                assert_eq!(fold_tail(&mut out, whole), out.len());
                assert_eq!(String::from_utf8(out).unwrap(), fold(text), "{text} at {cut}");
            }
        }
    }
}
