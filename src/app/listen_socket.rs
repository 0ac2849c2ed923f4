//! The proxy's listen socket: bound before anything else is started, opened when everything else is
//! ready.
//!
//! If another program holds the address, Pingora alone would retry for half a minute in the
//! background, and then continue without it. Here a start fails at once and has changed nothing. In
//! an upgrade the previous process hands its socket over; the socket bound here is the fallback for
//! a changed address.
//!
//! [`Proxy`] wraps Pingora's service. It passes the socket on, reports when connections are
//! accepted, and ends the process if the service ends without a stop.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::fd::IntoRawFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;

use anyhow::Context;
use async_trait::async_trait;
use parking_lot::Mutex;
use pingora::server::{Fds, ListenFds, ShutdownWatch};
use pingora::services::Service;
use pingora::services::listening::Service as Listening;
use tokio::net::TcpSocket;
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::banner::Banner;
use super::drain::Ended;
use super::in_process::InProcess;
use super::supervisor;
use crate::proxy::accept::Connections;
use crate::state::Phase;

/// Connections that may wait to be accepted; the system has an additional bound.
const BACKLOG: u32 = 65_535;

/// The proxy's address, bound but not opened yet.
pub(super) struct ListenSocket {
    addr: SocketAddr,
    /// `None` if the previous process still holds the listener.
    socket: Option<TcpSocket>,
}

impl ListenSocket {
    /// Binds the address. `upgrade`: another process may hold it, and hands it over.
    pub(super) fn claim(addr: SocketAddr, upgrade: bool) -> anyhow::Result<Self> {
        let socket = if addr.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        let socket = match socket.bind(addr) {
            Ok(()) => Some(socket),
            Err(e) if upgrade && e.kind() == ErrorKind::AddrInUse => None,
            Err(e) => {
                return Err(e).with_context(|| {
                    format!("the proxy address {addr} (proxy.addr) cannot be bound")
                });
            }
        };
        Ok(Self { addr, socket })
    }

    /// Opens the socket, unless the previous process has handed over an open one (`inherited`).
    ///
    /// # Errors
    /// When another program has taken the address meanwhile.
    fn open(&mut self, inherited: &ListenFds) -> anyhow::Result<()> {
        let name = self.addr.to_string();
        let socket = self.socket.take();
        if inherited.lock().get(&name).is_some() {
            return Ok(());
        }
        let socket = socket.with_context(|| {
            format!("{name} belongs to another program, and was not handed over")
        })?;
        let listener =
            socket.listen(BACKLOG).with_context(|| format!("listening on {name}"))?.into_std()?;
        inherited.lock().add(name, listener.into_raw_fd());
        Ok(())
    }
}

/// What the proxy reports to the rest of the process.
pub(super) struct Watched {
    /// Set once connections are accepted.
    pub open: Arc<AtomicBool>,
    /// Logged at that time.
    pub banner: Banner,
    /// The runtime of everything else.
    pub others: Handle,
    pub phase: watch::Receiver<Phase>,
    /// Connections from inside the process are served on the proxy's runtime.
    pub in_process: Arc<InProcess>,
    /// Receives a message when the proxy ends without a stop.
    pub ended: SyncSender<Ended>,
}

/// Pingora's service of the proxy, with its socket.
pub(super) struct Proxy {
    pub socket: ListenSocket,
    pub listening: Listening<Connections>,
    pub watched: Watched,
}

#[async_trait]
impl Service for Proxy {
    async fn start_service(
        &mut self,
        fds: Option<ListenFds>,
        shutdown: ShutdownWatch,
        listeners_per_fd: usize,
    ) {
        // Also if the code below panics.
        let _end = End { phase: self.watched.phase.clone(), ended: self.watched.ended.clone() };
        let fds = fds.unwrap_or_else(|| Arc::new(Mutex::new(Fds::new())));
        if let Err(e) = self.socket.open(&fds) {
            tracing::error!(
                error = format!("{e:#}"),
                "the proxy address (proxy.addr) cannot be listened on"
            );
            return;
        }
        self.watched.in_process.open(Handle::current());
        self.watched.open.store(true, Ordering::Relaxed);
        self.watched.banner.print();
        supervisor::ready();
        Handle::current().spawn(supervisor::stay_alive(self.watched.others.clone()));
        Service::start_service(&mut self.listening, Some(fds), shutdown, listeners_per_fd).await;
    }

    fn name(&self) -> &str {
        Service::name(&self.listening)
    }

    fn listen_addresses(&self) -> Option<Vec<String>> {
        Service::listen_addresses(&self.listening)
    }
}

/// Reports, when dropped, that the proxy has ended, unless a stop was requested.
struct End {
    phase: watch::Receiver<Phase>,
    ended: SyncSender<Ended>,
}

impl Drop for End {
    fn drop(&mut self) {
        if *self.phase.borrow() == Phase::Serving {
            let _ = self.ended.try_send(Ended::Failed);
        }
    }
}
