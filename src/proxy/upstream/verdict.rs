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
use crate::domain::error_rule::OverrideResponse;
use crate::domain::provider::Provider;
use crate::domain::record::{Decision, DecisionStep, RequestOutcome};
use crate::formats::error::{self, ErrorReply};
use crate::otlp::AttemptEnd;
use crate::policy::breaker::{Suspect, USERS_NEEDED};
use crate::policy::classify::{self, AttemptFailure, Counts, Situation, Verdict};
use crate::policy::client_error;
use crate::policy::error_rules::ReadyRule;
use crate::policy::failure::{FailureKind, UnusableReply};
use crate::proxy::context::RequestContext;
use crate::proxy::record::Ending;
use crate::proxy::reply::answer::Answer;
use crate::proxy::reply::refusal::Refusal;
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
        let (problem, mut cause) = (attempt.incoming.problem(), attempt.incoming.cause());
        let failure = failure::take(&mut error);
        if problem.is_none() && failure.may_be_of_content() {
            cause = BreakCause::Slow;
        }
        let why = problem.unwrap_or_else(|| failure.describe());
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
    let by = suspect(ctx);
    let counts = match cause {
        BreakCause::Network | BreakCause::Slow if !counts_network => Counts::No,
        BreakCause::Model => Counts::No,
        BreakCause::Network | BreakCause::Provider => Counts::Yes,
        BreakCause::Slow | BreakCause::Content => Counts::OfSeveralUsers,
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
        attempt.ticket.failed(now, Setback { counts, by, cooldown_until: None });
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
    let alive = attempt.alive();
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
    let has_time = ctx.forwarding().is_ok_and(|forwarding| {
        forwarding.was_alive(alive);
        forwarding.has_time()
    });
    let again = verdict.next == classify::Next::SameProviderAgain && has_time && !had_a_share;
    let now = ctx.now();
    let blames = verdict.blames_provider() && !cut_short && has_effect;
    let by = match blames {
        true => note_failure(ctx, &provider, &failure, &verdict),
        false => suspect(ctx),
    };
    if let Ok(attempt) = ctx.attempt() {
        // A probe decides, whether or not such a failure counts otherwise. An answer that does not
        // blame the provider clears what an earlier try did.
        attempt.counts = match (verdict.blames_provider(), blames) {
            (false, _) => Counts::No,
            (true, false) => attempt.counts,
            (true, true) if is_probe && verdict.counts == Counts::No => Counts::Yes,
            (true, true) => attempt.counts.max(verdict.counts),
        };
        if !again {
            let counts = attempt.counts;
            attempt.ticket.failed(now, Setback { counts, by, cooldown_until });
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
        return GiveUp::ClientError(clients_answer(ctx, &failure, status, rule.as_deref())).into();
    }
    if let (false, Ok(forwarding)) = (again, ctx.forwarding()) {
        forwarding.attempt = None;
        forwarding.tally.add(failure, now, max_cooldown_ms);
        forwarding.tally.refused_requests += u32::from(verdict.refuses_request());
    }
    error.set_retry(true);
    error
}

/// Notes a failure in the provider's health. A refusal of the request is not the provider's
/// failure, as long as it may be one client's, unless it is about the provider's account. Returns
/// whose request it was.
fn note_failure(
    ctx: &RequestContext,
    provider: &Provider,
    failure: &Failure,
    verdict: &Verdict,
) -> Suspect {
    let (by, now, gateway) = (suspect(ctx), ctx.now(), &ctx.gateway);
    let mut message = failure.describe();
    if verdict.refuses_request() {
        let users = gateway.health.suspects(provider, by, now);
        if users < by.needed && !client_error::is_operators(&message) {
            return by;
        }
        if users >= by.needed && users > 1 {
            message = format!("refuses requests of {users} users: {message}");
        }
    }
    let kind = failure.kind();
    gateway.metrics.provider_health.failed(&provider.name, kind.as_str());
    let failed = Failed { kind, status: failure.status(), message: &message };
    gateway.health.attempt_failed(provider, now, failed);
    by
}

/// Whose request it is, for failures that one client alone can cause.
fn suspect(ctx: &RequestContext) -> Suspect {
    let Ok(forwarding) = ctx.forwarding_ref() else { return Suspect { user: 0, needed: 1 } };
    let identified = &forwarding.identified;
    Suspect {
        user: identified.caller.user_id().map_or(0, |user| user.0),
        needed: identified.snapshot.active_users(ctx.now(), USERS_NEEDED).max(1),
    }
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
    record.note_bill(None);
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
        Failure::Unfit(_) => AttemptFailure::Unusable(UnusableReply::WrongFormat),
        Failure::ErrorReply(e) => {
            let reply = crate::policy::error_reply::ErrorReply {
                status: e.status,
                retry_after: e.retry_after.as_deref(),
                kind: e.error.kind.as_deref(),
                code: e.error.code.as_deref(),
                message: Some(&e.error.message),
                body: &e.body,
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
pub(super) fn clients_answer(
    ctx: &RequestContext,
    failure: &Failure,
    status: u16,
    rule: Option<&ReadyRule>,
) -> Answer {
    // The record has what the client is told; the decision chain what the provider answered.
    let (body, told) = match rule.and_then(|rule| rule.response.as_ref()) {
        Some(response) => (overridden(ctx, response, status), response.message.clone()),
        None => (providers_words(ctx, failure, status), failure.describe()),
    };
    let ending = Ending { outcome: RequestOutcome::ClientError, status, error: Some(told) };
    Answer { ending, headers: Vec::new(), body }
}

/// An error rule's own text.
fn overridden(ctx: &RequestContext, response: &OverrideResponse, status: u16) -> Bytes {
    let kind = response.kind.as_deref().unwrap_or_else(|| error::kind_of_status(status));
    let (message, code) = (response.message.as_str(), response.code.as_deref());
    error::body(ctx.format, &ErrorReply { status, kind, message, code, extra: &[] }).into()
}

/// The provider's error for the client, unchanged if it is in the client's format.
fn providers_words(ctx: &RequestContext, failure: &Failure, status: u16) -> Bytes {
    let asked = ctx.record.as_ref().and_then(|record| record.asked.as_ref());
    let same_format = asked.is_some_and(|asked| asked.provider.kind.format() == ctx.format);
    let fallback = failure.public();
    let (kind, code, message) = match failure {
        Failure::ErrorReply(e)
            if same_format && e.status == status && error::has_shape(ctx.format, &e.body) =>
        {
            return e.body.clone();
        }
        Failure::ErrorReply(e) => {
            (e.error.kind.as_deref(), e.error.code.as_deref(), e.error.message.as_str())
        }
        _ => (None, None, fallback.as_str()),
    };
    let kind = error::kind_for(ctx.format, kind, status);
    error::body(ctx.format, &ErrorReply { status, kind, message, code, extra: &[] }).into()
}
