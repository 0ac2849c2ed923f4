//! The client's own credential for a provider: what a request carries in `Authorization` or
//! `x-api-key` beside the gateway's key in `x-tollgate-key`. It is held as long as the request, and
//! sent to one provider that takes it (`auth`: `client`). It is never stored or logged.

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::crypto::carried;
use crate::domain::secret::Secret;

/// The native format's header for keys.
pub const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// A credential, as it came.
pub struct OwnCredential {
    /// The header that it came in.
    pub name: HeaderName,
    /// The header's value, marked as sensitive.
    pub value: HeaderValue,
    /// The token in it, which no message may have.
    pub token: Secret,
}

impl OwnCredential {
    /// The credential beside `key`, the gateway's: the token of `Authorization: Bearer`, else the
    /// `x-api-key`. A header that occurs twice is none.
    pub fn of(headers: &HeaderMap, key: &str) -> Option<Self> {
        let bearer = carried::bearers(headers).next();
        let x_api_key = headers.get(&X_API_KEY).and_then(|value| value.to_str().ok());
        [(AUTHORIZATION, bearer), (X_API_KEY, x_api_key)].into_iter().find_map(|(name, token)| {
            let token = token.map(str::trim).filter(|token| !token.is_empty() && *token != key)?;
            let token = Secret::new(token);
            let mut values = headers.get_all(&name).into_iter();
            let mut value = values.next()?.clone();
            value.set_sensitive(true);
            values.next().is_none().then_some(Self { name, value, token })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_bearer_or_else_the_key_and_never_the_gateways() {
        let own = |headers: &[(&str, &str)]| {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
                map.append(name, HeaderValue::from_str(value).unwrap());
            }
            let own = OwnCredential::of(&map, "sk-1")?;
            assert!(own.value.is_sensitive());
            Some((own.name.to_string(), own.token.expose().to_owned()))
        };
        let (bearer, key) = (("authorization", "Bearer a b"), ("x-api-key", "c"));
        let of = |name: &str, token: &str| Some((name.to_owned(), token.to_owned()));
        assert_eq!(own(&[bearer, key]), of("authorization", "a b"));
        assert_eq!(own(&[key]), of("x-api-key", "c"));
        assert_eq!(own(&[("authorization", "Bearer sk-1"), key]), of("x-api-key", "c"));
        for none in [
            &[("authorization", "Basic a")][..],
            &[("authorization", "Bearer sk-1"), ("x-api-key", "sk-1")],
            &[("x-api-key", " ")],
            &[bearer, bearer],
        ] {
            assert_eq!(own(none), None, "{none:?}");
        }
    }
}
