//! Lists of `name=value`, as in OpenTelemetry's environment variables: separated by commas, values
//! percent-encoded.

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

/// What a value has in its encoded form only.
const ENCODED: AsciiSet = CONTROLS.add(b',').add(b'%');
/// The same of one that begins or ends with a blank.
const WITH_BLANKS: AsciiSet = ENCODED.add(b' ');

/// The pairs of a text, in order, with decoded values. `None` if a pair has no `=` or no name, or a
/// value is not UTF-8 text.
#[must_use]
pub(super) fn read_pairs(text: &str) -> Option<Vec<(String, String)>> {
    let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=')?;
            let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
            let name = name.trim();
            (!name.is_empty()).then(|| (name.to_owned(), value.into_owned()))
        })
        .collect()
}

/// The text of pairs, with as little encoded as possible.
pub(super) fn show_pairs<'a>(pairs: impl Iterator<Item = (&'a String, &'a str)>) -> String {
    let each = pairs.map(|(name, value)| format!("{name}={}", encoded(value)));
    each.collect::<Vec<_>>().join(",")
}

fn encoded(value: &str) -> String {
    let set = if value.trim() == value { &ENCODED } else { &WITH_BLANKS };
    // Other characters than ASCII's stay.
    let parts = value.split_inclusive(|c: char| !c.is_ascii());
    let each = parts.flat_map(|part| {
        let (ascii, last) = part.split_at(part.find(|c: char| !c.is_ascii()).unwrap_or(part.len()));
        utf8_percent_encode(ascii, set).chain([last])
    });
    each.collect()
}

/// Whether each pair could be a header of a request.
#[must_use]
pub(super) fn are_headers(pairs: &[(String, String)]) -> bool {
    pairs.iter().all(|(name, value)| {
        http::HeaderName::from_bytes(name.as_bytes()).is_ok()
            && http::HeaderValue::from_str(value).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::{are_headers, read_pairs, show_pairs};

    #[test]
    fn pairs_are_read_as_opentelemetry_writes_them() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        for (text, wanted) in [
            ("", Some(vec![])),
            ("a=1", Some(vec![pair("a", "1")])),
            (" a = 1 , b=x%20y%2Cz,", Some(vec![pair("a", "1"), pair("b", "x y,z")])),
            ("authorization=Basic%20cDpz", Some(vec![pair("authorization", "Basic cDpz")])),
            ("a=b=c", Some(vec![pair("a", "b=c")])),
            ("a=b c ü,d=%20e%2C ", Some(vec![pair("a", "b c ü"), pair("d", " e,")])),
            ("a", None),
            ("=1", None),
            ("a=%ff", None),
        ] {
            assert_eq!(read_pairs(text), wanted, "{text}");
            let Some(pairs) = wanted else { continue };
            let shown = show_pairs(pairs.iter().map(|(name, value)| (name, value.as_str())));
            assert_eq!(read_pairs(&shown), Some(pairs), "{shown}");
        }
        let shown = [pair("a", "b c; ü"), pair("b", "x,y%"), pair("c", " ü ")];
        let shown = show_pairs(shown.iter().map(|(name, value)| (name, value.as_str())));
        assert_eq!(shown, "a=b c; ü,b=x%2Cy%25,c=%20ü%20");
        assert!(are_headers(&[pair("x-a", "b c")]));
        assert!(!are_headers(&[pair("x a", "b")]) && !are_headers(&[pair("x", "a\nb")]));
    }
}
