//! Half a surrogate pair in a JSON string. Clients and relays that cut text by UTF-16 units escape
//! it (`"\ud83d"`). JSON allows that (RFC 8259, section 8.2), `serde_json` does not, and no Rust
//! string can hold it.

use super::Text;

/// The document with U+FFFD in place of each escaped half; `None` if it has none.
pub fn replaced(document: &[u8]) -> Option<Vec<u8>> {
    let mut replaced = None;
    let mut at = 0;
    while let Some(found) = document.get(at..).and_then(|rest| rest.iter().position(is_escape)) {
        at += found;
        at += match (unit(document, at), unit(document, at + 6)) {
            (None, _) => 2,
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(0xD800..=0xDFFF), _) => {
                let copy = replaced.get_or_insert_with(|| document.to_vec());
                copy[at + 2..at + 6].copy_from_slice(b"fffd");
                6
            }
            (Some(_), _) => 6,
        };
    }
    replaced
}

/// As [`replaced`], of JSON that is a text itself. Nearly all texts have no such escape, which is
/// found without looking at each byte.
pub fn replaced_text(document: &str) -> Option<String> {
    let has_one = ["\\ud", "\\uD"].iter().any(|escape| document.contains(escape));
    has_one.then(|| replaced(document.as_bytes())).flatten().and_then(|b| String::from_utf8(b).ok())
}

/// As [`replaced_text`], of a text that comes in pieces, which may end within an escape.
#[derive(Debug, Default)]
pub struct SurrogatePieces {
    /// The beginning of an escape, and of the one that it may be a pair with.
    held: String,
}

impl SurrogatePieces {
    /// The next piece, as far as its escapes are complete.
    pub fn next<'a>(&mut self, piece: Text<'a>) -> Text<'a> {
        if self.held.is_empty() && memchr::memchr(b'\\', piece.as_bytes()).is_none() {
            return piece;
        }
        let text = match self.held.is_empty() {
            true => piece,
            false => Text::Owned(std::mem::take(&mut self.held) + &piece),
        };
        let (whole, begun) = text.split_at(complete(text.as_bytes()));
        begun.clone_into(&mut self.held);
        match (replaced_text(whole), begun.is_empty()) {
            (Some(replaced), _) => Text::Owned(replaced),
            (None, true) => text,
            (None, false) => Text::Owned(whole.to_owned()),
        }
    }

    /// The rest, at the text's end.
    pub fn rest(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        replaced_text(&held).unwrap_or(held)
    }
}

/// The length without an escape that more text may complete, or make one half of a pair.
fn complete(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| memchr::memchr(b'\\', rest)) {
        at += found;
        let rest = &text[at..];
        if is_begun(rest) {
            return at;
        }
        at += match (unit(rest, 0), unit(rest, 6)) {
            (None, _) => 2,
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(_), _) => 6,
        };
    }
    text.len()
}

/// Whether a text is the beginning of an escape `\uXXXX`, or a first half and the beginning of a
/// second one.
fn is_begun(text: &[u8]) -> bool {
    let begins = |text: &[u8]| {
        let (name, digits) = text.split_at(text.len().min(2));
        text.len() < 6 && b"\\u".starts_with(name) && digits.iter().all(u8::is_ascii_hexdigit)
    };
    match unit(text, 0) {
        None => begins(text),
        Some(0xD800..=0xDBFF) => begins(&text[6..]),
        Some(_) => false,
    }
}

fn is_escape(byte: &u8) -> bool {
    *byte == b'\\'
}

/// The UTF-16 unit of the escape `\uXXXX` that begins there.
fn unit(document: &[u8], at: usize) -> Option<u16> {
    let digits = document.get(at..at + 6)?.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |unit, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(unit << 4 | u16::try_from(digit).ok()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_replaced_and_pairs_and_other_escapes_stay() {
        let cases = [
            (r#""\ud83d""#, Some(r#""\ufffd""#)),
            (r#""\uDE00 \ud83d\ude00""#, Some(r#""\ufffd \ud83d\ude00""#)),
            (r#""\ud83d\ud83d\ude00""#, Some(r#""\ufffd\ud83d\ude00""#)),
            (r#""\ud83d\n\\ud83d""#, Some(r#""\ufffd\n\\ud83d""#)),
            (r#""\\\ud83d""#, Some(r#""\\\ufffd""#)),
            (r#""\ud83d\ude00 \u00e9 \\ud83d""#, None),
            (r#""\u+83d \ud8"#, None),
            (r"\", None),
        ];
        for (document, expected) in cases {
            let found = replaced(document.as_bytes());
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{document}");
        }
    }

    #[test]
    fn pieces_of_any_size_give_what_the_whole_text_gives() {
        let texts = [
            r"plain \n \\ text",
            r"\ud83d\ude00 \ud83d \ude00 \ud83d\ud83d\ude00",
            r"\\ud83d \\\ud83d \u00e9\ud83d\n",
            r"é\ud83dé\ud8 \u \",
            r"\ud83d\u00e9 \ud83d\",
            "",
        ];
        for text in texts {
            let expected = replaced_text(text).unwrap_or_else(|| text.to_owned());
            for size in 1..=text.chars().count().max(1) {
                let (mut pieces, mut got) = (SurrogatePieces::default(), String::new());
                let letters: Vec<char> = text.chars().collect();
                for piece in letters.chunks(size) {
                    got += &pieces.next(piece.iter().collect::<String>().into());
                }
                got += &pieces.rest();
                assert_eq!(got, expected, "{text} in pieces of {size}");
            }
        }
    }
}
