//! Requests to the proxy of this process on behalf of a key: of the playground, of the check of tool
//! calls, of a client that asks over a WebSocket, and of who asks which providers a request would
//! go to.
//!
//! `app` gives the connections, since neither the administration nor a request's own path imports
//! the proxy's listener.
//!
//! See docs/decisions/12-playground-in-process.md.

use std::net::IpAddr;
use std::pin::Pin;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use tokio::io::DuplexStream;
use tokio::task::JoinSet;

use crate::domain::ids::{KeyId, RequestId};
use crate::domain::record::Decision;

/// Why a request is made inside the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A person asks in the administration.
    Playground,
    /// It checks tool calls, which its record says.
    ToolCheck,
    /// A client asked over a WebSocket, which its record says.
    WebSocket,
    /// Only the selection of its providers is asked for: it is not sent, counted or recorded, and
    /// the answer is an [`Explanation`].
    Explanation,
}

/// Which providers a request would be offered to now.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Explanation {
    /// Why it would be refused.
    pub refusal: Option<ExplainedRefusal>,
    /// Every provider: skipped, chosen first, or standing in, with the reason. The chosen ones stand
    /// in the order in which they would be asked.
    pub decisions: Vec<Decision>,
}

/// The refusal that the client would get.
#[derive(Debug, Serialize, Deserialize)]
pub struct ExplainedRefusal {
    /// Its HTTP status.
    pub status: u16,
    /// What the client would read.
    pub message: String,
}

/// The key on whose behalf a request is made, and the person who makes it.
#[derive(Debug, Clone, Copy)]
pub struct AsKey {
    /// The key whose limits apply and which is billed; `None`: the request carries its credential.
    pub key: Option<KeyId>,
    /// The id that the request will have.
    pub request: RequestId,
    /// The address of the person who makes it.
    pub client: Option<IpAddr>,
    /// Why it is made.
    pub purpose: Purpose,
}

/// The proxy in this process.
pub trait InProcessProxy: Send + Sync {
    /// A connection for one HTTP/1.1 request, which needs no credential if it names a key. `None`:
    /// the proxy accepts no requests now.
    fn connect(&self, as_key: AsKey) -> Option<DuplexStream>;

    /// Resolves once the process stops, or hands over to its successor.
    fn until_stopping(&self) -> Pin<Box<dyn Future<Output = ()> + Send>>;
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
    let (answer, _open) = begin(connection, request).await?;
    let status = answer.status();
    let body = Limited::new(answer.into_body(), most).collect().await.map_err(|e| e.to_string())?;
    Ok(WholeAnswer { status, body: body.to_bytes() })
}

/// Drives the connection of an answer. Dropping it closes the connection.
pub type Open = JoinSet<hyper::Result<()>>;

/// Makes a request, and reads the head of the answer.
///
/// # Errors
/// Why there is no answer.
pub async fn begin(
    connection: DuplexStream,
    request: Request<Full<Bytes>>,
) -> Result<(Response<Incoming>, Open), String> {
    let handshake = http1::handshake(TokioIo::new(connection)).await;
    let (mut sender, connection) = handshake.map_err(|e| e.to_string())?;
    let mut open = Open::new();
    open.spawn(connection);
    let answer = sender.send_request(request).await.map_err(|e| e.to_string())?;
    Ok((answer, open))
}
