//! A manual provider that speaks HTTP/2 behind TLS, frame by frame: it answers as a test says.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::frames::{ACK, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, SETTINGS};

pub const RST_STREAM: u8 = 3;
const WINDOW_UPDATE: u8 = 8;
/// Time-out of any single step.
const TIME_LIMIT: Duration = Duration::from_secs(60);
/// Indexed fields: statuses of the static table.
pub const OK: &[u8] = &[0x88];
/// `:status` by its name in the static table.
pub const TOO_LARGE: &[u8] = b"\x08\x03413";
/// `content-type` by its name in the static table.
pub const EVENTS: &[u8] = b"\x0f\x10\x11text/event-stream";

/// A frame's kind, flags, stream and payload.
pub type Frame = (u8, u8, u32, Vec<u8>);

/// One connection of the gateway.
pub struct Connection {
    tls: TlsStream<TcpStream>,
}

impl Connection {
    pub async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let mut frame = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        // The gateway may have closed.
        let _ = self.tls.write_all(&frame).await;
        let _ = self.tls.flush().await;
    }

    /// The next frame; `None` at the end of the connection. Settings and pings are answered.
    pub async fn next(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        self.tls.read_exact(&mut head).await.ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        self.tls.read_exact(&mut payload).await.ok()?;
        let (kind, flags) = (head[3], head[4]);
        if matches!(kind, SETTINGS | PING) && flags & ACK == 0 {
            let echo = if kind == PING { payload.clone() } else { Vec::new() };
            self.send(kind, ACK, 0, &echo).await;
        }
        Some((kind, flags, u32::from_be_bytes([head[5], head[6], head[7], head[8]]), payload))
    }

    /// The first frame of this kind that comes; `None` if the connection ends before.
    pub async fn until(&mut self, kind: u8) -> Option<Frame> {
        let reading = async {
            loop {
                let frame = self.next().await?;
                if frame.0 == kind {
                    return Some(frame);
                }
            }
        };
        tokio::time::timeout(TIME_LIMIT, reading).await.expect("a frame, or the connection's end")
    }

    /// Reads a request to its end: its stream, and the bytes of its body. `None` at the
    /// connection's end.
    pub async fn request(&mut self) -> Option<(u32, usize)> {
        let mut length = 0;
        loop {
            let (kind, flags, stream, payload) = self.next().await?;
            if kind == DATA && !payload.is_empty() {
                length += payload.len();
                let more = u32::try_from(payload.len()).unwrap().to_be_bytes();
                self.send(WINDOW_UPDATE, 0, 0, &more).await;
                self.send(WINDOW_UPDATE, 0, stream, &more).await;
            }
            if matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0 {
                return Some((stream, length));
            }
        }
    }

    /// An answer's head and body; `last`: nothing follows.
    pub async fn answer(&mut self, stream: u32, head: &[u8], body: &str, last: bool) {
        self.send(HEADERS, END_HEADERS, stream, head).await;
        self.data(stream, body, last).await;
    }

    pub async fn data(&mut self, stream: u32, body: &str, last: bool) {
        self.send(DATA, if last { END_STREAM } else { 0 }, stream, body.as_bytes()).await;
    }

    /// Announces the end of the connection, without an error.
    pub async fn goaway(&mut self, last_stream: u32) {
        self.send(GOAWAY, 0, 0, &[last_stream.to_be_bytes(), [0; 4]].concat()).await;
    }
}

/// Settings with which the gateway trusts the provider's certificate.
pub fn trusted() -> [(&'static str, String); 1] {
    [("SSL_CERT_FILE", pem("cert.pem"))]
}

fn pem(name: &str) -> String {
    format!("{}/tests/admin/tls/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Accepts TLS with the trusted certificate, and these protocols in this order.
pub fn acceptor(protocols: &[&str]) -> TlsAcceptor {
    use rustls_pki_types::pem::PemObject as _;
    // Installs the process's provider of cryptography.
    drop(crate::support::gateway::client());
    let mut config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(
            vec![rustls_pki_types::CertificateDer::from_pem_file(pem("cert.pem")).unwrap()],
            rustls_pki_types::PrivateKeyDer::from_pem_file(pem("key.pem")).unwrap(),
        )
        .unwrap();
    config.alpn_protocols = protocols.iter().map(|one| one.as_bytes().to_vec()).collect();
    TlsAcceptor::from(Arc::new(config))
}

/// Passes each connection and its number to `play`; returns the provider's address.
pub async fn provider<F>(play: impl Fn(Connection, usize) -> F + Send + 'static) -> String
where
    F: Future<Output = ()> + Send + 'static,
{
    let (acceptor, listener) = (acceptor(&["h2"]), TcpListener::bind("127.0.0.1:0").await.unwrap());
    let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        for number in 0.. {
            let Ok((tcp, _)) = listener.accept().await else { return };
            let Ok(mut tls) = acceptor.accept(tcp).await else { continue };
            // The preface.
            if tls.read_exact(&mut [0; 24]).await.is_err() {
                continue;
            }
            let mut connection = Connection { tls };
            connection.send(SETTINGS, 0, 0, &[]).await;
            tokio::spawn(play(connection, number));
        }
    });
    url
}
