//! Sends webhooks, only to allowed addresses.
//!
//! An administrator enters the address, but the gateway can reach networks that administrators of
//! the web UI may not. So a webhook goes to the public internet, or to networks in the operator's
//! configuration. The name is resolved here, every address of it is checked, and the connection is
//! made to those very addresses: a later change of the name has no effect. Redirects are not
//! followed.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use reqwest::Url;
use reqwest::header::CONTENT_TYPE;

use crate::domain::clock::Timestamp;
use crate::domain::network::{Network, embedded, not_public};
use crate::domain::secret::Secret;

const TIME_LIMIT: Duration = Duration::from_secs(10);
/// The header that authenticates a message: `t=<seconds>,v1=<hex>`, the HMAC-SHA256 of
/// `<seconds>.<body>`.
pub const SIGNATURE: &str = "x-tollgate-signature";

/// Why a webhook was not delivered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WebhookError {
    /// The text is not an absolute `http` or `https` address with a host.
    #[error("is not an http or https address")]
    NotAnAddress,
    /// The address has a user name or a password in it.
    #[error("must not carry a user or a password")]
    Credentials,
    /// The host's name does not resolve.
    #[error("names {host}, which does not resolve: {why}")]
    Unresolved {
        /// The host name of the address.
        host: String,
        /// The resolver's message.
        why: String,
    },
    /// The host is, or resolves to, an address that is neither public nor in
    /// `webhooks.allow_private`.
    #[error(
        "leads to {address}, which is not public ({why}); the operator can allow its network by \
         webhooks.allow_private"
    )]
    NotPublic {
        /// The address that the host is or resolves to.
        address: IpAddr,
        /// The kind of network that it belongs to.
        why: &'static str,
    },
    /// No connection, no answer in time, or a broken exchange; the receiver's address is left out.
    #[error("could not be reached: {0}")]
    Exchange(String),
    /// The receiver answered with this HTTP status: an error, or a redirect, which is not followed.
    #[error("answered {0}")]
    Status(u16),
}

impl WebhookError {
    /// The address itself is invalid: a retry cannot succeed.
    pub const fn is_final(&self) -> bool {
        matches!(self, Self::NotAnAddress | Self::Credentials | Self::NotPublic { .. })
    }
}

/// The message to send.
#[derive(Debug, Clone, Copy)]
pub struct WebhookMessage<'a> {
    /// JSON.
    pub body: &'a str,
    /// The same for every attempt at a delivery.
    pub id: &'a str,
    /// The time of the signature; the receiver can refuse old messages by it.
    pub at: Timestamp,
    /// The key that the message is signed with; `None` = it is not signed.
    pub secret: Option<&'a Secret>,
}

/// Sends webhooks.
#[derive(Debug, Clone, Default)]
pub struct Webhooks {
    allowed: Vec<Network>,
}

impl Webhooks {
    /// `allowed`: networks that are allowed although they are not public.
    pub const fn new(allowed: Vec<Network>) -> Self {
        Self { allowed }
    }

    /// Checks an address as far as possible without a DNS query.
    ///
    /// # Errors
    /// When the form is invalid, or the address itself is not allowed.
    pub fn check(&self, address: &str) -> Result<(), WebhookError> {
        let url = shape(address)?;
        literal(&url).map_or(Ok(()), |ip| self.judge(ip))
    }

    /// Sends one message; returns its status.
    ///
    /// # Errors
    /// Anything but a success; the text can be shown to an administrator.
    pub async fn send(
        &self,
        address: &str,
        message: WebhookMessage<'_>,
    ) -> Result<u16, WebhookError> {
        let url = shape(address)?;
        let sending = self.send_to(url, message);
        let slow =
            |_| WebhookError::Exchange(format!("no answer within {} s", TIME_LIMIT.as_secs()));
        tokio::time::timeout(TIME_LIMIT, sending).await.map_err(slow)?
    }

    async fn send_to(&self, url: Url, message: WebhookMessage<'_>) -> Result<u16, WebhookError> {
        let failed = |error| WebhookError::Exchange(super::describe(error));
        let addresses = self.resolve(&url).await?;
        let host = url.host_str().unwrap_or_default().to_owned();
        let client = super::builder(TIME_LIMIT)
            .redirect(reqwest::redirect::Policy::none())
            .resolve_to_addrs(&host, &addresses)
            .build()
            .map_err(failed)?;
        let mut request = client
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .header("x-tollgate-delivery", message.id);
        if let Some(secret) = message.secret {
            request = request.header(SIGNATURE, sign(secret, message.at, message.body));
        }
        let answer = request.body(message.body.to_owned()).send().await.map_err(failed)?;
        let status = answer.status();
        if status.is_success() {
            Ok(status.as_u16())
        } else {
            Err(WebhookError::Status(status.as_u16()))
        }
    }

    /// Every address of the host, each one checked.
    async fn resolve(&self, url: &Url) -> Result<Vec<SocketAddr>, WebhookError> {
        let port = url.port_or_known_default().unwrap_or(443);
        let found: Vec<SocketAddr> = match literal(url) {
            Some(ip) => vec![SocketAddr::new(ip, port)],
            None => {
                let host = url.host_str().unwrap_or_default();
                let unresolved =
                    |why: String| WebhookError::Unresolved { host: host.to_owned(), why };
                let found = tokio::net::lookup_host((host, port))
                    .await
                    .map_err(|error| unresolved(error.to_string()))?;
                let found: Vec<SocketAddr> = found.collect();
                if found.is_empty() {
                    return Err(unresolved("no address".to_owned()));
                }
                found
            }
        };
        found.iter().try_for_each(|address| self.judge(address.ip()))?;
        Ok(found)
    }

    fn judge(&self, address: IpAddr) -> Result<(), WebhookError> {
        let Some(why) = not_public(address) else { return Ok(()) };
        // `::ffff:10.0.0.1` is 10.0.0.1, and allowed if that is.
        let plain = match address {
            IpAddr::V6(v6) => embedded(v6).map_or(address, IpAddr::V4),
            IpAddr::V4(_) => address,
        };
        if self.allowed.iter().any(|network| network.contains(address) || network.contains(plain)) {
            return Ok(());
        }
        Err(WebhookError::NotPublic { address, why })
    }
}

/// The address as browsers parse it: so 127.1, 0x7f000001 and 2130706433 become 127.0.0.1 before
/// the check.
fn shape(address: &str) -> Result<Url, WebhookError> {
    let url = Url::parse(address.trim()).map_err(|_| WebhookError::NotAnAddress)?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err(WebhookError::NotAnAddress);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(WebhookError::Credentials);
    }
    Ok(url)
}

fn literal(url: &Url) -> Option<IpAddr> {
    let host = url.host_str()?;
    host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host).parse().ok()
}

/// The value of [`SIGNATURE`].
pub fn sign(secret: &Secret, at: Timestamp, body: &str) -> String {
    let seconds = at.0.div_euclid(1000);
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret.expose().as_bytes());
    let mut context = ring::hmac::Context::with_key(&key);
    context.update(format!("{seconds}.").as_bytes());
    context.update(body.as_bytes());
    format!("t={seconds},v1={}", hex::encode(context.sign()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_an_address_that_is_not_public_is_refused() {
        let webhooks = Webhooks::default();
        for address in [
            "http://127.0.0.1/",
            "http://127.1",
            "http://127.0.1",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0x7f.0.0.1",
            "http://0177.0.0.1",
            "http://017700000001",
            "http://0/",
            "http://0.0.0.0:80/",
            "http://127.0.0.1.:8080/",
            "http://①②⑦.⓪.⓪.①/",
            "http://127%2e0%2e0%2e1/",
            "http:127.0.0.1",
            "http:/\\127.1/",
            "https://[::1]/",
            "https://[0:0:0:0:0:0:0:1]:8443/",
            "https://[::ffff:127.0.0.1]/",
            "https://[::ffff:7f00:1]/",
            "https://[::127.0.0.1]/",
            "https://[64:ff9b::127.0.0.1]/",
            "https://[2002:7f00:1::]/",
            "https://[2001:0:7f00:1::1]/",
            "https://[fe80::1]/",
            "https://[fc00::1]/",
            "https://[::]/",
            "http://10.0.0.1",
            "http://10.1",
            "http://167772161/",
            "http://012.0.0.1/",
            "http://192.168.0.1",
            "http://0xc0.0xa8.0.1",
            "http://172.16.0.1",
            "http://100.64.0.1",
            "http://169.254.169.254/latest/meta-data/",
            "http://0xa9fea9fe/",
            "http://2852039166/",
            "http://0251.0376.0251.0376/",
            "https://[::ffff:a9fe:a9fe]/",
            "https://[fd00:ec2::254]/",
            "http://224.0.0.1",
            "http://255.255.255.255",
            "http://198.18.0.1",
        ] {
            let found = webhooks.check(address);
            assert!(matches!(found, Err(WebhookError::NotPublic { .. })), "{address}: {found:?}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_and_public_ones_pass() {
        let webhooks = Webhooks::default();
        for address in [
            "",
            "hooks.example",
            "ftp://hooks.example",
            "file:///etc/passwd",
            "gopher://x",
            "javascript:alert(1)",
            "http://",
            "http://256.1.1.1",
            "http://1.2.3.4.5",
            "http://[::1",
            "http://a b/",
        ] {
            assert_eq!(webhooks.check(address), Err(WebhookError::NotAnAddress), "{address}");
        }
        for address in ["https://me:word@hooks.example", "https://me@127.0.0.1"] {
            assert_eq!(webhooks.check(address), Err(WebhookError::Credentials), "{address}");
        }
        for address in [
            "https://hooks.example/a?token=b",
            "http://1.1.1.1:8080/",
            "https://[2606:4700::1111]/",
        ] {
            assert_eq!(webhooks.check(address), Ok(()), "{address}");
        }
    }

    #[tokio::test]
    async fn a_name_is_judged_by_what_it_resolves_to_and_the_allow_list_lets_through() {
        let message = WebhookMessage { body: "{}", id: "1", at: Timestamp(0), secret: None };
        let refused = Webhooks::default().send("http://localhost:9/", message).await;
        assert!(matches!(refused, Err(WebhookError::NotPublic { .. })), "{refused:?}");
        let allowed =
            Webhooks::new(["127.0.0.0/8", "::1"].map(|n| Network::parse(n).unwrap()).to_vec());
        for address in
            ["http://127.0.0.1", "http://[::ffff:127.0.0.1]", "http://2130706433", "http://[::1]"]
        {
            assert_eq!(allowed.check(address), Ok(()), "{address}");
        }
        assert!(allowed.check("http://10.0.0.1").is_err());
    }

    #[test]
    fn the_signature_is_the_hmac_of_time_and_body() {
        // As `printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac key-of-the-receiver` prints
        // it.
        let signed =
            sign(&Secret::new("key-of-the-receiver"), Timestamp(1_700_000_000_999), "{\"a\":1}");
        assert_eq!(
            signed,
            "t=1700000000,v1=9049d5ef64a353c41bd35d7094f062c3b83abe52553fa783f97102b6291a5ef5"
        );
    }
}
