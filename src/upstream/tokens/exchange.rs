//! Asks the token endpoint of a cloud, or the machine's own.
//!
//! Requests have a credential: they are sent over TLS only, except to addresses of this machine and
//! of its link, and then without a proxy. Redirects are not followed, and no error has a credential
//! in its text.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use http::{Method, Request, Uri};
use http_body_util::Full;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tokio::time::timeout;

use crate::domain::clock::Timestamp;
use crate::domain::provider::Provider;
use crate::domain::provider_tls::ProviderTls;
use crate::upstream::client::Client;
use crate::upstream::probe_error::ProbeError;
use crate::upstream::proxy::Proxy;
use crate::upstream::proxy_error::ProxyAddressError;
use crate::upstream::resolve::Resolver;

/// For an answer.
pub(in crate::upstream) const TIME_LIMIT: Duration = Duration::from_secs(10);
/// Where AWS has its services for containers and machines beside these.
const AWS: [&str; 2] = ["fd00:ec2::23", "fd00:ec2::254"];
/// Bytes of an answer.
const MAX_BYTES: usize = 64 * 1024;
/// Characters of an error that are kept.
const SHOWN: usize = 300;
/// The life of a token whose answer does not say it, in seconds.
const USUAL_LIFE: i64 = 300;
/// Shorter values are too common to be hidden in messages.
const HIDDEN: usize = 8;

/// A request to a token endpoint.
pub(in crate::upstream) struct TokenRequest {
    method: Method,
    url: String,
    headers: Vec<(HeaderName, String)>,
    body: String,
    /// What no message may repeat.
    secrets: Vec<String>,
}

/// An access token as it was issued.
pub(super) struct Issued {
    pub text: String,
    /// Milliseconds.
    pub life_ms: i64,
}

/// Sends such requests for one provider, through its proxy.
pub(in crate::upstream) struct Exchange(Option<Result<Arc<Proxy>, ProxyAddressError>>);

impl TokenRequest {
    /// Posts a form.
    pub(in crate::upstream) fn form(url: &str, fields: Vec<(&str, String)>) -> Self {
        let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let pairs = fields.iter().map(|(name, value)| [encoded(name), encoded(value)].join("="));
        let body = pairs.collect::<Vec<_>>().join("&");
        let headers = vec![(CONTENT_TYPE, "application/x-www-form-urlencoded".to_owned())];
        let secrets = fields.into_iter().map(|(_, value)| value).collect();
        Self { method: Method::POST, url: url.to_owned(), headers, body, secrets }
    }

    /// Posts JSON with the token of another identity.
    pub(super) fn json(url: &str, body: &Value, token: &str) -> Self {
        let request = Self {
            method: Method::POST,
            url: url.to_owned(),
            headers: vec![(CONTENT_TYPE, "application/json".to_owned())],
            body: body.to_string(),
            secrets: vec![token.to_owned()],
        };
        request.with(http::header::AUTHORIZATION, format!("Bearer {token}"))
    }

    /// Puts an empty body.
    pub(in crate::upstream) fn put(url: String) -> Self {
        Self { method: Method::PUT, ..Self::get(url) }
    }

    /// Gets.
    pub(in crate::upstream) fn get(url: String) -> Self {
        let (headers, body, secrets) = Default::default();
        Self { method: Method::GET, url, headers, body, secrets }
    }

    /// With one more header.
    pub(in crate::upstream) fn with(mut self, name: HeaderName, value: String) -> Self {
        self.secrets.push(value.clone());
        self.headers.push((name, value));
        self
    }

    /// Its address.
    pub(in crate::upstream) fn url(&self) -> &str {
        &self.url
    }

    /// Its body.
    pub(in crate::upstream) fn body(&self) -> &str {
        &self.body
    }

    fn built(&self) -> Result<Request<Full<Bytes>>, String> {
        let mut request = Request::new(Full::from(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = uri(&self.url)?;
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        let agent = concat!("tollgate/", env!("CARGO_PKG_VERSION"));
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        for (name, value) in &self.headers {
            let value = HeaderValue::from_str(value);
            let mut value = value.map_err(|_| format!("{name} cannot be sent in a header"))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(request)
    }

    /// A text of the other side, short and without secrets.
    pub(in crate::upstream) fn said(&self, text: &str) -> String {
        let long = self.secrets.iter().filter(|secret| secret.len() >= HIDDEN);
        let text = long.fold(text.to_owned(), |text, secret| text.replace(secret, "***"));
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(SHOWN).collect()
    }
}

impl Exchange {
    /// For a provider's tokens.
    pub(super) fn of(provider: &Provider) -> Self {
        let proxy = Proxy::of(provider, &Resolver::default());
        Self(proxy.map(|proxy| proxy.map(Arc::new)))
    }

    /// The body of a successful answer.
    ///
    /// # Errors
    /// There is none. The text can be shown.
    pub(super) async fn text(&self, request: &TokenRequest) -> Result<String, String> {
        let (status, body) = self.answer(request, TIME_LIMIT).await?;
        let body = String::from_utf8_lossy(&body).into_owned();
        if (200..300).contains(&status) {
            return Ok(body);
        }
        let answer: Value = serde_json::from_str(&body).unwrap_or_default();
        let places = ["/error_description", "/error/message", "/error", "/message"];
        let said = places.iter().find_map(|place| answer.pointer(place)?.as_str());
        let said = request.said(said.unwrap_or_default());
        Err(format!("the token endpoint answered {status} {said}").trim_end().to_owned())
    }

    /// The token in the answer.
    ///
    /// # Errors
    /// There is none. The text can be shown.
    pub(super) async fn token(
        &self,
        request: TokenRequest,
        now: Timestamp,
    ) -> Result<Issued, String> {
        let answer: Value = serde_json::from_str(&self.text(&request).await?).unwrap_or_default();
        let text = answer["access_token"].as_str().or_else(|| answer["accessToken"].as_str());
        let text = text.filter(|text| !text.is_empty());
        let text = text.ok_or("the token endpoint answered without access_token")?.to_owned();
        Ok(Issued { text, life_ms: life(&answer, now).clamp(1, 86_400) * 1000 })
    }

    /// The status and the body of an answer, which may take so long.
    ///
    /// # Errors
    /// There is none. The text can be shown.
    pub(in crate::upstream) async fn answer(
        &self,
        request: &TokenRequest,
        limit: Duration,
    ) -> Result<(u16, Vec<u8>), String> {
        let late = |_| format!("no answer within {} s", limit.as_secs());
        timeout(limit, self.ask(request)).await.map_err(late)?
    }

    async fn ask(&self, request: &TokenRequest) -> Result<(u16, Vec<u8>), String> {
        let is_here = is_here(&uri(&request.url)?);
        let proxy = self.0.clone().filter(|_| !is_here).transpose();
        let proxy = proxy.map_err(|error| error.to_string())?;
        let client = Client::new(proxy, &ProviderTls::default());
        let client = client.map_err(|error| error.to_string())?;
        let sent = client.send(request.built()?, TIME_LIMIT).await;
        let mut answer = sent.map_err(|error| ProbeError::from(error).text)?;
        let (status, mut bytes) = (answer.status().as_u16(), Vec::new());
        while let Some(chunk) = answer.chunk().await.map_err(|error| error.to_string())? {
            if bytes.len() + chunk.len() > MAX_BYTES {
                return Err(format!("the answer is larger than {MAX_BYTES} bytes"));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok((status, bytes))
    }
}

/// Seconds until the token ends.
fn life(answer: &Value, now: Timestamp) -> i64 {
    let number = |name: &str| {
        let value = &answer[name];
        value.as_i64().or_else(|| value.as_str()?.parse().ok())
    };
    let until = |at: i64| at - now.0.div_euclid(1000);
    let moment = || {
        let text = answer["expireTime"].as_str()?;
        Some(until(chrono::DateTime::parse_from_rfc3339(text).ok()?.timestamp()))
    };
    let on = || number("expires_on").map(until);
    number("expires_in").or_else(on).or_else(moment).unwrap_or(USUAL_LIFE)
}

fn uri(url: &str) -> Result<Uri, String> {
    url.parse().map_err(|_| "the address of the token endpoint is invalid".to_owned())
}

/// Whether a credential may be sent there: by HTTPS, or to this machine itself.
pub(in crate::upstream) fn checked(url: String) -> Result<String, String> {
    let is_allowed = uri(&url).is_ok_and(|uri| match uri.scheme_str() {
        Some("https") => uri.host().is_some(),
        Some("http") => ip(&uri).is_some_and(|ip| ip.is_loopback()),
        _ => false,
    });
    match is_allowed {
        true => Ok(url),
        false => Err("the address of the token endpoint must begin with https://".to_owned()),
    }
}

/// Whether a machine's own endpoint may be there: also on its link.
pub(in crate::upstream) fn checked_here(url: String) -> Result<String, String> {
    let is_http_here = uri(&url).is_ok_and(|uri| uri.scheme_str() == Some("http") && is_here(&uri));
    if is_http_here {
        return Ok(url);
    }
    checked(url).map_err(|_| {
        "the address must begin with https://, or be one of this machine or its link".to_owned()
    })
}

fn ip(uri: &Uri) -> Option<IpAddr> {
    uri.host()?.trim_matches(['[', ']']).parse().ok()
}

/// An address of this machine, or of its link, where the metadata services of clouds are.
fn is_here(uri: &Uri) -> bool {
    match ip(uri) {
        Some(IpAddr::V4(ip)) => ip.is_loopback() || ip.is_link_local(),
        Some(IpAddr::V6(ip)) => {
            let is_aws = AWS.contains(&ip.to_string().as_str());
            ip.is_loopback() || ip.is_unicast_link_local() || is_aws
        }
        None => uri.scheme_str() == Some("http") && uri.host() == Some("localhost"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn credentials_go_by_https_or_stay_on_the_machine() {
        for (url, anywhere, here) in [
            ("https://sts.example/v1", true, true),
            ("http://127.0.0.1:9/x", true, true),
            ("http://[::1]:9/x", true, true),
            ("http://169.254.169.254/x", false, true),
            ("http://[fe80::1]/x", false, true),
            ("http://localhost:9/x", false, true),
            ("http://sts.example/v1", false, false),
            ("http://10.0.0.1/x", false, false),
            ("ftp://127.0.0.1/x", false, false),
            ("/x", false, false),
        ] {
            assert_eq!(checked(url.to_owned()).is_ok(), anywhere, "{url}");
            assert_eq!(checked_here(url.to_owned()).is_ok(), here, "{url}");
        }
    }

    #[test]
    fn a_life_is_read_in_every_form() {
        let now = Timestamp(1_800_000_000_000);
        for (answer, seconds) in [
            (json!({"expires_in": 60}), 60),
            (json!({"expires_in": "61"}), 61),
            (json!({"expires_on": "1800000062"}), 62),
            (json!({"expireTime": "2027-01-15T08:01:03Z"}), 63),
            (json!({}), USUAL_LIFE),
        ] {
            assert_eq!(life(&answer, now), seconds, "{answer}");
        }
    }
}
