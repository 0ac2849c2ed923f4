//! Idle HTTP/1 connections to providers.
//!
//! Pingora's own pool starts a task for each connection that is returned, and wakes it when the
//! connection is taken. Here, whoever takes a connection looks whether it is still open, and one
//! task closes, every second, those that are not, and those that were idle for too long.
//!
//! See docs/decisions/13-own-idle-connections.md.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use pingora::protocols::Stream;
use tokio::io::AsyncReadExt as _;
use tokio::runtime::Handle;
use tokio::task::unconstrained;

use crate::domain::fast_map::FastMap;

/// How often idle connections are looked at.
const SWEEP: Duration = Duration::from_secs(1);

/// Connections without a request, by the hash of what they connect to.
pub(super) struct IdleConnections {
    /// How many are kept in all.
    capacity: usize,
    idle: Arc<Mutex<Idle>>,
    /// The task that closes connections runs.
    is_swept: AtomicBool,
}

#[derive(Default)]
struct Idle {
    by_peer: FastMap<u64, VecDeque<IdleConnection>>,
    count: usize,
}

struct IdleConnection {
    stream: Stream,
    since: Instant,
    /// How long it may be idle.
    keepalive: Duration,
}

impl IdleConnections {
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity, idle: Arc::default(), is_swept: AtomicBool::new(false) }
    }

    /// The open connection to this peer that was used last.
    pub(super) fn take(&self, peer: u64) -> Option<Stream> {
        loop {
            let mut connection = self.idle.lock().pop(peer)?;
            // Looked at, and closed, without the lock.
            if connection.is_usable(Instant::now()) {
                return Some(connection.stream);
            }
        }
    }

    /// Keeps a connection whose exchange is over. Above the capacity, the one that was idle for
    /// longest is closed. Call it on a runtime: the first call starts the task that closes them.
    pub(super) fn put(&self, peer: u64, stream: Stream, keepalive: Duration) {
        let mut connection = IdleConnection { stream, since: Instant::now(), keepalive };
        if !is_open(&mut connection.stream) {
            return;
        }
        let _closed = self.idle.lock().push(peer, connection, self.capacity);
        if !self.is_swept.swap(true, Ordering::Relaxed) {
            Handle::current().spawn(sweep(Arc::downgrade(&self.idle)));
        }
    }
}

impl Idle {
    fn pop(&mut self, peer: u64) -> Option<IdleConnection> {
        let connection = self.by_peer.get_mut(&peer)?.pop_back()?;
        self.count -= 1;
        Some(connection)
    }

    /// Returns what had to make room.
    fn push(
        &mut self,
        peer: u64,
        connection: IdleConnection,
        capacity: usize,
    ) -> Option<IdleConnection> {
        let closed = if self.count < capacity { None } else { self.pop_oldest() };
        self.by_peer.entry(peer).or_default().push_back(connection);
        self.count += 1;
        closed
    }

    fn pop_oldest(&mut self) -> Option<IdleConnection> {
        let oldest = |of_peer: &&mut VecDeque<IdleConnection>| of_peer.front().map(|one| one.since);
        let of_peers = self.by_peer.values_mut().filter(|of_peer| !of_peer.is_empty());
        let connection = of_peers.min_by_key(oldest)?.pop_front()?;
        self.count -= 1;
        Some(connection)
    }

    /// Takes those of a peer that are not to be used any more.
    fn take_unusable(&mut self, peer: u64, now: Instant) -> Vec<IdleConnection> {
        let Some(of_peer) = self.by_peer.get_mut(&peer) else { return Vec::new() };
        let (mut unusable, mut at) = (Vec::new(), 0);
        while let Some(one) = of_peer.get_mut(at) {
            if one.is_usable(now) {
                at += 1;
            } else {
                unusable.extend(of_peer.remove(at));
            }
        }
        if of_peer.is_empty() {
            self.by_peer.remove(&peer);
        }
        self.count -= unusable.len();
        unusable
    }
}

impl IdleConnection {
    fn is_usable(&mut self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) < self.keepalive && is_open(&mut self.stream)
    }
}

/// Whether nothing came: neither the end of the connection, nor bytes that nobody asked for.
fn is_open(stream: &mut Stream) -> bool {
    let mut byte = [0];
    // Also if the task has used up its share of time.
    let reading = pin!(unconstrained(stream.read(&mut byte)));
    reading.poll(&mut Context::from_waker(Waker::noop())).is_pending()
}

/// Closes, every second, what is not to be used any more, as long as there is a pool.
async fn sweep(idle: Weak<Mutex<Idle>>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        let Some(idle) = idle.upgrade() else { return };
        let peers: Vec<u64> = idle.lock().by_peer.keys().copied().collect();
        let now = Instant::now();
        for peer in peers {
            let _closed = idle.lock().take_unusable(peer, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    /// A connection, and the provider's side of it.
    async fn connection() -> (Stream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (far, _) = listener.accept().await.unwrap();
        (Box::new(pingora::protocols::l4::stream::Stream::from(near)), far)
    }

    /// Whether the near side knows nothing of what the far side did.
    fn is_unaware(idle: &IdleConnections, peer: u64) -> bool {
        let mut held = idle.idle.lock();
        let one = held.by_peer.get_mut(&peer).and_then(|of_peer| of_peer.back_mut());
        one.is_some_and(|one| is_open(&mut one.stream))
    }

    async fn arrived(idle: &IdleConnections, peer: u64) {
        while is_unaware(idle, peer) {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn the_connection_that_was_used_last_is_taken_first_and_each_once() {
        let idle = IdleConnections::new(8);
        let (first, mut far_of_first) = connection().await;
        let (second, mut far_of_second) = connection().await;
        idle.put(1, first, LONG);
        idle.put(1, second, LONG);
        assert!(idle.take(2).is_none());
        let (mut taken, mut other) = (idle.take(1).unwrap(), idle.take(1).unwrap());
        assert!(idle.take(1).is_none());
        taken.write_all(b"2").await.unwrap();
        other.write_all(b"1").await.unwrap();
        assert_eq!(far_of_second.read_u8().await.unwrap(), b'2');
        assert_eq!(far_of_first.read_u8().await.unwrap(), b'1');
    }

    #[tokio::test]
    async fn what_is_closed_expired_or_has_bytes_is_not_taken() {
        let idle = IdleConnections::new(8);
        let (closed, far) = connection().await;
        idle.put(1, closed, LONG);
        drop(far);
        arrived(&idle, 1).await;
        let (spoken, mut far) = connection().await;
        idle.put(2, spoken, LONG);
        far.write_all(b"HTTP/1.1 408 Request Timeout\r\n\r\n").await.unwrap();
        arrived(&idle, 2).await;
        let (expired, _far) = connection().await;
        idle.put(3, expired, Duration::ZERO);
        for peer in 1..=3 {
            assert!(idle.take(peer).is_none(), "{peer}");
        }
        assert_eq!(idle.idle.lock().count, 0);
    }

    #[tokio::test]
    async fn above_the_capacity_the_one_idle_for_longest_is_closed() {
        let idle = IdleConnections::new(2);
        let mut far_sides = Vec::new();
        for peer in [1, 2, 3] {
            let (near, far) = connection().await;
            idle.put(peer, near, LONG);
            far_sides.push(far);
        }
        assert!(idle.take(1).is_none() && idle.take(2).is_some() && idle.take(3).is_some());
        assert_eq!(far_sides[0].read(&mut [0]).await.unwrap(), 0, "its provider sees the end");
    }

    #[tokio::test]
    async fn an_idle_connection_is_closed_though_nobody_takes_it() {
        let idle = IdleConnections::new(8);
        let (near, mut far) = connection().await;
        idle.put(1, near, Duration::from_millis(1));
        assert_eq!(far.read(&mut [0]).await.unwrap(), 0);
        let held = idle.idle.lock();
        assert!(held.count == 0 && held.by_peer.is_empty());
    }
}
