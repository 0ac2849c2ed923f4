//! The client's side of SOCKS5 (RFC 1928), with a login (RFC 1929).
//!
//! `tokio-socks` and `fast-socks5` do the same, but mix the texts of their errors with the target,
//! and have types of streams and addresses of their own: the handshake alone is shorter.

use std::net::IpAddr;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::proxy_error::ProxyFault;

const VERSION: u8 = 5;
const LOGIN_VERSION: u8 = 1;
const NO_LOGIN: u8 = 0;
const LOGIN: u8 = 2;
const NOT_ACCEPTED: u8 = 0xff;
const CONNECT: u8 = 1;
const OTHER: ProxyFault = ProxyFault::OtherProtocol("SOCKS5");

/// Asks for a connection to `host:port`. A name is resolved by the proxy.
///
/// # Errors
/// The proxy refuses the login or the target, or breaks the protocol.
pub(super) async fn ask(
    proxy: &mut (impl AsyncRead + AsyncWrite + Unpin),
    login: Option<(&str, &str)>,
    host: &str,
    port: u16,
) -> Result<(), ProxyFault> {
    let methods: &[u8] = if login.is_some() { &[NO_LOGIN, LOGIN] } else { &[NO_LOGIN] };
    send(proxy, &[&[VERSION], &sized(methods)?]).await?;
    match (read::<2>(proxy).await?, login) {
        ([VERSION, NO_LOGIN], _) => {}
        ([VERSION, LOGIN], Some((user, password))) => {
            send(proxy, &[&[LOGIN_VERSION], &sized(user)?, &sized(password)?]).await?;
            let [_, status] = read::<2>(proxy).await?;
            if status != 0 {
                return Err(ProxyFault::WrongLogin);
            }
        }
        ([VERSION, NOT_ACCEPTED], None) => return Err(ProxyFault::NoLogin),
        ([VERSION, NOT_ACCEPTED], Some(_)) => return Err(ProxyFault::WrongLogin),
        _ => return Err(OTHER),
    }
    let target = match host.parse() {
        Ok(IpAddr::V4(ip)) => [&[1][..], &ip.octets()].concat(),
        Ok(IpAddr::V6(ip)) => [&[4][..], &ip.octets()].concat(),
        Err(_) => [&[3][..], &sized(host)?].concat(),
    };
    send(proxy, &[&[VERSION, CONNECT, 0], &target, &port.to_be_bytes()]).await?;
    let [version, reply, _, form] = read::<4>(proxy).await?;
    if version != VERSION {
        return Err(OTHER);
    }
    if reply != 0 {
        return Err(ProxyFault::Refused(words(reply)));
    }
    // The address from which the proxy connects, and its port.
    let length = match form {
        1 => 4,
        4 => 16,
        3 => usize::from(read::<1>(proxy).await?[0]),
        _ => return Err(OTHER),
    };
    let mut rest = vec![0; length + 2];
    proxy.read_exact(&mut rest).await.map_err(|_| ProxyFault::Closed)?;
    Ok(())
}

/// What a reply means (RFC 1928, section 6).
const fn words(reply: u8) -> &'static str {
    match reply {
        1 => "it reports a general failure",
        2 => "its rules do not allow this target",
        3 => "the network of the target cannot be reached",
        4 => "the host of the target cannot be reached, or its name does not resolve",
        5 => "the target refused the connection",
        6 => "the time to live expired",
        7 => "it does not support CONNECT",
        8 => "it does not support this type of address",
        _ => "it answered with an unknown reply",
    }
}

/// A text with its length before it.
fn sized(text: &(impl AsRef<[u8]> + ?Sized)) -> Result<Vec<u8>, ProxyFault> {
    let text = text.as_ref();
    let length = u8::try_from(text.len());
    let length = length.map_err(|_| ProxyFault::Refused("a name is longer than 255 bytes"))?;
    Ok([&[length], text].concat())
}

async fn send(proxy: &mut (impl AsyncWrite + Unpin), parts: &[&[u8]]) -> Result<(), ProxyFault> {
    proxy.write_all(&parts.concat()).await.map_err(|_| ProxyFault::Closed)
}

async fn read<const N: usize>(proxy: &mut (impl AsyncRead + Unpin)) -> Result<[u8; N], ProxyFault> {
    let mut bytes = [0; N];
    proxy.read_exact(&mut bytes).await.map_err(|_| ProxyFault::Closed)?;
    Ok(bytes)
}
