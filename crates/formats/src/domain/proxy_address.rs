//! The address of a proxy on the way to a provider, with or without a login.
//!
//! A provider's `proxy_url` is stored without the password, which is sealed with the credential.

use percent_encoding::percent_decode_str;

use super::secret::MASK;

/// Most bytes of a user name and of a password: a length is one byte in SOCKS5.
const LONGEST: usize = 255;

/// The protocol between the gateway and the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyScheme {
    /// CONNECT over TCP.
    Http,
    /// CONNECT over TLS.
    Https,
    /// SOCKS5. The proxy resolves the provider's name.
    Socks5,
}

/// A proxy's address, without the password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyAddress {
    /// The protocol.
    pub scheme: ProxyScheme,
    /// The name or the address, without brackets.
    pub host: String,
    /// The port; the scheme's own if the address has none.
    pub port: u16,
    /// The user, percent-decoded.
    pub user: Option<String>,
}

impl ProxyAddress {
    /// Reads an address without a password; `None` if it is not one.
    pub fn parse(url: &str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let (scheme, own_port) = match scheme.to_ascii_lowercase().as_str() {
            "http" => (ProxyScheme::Http, 80),
            "https" => (ProxyScheme::Https, 443),
            "socks5" | "socks5h" => (ProxyScheme::Socks5, 1080),
            _ => return None,
        };
        let (user, place) = match rest.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, rest),
        };
        let user = user.map(decoded);
        let is_user = |user: &Option<String>| {
            user.as_deref().is_none_or(|user| !user.is_empty() && is_part(user, ":"))
        };
        if !is_user(&user) || rest.contains(char::is_whitespace) {
            return None;
        }
        let authority: http::uri::Authority =
            place.strip_suffix('/').unwrap_or(place).parse().ok()?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let has_port = authority.as_str().rsplit(']').next().is_some_and(|end| end.contains(':'));
        let port = authority.port_u16().filter(|port| *port > 0);
        let port = if has_port { port? } else { own_port };
        (!host.is_empty()).then_some(Self { scheme, host, port, user })
    }

    /// `host:port`, an IPv6 address in brackets.
    pub fn place(&self) -> String {
        host_and_port(&self.host, self.port)
    }
}

/// `host:port`, an IPv6 address in brackets.
pub fn host_and_port(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// An address without its password, and the password as it was written.
pub fn without_password(url: &str) -> (String, Option<&str>) {
    let split = || {
        let (scheme, rest) = url.split_once("://")?;
        let (login, place) = rest.rsplit_once('@')?;
        let (user, password) = login.split_once(':')?;
        Some((format!("{scheme}://{user}@{place}"), password))
    };
    split().map_or_else(|| (url.to_owned(), None), |(url, password)| (url, Some(password)))
}

/// An address with a text in the place of its password.
pub fn with_password(url: &str, password: &str) -> String {
    let end = url.rfind('@').unwrap_or(url.len());
    let (login, place) = url.split_at(end);
    if place.is_empty() { url.to_owned() } else { format!("{login}:{password}{place}") }
}

/// An address whose password is masked.
pub fn masked(url: &str) -> String {
    with_password(url, MASK)
}

/// What is sent for a part of a login.
pub fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Whether a password can be sent.
pub fn is_password(text: &str) -> bool {
    is_part(&decoded(text), "")
}

fn is_part(text: &str, without: &str) -> bool {
    text.len() <= LONGEST && !text.chars().any(|c| c.is_control() || without.contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        use ProxyScheme::{Http, Https, Socks5};
        for (url, scheme, host, port, user) in [
            ("http://p:3128", Http, "p", 3128, None),
            ("HTTP://p", Http, "p", 80, None),
            ("https://p/", Https, "p", 443, None),
            ("socks5://[::1]:9", Socks5, "::1", 9, None),
            ("socks5h://a%40b@p", Socks5, "p", 1080, Some("a@b")),
            ("http://a@b@p:1", Http, "p", 1, Some("a@b")),
        ] {
            let user = user.map(str::to_owned);
            let wanted = ProxyAddress { scheme, host: host.to_owned(), port, user };
            assert_eq!(ProxyAddress::parse(url), Some(wanted), "{url}");
        }
        let long = format!("http://{}@p", "u".repeat(256));
        for url in [
            "",
            "p:3128",
            "ftp://p",
            "http://",
            "http://@p",
            "http://p:0",
            "http://p:70000",
            "http://p:",
            "http://p/x",
            "http://p?x",
            "http://a%00@p",
            "http://a b@p",
            "http://a%3Ab@p",
            &long,
        ] {
            assert_eq!(ProxyAddress::parse(url), None, "{url}");
        }
    }

    #[test]
    fn a_password_is_taken_out_and_masked() {
        for (url, without, password) in [
            ("http://p:1", "http://p:1", None),
            ("http://u@p:1", "http://u@p:1", None),
            ("http://u:@p:1", "http://u@p:1", Some("")),
            ("socks5://u:a:b/c@d@p:1", "socks5://u@p:1", Some("a:b/c@d")),
        ] {
            assert_eq!(without_password(url), (without.to_owned(), password), "{url}");
        }
        assert_eq!(masked("http://u@p:1"), "http://u:***@p:1");
        assert_eq!(masked("http://p:1"), "http://p:1");
        assert_eq!(ProxyAddress::parse("http://[::1]:2").unwrap().place(), "[::1]:2");
        assert!(is_password("a%20b") && !is_password("a%0Ab") && !is_password(&"x".repeat(256)));
    }
}
