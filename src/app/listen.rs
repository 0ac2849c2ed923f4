//! Listeners of the administration and of the metrics, bound so that a new process can bind them
//! while the old one drains.

use std::net::SocketAddr;

use anyhow::Context;
use tokio::net::{TcpListener, TcpSocket};

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 1024;

/// Binds an address with `SO_REUSEPORT`.
///
/// # Errors
/// When the address cannot be bound; the error names it and the setting's purpose.
pub(super) fn bind(addr: SocketAddr, purpose: &str) -> anyhow::Result<TcpListener> {
    let socket = if addr.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(true)?;
    socket.bind(addr).with_context(|| format!("the {purpose} address {addr} cannot be bound"))?;
    socket.listen(BACKLOG).with_context(|| format!("listening on the {purpose} address {addr}"))
}
