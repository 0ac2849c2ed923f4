//! Connects to a provider through a proxy: HTTP CONNECT, over TLS if its address says so, or SOCKS5.
//!
//! Pingora's own proxy setting supports only Unix sockets, so this module connects the TCP stream
//! and does the handshake itself; TLS to the provider then runs inside the tunnel. The proxy gets
//! the provider's name and resolves it. No error has a part of the login, or text of the proxy.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pingora::connectors::l4::Connect;
use pingora::protocols::l4::socket::SocketAddr;
use pingora::protocols::l4::stream::Stream;
use pingora::protocols::l4::virt::VirtualSocketStream;
use pingora::{Error, ErrorType, Result};
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::proxy_error::{ProxyAddressError, ProxyError, ProxyFault};
use super::resolve::Resolver;
use super::{certificates, proxy_tls, socks};
use crate::domain::provider::Provider;
use crate::domain::provider_tls::ProviderTls;
use crate::domain::proxy_address::{self, ProxyAddress, ProxyScheme, host_and_port};
use crate::domain::secret::Secret;

/// Longest head of a proxy's answer.
const MAX_HEAD: usize = 8 * 1024;

/// A provider's proxy.
pub(super) struct Proxy {
    /// Where it is, and who uses it.
    pub(super) address: ProxyAddress,
    /// The password, percent-decoded.
    password: Secret,
    /// Resolves the proxy's name.
    resolver: Resolver,
}

/// A tunnel through a proxy to one provider, for Pingora.
pub(super) struct Tunnel {
    pub proxy: Arc<Proxy>,
    pub host: String,
    pub port: u16,
    /// How long connecting and the handshake with the proxy may take; `None` = no bound.
    pub time: Option<Duration>,
}

impl Proxy {
    /// The proxy of a provider; `None` if it has none.
    ///
    /// # Errors
    /// Its address is invalid.
    pub(super) fn of(
        provider: &Provider,
        resolver: &Resolver,
    ) -> Option<std::result::Result<Self, ProxyAddressError>> {
        let address = ProxyAddress::parse(provider.proxy_url.as_deref()?).ok_or(ProxyAddressError);
        let password = Secret::new(proxy_address::decoded(provider.proxy_password.expose()));
        Some(address.map(|address| Self { address, password, resolver: resolver.clone() }))
    }

    /// A connection to `host:port` within this time.
    ///
    /// # Errors
    /// The proxy cannot be reached, or does not connect.
    pub(super) async fn connect(
        &self,
        host: &str,
        port: u16,
        time: Option<Duration>,
    ) -> std::result::Result<Stream, ProxyError> {
        let connected = match time {
            Some(time) => {
                let late = |_| Err(ProxyFault::Late(time.as_millis()));
                timeout(time, self.tunnel(host, port)).await.unwrap_or_else(late)
            }
            None => self.tunnel(host, port).await,
        };
        connected.map_err(|fault| ProxyError { proxy: self.address.place(), fault })
    }

    async fn tunnel(&self, host: &str, port: u16) -> std::result::Result<Stream, ProxyFault> {
        let ProxyAddress { host: own, port: own_port, .. } = &self.address;
        let resolved = self.resolver.resolve(own, *own_port).await;
        let address = resolved.map_err(|error| ProxyFault::Name(error.reason))?;
        let unreachable = |error: io::Error| ProxyFault::Unreachable(error.to_string());
        let mut tcp = TcpStream::connect(address).await.map_err(unreachable)?;
        tcp.set_nodelay(true).map_err(unreachable)?;
        match self.address.scheme {
            ProxyScheme::Http => self.ask(&mut tcp, host, port).await?,
            ProxyScheme::Socks5 => socks::ask(&mut tcp, self.login(), host, port).await?,
            ProxyScheme::Https => {
                let fault = |error: &dyn std::fmt::Display| ProxyFault::Tls(error.to_string());
                let config = certificates::client_config(&ProviderTls::default());
                let config = config.map_err(|error| fault(&error))?;
                let name = ServerName::try_from(own.clone()).map_err(|error| fault(&error))?;
                let tls = TlsConnector::from(config).connect(name, tcp).await;
                let mut tls = proxy_tls::Tls(tls.map_err(|error| fault(&error))?);
                self.ask(&mut tls, host, port).await?;
                return Ok(Stream::from(VirtualSocketStream::new(Box::new(tls))));
            }
        }
        Ok(Stream::from(tcp))
    }

    /// User and password.
    fn login(&self) -> Option<(&str, &str)> {
        Some((self.address.user.as_deref()?, self.password.expose()))
    }

    /// The handshake of HTTP.
    async fn ask(
        &self,
        proxy: &mut (impl AsyncRead + AsyncWrite + Unpin),
        host: &str,
        port: u16,
    ) -> std::result::Result<(), ProxyFault> {
        let login = self.login().map(|(user, password)| {
            let encoded = STANDARD.encode(format!("{user}:{password}"));
            format!("Proxy-Authorization: Basic {encoded}\r\n")
        });
        let target = host_and_port(host, port);
        let login = login.as_deref().unwrap_or_default();
        let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{login}\r\n");
        let closed = |_| ProxyFault::Closed;
        proxy.write_all(request.as_bytes()).await.map_err(closed)?;
        proxy.flush().await.map_err(closed)?;
        match read_status(proxy).await? {
            200..300 => Ok(()),
            407 if login.is_empty() => Err(ProxyFault::NoLogin),
            407 => Err(ProxyFault::WrongLogin),
            status => Err(ProxyFault::Status(status)),
        }
    }
}

/// Reads the proxy's answer byte by byte, so that no byte of the tunnel is consumed.
async fn read_status(proxy: &mut (impl AsyncRead + Unpin)) -> std::result::Result<u16, ProxyFault> {
    const BEGIN: &[u8] = b"HTTP/1.";
    let mut head = Vec::with_capacity(256);
    while !head.ends_with(b"\r\n\r\n") {
        head.push(proxy.read_u8().await.map_err(|_| ProxyFault::Closed)?);
        let begun = head.len().min(BEGIN.len());
        if head.len() > MAX_HEAD || head[..begun] != BEGIN[..begun] {
            return Err(ProxyFault::OtherProtocol("HTTP"));
        }
    }
    let status = head.split(|byte| matches!(byte, b' ' | b'\r')).nth(1).unwrap_or_default();
    let status = std::str::from_utf8(status).ok().filter(|text| text.len() == 3);
    status.and_then(|text| text.parse().ok()).ok_or(ProxyFault::OtherProtocol("HTTP"))
}

impl std::fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tunnel({}:{} via {})", self.host, self.port, self.proxy.address.place())
    }
}

#[async_trait]
impl Connect for Tunnel {
    async fn connect(&self, _provider: &SocketAddr) -> Result<Stream> {
        let connected = self.proxy.connect(&self.host, self.port, self.time).await;
        connected.map_err(|error| Error::because(ErrorType::ConnectProxyFailure, "", error))
    }
}
