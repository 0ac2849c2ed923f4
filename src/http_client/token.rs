//! Calls the services that issue credentials: token endpoints of clouds, and what a cloud serves to
//! its machines and containers.
//!
//! A call has a credential, or its answer has: it is sent over TLS only, except to addresses of this
//! machine and of its link, and then without a proxy. Redirects are not followed, and no error has
//! the call in its text.

use std::net::IpAddr;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::header::CONTENT_TYPE;
use reqwest::redirect::Policy;
use reqwest::{Method, Url};

const TIME_LIMIT: Duration = Duration::from_secs(10);
/// Bytes of an answer.
const MAX_BYTES: usize = 64 * 1024;
const FORM: &str = "application/x-www-form-urlencoded";

/// Whether a form may be sent there: by HTTPS, or to this machine itself.
pub fn is_endpoint(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| match url.scheme() {
        "https" => true,
        "http" => is_loopback(&url),
        _ => false,
    })
}

/// Whether it is at this machine, or where a cloud serves its machines and containers: these
/// addresses are never forwarded.
pub fn is_near(url: &str) -> bool {
    const OF_CONTAINERS_AND_MACHINES: [&str; 2] = ["fd00:ec2::23", "fd00:ec2::254"];
    Url::parse(url).is_ok_and(|url| {
        is_loopback(&url)
            || ip_of(&url).is_some_and(|ip| match ip {
                IpAddr::V4(ip) => ip.is_link_local(),
                IpAddr::V6(ip) => OF_CONTAINERS_AND_MACHINES.contains(&ip.to_string().as_str()),
            })
    })
}

fn is_loopback(url: &Url) -> bool {
    ip_of(url).is_some_and(|ip| ip.is_loopback())
}

fn ip_of(url: &Url) -> Option<IpAddr> {
    url.host_str().unwrap_or_default().trim_matches(['[', ']']).parse().ok()
}

/// A call to such a service.
#[derive(Debug, Clone)]
pub struct TokenCall<'a> {
    /// POST, PUT or GET.
    pub method: Method,
    /// Its address.
    pub url: &'a str,
    /// Its headers.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Its body; may be empty.
    pub body: String,
    /// `http://host:port` of a CONNECT proxy.
    pub proxy: Option<&'a str>,
    /// The longest that it may take.
    pub time_limit: Duration,
}

impl<'a> TokenCall<'a> {
    /// A GET without headers.
    pub fn get(url: &'a str) -> Self {
        let (headers, body, proxy) = Default::default();
        Self { method: Method::GET, url, headers, body, proxy, time_limit: TIME_LIMIT }
    }

    /// A POST of a form.
    pub fn form(url: &'a str, fields: &[(&str, &str)], proxy: Option<&'a str>) -> Self {
        let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let pairs = fields.iter().map(|(name, value)| [encoded(name), encoded(value)].join("="));
        let body = pairs.collect::<Vec<_>>().join("&");
        let kind = HeaderValue::from_static(FORM);
        let headers = vec![(CONTENT_TYPE, kind)];
        Self { method: Method::POST, url, headers, body, proxy, time_limit: TIME_LIMIT }
    }

    /// Adds a header with a secret.
    ///
    /// # Errors
    /// It cannot be sent in a header.
    pub fn with_secret(mut self, name: HeaderName, value: &str) -> Result<Self, String> {
        let value = HeaderValue::from_str(value.trim());
        let mut value = value.map_err(|_| format!("{name} cannot be sent in a header"))?;
        value.set_sensitive(true);
        self.headers.push((name, value));
        Ok(self)
    }
}

/// The status and the beginning of the body.
///
/// # Errors
/// Why there is no answer; the text can be shown.
pub async fn send(call: TokenCall<'_>) -> Result<(u16, Vec<u8>), String> {
    let mut builder = super::builder(call.time_limit).redirect(Policy::none());
    if let Some(proxy) = call.proxy.filter(|_| !is_near(call.url)) {
        builder = builder.proxy(reqwest::Proxy::all(proxy).map_err(super::describe)?);
    }
    let client = builder.build().map_err(super::describe)?;
    let mut request = client.request(call.method, call.url).body(call.body);
    for (name, value) in call.headers {
        request = request.header(name, value);
    }
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
