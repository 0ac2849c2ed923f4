//! Connects to a provider through an HTTP CONNECT proxy.
//!
//! Pingora's own proxy setting supports only Unix sockets, so this module connects the TCP stream
//! and does the handshake itself; TLS to the provider then runs inside the tunnel.

use std::sync::Arc;

use async_trait::async_trait;
use pingora::connectors::l4::Connect;
use pingora::protocols::l4::socket::SocketAddr;
use pingora::protocols::l4::stream::Stream;
use pingora::{Error, ErrorType, OrErr, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::resolve::Resolver;

/// Longest head of a proxy's answer.
const MAX_HEAD: usize = 8 * 1024;

/// A tunnel through one proxy to one provider.
pub struct Tunnel {
    /// The proxy's name or address, without brackets.
    pub proxy_host: String,
    /// The proxy's port.
    pub proxy_port: u16,
    /// `host:port` of the provider, as named in the CONNECT line: the proxy resolves it.
    pub target: String,
    /// Resolves the proxy's name.
    pub resolver: Arc<Resolver>,
}

impl std::fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tunnel({} via {}:{})", self.target, self.proxy_host, self.proxy_port)
    }
}

#[async_trait]
impl Connect for Tunnel {
    async fn connect(&self, _provider: &SocketAddr) -> Result<Stream> {
        let address = self
            .resolver
            .resolve(&self.proxy_host, self.proxy_port)
            .await
            .or_err(ErrorType::ConnectProxyFailure, "proxy address")?;
        let mut tcp = TcpStream::connect(address)
            .await
            .or_err(ErrorType::ConnectProxyFailure, "proxy connect")?;
        tcp.set_nodelay(true).or_err(ErrorType::ConnectProxyFailure, "proxy socket")?;
        let request = format!("CONNECT {0} HTTP/1.1\r\nHost: {0}\r\n\r\n", self.target);
        tcp.write_all(request.as_bytes())
            .await
            .or_err(ErrorType::ConnectProxyFailure, "proxy handshake")?;
        read_head(&mut tcp).await?;
        Ok(Stream::from(tcp))
    }
}

/// Reads the proxy's answer byte by byte, so that no byte of the tunnel is consumed.
async fn read_head(tcp: &mut TcpStream) -> Result<()> {
    let mut head = Vec::with_capacity(256);
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= MAX_HEAD {
            return Error::e_explain(
                ErrorType::ConnectProxyFailure,
                "the proxy's answer is too long",
            );
        }
        head.push(
            tcp.read_u8()
                .await
                .or_err(ErrorType::ConnectProxyFailure, "the proxy closed the connection")?,
        );
    }
    let line = head.split(|b| *b == b'\r').next().unwrap_or_default();
    let status = line.split(|b| *b == b' ').nth(1).unwrap_or_default();
    if status.first() == Some(&b'2') && status.len() == 3 {
        return Ok(());
    }
    Error::e_explain(
        ErrorType::ConnectProxyFailure,
        format!("the proxy answered {}", String::from_utf8_lossy(line)),
    )
}
