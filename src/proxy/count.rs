//! Counting tokens where no provider of the client's own format can be asked: a local estimate, marked as one.

use pingora::protocols::http::ServerSession as Session;
use serde_json::json;

use super::answer;
use super::exchange::{End, Exchange};
use super::refusal::Refusal;
use super::settle;
use super::stages::Done;
use crate::config::Live;
use crate::domain::format::WireFormat;
use crate::domain::record::RequestOutcome;
use crate::formats::count;
use crate::formats::peek::PeekLimits;

/// Says that the figure is an estimate.
const ESTIMATED: (&str, &str) = ("x-tollgate-token-count", "estimated");

/// Answers with an estimate of the request's input tokens.
///
/// # Errors
/// When the client cannot be written to.
pub async fn estimate(session: &mut Session, x: &mut Exchange, live: &Live) -> Result<Done, Refusal> {
    let inbound = x.inbound.clone().ok_or(Refusal::Internal)?;
    let limits = PeekLimits { max_depth: live.max_json_depth };
    let tokens = count::estimate(&inbound.body, limits).map_err(|e| Refusal::BadRequest(e.message))?;
    let body = match x.format {
        WireFormat::AltCli => json!({"totalTokens": tokens}),
        _ => json!({"input_tokens": tokens}),
    };
    settle::settle(x, &End { outcome: RequestOutcome::Completed, status: 200, error: None });
    let written = answer::whole(session, x, 200, [ESTIMATED].into_iter(), body.to_string().into()).await;
    written.map(|()| Done::Answered).map_err(|_| Refusal::Internal)
}
