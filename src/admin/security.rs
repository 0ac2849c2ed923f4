//! The protection of logged-in browsers: the allowed origin of a write, and the headers of every
//! reply.

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, Uri, header};

use super::context::Context;
use super::envelope::ApiError;
use super::reasons::Reason;

/// Refuses a request that a foreign page made the browser send. Requests without `Origin` and
/// `Sec-Fetch-Site` do not come from a page in a current browser; for other cases `SameSite=Lax`
/// withholds the cookie.
///
/// # Errors
/// 403.
pub(super) fn same_origin(ctx: &Context, head: &Parts) -> Result<(), ApiError> {
    let text = |name: HeaderName| head.headers.get(name).and_then(|v| v.to_str().ok());
    if text(HeaderName::from_static("sec-fetch-site")) == Some("cross-site") {
        return Err(ApiError::denied(Reason::CrossSite));
    }
    if !head.headers.contains_key(header::ORIGIN) {
        return Ok(());
    }
    let origin = text(header::ORIGIN).and_then(authority);
    let host = head
        .uri
        .authority()
        .map(|a| a.as_str().to_owned())
        .or_else(|| text(header::HOST).map(str::to_owned));
    let ours = ctx.app_url.as_deref().and_then(authority);
    let known = |origin: &String| {
        Some(origin) == host.map(|h| h.to_ascii_lowercase()).as_ref()
            || Some(origin) == ours.as_ref()
    };
    match origin.as_ref().is_some_and(known) {
        true => Ok(()),
        false => Err(ApiError::denied(Reason::CrossOrigin)),
    }
}

/// `host:port` of an address, in lower case and without a default port, as browsers write both
/// `Origin` and `Host`.
fn authority(url: &str) -> Option<String> {
    let uri: Uri = url.parse().ok()?;
    let default = match uri.scheme_str()? {
        "http" => 80,
        "https" => 443,
        _ => return None,
    };
    let authority = uri.authority()?;
    let host = authority.host().to_ascii_lowercase();
    Some(match authority.port_u16().filter(|port| *port != default) {
        Some(port) => format!("{host}:{port}"),
        None => host,
    })
}

/// The headers of every reply: no sniffing, no framing, no referrer, and no resources of other
/// origins.
pub(super) async fn harden(mut response: Response<Body>) -> Response<Body> {
    const CSP: &str = "default-src 'self'; img-src 'self' data:; media-src data:; object-src 'none'; \
                       base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
    let set: [(HeaderName, &'static str); 5] = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CONTENT_SECURITY_POLICY, CSP),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    add_missing(response.headers_mut(), set);
    response
}

fn add_missing<const N: usize>(headers: &mut HeaderMap, set: [(HeaderName, &'static str); N]) {
    for (name, value) in set {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_and_hosts_compare_as_browsers_write_them() {
        let cases = [
            ("https://Gate.example", Some("gate.example")),
            ("https://gate.example:443", Some("gate.example")),
            ("http://gate.example:443", Some("gate.example:443")),
            ("http://127.0.0.1:8081", Some("127.0.0.1:8081")),
            ("http://[::1]:8081/", Some("[::1]:8081")),
            ("null", None),
            ("file:///x", None),
        ];
        for (url, expected) in cases {
            assert_eq!(authority(url).as_deref(), expected, "{url}");
        }
    }
}
