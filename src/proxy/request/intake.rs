//! The first stages: the head (route, addresses) and, once the caller is known, the body.
//!
//! The body is read completely, bounded in size and time, whatever its framing, because it may have
//! to be sent to more than one provider. It is not parsed: `formats::peek` finds the few members
//! that matter.

use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, EXPECT, HOST, TRANSFER_ENCODING, UPGRADE, USER_AGENT,
};
use pingora::http::RequestHeader;
use pingora::proxy::Session;
use pingora::{Error, ErrorType};

use super::body_budget::{BodyReservation, BudgetExceeded};
use super::identify::Identified;
use crate::config::Live;
use crate::domain::format::WireFormat;
use crate::domain::ids::SessionId;
use crate::formats::bad_request::BadRequest;
use crate::formats::client_address::client_address;
use crate::formats::count;
use crate::formats::framing::has_field;
use crate::formats::peek::{self, Peek, PeekLimits};
use crate::formats::query;
use crate::formats::route::{self, Operation, Route};
use crate::policy::session::{self, SessionHints};
use crate::proxy::coding::{self, Coding, CodingError};
use crate::proxy::context::{HeadFacts, RequestContext};
use crate::proxy::record::BodyFacts;
use crate::proxy::reply::refusal::Refusal;
use crate::proxy::reply::transcript::Transcript;

/// Longest part of a `User-Agent` that is recorded.
const MAX_USER_AGENT: usize = 256;

/// A request whose body has been read, and parsed as far as the gateway needs.
pub struct Inbound {
    pub model: std::sync::Arc<str>,
    pub stream: bool,
    /// The decoded body, in the pieces in which it arrived; empty once it is released.
    pub body: Vec<Bytes>,
    pub peek: Peek,
    pub session: SessionId,
    /// The part of the budget that the body holds.
    reservation: Option<BodyReservation>,
}

impl Inbound {
    /// Bytes of the body.
    #[must_use]
    pub fn body_len(&self) -> usize {
        self.body.iter().map(Bytes::len).sum()
    }

    /// Drops the body: no further attempt is possible.
    pub fn release_body(&mut self) {
        self.body = Vec::new();
        self.reservation = None;
    }
}

/// Reads the head: the format, the operation and the client's address.
///
/// # Errors
/// When nothing is served at this path or by this method, or the head is invalid.
pub(in crate::proxy) fn head(
    session: &Session,
    ctx: &mut RequestContext,
) -> Result<Route, Refusal> {
    note_head(session, ctx);
    let head = session.req_header();
    let path = head.uri.path();
    let upgrade = head.headers.contains_key(UPGRADE);
    if let Err(bad) = route::check_path(&head.method, path) {
        ctx.format = WireFormat::AltCli;
        return Err(bad_request(bad));
    }
    let Some(route) = route::match_path(&head.method, path) else {
        let allow = route::methods(path).ok_or(Refusal::UnknownRoute)?;
        let would_be = allow.parse().ok().and_then(|method| route::match_path(&method, path));
        ctx.format = would_be.map_or(ctx.format, |route| route.format);
        return Err(if upgrade {
            Refusal::UpgradeUnsupported
        } else {
            Refusal::WrongMethod { allow }
        });
    };
    ctx.format = route.format;
    ctx.head.query = query::upstream(route.format, head.uri.query()).map_err(bad_request)?;
    let lists = matches!(route.operation, Operation::ListModels | Operation::GetModel(_));
    if lists && head.headers.contains_key("anthropic-version") {
        ctx.format = WireFormat::Native;
    }
    Ok(route)
}

/// Notes the facts of a head that are recorded.
pub(in crate::proxy) fn note_head(session: &Session, ctx: &mut RequestContext) {
    let head = session.req_header();
    ctx.head = HeadFacts {
        endpoint: head.uri.path().into(),
        query: None,
        user_agent: head.headers.get(USER_AGENT).map(|v| {
            let text = String::from_utf8_lossy(v.as_bytes());
            match text.char_indices().nth(MAX_USER_AGENT) {
                Some((end, _)) => text[..end].into(),
                None => text.into(),
            }
        }),
        client_ip: session
            .client_addr()
            .and_then(|a| a.as_inet())
            .map(|peer| client_address(peer.ip(), &head.headers, &ctx.live.trusted_proxies)),
    };
}

/// Refuses heads that another server on the path could read differently.
///
/// # Errors
/// When a head has a length and a transfer encoding, or no host.
pub(in crate::proxy) fn framing(session: &Session) -> Result<(), Refusal> {
    let head = session.req_header();
    if head.version > http::Version::HTTP_11 {
        return Ok(());
    }
    // Pingora drops `Content-Length` if both are present, so the raw head is checked.
    if head.headers.contains_key(TRANSFER_ENCODING)
        && has_field(&session.to_h1_raw(), CONTENT_LENGTH.as_str())
    {
        return Err(Refusal::MalformedHead(
            "a body has either a length or a transfer encoding, not both",
        ));
    }
    let mut codings = head.headers.get_all(TRANSFER_ENCODING).iter();
    if !codings.all(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked")) {
        return Err(Refusal::TransferCoding);
    }
    if head.version == http::Version::HTTP_11 && !head.headers.contains_key(HOST) {
        return Err(Refusal::MalformedHead("the Host header is missing"));
    }
    Ok(())
}

/// Reads the body and peeks at it.
///
/// # Errors
/// When it is too large, too slow, damaged, no JSON object, or lacks what its format requires; when
/// the client closes the connection before it is complete.
pub(in crate::proxy) async fn body(
    session: &mut Session,
    ctx: &mut RequestContext,
    identified: &Identified,
    route: &Route,
) -> pingora::Result<Inbound> {
    let waiting = Instant::now();
    let reservation = BodyReservation::new(&ctx.gateway.bodies, identified.caller.user_id());
    let limit = ctx.live.max_body_bytes;
    let received = read(session, reservation, &ctx.live, limit).await;
    ctx.waited += waiting.elapsed();
    let coding =
        Coding::of(session.req_header().headers.get(CONTENT_ENCODING)).map_err(coding_refusal)?;
    let received = decode(coding, received?, &ctx.live, limit).await?;
    let inbound = look(session, ctx, received, route)?;
    if let Some(record) = &mut ctx.record {
        record.body = Some(BodyFacts {
            model: std::sync::Arc::clone(&inbound.model),
            session: inbound.session.clone(),
            stream: inbound.stream,
            estimated_input: count::from_peek(&inbound.peek),
        });
    }
    if let Some(trace) = &mut ctx.trace {
        trace.request(ctx.format, &inbound.body);
    }
    if route.operation == Operation::Generate {
        ctx.transcript = Transcript::begin(ctx, &identified.caller, &inbound);
    }
    Ok(inbound)
}

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
    let reading = pieces(session, reservation, live, limit);
    match live.request_read_timeout_ms {
        0 => reading.await,
        ms => pingora::time::timeout(Duration::from_millis(ms), reading)
            .await
            .unwrap_or_else(|_| Err(Refusal::BodyTimedOut.into())),
    }
}

/// Whether the client waits for an interim response before it sends the body. An expectation of
/// HTTP/1.0 is ignored (RFC 9110, section 10.1.1).
pub(in crate::proxy) fn expects_continue(head: &RequestHeader) -> bool {
    let expected = head.headers.get(EXPECT).map(|value| value.as_bytes());
    head.version >= http::Version::HTTP_11
        && expected.is_some_and(|value| value.eq_ignore_ascii_case(b"100-continue"))
}

async fn pieces(
    session: &mut Session,
    mut reservation: BodyReservation,
    live: &Live,
    limit: usize,
) -> pingora::Result<Received> {
    let declared = reservation.bytes();
    let (mut pieces, mut total) = (Pieces::default(), 0_usize);
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
struct Pieces {
    done: Vec<Bytes>,
    small: BytesMut,
}

impl Pieces {
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
        ErrorType::ReadTimedout => Refusal::BodyTimedOut.into(),
        ErrorType::ConnectionClosed | ErrorType::ReadError | ErrorType::H2Error => {
            error.into_down()
        }
        _ => Refusal::MalformedHead("the body's framing is damaged").into(),
    }
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
        CodingError::Damaged | CodingError::TooLarge => Refusal::DamagedEncoding,
    }
}

fn look(
    session: &Session,
    ctx: &mut RequestContext,
    received: Received,
    route: &Route,
) -> Result<Inbound, Refusal> {
    let Received { pieces: body, reservation } = received;
    let peek = peek::peek(&body, PeekLimits { max_depth: ctx.live.max_json_depth })
        .map_err(bad_request)?;
    ctx.format = peek.format(route.format);
    peek.check(ctx.format, route).map_err(bad_request)?;
    let model =
        route.model_in_path.clone().or_else(|| peek.model.clone()).ok_or(Refusal::Internal)?;
    let stream = route.stream_in_path.or(peek.stream).unwrap_or(false);
    let header = ctx.gateway.fixed.session_headers.iter().find_map(|name| {
        session
            .req_header()
            .headers
            .get(name.as_str())?
            .to_str()
            .ok()
            .filter(|v| !v.trim().is_empty())
    });
    let hints = SessionHints {
        header,
        metadata_user_id: peek.metadata_user_id.as_deref(),
        prompt_cache_key: peek.prompt_cache_key.as_deref(),
        metadata_session_id: peek.metadata_session_id.as_deref(),
        previous_response_id: peek.previous_response_id.as_deref(),
        // The same words in another format belong to another client's conversation.
        first_messages_hash: peek.first_messages_hash(&body).map(|hash| hash ^ ctx.format as u64),
        fallback: ctx.id,
    };
    let session = session::derive(&hints);
    Ok(Inbound { model: model.into(), stream, body, peek, session, reservation: Some(reservation) })
}

fn bad_request(bad: BadRequest) -> Refusal {
    Refusal::BadRequest(bad.message)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::{Pieces, has_field};

    #[test]
    fn small_pieces_are_joined_and_the_first_and_large_ones_are_not_copied() {
        let first = Bytes::from(vec![b'a'; 10]);
        let large = Bytes::from(vec![b'b'; Pieces::SMALL]);
        let mut pieces = Pieces::default();
        pieces.push(first.clone());
        pieces.push(large.clone());
        let small = Pieces::JOINED + 1;
        (0..small).for_each(|_| pieces.push(Bytes::from_static(b"c")));
        let done = pieces.finish();
        assert_eq!(
            done.iter().map(Bytes::len).collect::<Vec<_>>(),
            [10, large.len(), small - 1, 1]
        );
        assert_eq!((done[0].as_ptr(), done[1].as_ptr()), (first.as_ptr(), large.as_ptr()));
        assert!(done[2].iter().all(|byte| *byte == b'c'));
    }

    #[test]
    fn a_field_is_found_by_its_name_and_nothing_else() {
        let cases: [(&[u8], bool); 6] = [
            (b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n", true),
            (b"POST / HTTP/1.1\r\nhost: a\r\ncontent-LENGTH:5\r\n\r\n", true),
            (b"POST / HTTP/1.1\r\nx: content-length: 5\r\n\r\n", false),
            (b"POST /content-length HTTP/1.1\r\nx-content-length: 5\r\n\r\n", false),
            (b"POST / HTTP/1.1\ncontent-length: 5\n\n", true),
            (b"", false),
        ];
        for (raw, found) in cases {
            assert_eq!(has_field(raw, "content-length"), found, "{}", raw.escape_ascii());
        }
    }
}
