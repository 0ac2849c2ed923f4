//! Query strings: reading a parameter. `formats::query` decides which parameters go to a provider.

use crate::formats::query::decode;

/// The values of the parameter `name`, percent-decoded.
pub(in crate::proxy) fn values<'a>(
    query: &'a str,
    name: &'a str,
) -> impl Iterator<Item = String> + 'a {
    pairs(query)
        .filter(move |(n, _)| decode(n) == name)
        .map(|(_, value)| decode(value).into_owned())
}

fn pairs(query: &str) -> impl Iterator<Item = (&str, &str)> {
    query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_decoded() {
        assert_eq!(values("a=1&k%65y=x%2By%zz&key=", "key").collect::<Vec<_>>(), ["x+y%zz", ""]);
    }
}
