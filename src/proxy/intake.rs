//! First stages: the head (route, addresses), then, once the caller is known, the body.
//!
//! The body is read here whole, bounded and timed, whatever framing it came in, because a provider may have to be given
//! it twice. It is not parsed: `formats::peek` looks at the few fields that decide.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, EXPECT, HOST, TRANSFER_ENCODING, UPGRADE, USER_AGENT};
use pingora::protocols::http::ServerSession as Session;

use super::coding::{self, Coding, CodingError};
use super::exchange::{Caller, Exchange, Inbound};
use super::refusal::Refusal;
use super::room::{NoRoom, Room};
use crate::config::Live;
use crate::domain::format::WireFormat;
use crate::formats::peek::{self, BadRequest, PeekLimits};
use crate::formats::query;
use crate::formats::route::{self, Operation};
use crate::policy::session::{self, SessionHints};

/// Longest part of a `User-Agent` that is kept.
const MAX_USER_AGENT: usize = 256;

/// Reads the head: which format, which operation, from where.
///
/// # Errors
/// When nothing is served at this path, by this method, or with such a head.
pub fn head(session: &Session, x: &mut Exchange) -> Result<(), Refusal> {
    let head = session.req_header();
    let path = head.uri.path();
    x.endpoint = Arc::from(path);
    x.client_ip = session.client_addr().and_then(|a| a.as_inet()).map(std::net::SocketAddr::ip);
    x.user_agent = head.headers.get(USER_AGENT).map(|v| {
        let text = String::from_utf8_lossy(v.as_bytes());
        text.chars().take(MAX_USER_AGENT).collect::<String>().into()
    });
    let upgrade = head.headers.contains_key(UPGRADE);
    if let Err(bad) = route::check_path(&head.method, path) {
        x.format = WireFormat::AltCli;
        return Err(bad_request(bad));
    }
    let Some(route) = route::match_path(&head.method, path) else {
        let allow = route::methods(path).ok_or(Refusal::UnknownRoute)?;
        let would_be = allow.parse().ok().and_then(|method| route::match_path(&method, path));
        x.format = would_be.map_or(x.format, |route| route.format);
        return Err(if upgrade { Refusal::UpgradeUnsupported } else { Refusal::WrongMethod { allow } });
    };
    x.format = route.format;
    x.query = query::upstream(route.format, head.uri.query()).map_err(bad_request)?;
    let lists = matches!(route.operation, Operation::ListModels | Operation::GetModel(_));
    if lists && head.headers.contains_key("anthropic-version") {
        x.format = WireFormat::Native;
    }
    x.route = Some(route);
    if head.version <= http::Version::HTTP_11 {
        framing(head)?;
    }
    Ok(())
}

/// Heads that another server on the way may read differently are refused.
fn framing(head: &pingora::http::RequestHeader) -> Result<(), Refusal> {
    if head.headers.contains_key(CONTENT_LENGTH) && head.headers.contains_key(TRANSFER_ENCODING) {
        return Err(Refusal::MalformedHead("a body has either a length or a transfer encoding, not both"));
    }
    if head.version == http::Version::HTTP_11 && !head.headers.contains_key(HOST) {
        return Err(Refusal::MalformedHead("the Host header is missing"));
    }
    Ok(())
}

/// Reads and peeks at the body.
///
/// # Errors
/// When it is too large, too slow, damaged, no JSON object, or lacks what its format demands.
pub async fn body(session: &mut Session, x: &mut Exchange, live: &Live) -> Result<(), Refusal> {
    let waiting = Instant::now();
    let user = x.caller.as_ref().and_then(Caller::user_id);
    let received = read(session, Room::new(&x.gateway.bodies, user), live).await;
    x.waited += waiting.elapsed();
    let coding = Coding::of(session.req_header().headers.get(CONTENT_ENCODING)).map_err(coding_refusal)?;
    let received = decode(coding, received?, live).await?;
    let inbound = look(session, x, received, live)?;
    x.inbound = Some(Arc::new(inbound));
    Ok(())
}

/// A body that is whole, in the pieces it arrived in, and the room that it takes.
pub struct Received {
    pub pieces: Vec<Bytes>,
    pub room: Room,
}

impl From<NoRoom> for Refusal {
    fn from(_: NoRoom) -> Self {
        Self::NoRoom
    }
}

/// Reads the whole body, bounded in size and time, and within the room that there is for all of them.
///
/// # Errors
/// When it is too large, too slow or badly framed, or there is no room for it now.
pub async fn read(session: &mut Session, mut room: Room, live: &Live) -> Result<Received, Refusal> {
    let limit = live.max_body_bytes;
    let headers = &session.req_header().headers;
    let declared = headers.get(CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse::<usize>().ok());
    if declared.is_some_and(|n| n > limit) {
        return Err(Refusal::BodyTooLarge { limit });
    }
    // Before a byte is read: what is let in is not turned away half-way, and what is turned away costs nothing.
    room.hold(declared.unwrap_or(0), live.max_inflight_body_bytes)?;
    if headers.contains_key(EXPECT) {
        session.write_continue_response().await.map_err(|_| Refusal::BodyTimedOut)?;
    }
    // One bound for the whole body: a client that sends a byte now and then must not hold a place for ever.
    let reading = pieces(session, (&mut room, declared.unwrap_or(0)), live);
    let pieces = match live.request_read_timeout_ms {
        0 => reading.await,
        ms => pingora::time::timeout(Duration::from_millis(ms), reading).await.unwrap_or(Err(Refusal::BodyTimedOut)),
    }?;
    Ok(Received { pieces, room })
}

/// `held`: the room of the body, and the bytes that it was taken for.
async fn pieces(session: &mut Session, held: (&mut Room, usize), live: &Live) -> Result<Vec<Bytes>, Refusal> {
    let (limit, (room, declared)) = (live.max_body_bytes, held);
    let (mut chunks, mut total) = (Vec::new(), 0_usize);
    loop {
        match session.read_request_body().await {
            Ok(Some(chunk)) => {
                total += chunk.len();
                if total > limit {
                    return Err(Refusal::BodyTooLarge { limit });
                }
                if total > declared {
                    room.hold(total, live.max_inflight_body_bytes)?;
                }
                chunks.push(chunk);
            }
            Ok(None) => return Ok(chunks),
            Err(e) if matches!(e.etype(), pingora::ErrorType::ReadTimedout) => return Err(Refusal::BodyTimedOut),
            Err(_) => return Err(Refusal::MalformedHead("the body's framing is damaged")),
        }
    }
}

/// Decodes a compressed body; the room that it takes grows and shrinks with it.
async fn decode(coding: Coding, received: Received, live: &Live) -> Result<Received, Refusal> {
    if coding == Coding::Identity {
        return Ok(received);
    }
    let (limit, most) = (live.max_body_bytes, live.max_inflight_body_bytes);
    let decoding = tokio::task::spawn_blocking(move || {
        let Received { pieces, mut room } = received;
        let packed = pieces.iter().map(Bytes::len).sum();
        let grown = |bytes: usize| room.hold(bytes.max(packed), most).is_ok();
        let decoded = coding::decode_within(coding, pieces, limit, grown)?;
        let whole = decoded.iter().map(Bytes::len).sum();
        room.hold(whole, most).map_err(|_| CodingError::NoRoom)?;
        Ok(Received { pieces: decoded, room })
    });
    match decoding.await {
        Ok(Err(CodingError::TooLarge)) => Err(Refusal::BodyTooLarge { limit }),
        Ok(result) => result.map_err(coding_refusal),
        Err(_) => Err(Refusal::Internal),
    }
}

fn coding_refusal(error: CodingError) -> Refusal {
    match error {
        CodingError::Unknown => Refusal::UnknownEncoding,
        CodingError::NoRoom => Refusal::NoRoom,
        CodingError::Damaged | CodingError::TooLarge => Refusal::DamagedEncoding,
    }
}

fn look(session: &Session, x: &mut Exchange, received: Received, live: &Live) -> Result<Inbound, Refusal> {
    let Received { pieces: body, room } = received;
    let peek = peek::peek(&body, PeekLimits { max_depth: live.max_json_depth }).map_err(bad_request)?;
    let Some(route) = &x.route else { return Err(Refusal::Internal) };
    x.format = peek.format(route.format);
    peek.check(x.format, route).map_err(bad_request)?;
    let model = route.model_in_path.clone().or_else(|| peek.model.clone()).ok_or(Refusal::Internal)?;
    let stream = route.stream_in_path.or(peek.stream).unwrap_or(false);
    let header = x.gateway.fixed.session_headers.iter().find_map(|name| {
        session.req_header().headers.get(name.as_str())?.to_str().ok().filter(|v| !v.trim().is_empty())
    });
    let hints = SessionHints {
        header,
        metadata_user_id: peek.metadata_user_id.as_deref(),
        prompt_cache_key: peek.prompt_cache_key.as_deref(),
        metadata_session_id: peek.metadata_session_id.as_deref(),
        previous_response_id: peek.previous_response_id.as_deref(),
        // The same words in another format are another client's conversation.
        first_messages_hash: peek.first_messages_hash(&body).map(|hash| hash ^ x.format as u64),
        fallback: x.request_id,
    };
    let session_id = session::derive(&hints);
    let body_len = body.iter().map(Bytes::len).sum();
    Ok(Inbound { model: model.into(), stream, body, body_len, peek, session: session_id, room: Some(room) })
}

fn bad_request(bad: BadRequest) -> Refusal {
    Refusal::BadRequest(bad.message)
}
