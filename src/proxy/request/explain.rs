//! Which providers a request would be offered to: the answer to who asks in the administration.

use pingora::{Error, ErrorType, OrErr as _, Result};

use crate::http_client::in_process::{ExplainedRefusal, Explanation};
use crate::proxy::context::RequestContext;
use crate::proxy::reply::answer::Answer;
use crate::proxy::reply::give_up::GiveUp;

/// The decisions of the stages so far, or the refusal of one of them, as JSON. The request's record
/// is dropped, not closed: nothing is counted or written.
///
/// # Errors
/// When the client has closed the connection.
pub(in crate::proxy) fn answer(ctx: &mut RequestContext, planned: Result<()>) -> Result<Answer> {
    let record = ctx.record.take();
    let refusal = planned.err().map(|error| refusal(ctx, error)).transpose()?;
    let decisions = record.map(|record| record.decisions).unwrap_or_default();
    let body = serde_json::to_vec(&Explanation { refusal, decisions });
    Ok(Answer::ok(body.or_err(ErrorType::InternalError, "an explanation as JSON")?))
}

fn refusal(ctx: &RequestContext, error: Box<Error>) -> Result<ExplainedRefusal> {
    match error.cause.as_deref().and_then(|cause| cause.downcast_ref::<GiveUp>()) {
        Some(GiveUp::Refused { refusal, .. }) => {
            let reply = refusal.reply(ctx.zone());
            Ok(ExplainedRefusal { status: reply.status, message: reply.message })
        }
        _ => Err(error),
    }
}
