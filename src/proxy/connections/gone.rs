//! Work for a client, which ends if the client closes its connection.

use std::future::Future;
use std::pin::pin;

use pingora::proxy::Session;
use pingora::{Error, ErrorType, Result};

use super::client_stream::ClientStream;

/// Runs `work` until it ends, or the client closes its connection. `detached`: the client has
/// closed, and `work` continues.
///
/// # Errors
/// When the client closes its connection.
pub(in crate::proxy) async fn unless_gone<T>(
    session: &mut Session,
    detached: bool,
    work: impl Future<Output = T>,
) -> Result<T> {
    if detached {
        return Ok(work.await);
    }
    let mut work = pin!(work);
    if let Some(client) = ClientStream::of(session) {
        return tokio::select! {
            biased;
            done = &mut work => Ok(done),
            () = client.closed() => Err(client_gone()),
        };
    }
    tokio::select! {
        biased;
        done = &mut work => Ok(done),
        _ = session.as_downstream_mut().read_body_or_idle(true) => Err(client_gone()),
    }
}

fn client_gone() -> Box<Error> {
    Error::explain(ErrorType::ConnectionClosed, "the client left").into_down()
}
