//! Query strings: reading a parameter. What of a query goes to a provider is decided in
//! `formats::query`.

/// The values of the parameter `name`, percent-decoded.
pub fn values<'a>(query: &'a str, name: &'a str) -> impl Iterator<Item = String> + 'a {
    pairs(query).filter(move |(n, _)| decode(n) == name).map(|(_, value)| decode(value))
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
    fn values_are_decoded() {
        assert_eq!(values("a=1&k%65y=x%2By%zz&key=", "key").collect::<Vec<_>>(), ["x+y%zz", ""]);
    }
}
