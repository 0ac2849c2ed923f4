//! The answers to heads that become no request: Pingora cannot read them, or they break a bound.
//!
//! Pingora's own answers have no body, and no hook runs before it writes them. The client's
//! connection (`client_stream`) writes these in their place. Nothing is known of the request, so
//! the body has a shape in which clients of every format find the message.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf as _, BytesMut};
use http::StatusCode;
use pingora::protocols::Stream;
use serde_json::json;
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::domain::ids::RequestId;
use crate::domain::record::RequestOutcome;
use crate::proxy::context::RequestContext;
use crate::proxy::gateway::Gateway;
use crate::proxy::record::Ending;
use crate::proxy::reply::answer::REQUEST_ID;
use crate::proxy::settle;

/// How long a refused client's further bytes are read, and how many.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 1 << 20;
const PIECE: usize = 2 << 10;

/// Why a head becomes no request.
#[derive(Debug, Clone, Copy)]
pub(super) enum HeadRefusal {
    Malformed,
    Tunnel,
    TooLarge { limit: usize },
    TooLate { time: Duration },
}

impl HeadRefusal {
    /// What Pingora refuses, by the beginning of its answer.
    pub(super) fn of_answer(bytes: &[u8]) -> Self {
        match bytes.get(9..12) {
            Some(b"405") => Self::Tunnel,
            _ => Self::Malformed,
        }
    }

    const fn status(self) -> StatusCode {
        match self {
            Self::Malformed => StatusCode::BAD_REQUEST,
            Self::Tunnel => StatusCode::METHOD_NOT_ALLOWED,
            Self::TooLarge { .. } => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::TooLate { .. } => StatusCode::REQUEST_TIMEOUT,
        }
    }

    /// The reason's name, in the answer and in metrics.
    const fn code(self) -> &'static str {
        match self {
            Self::Malformed => "malformed_head",
            Self::Tunnel => "wrong_method",
            Self::TooLarge { .. } => "head_too_large",
            Self::TooLate { .. } => "head_timed_out",
        }
    }

    fn message(self) -> String {
        match self {
            Self::Malformed => "the head of the request is malformed".to_owned(),
            Self::Tunnel => "CONNECT is not served here".to_owned(),
            Self::TooLarge { limit } => {
                format!("the head of the request is larger than {limit} bytes")
            }
            Self::TooLate { time } => {
                format!("the head of the request did not arrive within {} ms", time.as_millis())
            }
        }
    }

    /// Counts the refusal, writes its access line and makes the answer.
    pub(super) fn answer(self, gateway: &Arc<Gateway>, peer: Option<IpAddr>) -> String {
        let message = self.message();
        let mut ctx = RequestContext::new(Arc::clone(gateway));
        ctx.head.client_ip = peer.map(|peer| peer.to_canonical());
        gateway.node.metrics.unauthenticated(self.code());
        let status = self.status().as_u16();
        let error = Some(message.clone());
        settle::log_stranger(&ctx, &Ending { outcome: RequestOutcome::Refused, status, error });
        self.write(ctx.id, &message)
    }

    fn write(self, id: RequestId, message: &str) -> String {
        let (kind, code) = ("invalid_request_error", self.code());
        let error = json!({"type": kind, "code": code, "message": message});
        let body = json!({"type": "error", "error": error}).to_string();
        let allow = if matches!(self, Self::Tunnel) { "allow: GET, POST\r\n" } else { "" };
        format!(
            "HTTP/1.1 {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
             x-content-type-options: nosniff\r\n{REQUEST_ID}: {id}\r\n{allow}connection: close\r\n\r\n{body}",
            self.status(),
            body.len(),
        )
    }
}

/// The end of a refused connection: what the client still sends is read for a moment. Closing with
/// unread bytes would reset the connection before the client has read its answer.
#[derive(Default)]
pub(super) struct Linger {
    late: Option<Pin<Box<Sleep>>>,
    discarded: usize,
}

impl Linger {
    /// Closes the writing side, and waits until the client has closed its own.
    pub(super) fn poll_end(
        &mut self,
        stream: &mut Stream,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        if self.late.is_none() {
            ready!(Pin::new(&mut *stream).poll_shutdown(cx))?;
        }
        let late = self.late.get_or_insert_with(|| Box::pin(sleep(LINGER)));
        let mut piece = [0; PIECE];
        while self.discarded < LINGER_BYTES && late.as_mut().poll(cx).is_pending() {
            let mut read = ReadBuf::new(&mut piece);
            ready!(Pin::new(&mut *stream).poll_read(cx, &mut read))?;
            if read.filled().is_empty() {
                break;
            }
            self.discarded += read.filled().len();
        }
        Poll::Ready(Ok(()))
    }
}

/// The head of an answer, with `upgrade` as an option of the connection. Pingora sets the field
/// `Connection` itself; RFC 9110, section 7.8, wants the option beside the field `Upgrade`.
pub(super) fn with_upgrade_option(head: &[u8]) -> BytesMut {
    const FIELD: &[u8] = b"\r\nconnection: ";
    let mut out = BytesMut::from(head);
    let at = head.windows(FIELD.len()).position(|window| window.eq_ignore_ascii_case(FIELD));
    if let Some(at) = at {
        let value = at + FIELD.len();
        out.truncate(value);
        out.extend_from_slice(b"upgrade, ");
        out.extend_from_slice(&head[value..]);
    }
    out
}

/// Writes the bytes, and takes them out as they are written.
pub(super) fn poll_out(
    out: &mut BytesMut,
    stream: &mut Stream,
    cx: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    while !out.is_empty() {
        let written = ready!(Pin::new(&mut *stream).poll_write(cx, out))?;
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        out.advance(written);
    }
    Poll::Ready(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_is_added_to_the_field_of_the_head_only() {
        for (head, wanted) in [
            (
                "HTTP/1.1 426 Upgrade Required\r\nConnection: close\r\n\r\n",
                "HTTP/1.1 426 Upgrade Required\r\nConnection: upgrade, close\r\n\r\n",
            ),
            ("{\"error\":\"connection: x\"}", "{\"error\":\"connection: x\"}"),
        ] {
            assert_eq!(&with_upgrade_option(head.as_bytes())[..], wanted.as_bytes());
        }
    }
}
