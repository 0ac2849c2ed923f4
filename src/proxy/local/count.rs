//! Counting tokens if no provider of the client's own format is available or counts: a local
//! estimate, marked as such.

use std::sync::Arc;

use crate::formats::count;
use crate::formats::peek::PeekLimits;
use crate::proxy::blocking::by_size;
use crate::proxy::context::RequestContext;
use crate::proxy::reply::answer::Answer;
use crate::proxy::reply::refusal::Refusal;
use crate::proxy::request::intake::Inbound;

/// Marks the figure as an estimate.
const ESTIMATED: (&str, &str) = ("x-tollgate-token-count", "estimated");

/// An estimate of the request's input tokens.
pub(in crate::proxy) async fn estimate(
    ctx: &RequestContext,
    inbound: Arc<Inbound>,
) -> Result<Answer, Refusal> {
    let limits = PeekLimits { max_depth: ctx.live.max_json_depth };
    let counting = by_size(inbound.body_len(), move || count::estimate(&inbound.body, limits));
    let counted = counting.await.ok_or(Refusal::Internal)?;
    let tokens = counted.map_err(|e| Refusal::BadRequest(e.message))?;
    let mut answer = Answer::ok(count::reply(ctx.format, tokens));
    answer.headers.push((ESTIMATED.0, ESTIMATED.1.to_owned()));
    Ok(answer)
}
