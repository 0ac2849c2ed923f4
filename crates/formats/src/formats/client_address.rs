//! The client's address behind reverse proxies: `X-Forwarded-For` and `Forwarded` (RFC 7239).
//!
//! Any client can send these headers, so they count only if the peer is a trusted proxy. Each proxy
//! appends the address of its client. The walk therefore starts at the right end, skips trusted
//! proxies, and stops at the first other address: everything to the left of it is the client's own
//! claim. It also stops at an element that is not an address (`unknown`, `_hidden`, a damaged
//! line); the last address found counts then. The code reads from the left, once, and keeps the
//! result of that walk.
//!
//! Nothing is allocated here. If no proxies are trusted, the headers are not read.

use core::net::{IpAddr, Ipv6Addr};

use http::header::{FORWARDED, HeaderMap, HeaderName};

use crate::domain::network::Networks;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The address of the client whose request came from `peer`.
///
/// A proxy that sets one of the two headers passes the other one on unchanged. If a request has
/// both and they name different addresses, neither is trusted, and the peer's address counts.
pub fn client_address(peer: IpAddr, headers: &HeaderMap, trusted: &Networks) -> IpAddr {
    let peer = peer.to_canonical();
    if !trusted.contains(peer) {
        return peer;
    }
    let listed = walk(headers, X_FORWARDED_FOR, trusted, x_forwarded_for);
    let standard = walk(headers, FORWARDED, trusted, forwarded);
    match (listed, standard) {
        (Some(one), Some(other)) if one != other => peer,
        (one, other) => one.or(other).flatten().unwrap_or(peer),
    }
}

/// The client's address according to the elements read so far. `None` = none: the nearest proxy's
/// address counts.
type Found = Option<IpAddr>;

/// Reads a header's lines from left to right. Outer `None` = there is no such header.
fn walk(
    headers: &HeaderMap,
    name: HeaderName,
    trusted: &Networks,
    line: ReadLine,
) -> Option<Found> {
    let mut lines = headers.get_all(name).into_iter().peekable();
    lines.peek()?;
    // A line that cannot be read hides everything to its left.
    Some(
        lines.fold(None, |found, text| {
            text.to_str().ok().and_then(|text| line(text, found, trusted))
        }),
    )
}

/// Adds the elements of a line.
type ReadLine = fn(&str, Found, &Networks) -> Found;

/// Adds the element to the right of the previous ones: the walk from the right end meets it first.
fn hop(found: Found, address: Option<IpAddr>, trusted: &Networks) -> Found {
    match address {
        Some(proxy) if trusted.contains(proxy) => found.or(Some(proxy)),
        client_or_stop => client_or_stop,
    }
}

fn x_forwarded_for(line: &str, found: Found, trusted: &Networks) -> Found {
    line.split(',').fold(found, |found, text| hop(found, node(text.trim()), trusted))
}

/// Quoted strings may contain commas. A client that opens a quotation in its own part of a line
/// would hide the commas of the proxies after it, so any error discards the complete line.
fn forwarded(line: &str, mut found: Found, trusted: &Networks) -> Found {
    let mut rest = Some(line);
    while let Some(text) = rest {
        let (text, next) = element(text)?;
        found = hop(found, text.and_then(node), trusted);
        rest = next;
    }
    found
}

/// The node of a line's first element (`for=`), and the rest of the line after its comma. `None` =
/// the line is damaged.
fn element(text: &str) -> Option<(Option<&str>, Option<&str>)> {
    let (mut node, mut rest) = (None, text);
    loop {
        rest = rest.trim_start();
        if !rest.starts_with([';', ',']) && !rest.is_empty() {
            let (name, behind) = rest.split_once('=')?;
            let (value, behind) = value(behind)?;
            if name.is_empty()
                || name.contains([',', ';', '"'])
                || name.contains(char::is_whitespace)
            {
                return None;
            }
            if name.eq_ignore_ascii_case("for") && node.replace(value).is_some() {
                return None;
            }
            rest = behind.trim_start();
        }
        match rest.as_bytes().first() {
            None => return Some((node, None)),
            Some(b',') => return Some((node, rest.get(1..))),
            Some(b';') => rest = rest.get(1..)?,
            Some(_) => return None,
        }
    }
}

/// A parameter's value without its quotes, and the text after it. Escapes are left as they are: no
/// address has any.
fn value(text: &str) -> Option<(&str, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ';', '"', ' ', '\t']).unwrap_or(text.len());
        return text.split_at_checked(end);
    };
    let mut escaped = false;
    let end = quoted.bytes().position(|byte| match byte {
        _ if escaped => {
            escaped = false;
            false
        }
        b'\\' => {
            escaped = true;
            false
        }
        byte => byte == b'"',
    })?;
    Some((quoted.get(..end)?, quoted.get(end + 1..)?))
}

/// An address as proxies write it: bare, with a port, IPv6 in brackets.
fn node(text: &str) -> Option<IpAddr> {
    let address = if let Some(bracketed) = text.strip_prefix('[') {
        let (address, port) = bracketed.split_once(']')?;
        if !port.is_empty() && !port.strip_prefix(':').is_some_and(is_port) {
            return None;
        }
        IpAddr::V6(address.parse::<Ipv6Addr>().ok()?)
    } else {
        match text.split_once(':') {
            Some((address, port)) if !port.contains(':') => {
                IpAddr::V4(address.parse().ok().filter(|_| is_port(port))?)
            }
            _ => text.parse().ok()?,
        }
    };
    Some(address.to_canonical())
}

/// A number, or RFC 7239's obfuscated port.
fn is_port(text: &str) -> bool {
    let obfuscated = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    match text.strip_prefix('_') {
        Some(name) => !name.is_empty() && name.bytes().all(obfuscated),
        None => (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

#[cfg(test)]
#[path = "client_address_tests.rs"]
mod tests;
