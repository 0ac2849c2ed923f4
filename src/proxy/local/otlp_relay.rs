//! `/v1/metrics`, `/v1/logs`, `/v1/traces`: clients' own telemetry, with a key of the gateway.
//!
//! These are not model calls: they are neither billed nor recorded. The caller is identified like
//! any other; the body is bounded by `telemetry.otlp_relay.max_body`, and counts towards the budget
//! of all bodies.

use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, Method};
use pingora::proxy::Session;
use pingora::{Error, Result};

use crate::domain::record::RequestOutcome;
use crate::otlp::{Relay, RelayError, RelayReply, Sender, Signal};
use crate::proxy::body_budget::BodyReservation;
use crate::proxy::caller::Principal;
use crate::proxy::coding::Coding;
use crate::proxy::connections::gone::unless_gone;
use crate::proxy::context::RequestContext;
use crate::proxy::record::Ending;
use crate::proxy::reply::answer::Answer;
use crate::proxy::reply::give_up::GiveUp;
use crate::proxy::reply::refusal::Refusal;
use crate::proxy::reply::refusal_reply::RefusalReply;
use crate::proxy::request::received::Received;
use crate::proxy::request::{identify, received};

/// Seconds after which a client may come back if too many requests are relayed at the same time, or
/// the collector does not answer.
const RETRY_S: u32 = 5;

/// Answers a request for the relay.
///
/// # Errors
/// When the method is wrong, the caller is unknown, or the client closes the connection.
pub(in crate::proxy) async fn serve(
    session: &mut Session,
    ctx: &mut RequestContext,
    relay: &Relay,
    signal: Signal,
) -> Result<Answer> {
    if session.req_header().method != Method::POST {
        return Err(Refusal::WrongMethod { allow: "POST" }.into());
    }
    let mut identified = identify::caller_of(session, ctx)?;
    let reservation = BodyReservation::new(&ctx.gateway.bodies, identified.caller.user_id());
    let received = match received(session, ctx, reservation, relay.max_body).await {
        Ok(received) => received,
        Err(error) => {
            relay.refused(signal);
            return Err(without_record(ctx, error));
        }
    };
    if let Err(refusal) = identified.renew(ctx) {
        relay.refused(signal);
        return Err(refused(ctx, refusal.reply(ctx.zone())));
    }
    let kind = session.req_header().headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or_default().to_owned();
    let sender = sender(&identified.caller);
    // The reservation is held until the body has been passed on.
    let Received { pieces, reservation: _held } = received;
    let sending = relay.forward(signal, &kind, pieces.concat(), sender.as_ref());
    match unless_gone(session, false, Box::pin(sending)).await? {
        Ok(reply) => Ok(passed_on(reply)),
        Err(error) => Err(failed(ctx, &error)),
    }
}

/// Who sends. The admin token belongs to no user.
fn sender(caller: &Principal) -> Option<Sender> {
    let Principal::Key { key, user } = caller else { return None };
    Some(Sender { user_name: user.name.clone(), user_id: user.id.0, key_name: key.name.clone() })
}

/// The body, decompressed.
async fn received(
    session: &mut Session,
    ctx: &RequestContext,
    reservation: BodyReservation,
    limit: usize,
) -> Result<Received> {
    let received = received::read(session, reservation, &ctx.live, limit).await?;
    let coding = Coding::of(session.req_header().headers.get(CONTENT_ENCODING))
        .map_err(received::coding_refusal)?;
    Ok(received::decode(coding, received, &ctx.live, limit).await?)
}

/// The refusal of a request that has no record, although its caller is known: it is not counted
/// among those without authentication.
fn without_record(ctx: &RequestContext, error: Box<Error>) -> Box<Error> {
    match error.cause.as_deref().and_then(|cause| cause.downcast_ref::<GiveUp>()) {
        Some(GiveUp::Refused { refusal, .. }) => refused(ctx, refusal.reply(ctx.zone())),
        _ => error,
    }
}

fn refused(ctx: &RequestContext, reply: RefusalReply) -> Box<Error> {
    GiveUp::ClientError(Answer::refusal(ctx, reply, RequestOutcome::Refused)).into()
}

fn passed_on(reply: RelayReply) -> Answer {
    let ending = Ending { outcome: RequestOutcome::Completed, status: reply.status, error: None };
    let mut headers = vec![("content-type", reply.content_type.to_owned())];
    headers.extend(reply.retry_after.map(|after| ("retry-after", after)));
    Answer { ending, headers, passed: HeaderMap::new(), body: reply.body.into() }
}

fn failed(ctx: &RequestContext, error: &RelayError) -> Box<Error> {
    let reply = match error {
        RelayError::UnknownType => {
            RefusalReply::new(415, "invalid_request_error", error.to_string())
        }
        RelayError::Malformed(_) => {
            RefusalReply::new(400, "invalid_request_error", error.to_string())
        }
        RelayError::TooLarge { .. } => {
            RefusalReply::new(413, "request_too_large", error.to_string())
        }
        RelayError::Busy => RefusalReply::new(503, "overloaded_error", error.to_string())
            .header("retry-after", RETRY_S),
        RelayError::Unreachable(_) => {
            tracing::debug!(request_id = %ctx.id, %error, "clients' telemetry could not be \
                relayed");
            RefusalReply::new(503, "api_error", "the collector cannot be reached")
                .header("retry-after", RETRY_S)
        }
    };
    refused(ctx, reply)
}
