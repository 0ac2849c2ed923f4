//! Listeners of the administration and of the metrics, bound so that the new process of an upgrade
//! can bind them while the old one drains.

use std::net::SocketAddr;

use anyhow::Context;
use tokio::net::{TcpListener, TcpSocket};

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 1024;

/// Binds an address with `SO_REUSEPORT`. Only in an `upgrade` may another process have it too: else
/// two gateways would share their requests.
///
/// # Errors
/// When the address cannot be bound; the error names it and its setting, `<purpose>.addr`.
pub(super) fn bind(addr: SocketAddr, purpose: &str, upgrade: bool) -> anyhow::Result<TcpListener> {
    let refused = || format!("the {purpose} address {addr} ({purpose}.addr) cannot be bound");
    if !upgrade && addr.port() != 0 {
        let alone = socket(addr)?;
        alone.bind(addr).with_context(refused)?;
    }
    let socket = socket(addr)?;
    socket.set_reuseport(true)?;
    socket.bind(addr).with_context(refused)?;
    socket.listen(BACKLOG).with_context(|| format!("listening on the {purpose} address {addr}"))
}

fn socket(addr: SocketAddr) -> std::io::Result<TcpSocket> {
    let socket = if addr.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    Ok(socket)
}
