//! A request's body as bytes: read completely, bounded in size and time, and decoded.

use std::pin::pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, EXPECT};
use pingora::http::RequestHeader;
use pingora::proxy::Session;
use pingora::{Error, ErrorType};

use crate::config::Live;
use crate::proxy::body_budget::{BodyReservation, BudgetExceeded};
use crate::proxy::coding::{self, Coding, CodingError};
use crate::proxy::ready;
use crate::proxy::reply::refusal::Refusal;

/// A complete body, in the pieces in which it arrived, and its part of the budget.
pub(in crate::proxy) struct Received {
    pub pieces: Vec<Bytes>,
    pub reservation: BodyReservation,
}

impl From<BudgetExceeded> for Refusal {
    fn from(_: BudgetExceeded) -> Self {
        Self::BodyBudgetExceeded
    }
}

/// Reads the complete body, bounded in size (`limit`), in time and by the budget of all bodies.
///
/// # Errors
/// When it is too large, too slow or badly framed, when the budget is used up, or when the client
/// closes the connection.
pub(in crate::proxy) async fn read(
    session: &mut Session,
    mut reservation: BodyReservation,
    live: &Live,
    limit: usize,
) -> pingora::Result<Received> {
    let headers = &session.req_header().headers;
    let declared = headers.get(CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse::<usize>().ok());
    if declared.is_some_and(|n| n > limit) {
        return Err(Refusal::BodyTooLarge { limit }.into());
    }
    // Before a byte is read: an accepted body is not refused half-way, and a refused one costs no
    // read.
    reservation.hold(declared.unwrap_or(0), live.max_inflight_body_bytes).map_err(Refusal::from)?;
    if expects_continue(session.req_header()) {
        session.write_continue_response().await.map_err(|e| e.into_down())?;
    }
    // One bound for the complete body: a client that sends a byte now and then must not occupy a
    // connection.
    let reading = pin!(pieces(session, reservation, live, limit));
    match live.request_read_timeout_ms {
        0 => reading.await,
        ms => ready::within(Duration::from_millis(ms), reading)
            .await
            .unwrap_or_else(|| Err(Refusal::BodyTimedOut { ms: Some(ms) }.into())),
    }
}

async fn pieces(
    session: &mut Session,
    mut reservation: BodyReservation,
    live: &Live,
    limit: usize,
) -> pingora::Result<Received> {
    let declared = reservation.bytes();
    let (mut pieces, mut total) = (BodyPieces::default(), 0_usize);
    loop {
        match session.read_request_body().await {
            Ok(Some(piece)) => {
                total += piece.len();
                if total > limit {
                    return Err(Refusal::BodyTooLarge { limit }.into());
                }
                if total > declared {
                    reservation.hold(total, live.max_inflight_body_bytes).map_err(Refusal::from)?;
                }
                pieces.push(piece);
            }
            Ok(None) => return Ok(Received { pieces: pieces.finish(), reservation }),
            Err(e) => {
                // The start of the next request after a damaged body is unknown.
                session.set_keepalive(None);
                return Err(unread(e));
            }
        }
    }
}

/// A body's pieces as they arrive. Small ones are joined: each takes more than a hundred bytes of
/// memory beside its content, which the budget does not count, and costs time in each later step.
#[derive(Default)]
struct BodyPieces {
    done: Vec<Bytes>,
    small: BytesMut,
}

impl BodyPieces {
    /// Pieces below this size are joined.
    const SMALL: usize = 16 * 1024;
    /// Up to this size.
    const JOINED: usize = 64 * 1024;

    fn push(&mut self, piece: Bytes) {
        // Most bodies have only one piece, which is not copied.
        if self.done.is_empty() || piece.len() >= Self::SMALL {
            self.flush();
            self.done.push(piece);
            return;
        }
        if self.small.len() + piece.len() > Self::JOINED {
            self.flush();
        }
        self.small.extend_from_slice(&piece);
    }

    fn flush(&mut self) {
        if !self.small.is_empty() {
            self.done.push(std::mem::take(&mut self.small).freeze());
        }
    }

    fn finish(mut self) -> Vec<Bytes> {
        self.flush();
        self.done
    }
}

/// Why a body could not be read to its end.
pub(in crate::proxy) fn unread(error: Box<Error>) -> Box<Error> {
    match error.etype() {
        ErrorType::ReadTimedout => Refusal::BodyTimedOut { ms: None }.into(),
        ErrorType::ConnectionClosed | ErrorType::ReadError | ErrorType::H2Error => {
            error.into_down()
        }
        _ => Refusal::MalformedHead("the body's framing is damaged").into(),
    }
}

/// Whether the client waits for an interim response before it sends the body. An expectation of
/// HTTP/1.0 is ignored (RFC 9110, section 10.1.1).
pub(in crate::proxy) fn expects_continue(head: &RequestHeader) -> bool {
    let expected = head.headers.get(EXPECT).map(|value| value.as_bytes());
    head.version >= http::Version::HTTP_11
        && expected.is_some_and(|value| value.eq_ignore_ascii_case(b"100-continue"))
}

/// Decodes a compressed body of up to `limit` bytes; its reservation grows and shrinks with it.
///
/// # Errors
/// When it is damaged, too large, or above the budget.
pub(in crate::proxy) async fn decode(
    coding: Coding,
    received: Received,
    live: &Live,
    limit: usize,
) -> Result<Received, Refusal> {
    if coding == Coding::Identity {
        return Ok(received);
    }
    let most = live.max_inflight_body_bytes;
    let decoding = tokio::task::spawn_blocking(move || {
        let Received { pieces, mut reservation } = received;
        let packed = pieces.iter().map(Bytes::len).sum();
        let grown = |bytes: usize| reservation.hold(bytes.max(packed), most).is_ok();
        let decoded = coding::decode_within(coding, pieces, limit, grown)?;
        let whole = decoded.iter().map(Bytes::len).sum();
        reservation.hold(whole, most).map_err(|_| CodingError::BudgetExceeded)?;
        Ok(Received { pieces: decoded, reservation })
    });
    match decoding.await {
        Ok(Err(CodingError::TooLarge)) => Err(Refusal::BodyTooLarge { limit }),
        Ok(result) => result.map_err(coding_refusal),
        Err(_) => Err(Refusal::Internal),
    }
}

/// The refusal of a body that cannot be decoded.
pub(in crate::proxy) fn coding_refusal(error: CodingError) -> Refusal {
    match error {
        CodingError::Unknown => Refusal::UnknownEncoding,
        CodingError::BudgetExceeded => Refusal::BodyBudgetExceeded,
        CodingError::Damaged | CodingError::TooLarge | CodingError::Frame(_) => {
            Refusal::DamagedEncoding
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::BodyPieces;

    #[test]
    fn small_pieces_are_joined_and_the_first_and_large_ones_are_not_copied() {
        let first = Bytes::from(vec![b'a'; 10]);
        let large = Bytes::from(vec![b'b'; BodyPieces::SMALL]);
        let mut pieces = BodyPieces::default();
        pieces.push(first.clone());
        pieces.push(large.clone());
        let small = BodyPieces::JOINED + 1;
        (0..small).for_each(|_| pieces.push(Bytes::from_static(b"c")));
        let done = pieces.finish();
        assert_eq!(
            done.iter().map(Bytes::len).collect::<Vec<_>>(),
            [10, large.len(), small - 1, 1]
        );
        assert_eq!((done[0].as_ptr(), done[1].as_ptr()), (first.as_ptr(), large.as_ptr()));
        assert!(done[2].iter().all(|byte| *byte == b'c'));
    }
}
