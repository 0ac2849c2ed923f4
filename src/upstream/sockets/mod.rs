//! WebSockets to providers that serve the Responses API over them: one for each session of a key.
//!
//! A socket serves one reply at a time. While it is in use, another request of its session goes over
//! HTTP. A socket that is idle is read, so that pings are answered and its end is noticed; it is
//! closed after [`IDLE`]. A provider that refuses a socket gets requests over HTTP for [`REFUSED`].
//!
//! A socket keeps the connection's own checks: address, CONNECT proxy and TLS are those of the
//! provider's HTTP connections.

mod idle;
mod socket;

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use http::Request;
use parking_lot::Mutex;
use pingora::connectors::{ConnectorOptions, TransportConnector};
use pingora::upstreams::peer::HttpPeer;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::timeout;

pub use self::socket::Socket;
use self::socket::Unopened;
use crate::domain::clock::Timestamp;
use crate::domain::fast_map::FastMap;
use crate::domain::ids::{KeyId, ProviderId, SessionId};
use crate::domain::provider::Provider;

/// How long a socket is kept without a request.
const IDLE: Duration = Duration::from_secs(300);
/// How long a provider gets no socket after it refused one.
const REFUSED: Duration = Duration::from_secs(300);
/// For connecting and the handshake.
const OPEN: Duration = Duration::from_secs(10);
/// Sockets of a node.
const MOST: usize = 1000;
/// Those of one key.
const MOST_OF_KEY: usize = MOST / 4;
/// The largest message, in bytes, after which a socket is kept: its buffer keeps that size.
const KEPT: usize = 256 << 10;

/// Whose socket it is. No other key, and no other credential of the provider, gets it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SocketKey {
    /// The provider, and the version of its record.
    pub provider: (ProviderId, Timestamp),
    /// Of the credential in the head of the handshake.
    pub credential: u64,
    /// The client's key.
    pub key: KeyId,
    /// The session.
    pub session: SessionId,
}

/// A socket that a request wants.
pub struct WantedSocket {
    /// Whose it is.
    pub owner: SocketKey,
    /// The provider.
    pub provider: Arc<Provider>,
    /// The handshake.
    pub handshake: Request<()>,
    /// How old a socket may be that is used again.
    pub lifetime: Duration,
}

/// The sockets of this node.
#[derive(Default)]
pub struct Sockets {
    /// Made when the first socket is opened.
    transport: OnceLock<TransportConnector>,
    state: Mutex<State>,
    tasks: Mutex<JoinSet<()>>,
}

#[derive(Default)]
struct State {
    /// Those that exist or are being opened; `None`: in use.
    places: FastMap<SocketKey, Option<IdleSocket>>,
    /// Until when a provider gets none.
    refused: FastMap<(ProviderId, Timestamp), Instant>,
    /// Sockets that were kept so far.
    kept: u64,
}

/// A socket that waits for a request.
struct IdleSocket {
    number: u64,
    ask: idle::Ask,
}

/// The place of a socket in use. Dropping it frees the place.
pub struct Place {
    sockets: Arc<Sockets>,
    owner: SocketKey,
    is_kept: bool,
}

impl Sockets {
    /// A socket and its place; `None`: the request goes over HTTP. `peer`: the provider's, as for
    /// HTTP.
    pub async fn open(
        self: &Arc<Self>,
        wanted: WantedSocket,
        mut peer: HttpPeer,
    ) -> Option<(Socket, Place)> {
        let WantedSocket { owner, provider, handshake, lifetime } = wanted;
        let (place, idle) = self.claim(owner)?;
        if let Some(socket) =
            idle::take(idle.map(|idle| idle.ask)).await.filter(|socket| socket.age() < lifetime)
        {
            return Some((socket, place));
        }
        if self.is_refused(place.owner.provider) {
            return None;
        }
        peer.options.set_http_version(1, 1);
        let transport =
            self.transport.get_or_init(|| TransportConnector::new(Some(ConnectorOptions::new(1))));
        let why = match timeout(OPEN, Socket::open(transport, &peer, handshake)).await {
            Ok(Ok(socket)) => return Some((socket, place)),
            Ok(Err(Unopened { why, is_refusal: true })) => why,
            Ok(Err(Unopened { why, is_refusal: false })) => {
                tracing::debug!(provider = provider.name, why, "no WebSocket to the provider");
                return None;
            }
            Err(_) => format!("not within {} s", OPEN.as_secs()),
        };
        place.refused(&provider.name, &why);
        None
    }

    /// How many exist or are being opened.
    pub fn count(&self) -> usize {
        self.state.lock().places.len()
    }

    fn claim(self: &Arc<Self>, owner: SocketKey) -> Option<(Place, Option<IdleSocket>)> {
        let mut state = self.state.lock();
        let of_key = || state.places.keys().filter(|other| other.key == owner.key).count();
        let is_full = !state.places.contains_key(&owner)
            && (state.places.len() >= MOST || of_key() >= MOST_OF_KEY);
        let idle = match state.places.get_mut(&owner) {
            Some(idle) => Some(idle.take()?),
            None if is_full => return None,
            None => {
                state.places.insert(owner.clone(), None);
                None
            }
        };
        Some((Place { sockets: Arc::clone(self), owner, is_kept: false }, idle))
    }

    fn is_refused(&self, provider: (ProviderId, Timestamp)) -> bool {
        let mut state = self.state.lock();
        let until = state.refused.get(&provider).copied();
        let is_refused = until.is_some_and(|until| Instant::now() < until);
        if until.is_some() && !is_refused {
            state.refused.remove(&provider);
        }
        is_refused
    }

    /// An idle socket has ended.
    fn ended(&self, owner: &SocketKey, number: u64) {
        let mut state = self.state.lock();
        let idle = state.places.get(owner).and_then(Option::as_ref);
        if idle.is_some_and(|idle| idle.number == number) {
            state.places.remove(owner);
        }
    }
}

impl Place {
    /// Notes that the provider refuses sockets, or ends them before it answers.
    pub fn refused(&self, provider: &str, why: &str) {
        tracing::warn!(
            provider,
            why,
            "no WebSocket to the provider: its requests go over HTTP for {} s",
            REFUSED.as_secs()
        );
        let now = Instant::now();
        let mut state = self.sockets.state.lock();
        state.refused.retain(|_, until| *until > now);
        state.refused.insert(self.owner.provider, now + REFUSED);
    }

    /// Keeps the socket for the session's next request. No reply may be in flight on it.
    pub fn keep(mut self, mut socket: Socket) {
        if socket.largest() > KEPT {
            return;
        }
        socket.is_used = true;
        let (ask, asked) = oneshot::channel();
        let number = {
            let mut state = self.sockets.state.lock();
            state.kept += 1;
            let number = state.kept;
            state.places.insert(self.owner.clone(), Some(IdleSocket { number, ask }));
            number
        };
        self.is_kept = true;
        let (sockets, owner) = (Arc::clone(&self.sockets), self.owner.clone());
        let mut tasks = self.sockets.tasks.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            idle::watch(socket, asked, IDLE).await;
            sockets.ended(&owner, number);
        });
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.is_kept {
            self.sockets.state.lock().places.remove(&self.owner);
        }
    }
}
