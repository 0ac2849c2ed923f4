//! A scripted upstream that speaks all four wire formats, for the demo, the tests and the bench.
//!
//! One [`axum::Router`] answers at the paths of the real services and, under `/mock`, to its
//! operator:
//!
//! | request | effect |
//! |---|---|
//! | `POST /mock/default[?key=K]` | sets the default directive (of credential K, or of all) |
//! | `DELETE /mock/default` | deletes all defaults |
//! | `POST /mock/script[?key=K]` | appends directives (a list, or one), one for each request |
//! | `DELETE /mock/script` | deletes the rest of all scripts |
//! | `GET /mock/requests[?last=n]` | returns the received requests, oldest first |
//! | `DELETE /mock/requests` | deletes them |
//! | `GET /mock/stats[?started=n&…]` | returns counts, after waiting until they are reached |
//! | `POST /mock/go[?streams=n]` | continues one held stream (`hold_after`), or this many |
//!
//! `/mock/stats` takes the counts `started`, `finished`, `dropped` and `connections`, and
//! `timeout_ms`. [`directive`] defines the instructions for a reply, [`answer`] the default
//! behaviour. Strict mode, on unless `strict` is false, refuses what the real services would
//! refuse, with their messages: see [`strict`]. Paths of Azure, Vertex AI and Bedrock lead to the
//! same services; `/google/token`, `/TENANT/oauth2/v2.0/token` and AWS' services of keys ([`aws`])
//! answer access tokens, with the directives of the key `token`. With the directive `websocket` the Responses API is served over a
//! WebSocket too; requests that came over one have its number in the header `x-mock-socket`.

#![cfg_attr(not(test), deny(unreachable_pub, missing_docs))]

mod answer;
mod ask;
mod aws;
mod background;
mod bench;
mod cloud;
mod control;
mod converse;
pub mod directive;
mod endpoints;
mod exchange;
mod held;
mod instance;
mod path;
mod play;
mod query;
mod records;
mod reply;
mod schema;
mod socket;
mod stage;
mod strict;
mod wire;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use tokio::net::{TcpListener, TcpStream};

use instance::Mock;

/// A new mock, with empty records and no script.
pub fn router() -> Router {
    control::routes(Arc::new(Mock::default()))
}

/// Serves a new mock on `listener` until `shutdown` resolves; replies in progress then end or are
/// cut.
///
/// # Errors
/// When the listener has no address; accept errors are retried.
pub async fn serve(
    listener: TcpListener,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let mock = Arc::new(Mock::default());
    let closing = Arc::clone(&mock);
    let counted = CountedListener { listener, mock: Arc::clone(&mock) };
    axum::serve(counted, control::routes(mock))
        .with_graceful_shutdown(async move {
            shutdown.await;
            closing.records.close();
        })
        .await
}

/// A listener that counts connections and switches Nagle's algorithm off.
struct CountedListener {
    listener: TcpListener,
    mock: Arc<Mock>,
}

impl axum::serve::Listener for CountedListener {
    type Io = TcpStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        // axum's own accept waits a moment after an error that is not the peer's.
        let (stream, addr) = axum::serve::Listener::accept(&mut self.listener).await;
        // Without it replies are only slower.
        let _ = stream.set_nodelay(true);
        self.mock.records.connected();
        (stream, addr)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}
