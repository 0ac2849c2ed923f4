//! A TCP proxy between one node and a server, which can be slowed down, held and cut.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::{mpsc, watch};

/// What the proxy does with the bytes of both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Forwards them at once.
    Pass,
    /// Forwards them this much later.
    Delay(Duration),
    /// Withholds them. Connections stay open and new ones are accepted.
    Hold,
    /// Breaks every connection, and each new one.
    Cut,
}

/// The server behind the proxy.
#[derive(Debug, Clone)]
pub enum Server {
    Tcp(u16),
    Unix(PathBuf),
}

/// A running proxy; it ends with the test's runtime.
pub struct Link {
    pub port: u16,
    mode: watch::Sender<Mode>,
}

impl Link {
    /// Listens on a separate port.
    pub async fn to(server: Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (mode, watched) = watch::channel(Mode::Pass);
        #[expect(clippy::disallowed_methods, reason = "the test's runtime outlives its proxy")]
        tokio::spawn(async move {
            while let Ok((node, _)) = listener.accept().await {
                if *watched.borrow() != Mode::Cut {
                    tokio::spawn(connect(node, server.clone(), watched.clone()));
                }
            }
        });
        Self { port, mode }
    }

    /// From now on.
    pub fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }
}

/// A server that does not listen ends the node's connection.
async fn connect(node: TcpStream, server: Server, mode: watch::Receiver<Mode>) {
    let _ = node.set_nodelay(true);
    match server {
        Server::Tcp(port) => {
            if let Ok(stream) = TcpStream::connect(("127.0.0.1", port)).await {
                let _ = stream.set_nodelay(true);
                relay(node, stream, mode).await;
            }
        }
        Server::Unix(path) => {
            if let Ok(stream) = UnixStream::connect(path).await {
                relay(node, stream, mode).await;
            }
        }
    }
}

/// Until one side ends or the proxy is cut.
async fn relay(node: TcpStream, server: impl AsyncRead + AsyncWrite, mode: watch::Receiver<Mode>) {
    let (asks, answers) = node.into_split();
    let (from, to) = tokio::io::split(server);
    let mut cut = mode.clone();
    tokio::select! {
        () = forward(asks, to, mode.clone()) => {}
        () = forward(from, answers, mode) => {}
        _ = cut.wait_for(|mode| *mode == Mode::Cut) => {}
    }
}

/// One direction, to its end.
async fn forward(
    from: impl AsyncRead + Unpin,
    to: impl AsyncWrite + Unpin,
    mode: watch::Receiver<Mode>,
) {
    let (due, late) = mpsc::unbounded_channel();
    tokio::join!(take(from, due, mode.clone()), give(late, to, mode));
}

async fn take(
    mut from: impl AsyncRead + Unpin,
    due: mpsc::UnboundedSender<(Instant, Vec<u8>)>,
    mode: watch::Receiver<Mode>,
) {
    let mut piece = vec![0; 64 * 1024];
    while let Ok(n) = from.read(&mut piece).await
        && n > 0
    {
        let delay = match *mode.borrow() {
            Mode::Delay(delay) => delay,
            _ => Duration::ZERO,
        };
        if due.send((Instant::now() + delay, piece[..n].to_vec())).is_err() {
            return;
        }
    }
}

async fn give(
    mut late: mpsc::UnboundedReceiver<(Instant, Vec<u8>)>,
    mut to: impl AsyncWrite + Unpin,
    mut mode: watch::Receiver<Mode>,
) {
    while let Some((at, piece)) = late.recv().await {
        tokio::time::sleep_until(at.into()).await;
        if mode.wait_for(|mode| *mode != Mode::Hold).await.is_err()
            || to.write_all(&piece).await.is_err()
        {
            return;
        }
    }
}
