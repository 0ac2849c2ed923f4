//! What a client is told when no provider has a reply for it: a provider's refusal of the request,
//! or that none is left.

use bytes::Bytes;

use super::failure::Failure;
use super::forwarding::Forwarding;
use crate::domain::error_rule::OverrideResponse;
use crate::domain::record::{DecisionStep, RequestOutcome};
use crate::formats::error::{self, ErrorReply, words};
use crate::formats::route::Operation;
use crate::policy::error_rules::ReadyRule;
use crate::proxy::context::RequestContext;
use crate::proxy::record::Ending;
use crate::proxy::reply::answer::Answer;
use crate::proxy::reply::client_head;
use crate::proxy::reply::give_up::GiveUp;

/// The answer when no provider is left. If each one that was tried refused the request, the client
/// gets the last one's refusal.
#[must_use]
pub(super) fn exhausted(request: &mut RequestContext, forwarding: &mut Forwarding) -> GiveUp {
    let tally = std::mem::take(&mut forwarding.tally);
    let left_out = tally.left_out;
    if left_out > 0 {
        let ms = request.live.retry.deadline_ms;
        let over = format!("the time for attempts was over after {ms} ms (retry.deadline)");
        let why = format!("{over}, with {left_out} more to ask");
        request.decide_itself(DecisionStep::Exhausted, why, None);
    }
    let counts_tokens = forwarding.route.operation == Operation::CountTokens;
    if let Some((refusal, status)) = tally.request_refused().filter(|_| !counts_tokens) {
        return GiveUp::ClientError(of_client_error(request, refusal, status, None));
    }
    // If no provider was tried, the gateway refused.
    let asked = request.record.as_ref().is_some_and(|record| record.attempts > 0);
    let outcome = if asked { RequestOutcome::UpstreamFailed } else { RequestOutcome::Refused };
    GiveUp::Refused { refusal: tally.refusal(request.now()), outcome }
}

/// The answer to a client's own error: an error rule's text if there is one, else the provider's.
pub(super) fn of_client_error(
    ctx: &RequestContext,
    failure: &Failure,
    status: u16,
    rule: Option<&ReadyRule>,
) -> Answer {
    // The record has what the client is told; the decision chain what the provider answered.
    let (body, told, status) = match rule.and_then(|rule| rule.response.as_ref()) {
        Some(response) => (overridden(ctx, response, status), response.message.clone(), status),
        None => {
            let is_ruled = rule.is_some_and(|rule| rule.rule.override_status.is_some());
            let (body, own) = providers_words(ctx, failure, status);
            (body, failure.describe(), if is_ruled { status } else { own })
        }
    };
    let ending = Ending { outcome: RequestOutcome::ClientError, status, error: Some(told) };
    let head = match failure {
        Failure::ErrorReply(error) => error.head.as_ref(),
        _ => None,
    };
    let passed = head.map(|head| client_head::of_error(ctx, &head.headers)).unwrap_or_default();
    Answer { ending, headers: Vec::new(), passed, body }
}

/// An error rule's own text.
fn overridden(ctx: &RequestContext, response: &OverrideResponse, status: u16) -> Bytes {
    let kind = response.kind.as_deref().unwrap_or_else(|| error::kind_of_status(status));
    let (message, code) = (response.message.as_str(), response.code.as_deref());
    error::body(ctx.format, &ErrorReply { status, kind, message, code, extra: &[] }).into()
}

/// The provider's error for the client with its status: unchanged if it is in the client's format,
/// else in the words of the client's own service where it recovers by them.
fn providers_words(ctx: &RequestContext, failure: &Failure, status: u16) -> (Bytes, u16) {
    let asked = ctx.record.as_ref().and_then(|record| record.asked.as_ref());
    let same_format = asked.is_some_and(|asked| asked.provider.kind.format() == ctx.format);
    let fallback = failure.public();
    let (kind, code, message) = match failure {
        Failure::ErrorReply(e)
            if same_format && e.status == status && error::has_shape(ctx.format, &e.body) =>
        {
            return (e.body.clone(), status);
        }
        Failure::ErrorReply(e) => {
            if let Some(cause) = words::cause(&e.error) {
                let words = cause.words(ctx.format, &e.error.message);
                return (
                    error::body(ctx.format, &words.reply(&words.extra())).into(),
                    words.status,
                );
            }
            (e.error.kind.as_deref(), e.error.code.as_deref(), e.error.message.as_str())
        }
        _ => (None, None, fallback.as_str()),
    };
    let kind = error::kind_for(ctx.format, kind, status);
    let body = error::body(ctx.format, &ErrorReply { status, kind, message, code, extra: &[] });
    (body.into(), status)
}
