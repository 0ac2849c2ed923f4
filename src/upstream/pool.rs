//! One provider, ready for calls: its endpoint, its peer for Pingora's pool, and the pool itself.
//!
//! See docs/decisions/13-own-idle-connections.md.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use pingora::connectors::ConnectorOptions;
use pingora::connectors::http::Connector;
use pingora::connectors::http::v1::Connector as Http1Connector;
use pingora::protocols::http::client::HttpSession;
use pingora::protocols::http::v1::client::HttpSession as Http1Session;
use pingora::protocols::tls::CaType;
use pingora::upstreams::peer::{HttpPeer, Peer as _};
use pingora::utils::tls::CertKey;

use super::certificates::{self, CertificateFault};
use super::direct::Direct;
use super::endpoint::{Endpoint, EndpointError};
use super::idle::IdleConnections;
use super::one_write::OneWrite;
use super::proxy::{Proxy, Tunnel};
use super::proxy_error::ProxyAddressError;
use super::resolve::{ResolveError, Resolver};
use super::sockets::Sockets;
use super::tokens::{AccessToken, TokenSource};
use crate::domain::clock::Timestamp;
use crate::domain::fast_map::FastMap;
use crate::domain::ids::{CredentialId, ProviderId};
use crate::domain::provider::Provider;

/// Streams that one HTTP/2 connection carries at most.
const MAX_H2_STREAMS: usize = 100;
/// Prepared providers that are kept; an edited provider's old form stays until this is reached.
const CAPACITY: usize = 4096;

/// Every provider's connections.
pub struct Upstreams {
    connector: Connector,
    /// For providers without TLS, which speak HTTP/1 only.
    plain: Http1Connector,
    /// The idle connections of HTTP/1. Those of HTTP/2 are the connector's.
    idle: IdleConnections,
    resolver: Resolver,
    targets: RwLock<FastMap<(ProviderId, CredentialId, Timestamp), Arc<ParsedAddress>>>,
    /// Counts the connections that were requested outside the pool.
    fresh: AtomicU64,
    /// WebSockets to providers.
    pub sockets: Arc<Sockets>,
}

/// A provider's parsed address, once per version of its record and for each of its credentials.
struct ParsedAddress {
    endpoint: Arc<Endpoint>,
    proxy: Option<Arc<Proxy>>,
    /// The provider's own certificates, for addresses with TLS.
    authorities: Option<Arc<CaType>>,
    identity: Option<Arc<CertKey>>,
    /// Keeps connections of different providers, and of different versions of one, apart in the
    /// pool.
    group: u64,
    /// Where its access tokens come from, if it has any.
    tokens: Option<Result<TokenSource, String>>,
    /// The last link; valid as long as address and times are the same.
    link: Mutex<Option<Arc<Link>>>,
}

/// How long connecting may take, and how long an idle connection is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkTimes {
    /// `None` = no bound.
    pub connect: Option<Duration>,
    /// Only for the TLS handshake, within `connect`.
    pub tls: Option<Duration>,
    /// How long an idle connection is kept in the pool.
    pub keepalive: Duration,
}

/// A link to one provider: the input of [`Upstreams::connect`], and the endpoint of its calls.
/// Requests share it.
pub struct Link {
    endpoint: Arc<Endpoint>,
    address: SocketAddr,
    times: LinkTimes,
    peer: HttpPeer,
}

/// Why a provider cannot be called; the text can be shown.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The provider's base address is invalid.
    #[error("the provider's address {0}")]
    Address(EndpointError),
    /// The address of the provider's proxy is invalid.
    #[error(transparent)]
    Proxy(#[from] ProxyAddressError),
    /// The provider's own certificates cannot be used.
    #[error("the provider's own certificate {0}")]
    Certificate(#[from] CertificateFault),
    /// The provider's name does not resolve.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// The name of its proxy does not resolve.
    #[error("the proxy cannot be reached: {0}")]
    ProxyName(ResolveError),
}

impl Upstreams {
    /// Keeps up to `pool_size` idle connections of HTTP/1, and as many of HTTP/2.
    pub fn new(pool_size: usize) -> Self {
        Self {
            connector: Connector::new(Some(ConnectorOptions::new(pool_size))),
            plain: Http1Connector::new(None),
            idle: IdleConnections::new(pool_size),
            resolver: Resolver::default(),
            targets: RwLock::default(),
            fresh: AtomicU64::new(0),
            sockets: Arc::default(),
        }
    }

    /// Finds the link to a provider; resolves its name.
    ///
    /// # Errors
    /// When its address is invalid, or its name does not resolve.
    pub async fn link(
        &self,
        provider: &Provider,
        times: LinkTimes,
    ) -> Result<Arc<Link>, LinkError> {
        let target = self.target(provider)?;
        let address = match &target.proxy {
            // The proxy resolves the provider's name; the address here only identifies the pool's
            // entry.
            Some(proxy) => {
                let proxy = &proxy.address;
                let resolved = self.resolver.resolve(&proxy.host, proxy.port).await;
                resolved.map_err(LinkError::ProxyName)?
            }
            None => self.resolver.resolve(&target.endpoint.host, target.endpoint.port).await?,
        };
        let mut last = target.link.lock();
        if let Some(link) =
            last.as_ref().filter(|link| link.address == address && link.times == times)
        {
            return Ok(Arc::clone(link));
        }
        let link = Arc::new(self.make(&target, address, times));
        *last = Some(Arc::clone(&link));
        Ok(link)
    }

    /// The access token of a provider whose credential is exchanged for one.
    ///
    /// # Errors
    /// Why there is none; the text can be shown.
    pub async fn token(&self, provider: &Provider, now: Timestamp) -> Result<AccessToken, String> {
        let target = self.target(provider).map_err(|error| error.to_string())?;
        match &target.tokens {
            Some(Ok(source)) => source.token(now).await,
            Some(Err(why)) => Err(why.clone()),
            None => Err("the provider's credential is sent as it is".to_owned()),
        }
    }

    /// Drops an access token that the provider refused.
    pub fn token_refused(&self, provider: &Provider, token: &AccessToken) {
        if let Ok(target) = self.target(provider)
            && let Some(Ok(source)) = &target.tokens
        {
            source.forget(token);
        }
    }

    fn make(&self, target: &ParsedAddress, address: SocketAddr, times: LinkTimes) -> Link {
        #[expect(
            clippy::disallowed_methods,
            reason = "the address is resolved: this neither blocks nor panics"
        )]
        let mut peer = HttpPeer::new(address, target.endpoint.tls, target.endpoint.host.clone());
        peer.group_key = target.group;
        peer.options.connection_timeout = times.connect;
        peer.options.total_connection_timeout = times.connect;
        peer.options.idle_timeout = Some(times.keepalive);
        peer.options.max_h2_streams = MAX_H2_STREAMS;
        if target.endpoint.tls {
            peer.options.set_http_version(2, 1);
            // Pingora bounds the TCP connection and the TLS handshake separately by the same value.
            // `Direct` ignores it, so it applies to the handshake only; the total bounds both.
            peer.options.connection_timeout = times.tls;
            peer.options.custom_l4 = Some(Arc::new(Direct));
            peer.options.ca.clone_from(&target.authorities);
            peer.client_cert_key.clone_from(&target.identity);
        }
        if let Some(proxy) = &target.proxy {
            // `Tunnel` itself keeps to the time of the connection, and says what failed.
            let both = |connect| connect + times.tls.unwrap_or(connect);
            peer.options.total_connection_timeout = times.connect.map(both);
            peer.options.custom_l4 = Some(Arc::new(Tunnel {
                proxy: Arc::clone(proxy),
                host: target.endpoint.host.clone(),
                port: target.endpoint.port,
                time: times.connect,
            }));
        }
        Link { endpoint: Arc::clone(&target.endpoint), address, times, peer }
    }

    /// The peer to connect to. `fresh`: its connection must be new, whatever the pool contains.
    pub fn peer(&self, link: &Link, fresh: bool) -> HttpPeer {
        let mut peer = link.peer.clone();
        if fresh {
            // Pingora has no call for this; a pool entry that is always empty has the same effect.
            // With one stream at most, Pingora keeps no HTTP/2 connection in that entry while it is
            // in use.
            let mut hasher = DefaultHasher::new();
            (peer.group_key, self.fresh.fetch_add(1, Ordering::Relaxed)).hash(&mut hasher);
            peer.group_key = hasher.finish();
            peer.options.max_h2_streams = 1;
        }
        peer
    }

    /// A connection from the pool, or a new one. The flag says whether it was used before.
    pub async fn connect(&self, peer: &HttpPeer) -> pingora::Result<(HttpSession, bool)> {
        if let Some(stream) = self.idle.take(peer.reuse_hash()) {
            return Ok((HttpSession::H1(Http1Session::new_with_options(stream, peer)), true));
        }
        // Boxed: connecting and its handshake need about 18 KB, which a stream must not hold for
        // its whole life.
        let (session, reused) = if !peer.is_tls() {
            let (h1, reused) = Box::pin(self.plain.get_http_session(peer)).await?;
            (HttpSession::H1(h1), reused)
        } else {
            Box::pin(self.connector.get_http_session(peer)).await?
        };
        let session = match session {
            HttpSession::H1(h1) => {
                let stream = OneWrite::around(h1.into_inner());
                HttpSession::H1(Http1Session::new_with_options(stream, peer))
            }
            session => session,
        };
        Ok((session, reused))
    }

    /// Returns a connection whose exchange is complete to the pool.
    pub async fn release(&self, session: Box<HttpSession>, link: &Link) {
        // Boxed, as above: 2 to 5 KB for a moment at the end, not for the whole life of the
        // caller's future.
        let (peer, keepalive) = (&link.peer, Some(link.times.keepalive));
        match *session {
            HttpSession::H1(mut h1) => {
                h1.respect_keepalive();
                if let Some(stream) = Box::pin(h1.reuse()).await {
                    self.idle.put(peer.reuse_hash(), stream, link.times.keepalive);
                }
            }
            session => {
                Box::pin(self.connector.release_http_session(session, peer, keepalive)).await
            }
        }
    }

    fn target(&self, provider: &Provider) -> Result<Arc<ParsedAddress>, LinkError> {
        let version = (provider.id, provider.credential_id(), provider.updated_at);
        if let Some(target) = self.targets.read().get(&version) {
            return Ok(Arc::clone(target));
        }
        let endpoint = Endpoint::of(provider).map_err(LinkError::Address)?;
        let proxy = Proxy::of(provider, &self.resolver).transpose()?.map(Arc::new);
        let tls = &provider.tls;
        let authorities = tls.ca.as_deref().map(certificates::authorities).transpose()?;
        let identity = tls.client_certificate.as_deref();
        let identity =
            identity.map(|pem| certificates::identity(pem, &tls.client_key)).transpose()?;
        let mut hasher = DefaultHasher::new();
        let password = provider.proxy_password.expose();
        (version, &provider.url, &provider.proxy_url, password).hash(&mut hasher);
        (&tls.ca, &tls.client_certificate, tls.client_key.expose()).hash(&mut hasher);
        let target = Arc::new(ParsedAddress {
            endpoint: Arc::new(endpoint),
            proxy,
            authorities,
            identity,
            group: hasher.finish(),
            tokens: TokenSource::of(provider),
            link: Mutex::default(),
        });
        let mut targets = self.targets.write();
        if targets.len() >= CAPACITY {
            targets.clear();
        }
        // Another request may have been faster: there is one source of tokens.
        Ok(Arc::clone(targets.entry(version).or_insert(target)))
    }
}

impl Link {
    /// The provider's parsed address, which gives the paths of calls.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }
}
