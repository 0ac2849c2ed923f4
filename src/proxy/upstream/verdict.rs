//! What a failed attempt means: retry, failover, or the final answer.
//!
//! See docs/decisions/04-errors-request-retries.md.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pingora::{Error, ErrorSource};

use super::attempt::millis;
use super::failure::{self, Failure, GiveUp};
use super::incoming::{BreakCause, Incoming};
use crate::domain::clock::Timestamp;
use crate::domain::error_rule::OverrideResponse;
use crate::domain::provider::Provider;
use crate::domain::record::{Decision, DecisionStep, RequestOutcome};
use crate::formats::error::{self, ErrorReply};
use crate::otlp::AttemptEnd;
use crate::policy::classify::{self, AttemptFailure, Situation, Verdict};
use crate::policy::error_rules::ReadyRule;
use crate::policy::provider_state::FailureKind;
use crate::policy::retry_after;
use crate::policy::select::{SOON_MS, Waiting};
use crate::proxy::context::RequestContext;
use crate::proxy::record::Ending;
use crate::proxy::reply::answer::Answer;
use crate::proxy::reply::refusal::Refusal;
use crate::proxy::request::plan::Plan;
use crate::state::health::Setback;
use crate::state::health::attempts::Failed;

/// Judges a failed attempt. The returned error says whether to try again (`retry`). The context
/// keeps the attempt if the same provider is tried again, and drops it otherwise.
///
/// `error.retry` must be decided. On arrival it is set only if the request never reached the
/// provider.
#[must_use]
pub(in crate::proxy) fn failed(ctx: &mut RequestContext, mut error: Box<Error>) -> Box<Error> {
    let unprocessed = error.retry();
    error.set_retry(false);
    if *error.esource() == ErrorSource::Downstream {
        client_left(ctx);
        return error;
    }
    let Ok(attempt) = ctx.attempt() else { return error };
    if matches!(&attempt.incoming, Incoming::Reply(relay) if relay.is_released()) {
        let (problem, cause) = (attempt.incoming.problem(), attempt.incoming.cause());
        let why = problem.unwrap_or_else(|| failure::take(&mut error).describe());
        let why = failure::masked(&why, &attempt.provider.key);
        return broken_off(ctx, why, cause);
    }
    // Only once: on a connection that is not from the pool, no request is stale.
    let is_fresh = attempt.fresh;
    match failure::take(&mut error).without(&attempt.provider.key) {
        Failure::Unfit(refusal) => unfit(ctx, refusal, &mut error),
        failure if unprocessed && !is_fresh => stale_connection(ctx, &failure, &mut error),
        failure => return classified(ctx, failure, error),
    }
    error
}

/// The client closed the connection. What it has received is billed, and so is the input of a
/// request that the provider received completely.
fn client_left(ctx: &mut RequestContext) {
    ctx.note_partial_usage();
    if let Ok(forwarding) = ctx.forwarding() {
        forwarding.attempt = None;
    }
}

/// The reply has begun: no further attempt is possible.
fn broken_off(ctx: &mut RequestContext, why: String, cause: BreakCause) -> Box<Error> {
    ctx.note_partial_usage();
    let counts_network = ctx.live.breaker.count_network_errors
        || ctx.attempt().is_ok_and(|attempt| attempt.ticket.is_probe());
    let counts = match cause {
        BreakCause::Network => counts_network,
        BreakCause::Provider => true,
        BreakCause::Model => false,
    };
    let (now, gateway) = (ctx.now(), Arc::clone(&ctx.gateway));
    if let Ok(attempt) = ctx.attempt() {
        let (provider, status) = (Arc::clone(&attempt.provider), attempt.incoming.status());
        let message = format!("the reply broke off: {why}");
        if cause != BreakCause::Model && attempt.ticket.has_effect() {
            let failed = Failed { kind: FailureKind::Broken, status, message: &message };
            gateway.health.attempt_failed(&provider, now, failed);
            gateway.metrics.provider_health.failed(&provider.name, FailureKind::Broken.as_str());
        }
        attempt.ticket.failed(now, Setback { counts, cooldown_until: None });
        gateway.metrics.attempt(&provider.name, "broken_off");
    }
    GiveUp::BrokenOff { why }.into()
}

/// This provider's format cannot express the request.
fn unfit(ctx: &mut RequestContext, refusal: Refusal, error: &mut Error) {
    let message = refusal.reply(ctx.zone()).message;
    let Ok(forwarding) = ctx.forwarding() else { return };
    forwarding.tally.unfit = Some(refusal);
    let Some(attempt) = forwarding.attempt.take() else { return };
    ctx.decide(&attempt.provider, DecisionStep::FormatNotConvertible, &message);
    error.set_retry(true);
}

/// A pooled connection that the provider had closed, or an HTTP/2 stream that it did not begin. The
/// provider has done no work for the request, so this counts as no attempt, but it is recorded. The
/// other pooled connections may be closed too, so the next one is new.
fn stale_connection(ctx: &mut RequestContext, failure: &Failure, error: &mut Error) {
    let Ok(attempt) = ctx.attempt() else { return };
    attempt.fresh = true;
    let (provider, took) = (Arc::clone(&attempt.provider), attempt.began.elapsed());
    ctx.gateway.metrics.attempt(&provider.name, "stale_connection");
    let why = "a pooled connection that the provider had closed: sent again on a new one";
    decide_failure(ctx, &provider, failure, Judged { step: DecisionStep::Retried, why, took });
    error.set_retry(true);
}

/// Classifies a failure: by the error rules first, then by the built-in rules.
fn classified(ctx: &mut RequestContext, failure: Failure, mut error: Box<Error>) -> Box<Error> {
    let Ok(attempt) = ctx.attempt() else { return error };
    let is_late = failure.is_first_byte_timeout();
    let (cut_short, had_a_share) =
        (is_late && attempt.was_cut_short(), is_late && attempt.had_a_share());
    let (is_probe, has_effect) = (attempt.ticket.is_probe(), attempt.ticket.has_effect());
    attempt.tries += 1;
    // Other connections in the pool may be broken too.
    attempt.fresh |= failure.is_broken_connection();
    let (provider, tries, took) =
        (Arc::clone(&attempt.provider), attempt.tries, attempt.began.elapsed());
    let Judgement { verdict, rule } = classify(ctx, &failure, &provider, tries);
    ctx.gateway.metrics.attempt(&provider.name, verdict.class.as_str());
    let cooldown_until = match verdict.next {
        classify::Next::NextProvider { cooldown_until } => cooldown_until,
        _ => None,
    };
    let has_time = ctx.forwarding().is_ok_and(|forwarding| forwarding.has_time());
    let again = verdict.next == classify::Next::SameProviderAgain && has_time && !had_a_share;
    let now = ctx.now();
    let blames = verdict.blames_provider() && !cut_short && has_effect;
    if blames {
        let (kind, message) = (failure.kind(), failure.describe());
        ctx.gateway.metrics.provider_health.failed(&provider.name, kind.as_str());
        ctx.gateway.health.attempt_failed(
            &provider,
            now,
            Failed { kind, status: failure.status(), message: &message },
        );
    }
    if let Ok(attempt) = ctx.attempt() {
        // A probe decides, whether or not such a failure counts otherwise. An answer that does not
        // blame the provider clears what an earlier try did.
        attempt.is_at_fault = match verdict.blames_provider() {
            true => attempt.is_at_fault || blames && (verdict.counts || is_probe),
            false => false,
        };
        if !again {
            let counts = attempt.is_at_fault;
            attempt.ticket.failed(now, Setback { counts, cooldown_until });
        }
    }
    let max_cooldown_ms = ctx.live.retry.max_cooldown_ms;
    let step = match verdict.next {
        classify::Next::ClientError { .. } => DecisionStep::ClientError,
        _ if again => DecisionStep::Retried,
        _ => DecisionStep::AttemptFailed,
    };
    let why = rule.as_ref().map_or_else(|| verdict.reason.to_owned(), |rule| rule.label());
    decide_failure(ctx, &provider, &failure, Judged { step, why: &why, took });
    if let classify::Next::ClientError { status } = verdict.next {
        return GiveUp::ClientError(client_error(ctx, &failure, status, rule.as_deref())).into();
    }
    if let (false, Ok(forwarding)) = (again, ctx.forwarding()) {
        forwarding.attempt = None;
        forwarding.tally.add(failure, now, max_cooldown_ms);
    }
    error.set_retry(true);
    error
}

struct Judged<'a> {
    step: DecisionStep,
    /// The reason from the classification, or the error rule that decided.
    why: &'a str,
    took: Duration,
}

fn decide_failure(
    ctx: &mut RequestContext,
    provider: &Provider,
    failure: &Failure,
    judged: Judged<'_>,
) {
    let (status, kind, usage) = (failure.status(), failure.kind().as_str(), failure.usage());
    ctx.trace_failure(|at| AttemptEnd { at, status, kind, usage });
    let at_ms = ctx.elapsed_ms();
    let Some(record) = &mut ctx.record else { return };
    // Usage that a failed attempt reported is billed to no one: it is visible only in the chain.
    record.note_usage(None, false);
    record.decisions.push(Decision {
        provider_id: Some(provider.id),
        provider_name: provider.name.as_str().into(),
        step: judged.step,
        detail: Some(format!("{} ({})", failure.describe(), judged.why).into()),
        status: failure.status(),
        at_ms,
        took_ms: Some(millis(judged.took)),
        usage: failure.usage(),
    });
}

/// The meaning of a failed attempt, and the error rule that decided it, if one did.
struct Judgement {
    verdict: Verdict,
    rule: Option<Arc<ReadyRule>>,
}

/// `tries` counts the attempts at this provider, including this one.
fn classify(
    ctx: &mut RequestContext,
    failure: &Failure,
    provider: &Provider,
    tries: u32,
) -> Judgement {
    let situation = Situation {
        now: ctx.now(),
        attempts_here: tries,
        max_attempts_here: provider.max_retry_attempts,
        switch_on_upstream_auth: ctx.live.retry.switch_on_upstream_auth,
        max_cooldown_ms: ctx.live.retry.max_cooldown_ms,
        count_network_errors: ctx.live.breaker.count_network_errors,
    };
    let seen = match failure {
        Failure::Network(f) => AttemptFailure::Network(f.what),
        Failure::Unusable { what, .. } => AttemptFailure::Unusable(*what),
        Failure::Unfit(_) => AttemptFailure::Unusable(classify::UnusableReply::WrongFormat),
        Failure::ErrorReply(e) => {
            let reply = crate::policy::error_reply::ErrorReply {
                status: e.status,
                retry_after: e.retry_after.as_deref(),
                kind: e.error.kind.as_deref(),
                code: e.error.code.as_deref(),
                message: Some(&e.error.message),
            };
            let decided = ctx
                .forwarding()
                .ok()
                .and_then(|f| f.identified.snapshot.error_rules.decide(&reply));
            if let Some(rule) = decided {
                ctx.gateway.metrics.error_rule(rule.rule.category.as_str());
                return Judgement { verdict: classify::by_rule(&rule, e.status), rule: Some(rule) };
            }
            AttemptFailure::Reply(reply)
        }
    };
    Judgement { verdict: classify::classify(&seen, &situation), rule: None }
}

/// The answer to a client's own error: an error rule's text if there is one, else the provider's.
fn client_error(
    ctx: &RequestContext,
    failure: &Failure,
    status: u16,
    rule: Option<&ReadyRule>,
) -> Answer {
    // The record has what the client is told; the decision chain what the provider answered.
    let (body, content_type, told) = match rule.and_then(|rule| rule.response.as_ref()) {
        Some(response) => (overridden(ctx, response, status), None, response.message.clone()),
        None => {
            let (body, content_type) = providers_words(ctx, failure, status);
            (body, content_type, failure.describe())
        }
    };
    let headers = content_type.map(|value| ("content-type", value)).into_iter().collect();
    let ending = Ending { outcome: RequestOutcome::ClientError, status, error: Some(told) };
    Answer { ending, headers, body }
}

/// An error rule's own text.
fn overridden(ctx: &RequestContext, response: &OverrideResponse, status: u16) -> Bytes {
    let kind = response.kind.as_deref().unwrap_or_else(|| error::kind_of_status(status));
    let (message, code) = (response.message.as_str(), response.code.as_deref());
    error::body(ctx.format, &ErrorReply { status, kind, message, code, extra: &[] }).into()
}

/// The provider's error for the client, unchanged if it is in the client's format.
fn providers_words(
    ctx: &RequestContext,
    failure: &Failure,
    status: u16,
) -> (Bytes, Option<String>) {
    let asked = ctx.record.as_ref().and_then(|record| record.asked.as_ref());
    let same_format = asked.is_some_and(|asked| asked.provider.kind.format() == ctx.format);
    let fallback = failure.public();
    let (kind, code, message) = match failure {
        Failure::ErrorReply(e)
            if same_format && e.status == status && error::has_shape(ctx.format, &e.body) =>
        {
            return (e.body.clone(), e.content_type.clone());
        }
        Failure::ErrorReply(e) => {
            (e.error.kind.as_deref(), e.error.code.as_deref(), e.error.message.as_str())
        }
        _ => (None, None, fallback.as_str()),
    };
    let kind = error::kind_for(ctx.format, kind, status);
    (error::body(ctx.format, &ErrorReply { status, kind, message, code, extra: &[] }).into(), None)
}

/// The combined result of all attempts.
#[derive(Default)]
pub struct Tally {
    last: Option<Failure>,
    rate_limited: u32,
    failed: u32,
    /// When the first of the rate-limited providers is available again.
    soonest: Option<Timestamp>,
    /// Providers whose circuit or limits did not admit the request.
    skipped: u32,
    /// Providers that were not tried because the time for attempts was over.
    pub left_out: usize,
    /// The last provider's format could not express the request.
    pub unfit: Option<Refusal>,
    /// Other providers of the client's format could serve the request, but not now.
    waiting: Option<Waiting>,
    /// Another one of the client's format lacks its credential.
    lacks_credential: bool,
}

impl Tally {
    /// With the providers that could serve the request, but are not among those to ask.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        let (waiting, lacks_credential) = (plan.waiting, plan.lacks_credential);
        Self { waiting, lacks_credential, ..Self::default() }
    }

    /// Counts a provider whose circuit or limits do not admit the request now, but may at any time.
    /// `is_own`: it speaks the client's format.
    pub fn skip(&mut self, is_own: bool, now: Timestamp) {
        self.skipped += 1;
        if is_own {
            let before = self.waiting.and_then(|waiting| waiting.soonest);
            let soonest = [before, Some(now.plus_ms(SOON_MS))].into_iter().flatten().min();
            self.waiting = Some(Waiting { soonest });
        }
    }

    /// Counts a failed attempt, and keeps it as the last one. `now` is the base of its
    /// `Retry-After`, which is `max_ms` at most.
    pub fn add(&mut self, failure: Failure, now: Timestamp, max_ms: u64) {
        self.failed += 1;
        if let Failure::ErrorReply(reply) = &failure {
            let until = reply
                .retry_after
                .as_deref()
                .and_then(|h| retry_after::cooldown_until(h, now, max_ms));
            self.soonest = [self.soonest, until].into_iter().flatten().min();
        }
        self.rate_limited += u32::from(failure.status() == Some(429));
        self.last = Some(failure);
    }

    /// The answer if no provider is left: 429 if all were rate limited, 503 if circuits or limits
    /// prevented an attempt, else 502 with the last provider's message.
    #[must_use]
    pub fn refusal(self, now: Timestamp) -> Refusal {
        let all_limited = self.failed > 0 && self.rate_limited == self.failed && self.left_out == 0;
        let after = |until: Timestamp| until.since(now).max(0).unsigned_abs();
        let waiting = self.waiting.and_then(|waiting| waiting.soonest);
        let retry_after_ms = self.soonest.map(after);
        match (self.last, self.unfit) {
            (Some(_), _) if all_limited && self.skipped == 0 => {
                Refusal::UpstreamRateLimited { retry_after_ms }
            }
            (Some(_), _) if all_limited => {
                let soonest = self.soonest.into_iter().chain(waiting).min();
                Refusal::Unavailable { retry_after_ms: soonest.map(after) }
            }
            (Some(failure), _) if failure.is_timeout() => Refusal::UpstreamTimedOut,
            (Some(failure), _) => Refusal::UpstreamFailed { message: failure.public() },
            // What these cannot express, another provider may: one that is unavailable now, or one
            // whose credential must be entered again.
            (None, Some(_)) if self.waiting.is_none() && self.lacks_credential => {
                Refusal::NoProviderCredential
            }
            (None, Some(unfit)) if self.waiting.is_none() => unfit,
            (None, _) => Refusal::Unavailable { retry_after_ms: waiting.map(after) },
        }
    }
}
