//! One provider, ready to be called: its endpoint, its peer for Pingora's pool, and the pool
//! itself.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use pingora::connectors::ConnectorOptions;
use pingora::connectors::http::Connector;
use pingora::protocols::http::client::HttpSession;
use pingora::upstreams::peer::HttpPeer;

use super::connect_proxy::Tunnel;
use super::direct::Direct;
use super::endpoint::{Endpoint, EndpointError};
use super::resolve::{ResolveError, Resolver};
use crate::domain::clock::Timestamp;
use crate::domain::ids::ProviderId;
use crate::domain::provider::Provider;

/// Streams that one HTTP/2 connection carries at most.
const MAX_H2_STREAMS: usize = 100;
/// Prepared providers kept; an edited provider leaves its old form behind until this is reached.
const CAPACITY: usize = 4096;

/// Every provider's connections.
pub struct Upstreams {
    connector: Connector,
    resolver: Arc<Resolver>,
    targets: RwLock<HashMap<(ProviderId, Timestamp), Arc<Target>>>,
    /// Counts the connections that were asked for outside the pool.
    fresh: AtomicU64,
}

/// A provider's address, taken apart once per version of its record.
struct Target {
    endpoint: Arc<Endpoint>,
    proxy: Option<Endpoint>,
    /// Keeps connections of different providers, and of different versions of one, apart in the
    /// pool.
    group: u64,
    /// The last one that was made; good as long as address and times are the same.
    link: Mutex<Option<Arc<Link>>>,
}

/// How long connecting may take, and how long an idle connection is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkTimes {
    /// `None` = no bound.
    pub connect: Option<Duration>,
    /// For the TLS handshake alone, within `connect`.
    pub tls: Option<Duration>,
    pub keepalive: Duration,
}

/// A way to one provider: what [`Upstreams::connect`] needs, and where its calls go. Requests share
/// it.
pub struct Link {
    endpoint: Arc<Endpoint>,
    address: SocketAddr,
    times: LinkTimes,
    peer: HttpPeer,
}

#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error("the provider's address {0}")]
    Address(EndpointError),
    #[error("the provider's proxy address {0}")]
    Proxy(EndpointError),
    #[error(transparent)]
    Resolve(#[from] ResolveError),
}

impl Upstreams {
    /// A pool that keeps up to `pool_size` idle connections.
    #[must_use]
    pub fn new(pool_size: usize) -> Self {
        Self {
            connector: Connector::new(Some(ConnectorOptions::new(pool_size))),
            resolver: Arc::new(Resolver::default()),
            targets: RwLock::default(),
            fresh: AtomicU64::new(0),
        }
    }

    /// Finds the way to a provider; resolves its name.
    ///
    /// # Errors
    /// When its address is no address, or its name does not resolve.
    pub async fn link(&self, provider: &Provider, times: LinkTimes) -> Result<Arc<Link>, LinkError> {
        let target = self.target(provider)?;
        let address = match &target.proxy {
            // The proxy resolves the provider's name; the address here only names the pool's place.
            Some(proxy) => self.resolver.resolve(&proxy.host, proxy.port).await?,
            None => self.resolver.resolve(&target.endpoint.host, target.endpoint.port).await?,
        };
        let mut last = target.link.lock();
        if let Some(link) = last.as_ref().filter(|link| link.address == address && link.times == times) {
            return Ok(Arc::clone(link));
        }
        let link = Arc::new(self.make(&target, address, times));
        *last = Some(Arc::clone(&link));
        Ok(link)
    }

    fn make(&self, target: &Target, address: SocketAddr, times: LinkTimes) -> Link {
        #[expect(clippy::disallowed_methods, reason = "the address is resolved: this neither blocks nor panics")]
        let mut peer = HttpPeer::new(address, target.endpoint.tls, target.endpoint.host.clone());
        peer.group_key = target.group;
        peer.options.connection_timeout = times.connect;
        peer.options.total_connection_timeout = times.connect;
        peer.options.idle_timeout = Some(times.keepalive);
        peer.options.max_h2_streams = MAX_H2_STREAMS;
        if target.endpoint.tls {
            peer.options.set_http_version(2, 1);
            // Pingora bounds the TCP connection and the TLS handshake by the same value, each.
            // `Direct` has no bound of its own, so that this one is the handshake's; the total
            // bounds both.
            peer.options.connection_timeout = times.tls;
            peer.options.custom_l4 = Some(Arc::new(Direct));
        }
        if let Some(proxy) = &target.proxy {
            peer.options.custom_l4 = Some(Arc::new(Tunnel {
                proxy_host: proxy.host.clone(),
                proxy_port: proxy.port,
                target: format!("{}:{}", target.endpoint.host, target.endpoint.port),
                resolver: Arc::clone(&self.resolver),
            }));
        }
        Link { endpoint: Arc::clone(&target.endpoint), address, times, peer }
    }

    /// The peer to connect to. `fresh`: its connection must be one that nothing has used before,
    /// whatever lies in the pool.
    #[must_use]
    pub fn peer(&self, link: &Link, fresh: bool) -> HttpPeer {
        let mut peer = link.peer.clone();
        if fresh {
            // Pingora has no call for this: a place in the pool that nothing can lie in is as good.
            // With one stream at most, Pingora keeps no HTTP/2 connection under that place while it
            // is in use.
            let mut hasher = DefaultHasher::new();
            (peer.group_key, self.fresh.fetch_add(1, Ordering::Relaxed)).hash(&mut hasher);
            peer.group_key = hasher.finish();
            peer.options.max_h2_streams = 1;
        }
        peer
    }

    /// A connection from the pool, or a new one. The flag says whether it was used before.
    ///
    /// # Errors
    /// Pingora's, when no connection can be made.
    pub async fn connect(&self, peer: &HttpPeer) -> pingora::Result<(HttpSession, bool)> {
        // Boxed: connecting and its handshake need some 18 KB, which a stream must not hold for its
        // whole life.
        Box::pin(self.connector.get_http_session(peer)).await
    }

    /// Gives a connection whose exchange came to its proper end back to the pool.
    pub async fn release(&self, session: Box<HttpSession>, link: &Link) {
        // Boxed, as above: 5 KB for a moment at the end, not for the whole life of what waits for
        // it.
        Box::pin(self.connector.release_http_session(*session, &link.peer, Some(link.times.keepalive))).await;
    }

    fn target(&self, provider: &Provider) -> Result<Arc<Target>, LinkError> {
        let version = (provider.id, provider.updated_at);
        if let Some(target) = self.targets.read().get(&version) {
            return Ok(Arc::clone(target));
        }
        let endpoint = Endpoint::parse(&provider.url).map_err(LinkError::Address)?;
        let proxy = provider.proxy_url.as_deref().map(Endpoint::parse).transpose().map_err(LinkError::Proxy)?;
        let mut hasher = DefaultHasher::new();
        (version, &provider.url, &provider.proxy_url).hash(&mut hasher);
        let (endpoint, link) = (Arc::new(endpoint), Mutex::default());
        let target = Arc::new(Target { endpoint, proxy, group: hasher.finish(), link });
        let mut targets = self.targets.write();
        if targets.len() >= CAPACITY {
            targets.clear();
        }
        targets.insert(version, Arc::clone(&target));
        Ok(target)
    }
}

impl Link {
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }
}
