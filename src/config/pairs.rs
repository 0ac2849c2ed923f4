//! Lists of `name=value`, as in OpenTelemetry's environment variables: separated by commas, values
//! percent-encoded.

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

/// What a value has in its encoded form only.
const ENCODED: AsciiSet = CONTROLS.add(b' ').add(b'"').add(b',').add(b';').add(b'\\').add(b'%');

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

/// The text of pairs.
pub(super) fn show_pairs<'a>(pairs: impl Iterator<Item = (&'a String, &'a str)>) -> String {
    let each =
        pairs.map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, &ENCODED)));
    each.collect::<Vec<_>>().join(",")
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
            ("a", None),
            ("=1", None),
            ("a=%ff", None),
        ] {
            assert_eq!(read_pairs(text), wanted, "{text}");
            let Some(pairs) = wanted else { continue };
            let shown = show_pairs(pairs.iter().map(|(name, value)| (name, value.as_str())));
            assert_eq!(read_pairs(&shown), Some(pairs), "{shown}");
        }
        assert!(are_headers(&[pair("x-a", "b c")]));
        assert!(!are_headers(&[pair("x a", "b")]) && !are_headers(&[pair("x", "a\nb")]));
    }
}
