//! A TCP connection to a provider with a separate bound for its TLS handshake.
//!
//! Pingora has one setting for the time of the connection and of the handshake. A connection made
//! here is only subject to the total bound, which leaves that setting to the handshake.

use std::io::ErrorKind;

use async_trait::async_trait;
use pingora::connectors::l4::Connect;
use pingora::protocols::l4::socket::SocketAddr;
use pingora::protocols::l4::stream::Stream;
use pingora::{Error, ErrorType, Result};
use tokio::net::TcpStream;

/// Connects to the peer's own address.
#[derive(Debug)]
pub(super) struct Direct;

#[async_trait]
impl Connect for Direct {
    async fn connect(&self, provider: &SocketAddr) -> Result<Stream> {
        let Some(address) = provider.as_inet() else {
            return Error::e_explain(ErrorType::SocketError, "the provider has no TCP address");
        };
        TcpStream::connect(address).await.map(Stream::from).map_err(|e| {
            let kind = match e.kind() {
                ErrorKind::ConnectionRefused => ErrorType::ConnectRefused,
                ErrorKind::TimedOut => ErrorType::ConnectTimedout,
                ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => {
                    ErrorType::ConnectNoRoute
                }
                _ => ErrorType::ConnectError,
            };
            Error::because(kind, format!("connecting to {address}"), e)
        })
    }
}
