//! Where the headers of an HTTP request carry a credential: `Authorization: Bearer`, and the cookie
//! of the web UI. The data plane and the administration read both in this one way.

use http::HeaderMap;
use http::header::{AUTHORIZATION, COOKIE};

/// The name of the web UI's cookie: it holds a session's token, a key or the admin token.
pub const COOKIE_NAME: &str = "auth-token";

/// The tokens of `Authorization: Bearer`, in their order. Empty ones are none.
pub fn bearers(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(AUTHORIZATION).into_iter().filter_map(|line| line.to_str().ok());
    lines.filter_map(|line| {
        let (scheme, token) = line.trim().split_once(' ')?;
        let token = token.trim();
        (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
    })
}

/// The values of the web UI's cookie, in their order, without quotation marks. Empty ones are none.
pub fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(COOKIE).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(';')).filter_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        let value = value.trim_matches('"').trim();
        (name == COOKIE_NAME && !value.is_empty()).then_some(value)
    })
}
