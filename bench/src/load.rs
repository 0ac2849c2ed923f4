//! The load generator: a number of kept connections, each of which sends one request after the
//! other for a given time.
//!
//! It is one thread with sockets and nothing else, so that it takes little CPU time from the
//! target. Time, connections and memory are bounded. It is a closed loop: a slow server gets fewer
//! requests.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::{JoinSet, LocalSet};

use crate::histogram::Histogram;
use crate::response::Follower;

/// Longest run.
const MAX_TIME: Duration = Duration::from_secs(600);
/// Most connections.
pub const MAX_CONNECTIONS: usize = 4096;
/// A connection stops after this many errors.
const MAX_ERRORS: u64 = 50;
/// How long a response may take after the end of the run.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Requests of this process, all loads together.
static SENT: AtomicU32 = AtomicU32::new(0);

/// What to send, where, and how much of it.
#[derive(Debug, Clone)]
pub struct Load {
    pub addr: SocketAddr,
    /// The bytes of the request on the wire.
    pub request: Vec<u8>,
    /// Where in it a number of eight digits is written again for each request.
    pub numbers: Vec<usize>,
    pub connections: usize,
    pub time: Duration,
    /// Stop after this many requests, if that comes first.
    pub most: u64,
}

/// The result of a run.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// From the first byte sent to the last byte received.
    pub total: Histogram,
    /// From the first byte sent to the first byte of the body.
    pub first_byte: Histogram,
    pub errors: u64,
    /// The last error: the status of a response outside of 2xx, or another failure.
    pub last_error: Option<String>,
    pub took: Duration,
}

impl Seen {
    /// Responses with a 2xx status.
    pub const fn requests(&self) -> u64 {
        self.total.count()
    }
}

/// Runs the load to its end on the calling thread.
///
/// # Errors
/// When no runtime can be started.
pub fn run(load: &Load) -> io::Result<Seen> {
    run_all(std::slice::from_ref(load))
}

/// Runs several loads at once, to the end of the last one, on the calling thread. Returns what all
/// of them saw.
///
/// # Errors
/// When no runtime can be started.
pub fn run_all(loads: &[Load]) -> io::Result<Seen> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        let start = Instant::now();
        let mut tasks = JoinSet::new();
        for load in loads {
            let connections = load.connections.clamp(1, MAX_CONNECTIONS);
            let shared =
                Rc::new(Load { connections, time: load.time.min(MAX_TIME), ..load.clone() });
            for _ in 0..connections {
                tasks.spawn_local(connection(Rc::clone(&shared), start + shared.time));
            }
        }
        let mut seen = Seen::default();
        while let Some(done) = tasks.join_next().await {
            let Ok(one) = done else { continue };
            seen.total.merge(&one.total);
            seen.first_byte.merge(&one.first_byte);
            seen.errors += one.errors;
            seen.last_error = one.last_error.or(seen.last_error);
        }
        seen.took = start.elapsed();
        Ok(seen)
    })
}

async fn connection(load: Rc<Load>, end: Instant) -> Seen {
    let mut seen = Seen::default();
    let share = load.most.div_ceil(load.connections as u64);
    let mut buffer = vec![0; 64 << 10];
    let mut request = load.request.clone();
    let mut stream = None;
    while Instant::now() < end && seen.requests() < share && seen.errors < MAX_ERRORS {
        let time_limit = end.saturating_duration_since(Instant::now()) + TIME_LIMIT;
        number(&mut request, &load.numbers);
        let exchange = exchange((load.addr, &request), &mut stream, &mut buffer, &mut seen);
        let result = tokio::time::timeout(time_limit, exchange)
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        if let Err(error) = result {
            stream = None;
            seen.errors += 1;
            seen.last_error = Some(error.to_string());
        }
    }
    seen
}

fn number(request: &mut [u8], places: &[usize]) {
    if places.is_empty() {
        return;
    }
    let digits = format!("{:08x}", SENT.fetch_add(1, Ordering::Relaxed));
    for place in places {
        if let Some(place) = request.get_mut(*place..place + digits.len()) {
            place.copy_from_slice(digits.as_bytes());
        }
    }
}

async fn exchange(
    (addr, request): (SocketAddr, &[u8]),
    stream: &mut Option<TcpStream>,
    buffer: &mut [u8],
    seen: &mut Seen,
) -> io::Result<()> {
    let open = match stream.take() {
        Some(open) => open,
        None => {
            let open = TcpStream::connect(addr).await?;
            open.set_nodelay(true)?;
            open
        }
    };
    let open = stream.insert(open);
    let start = Instant::now();
    open.write_all(request).await?;
    let mut follower = Follower::default();
    let mut first = None;
    while !follower.done() {
        let count = open.read(buffer).await?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if follower.feed(&buffer[..count])? && first.is_none() {
            first = Some(start.elapsed());
        }
    }
    if !(200..300).contains(&follower.status()) {
        return Err(io::Error::other(format!("status {}", follower.status())));
    }
    seen.total.record(start.elapsed());
    seen.first_byte.record(first.unwrap_or_default());
    if !follower.keep() {
        *stream = None;
    }
    Ok(())
}

/// Connections with a stream in progress, held open until dropped.
pub struct Held {
    _streams: Vec<std::net::TcpStream>,
}

/// Opens `count` streams and reads each one's head and first event.
///
/// # Errors
/// When one of them cannot be opened.
pub fn hold(addr: SocketAddr, request: &[u8], count: usize) -> io::Result<Held> {
    use std::io::{Read, Write};
    let mut streams = Vec::with_capacity(count);
    let mut buffer = [0; 4096];
    for _ in 0..count.min(MAX_CONNECTIONS) {
        let mut stream = std::net::TcpStream::connect(addr)?;
        stream.set_read_timeout(Some(TIME_LIMIT))?;
        stream.write_all(request)?;
        let mut follower = Follower::default();
        loop {
            let count = stream.read(&mut buffer)?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if follower.feed(&buffer[..count])? {
                break;
            }
        }
        if follower.status() != 200 {
            return Err(io::Error::other(format!("status {}", follower.status())));
        }
        streams.push(stream);
    }
    Ok(Held { _streams: streams })
}
