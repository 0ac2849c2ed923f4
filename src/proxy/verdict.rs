//! What a failed attempt means: the inputs of the classification, the answer when it was the client's own error, and the
//! answer when every provider failed.

use std::sync::Arc;

use bytes::Bytes;
use pingora::protocols::http::ServerSession as Session;

use super::answer;
use super::exchange::{End, Exchange};
use super::failure::Failure;
use super::refusal::Refusal;
use super::settle;
use crate::config::Live;
use crate::domain::clock::Timestamp;
use crate::domain::error_rule::OverrideResponse;
use crate::domain::provider::Provider;
use crate::domain::record::RequestOutcome;
use crate::formats::error::{self, ErrorReply};
use crate::policy::classify::{self, AttemptFailure, Situation, Verdict};
use crate::policy::error_rules::ReadyRule;
use crate::policy::retry_after;

/// What a failed attempt means, and the error rule that said so, if one did.
pub struct Judgement {
    pub verdict: Verdict,
    pub rule: Option<Arc<ReadyRule>>,
}

/// Classifies what was seen on the wire: the error rules first, then the gateway's own knowledge. `attempts_here` counts
/// the attempts at this provider, this one included.
#[must_use]
pub fn classify(x: &Exchange, failure: &Failure, live: &Live, provider: &Provider, attempts_here: u32) -> Judgement {
    let situation = Situation {
        now: x.now(),
        attempts_here,
        max_attempts_here: provider.max_retry_attempts,
        switch_on_upstream_auth: live.retry.switch_on_upstream_auth,
        max_rest_ms: live.retry.max_rest_ms,
        count_network_errors: live.breaker.count_network_errors,
    };
    let seen = match failure {
        Failure::Network(f) => AttemptFailure::Network(f.what),
        Failure::Unusable { what, .. } => AttemptFailure::Unusable(*what),
        Failure::ErrorReply(e) => {
            let reply = classify::ErrorReply {
                status: e.status,
                retry_after: e.retry_after.as_deref(),
                kind: e.error.kind.as_deref(),
                code: e.error.code.as_deref(),
                message: Some(&e.error.message),
            };
            if let Some(rule) = x.snapshot.as_ref().and_then(|s| s.error_rules.decide(&reply)) {
                x.gateway.metrics.error_rule(rule.rule.category.as_str());
                return Judgement { verdict: classify::by_rule(&rule, e.status), rule: Some(rule) };
            }
            AttemptFailure::Reply(reply)
        }
    };
    Judgement { verdict: classify::classify(&seen, &situation), rule: None }
}

/// Answers with what is to be said about the client's error: the rule's words where it has any, else the provider's, as they
/// came where the formats agree.
///
/// # Errors
/// Pingora's, when the client cannot be written to.
pub async fn pass_on(
    session: &mut Session,
    x: &mut Exchange,
    failure: &Failure,
    (status, rule): (u16, Option<&ReadyRule>),
) -> pingora::Result<()> {
    let (body, content_type) = match rule.and_then(|rule| rule.response.as_ref()) {
        Some(response) => (overridden(x, response, status), None),
        None => client_error(x, failure, status),
    };
    let end = End { outcome: RequestOutcome::ClientError, status, error: Some(failure.describe()) };
    settle::settle(x, &end);
    let headers = content_type.iter().map(|value| ("content-type", value.as_str()));
    answer::whole(session, x, status, headers, body).await
}

/// An error rule's own words.
fn overridden(x: &Exchange, response: &OverrideResponse, status: u16) -> Bytes {
    let kind = response.kind.as_deref().unwrap_or_else(|| error::kind_of_status(status));
    let (message, code) = (response.message.as_str(), response.code.as_deref());
    error::body(x.format, &ErrorReply { status, kind, message, code, extra: &[] }).into()
}

fn client_error(x: &Exchange, failure: &Failure, status: u16) -> (Bytes, Option<String>) {
    let same_format = x.asked.as_ref().is_some_and(|a| a.provider.kind.format() == x.format);
    let fallback = failure.public();
    let (kind, code, message) = match failure {
        Failure::ErrorReply(e) if same_format && e.status == status && !e.body.is_empty() => {
            return (e.body.clone(), e.content_type.clone());
        }
        Failure::ErrorReply(e) => (e.error.kind.as_deref(), e.error.code.as_deref(), e.error.message.as_str()),
        _ => (None, None, fallback.as_str()),
    };
    let kind = kind.unwrap_or_else(|| error::kind_of_status(status));
    (error::body(x.format, &ErrorReply { status, kind, message, code, extra: &[] }).into(), None)
}

/// What all attempts together came to.
#[derive(Default)]
pub struct Tally {
    last: Option<Failure>,
    rate_limited: u32,
    failed: u32,
    /// When the first of those that are rate limited can be asked again.
    soonest: Option<Timestamp>,
    /// Providers that a circuit or a limit let nobody through to.
    pub skipped: u32,
    /// Providers that nobody asked, because the time for attempts was over.
    pub left_out: usize,
    /// The last provider's format could not express the request.
    pub unfit: Option<Refusal>,
}

impl Tally {
    pub fn add(&mut self, failure: Failure, now: Timestamp) {
        self.failed += 1;
        if let Failure::ErrorReply(reply) = &failure {
            let until = reply.retry_after.as_deref().and_then(|h| retry_after::rest_until(h, now, i64::MAX as u64));
            self.soonest = [self.soonest, until].into_iter().flatten().min();
        }
        self.rate_limited += u32::from(failure.status() == Some(429));
        self.last = Some(failure);
    }

    /// The answer when no provider is left: 429 when all were rate limited, 503 when circuits or limits were in the way, else
    /// 502 with what the last one said.
    #[must_use]
    pub fn refusal(self, now: Timestamp) -> Refusal {
        let all_limited = self.failed > 0 && self.rate_limited == self.failed && self.left_out == 0;
        let retry_after_ms = self.soonest.map(|until| until.since(now).max(0).unsigned_abs());
        match (self.last, self.unfit) {
            (Some(_), _) if all_limited && self.skipped == 0 => Refusal::UpstreamRateLimited { retry_after_ms },
            (Some(_), _) if all_limited => Refusal::Unavailable { retry_after_ms },
            (Some(failure), _) if failure.is_timeout() => Refusal::UpstreamTimedOut,
            (Some(failure), _) => Refusal::UpstreamFailed { message: failure.public() },
            (None, Some(unfit)) => unfit,
            (None, None) => Refusal::Unavailable { retry_after_ms: None },
        }
    }
}
