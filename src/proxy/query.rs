//! Query strings: reading a parameter, and taking one out without touching the rest.

/// The values of the parameter `name`, percent-decoded.
pub fn values<'a>(query: &'a str, name: &'a str) -> impl Iterator<Item = String> + 'a {
    pairs(query).filter(move |(n, _)| decode(n) == name).map(|(_, value)| decode(value))
}

/// The query less every parameter `name`; `None` when nothing is left. What stays, stays as it was
/// written.
#[must_use]
pub fn without(query: Option<&str>, name: &str) -> Option<String> {
    let kept: Vec<&str> = query?
        .split('&')
        .filter(|pair| !pair.is_empty() && decode(pair.split('=').next().unwrap_or_default()) != name)
        .collect();
    (!kept.is_empty()).then(|| kept.join("&"))
}

fn pairs(query: &str) -> impl Iterator<Item = (&str, &str)> {
    query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

/// Percent-decoding; what is no valid escape, or no UTF-8, stays or is replaced.
#[must_use]
pub fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escape = (bytes[at] == b'%').then(|| bytes.get(at + 1..at + 3)).flatten();
        let byte = escape.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        decoded.push(byte.unwrap_or(bytes[at]));
        at += if byte.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_parameter_is_taken_out_and_the_rest_stays_as_written() {
        let cases = [
            (None, None),
            (Some(""), None),
            (Some("key=sk-1"), None),
            (Some("k%65y=sk-1"), None),
            (Some("beta=true"), Some("beta=true")),
            (Some("alt=sse&key=sk-1&x=%31"), Some("alt=sse&x=%31")),
            (Some("monkey=1&key"), Some("monkey=1")),
        ];
        for (query, kept) in cases {
            assert_eq!(without(query, "key").as_deref(), kept, "{query:?}");
        }
    }

    #[test]
    fn values_are_decoded() {
        assert_eq!(values("a=1&k%65y=x%2By%zz&key=", "key").collect::<Vec<_>>(), ["x+y%zz", ""]);
    }
}
