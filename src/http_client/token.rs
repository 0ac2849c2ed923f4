//! Posts a form to the token endpoint of a cloud.
//!
//! The form has a credential: it is sent over TLS only, except to loopback addresses and then
//! without a proxy. Redirects are not followed, and no error has the form in its text.

use std::net::IpAddr;
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Url;
use reqwest::header::CONTENT_TYPE;
use reqwest::redirect::Policy;

const TIME_LIMIT: Duration = Duration::from_secs(10);
/// Bytes of an answer.
const MAX_BYTES: usize = 64 * 1024;

/// Whether a form may be sent there: by HTTPS, or to this machine itself.
pub fn is_endpoint(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| match url.scheme() {
        "https" => true,
        "http" => is_loopback(&url),
        _ => false,
    })
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// The status and the beginning of the body. `proxy`: `http://host:port` of a CONNECT proxy.
///
/// # Errors
/// Why there is no answer; the text can be shown.
pub async fn post(
    url: &str,
    form: &[(&str, &str)],
    proxy: Option<&str>,
) -> Result<(u16, Vec<u8>), String> {
    let mut builder = super::builder(TIME_LIMIT).redirect(Policy::none());
    let is_here = Url::parse(url).is_ok_and(|url| is_loopback(&url));
    if let Some(proxy) = proxy.filter(|_| !is_here) {
        builder = builder.proxy(reqwest::Proxy::all(proxy).map_err(super::describe)?);
    }
    let client = builder.build().map_err(super::describe)?;
    let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let pairs = form.iter().map(|(name, value)| [encoded(name), encoded(value)].join("="));
    let body = pairs.collect::<Vec<_>>().join("&");
    let request =
        client.post(url).header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(body);
    let mut answer = request.send().await.map_err(super::describe)?;
    let (status, mut bytes) = (answer.status().as_u16(), Vec::new());
    while let Some(chunk) = answer.chunk().await.map_err(super::describe)? {
        if bytes.len() + chunk.len() > MAX_BYTES {
            return Err(format!("the answer is larger than {MAX_BYTES} bytes"));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok((status, bytes))
}
