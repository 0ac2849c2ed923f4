//! Where a proxied request carries its key: the sources of docs/reference/credentials.md, and the
//! alias headers.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName};

use super::query;
use crate::crypto::carried;
use crate::proxy::own_credential::X_API_KEY;

const X_TOLLGATE_KEY: HeaderName = HeaderName::from_static("x-tollgate-key");

/// The combined result of a request's credential sources.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Presented {
    None,
    /// One key, however many sources carried it.
    One(String),
    /// Sources that carry different keys.
    Conflicting,
}

/// Reads all sources: `Authorization: Bearer`, `x-api-key`, the alias headers or the query
/// parameter `key`, the cookie.
///
/// Empty values are not a credential. The cookie counts only if it holds a key (`sk-…`) or if
/// `is_admin_token` accepts it: the web UI's opaque session tokens are not proxy credentials, and
/// must not conflict with one.
pub(super) fn presented(
    headers: &HeaderMap,
    query: Option<&str>,
    alias_headers: &[HeaderName],
    is_admin_token: impl Fn(&str) -> bool,
) -> Presented {
    let x_api_key = texts(headers, &X_API_KEY);
    let bearer = carried::bearers(headers).map(Cow::Borrowed);
    agreed(bearer.chain(x_api_key).chain(others(headers, query, alias_headers, is_admin_token)))
}

/// The same of a request that names its key in `x-tollgate-key`, and so may carry the client's own
/// credential in `Authorization` and `x-api-key`. `None`: it has no such header.
pub(super) fn beside_own(
    headers: &HeaderMap,
    query: Option<&str>,
    alias_headers: &[HeaderName],
    is_admin_token: impl Fn(&str) -> bool,
) -> Option<Presented> {
    headers.get(&X_TOLLGATE_KEY)?;
    let keys = texts(headers, &X_TOLLGATE_KEY);
    Some(agreed(keys.chain(others(headers, query, alias_headers, is_admin_token))))
}

fn texts<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = Cow<'h, str>> + use<'h> {
    let values = headers.get_all(name).into_iter();
    values.filter_map(|value| value.to_str().ok()).map(Cow::Borrowed)
}

/// What the sources beside `Authorization` and `x-api-key` carry.
fn others<'h>(
    headers: &'h HeaderMap,
    query: Option<&'h str>,
    alias_headers: &'h [HeaderName],
    is_admin_token: impl Fn(&str) -> bool,
) -> impl Iterator<Item = Cow<'h, str>> {
    let aliases = alias_headers.iter().flat_map(|name| texts(headers, name));
    let in_query = query.into_iter().flat_map(|q| query::values(q, "key")).map(Cow::Owned);
    let in_cookie = carried::cookies(headers)
        .filter(move |text| text.starts_with("sk-") || is_admin_token(text))
        .map(Cow::Borrowed);
    aliases.chain(in_query).chain(in_cookie)
}

fn agreed<'h>(candidates: impl Iterator<Item = Cow<'h, str>>) -> Presented {
    let mut found: Option<String> = None;
    for candidate in candidates {
        let candidate = candidate.trim();
        match &found {
            _ if candidate.is_empty() => {}
            Some(first) if first != candidate => return Presented::Conflicting,
            Some(_) => {}
            None => found = Some(candidate.to_owned()),
        }
    }
    found.map_or(Presented::None, Presented::One)
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn check(headers: &[(&str, &str)], query: Option<&str>, expected: Presented) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                HeaderValue::from_str(value).unwrap(),
            );
        }
        let aliases = ["x-alt-api-key", "x-goog-api-key"].map(HeaderName::from_static);
        assert_eq!(
            presented(&map, query, &aliases, |t| t == "root"),
            expected,
            "{headers:?} {query:?}"
        );
    }

    fn one(text: &str) -> Presented {
        Presented::One(text.to_owned())
    }

    #[test]
    fn every_source_is_read() {
        check(&[], None, Presented::None);
        check(&[("authorization", "Bearer sk-1")], None, one("sk-1"));
        check(&[("authorization", "bearer   sk-1 ")], None, one("sk-1"));
        check(&[("x-api-key", "sk-1")], None, one("sk-1"));
        check(&[("x-alt-api-key", "sk-1")], None, one("sk-1"));
        check(&[("x-goog-api-key", "sk-1")], None, one("sk-1"));
        check(&[], Some("alt=sse&key=sk-1"), one("sk-1"));
        check(&[("cookie", "a=b; auth-token=sk-1")], None, one("sk-1"));
        check(&[("cookie", "auth-token=root")], None, one("root"));
    }

    #[test]
    fn equal_keys_agree_and_different_ones_conflict() {
        check(
            &[("authorization", "Bearer sk-1"), ("x-api-key", "sk-1")],
            Some("key=sk-1"),
            one("sk-1"),
        );
        check(
            &[("authorization", "Bearer sk-1"), ("x-api-key", "sk-2")],
            None,
            Presented::Conflicting,
        );
        check(&[("x-api-key", "sk-1"), ("x-api-key", "sk-2")], None, Presented::Conflicting);
        check(&[("x-api-key", "sk-1")], Some("key=sk%2D2"), Presented::Conflicting);
        check(
            &[("x-api-key", "sk-1"), ("cookie", "auth-token=sk-2")],
            None,
            Presented::Conflicting,
        );
    }

    #[test]
    fn empty_values_other_schemes_and_session_tokens_are_no_credential() {
        check(&[("authorization", "Bearer "), ("x-api-key", " ")], Some("key="), Presented::None);
        check(&[("authorization", "Basic c2s=")], None, Presented::None);
        check(&[("cookie", "auth-token=3f9a"), ("x-api-key", "sk-1")], None, one("sk-1"));
    }

    #[test]
    fn the_gateways_own_header_leaves_the_usual_places_to_the_client() {
        let beside = |headers: &[(&str, &str)]| {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
                map.append(name, HeaderValue::from_str(value).unwrap());
            }
            let alias = HeaderName::from_static("x-goog-api-key");
            beside_own(&map, None, &[alias], |_| false)
        };
        let (bearer, key) = (("authorization", "Bearer own"), ("x-tollgate-key", "sk-1"));
        assert_eq!(beside(&[bearer]), None);
        assert_eq!(beside(&[bearer, key, ("x-api-key", "other")]), Some(one("sk-1")));
        for second in [("x-tollgate-key", "sk-2"), ("x-goog-api-key", "sk-2")] {
            assert_eq!(beside(&[bearer, key, second]), Some(Presented::Conflicting));
        }
    }
}
