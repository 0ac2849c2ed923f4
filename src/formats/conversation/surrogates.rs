//! Half a surrogate pair in a JSON string. Clients and relays that cut text by UTF-16 units escape
//! it (`"\ud83d"`). JSON allows that (RFC 8259, section 8.2), `serde_json` does not, and no Rust
//! string can hold it.

/// The document with U+FFFD in place of each escaped half; `None` if it has none.
#[must_use]
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
#[must_use]
pub fn replaced_text(document: &str) -> Option<String> {
    let has_one = ["\\ud", "\\uD"].iter().any(|escape| document.contains(escape));
    has_one.then(|| replaced(document.as_bytes())).flatten().and_then(|b| String::from_utf8(b).ok())
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
}
