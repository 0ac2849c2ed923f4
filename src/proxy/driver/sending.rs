//! Sends a request to a provider, and stops if the provider answers with an error meanwhile.
//!
//! A provider may refuse a request before it has read the body, and then read no further. Over
//! HTTP/1 the connection itself detects the answer (`upstream::OneWrite`); over HTTP/2 the head of
//! the answer is awaited beside the body. A body that is sent without waiting costs no look.
//!
//! See docs/decisions/03-early-answer.md.

use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use pingora::http::RequestHeader;
use pingora::protocols::http::client::HttpSession;
use pingora::protocols::http::v2::client::Http2Session;
use pingora::protocols::http::v2::write_body;
use pingora::{Error, ErrorType, Result};

use crate::upstream::OneWrite;

/// How long sending may make no progress.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes per write, for which the time-out applies.
const PART: usize = 64 * 1024;

/// How much of a request was sent.
pub(super) enum SendResult {
    Whole,
    /// Not all of it. `answered`: an answer has begun, or may be read already. `stalled`: the
    /// provider took nothing for so long.
    InPart {
        answered: bool,
        stalled: Option<Duration>,
    },
    /// The stream ended meanwhile (HTTP/2). Its error is the answer.
    Ended(Box<Error>),
    /// Nothing: the connection takes no stream (HTTP/2).
    Nothing(Box<Error>),
}

/// Sends head and body. A failed send is not a failure yet: the provider may have answered early.
pub(super) async fn send(up: &mut HttpSession, head: RequestHeader, body: &[Bytes]) -> SendResult {
    up.set_write_timeout(Some(WRITE_TIMEOUT));
    if let HttpSession::H1(h1) = &*up
        && !body.is_empty()
    {
        OneWrite::defer(h1.stream());
    }
    let begun = up.write_request_header(Box::new(head)).await;
    match up {
        HttpSession::H2(h2) => match begun {
            // Boxed: a stream needs no memory for this.
            Ok(()) => Box::pin(send_http2(h2, body)).await,
            Err(error) => SendResult::Nothing(error),
        },
        up => {
            let sent = match begun {
                Ok(()) => send_parts(up, body).await,
                failed => failed,
            };
            let answered = up.stream().is_some_and(OneWrite::has_answer);
            whole_or(sent, answered)
        }
    }
}

/// In parts, so that a long body may take longer than the time-out.
async fn send_parts(up: &mut HttpSession, body: &[Bytes]) -> Result<()> {
    for chunk in body {
        let mut sent = 0;
        while sent < chunk.len() {
            let part = chunk.slice(sent..chunk.len().min(sent + PART));
            sent += part.len();
            up.write_request_body(part, false).await?;
        }
    }
    up.finish_request_body().await
}

async fn send_http2(h2: &mut Http2Session, body: &[Bytes]) -> SendResult {
    let Some(mut writer) = h2.take_request_body_writer() else {
        return SendResult::InPart { answered: false, stalled: None };
    };
    // Its time-out is one for each part that the provider's window admits.
    let sending = async {
        for chunk in body {
            write_body(&mut writer, chunk.clone(), false, Some(WRITE_TIMEOUT)).await?;
        }
        write_body(&mut writer, Bytes::new(), true, None).await
    };
    let mut sending = pin!(sending);
    let head = tokio::select! {
        biased;
        sent = &mut sending => return whole_or(sent, false),
        head = h2.read_response_header() => head,
    };
    if let Err(error) = head {
        return SendResult::Ended(error);
    }
    // A reply may need the rest of the request; an error does not.
    if h2.response_header().is_some_and(|head| head.status.is_success()) {
        return whole_or(sending.await, true);
    }
    SendResult::InPart { answered: true, stalled: None }
}

fn whole_or(sent: Result<()>, answered: bool) -> SendResult {
    match sent {
        Ok(()) => SendResult::Whole,
        Err(error) => {
            let stalled = *error.etype() == ErrorType::WriteTimedout;
            SendResult::InPart { answered, stalled: stalled.then_some(WRITE_TIMEOUT) }
        }
    }
}
