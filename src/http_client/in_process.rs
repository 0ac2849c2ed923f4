//! Requests to the proxy of this process on behalf of a key: of the playground, and of the check of
//! tool calls.
//!
//! `app` gives the connections, since neither the administration nor a request's own path imports
//! the proxy's listener.
//!
//! See docs/decisions/12-playground-in-process.md.

use std::net::IpAddr;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::DuplexStream;
use tokio::task::JoinSet;

use crate::domain::ids::{KeyId, RequestId};

/// The key on whose behalf a request is made, and the person who makes it.
#[derive(Debug, Clone, Copy)]
pub struct AsKey {
    /// The key whose limits apply and which is billed.
    pub key: KeyId,
    /// The id that the request will have.
    pub request: RequestId,
    /// The address of the person who makes it.
    pub client: Option<IpAddr>,
    /// Whether it is a check of tool calls, which the log says.
    pub is_tool_check: bool,
}

/// The proxy in this process.
pub trait InProcessProxy: Send + Sync {
    /// A connection for one HTTP/1.1 request, which needs no credential. `None`: the proxy accepts
    /// no requests now.
    fn connect(&self, as_key: AsKey) -> Option<DuplexStream>;
}

/// An answer in one piece.
#[derive(Debug)]
pub struct WholeAnswer {
    /// Its status.
    pub status: StatusCode,
    /// Its body.
    pub body: Bytes,
}

/// Makes a request, and reads the answer, of at most this many bytes. Dropping the future closes
/// the connection.
///
/// # Errors
/// Why there is no answer.
pub async fn ask(
    connection: DuplexStream,
    request: Request<Full<Bytes>>,
    most: usize,
) -> Result<WholeAnswer, String> {
    let handshake = http1::handshake(TokioIo::new(connection)).await;
    let (mut sender, connection) = handshake.map_err(|e| e.to_string())?;
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    let answer = sender.send_request(request).await.map_err(|e| e.to_string())?;
    let status = answer.status();
    let body = Limited::new(answer.into_body(), most).collect().await.map_err(|e| e.to_string())?;
    Ok(WholeAnswer { status, body: body.to_bytes() })
}
