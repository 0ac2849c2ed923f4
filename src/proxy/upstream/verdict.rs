//! What a failed attempt means: retry, failover, or the final answer.
//!
//! See docs/decisions/04-errors-request-retries.md.

use std::sync::Arc;

use pingora::{Error, ErrorSource};

use super::attempt::Attempt;
use super::credential::{self, OtherCredential};
use super::failure::{self, Failure};
use super::final_answer;
use super::forwarding::Forwarding;
use super::incoming::{BreakCause, Incoming};
use crate::domain::provider::Provider;
use crate::domain::record::{Decision, DecisionStep, RequestOutcome};
use crate::otlp::AttemptEnd;
use crate::policy::breaker::{Suspect, USERS_NEEDED};
use crate::policy::classify::{self, AttemptFailure, Counts, Situation, Verdict};
use crate::policy::client_error;
use crate::policy::error_rules::ReadyRule;
use crate::policy::failure::{FailureKind, UnusableReply};
use crate::proxy::context::{RequestContext, millis};
use crate::proxy::reply::give_up::GiveUp;
use crate::proxy::reply::refusal::Refusal;
use crate::state::health::Setback;
use crate::state::health::attempts::Failed;

/// Judges a failed attempt. The returned error says whether to try again (`retry`). The attempt
/// comes back if the same provider is tried again, or if its reply has begun.
///
/// `error.retry` must be decided. On arrival it is set only if the request never reached the
/// provider.
#[must_use]
pub(in crate::proxy) fn failed(
    request: &mut RequestContext,
    forwarding: &mut Forwarding,
    mut attempt: Box<Attempt>,
    mut error: Box<Error>,
) -> (Option<Box<Attempt>>, Box<Error>) {
    let unprocessed = error.retry();
    error.set_retry(false);
    if *error.esource() == ErrorSource::Downstream {
        // What the client has received is billed, and so is the input of a request that the
        // provider received completely.
        attempt.note_partial_usage(request);
        // The batch that it has made stays open.
        return (request.makes_batch().then_some(attempt), error);
    }
    let failure = failure::take(&mut error);
    attempt.may_have_made &= failure.reply().is_none();
    if attempt.incoming.released().is_some() {
        let (problem, mut cause) = (attempt.incoming.problem(), attempt.incoming.cause());
        if problem.is_none() && failure.may_be_of_content() {
            cause = BreakCause::Slow;
        }
        let why = problem.unwrap_or_else(|| failure.describe());
        let why = attempt.secrets().iter().fold(why, |why, one| failure::masked(&why, one));
        let error = broken_off(request, forwarding, &mut attempt, why, cause);
        return (Some(attempt), error);
    }
    match attempt.secrets().iter().fold(failure, Failure::without) {
        Failure::Unfit(refusal) => {
            // This provider's format cannot express the request.
            let message = refusal.reply(request.zone()).message;
            request.decide(&attempt.provider, DecisionStep::FormatNotConvertible, &message);
            forwarding.tally.unfit = Some(refusal);
            error.set_retry(true);
            (None, error)
        }
        // Only once: on a connection that is not from the pool, no request is stale.
        failure if unprocessed && !attempt.fresh => {
            stale_connection(request, &mut attempt, &failure);
            error.set_retry(true);
            (Some(attempt), error)
        }
        failure
            if !attempt.without_reasoning
                && forwarding.has_time()
                && failure.reply().is_some_and(|reply| client_error::refuses_reasoning(&reply)) =>
        {
            without_reasoning(request, &mut attempt, &failure);
            error.set_retry(true);
            (Some(attempt), error)
        }
        failure => classified(request, forwarding, attempt, failure, error),
    }
}

/// The reply has begun: no further attempt is possible.
fn broken_off(
    request: &mut RequestContext,
    forwarding: &Forwarding,
    attempt: &mut Attempt,
    why: String,
    cause: BreakCause,
) -> Box<Error> {
    attempt.note_partial_usage(request);
    let counts_network = request.live.breaker.count_network_errors || attempt.ticket.is_probe();
    let by = suspect(request, forwarding);
    let counts = match cause {
        BreakCause::Network | BreakCause::Slow if !counts_network => Counts::No,
        BreakCause::Model => Counts::No,
        BreakCause::Network | BreakCause::Provider => Counts::Yes,
        BreakCause::Slow | BreakCause::Content => Counts::OfSeveralUsers,
    };
    let (now, gateway, provider) = (request.now(), &request.gateway, &attempt.provider);
    if cause != BreakCause::Model && attempt.ticket.has_effect() {
        let message = format!("the reply broke off: {why}");
        let (kind, status) = (FailureKind::Broken, attempt.incoming.status());
        gateway.node.health.attempt_failed(
            provider,
            now,
            Failed { kind, status, message: &message },
        );
        gateway.node.metrics.provider_health.failed(&provider.name, kind.as_str());
    }
    gateway.node.metrics.attempt(&provider.name, "broken_off");
    attempt.ticket.failed(now, Setback { counts, by, cooldown_until: None });
    GiveUp::BrokenOff { why }.into()
}

/// A pooled connection that the provider had closed, or an HTTP/2 stream that it did not begin. The
/// provider has done no work for the request, so this counts as no attempt, but it is recorded. The
/// other pooled connections may be closed too, so the next one is new.
fn stale_connection(request: &mut RequestContext, attempt: &mut Attempt, failure: &Failure) {
    attempt.fresh = true;
    request.gateway.node.metrics.attempt(&attempt.provider.name, "stale_connection");
    let why = "a pooled connection that the provider had closed: sent again on a new one";
    decide_failure(request, attempt, failure, DecisionStep::Retried, why);
}

/// The provider refuses the reasoning of earlier turns, and would take the request without it. This
/// counts as no attempt, and against nobody.
fn without_reasoning(request: &mut RequestContext, attempt: &mut Attempt, failure: &Failure) {
    attempt.without_reasoning = true;
    request.gateway.node.metrics.attempt(&attempt.provider.name, "reasoning_refused");
    let why = "the reasoning of earlier turns is refused: sent again without it";
    decide_failure(request, attempt, failure, DecisionStep::Retried, why);
}

/// Classifies a failure: by the error rules first, then by the built-in rules.
fn classified(
    request: &mut RequestContext,
    forwarding: &mut Forwarding,
    mut attempt: Box<Attempt>,
    failure: Failure,
    mut error: Box<Error>,
) -> (Option<Box<Attempt>>, Box<Error>) {
    if attempt.own.is_some()
        && failure.reply().is_some_and(|reply| client_error::is_of_account(&reply))
    {
        return of_client(request, forwarding, attempt, &failure);
    }
    let other = credential::failed(request, forwarding, &attempt, &failure);
    if let Some(OtherCredential { next: Some(next), why }) = other {
        request.gateway.node.metrics.attempt(&attempt.provider.name, "next_credential");
        decide_failure(request, &attempt, &failure, DecisionStep::Retried, &why);
        (attempt.provider, attempt.token) = (next, None);
        error.set_retry(true);
        return (Some(attempt), error);
    }
    let is_late = failure.is_first_byte_timeout();
    attempt.tries += 1;
    // Other connections in the pool may be broken too.
    attempt.fresh |= failure.is_broken_connection();
    let Judgement { mut verdict, rule } = classify(request, forwarding, &attempt, &failure);
    if other.is_some() {
        // The cooldowns are those of the credentials: the provider itself has done nothing wrong.
        verdict = Verdict::of_credential(verdict.reason);
    }
    request.gateway.node.metrics.attempt(&attempt.provider.name, verdict.class.as_str());
    let may_repeat = may_repeat(forwarding, &attempt, is_late);
    let is_last = is_last(request, forwarding, &attempt);
    let again = verdict.next == classify::Next::SameProviderAgain && may_repeat && !is_last;
    let now = request.now();
    let by = if other.is_some() {
        attempt.counts = Counts::No;
        suspect(request, forwarding)
    } else {
        blame(request, forwarding, &mut attempt, &failure, &verdict)
    };
    if !again {
        let cooldown_until = match verdict.next {
            classify::Next::NextProvider { cooldown_until } => cooldown_until,
            _ => None,
        };
        let setback = Setback { counts: attempt.counts, by, cooldown_until };
        attempt.ticket.failed(now, setback);
    }
    let why = match (&rule, other) {
        (Some(rule), _) => rule.label(),
        (None, Some(other)) => format!("{}; {}", verdict.reason, other.why),
        (None, None) => verdict.reason.to_owned(),
    };
    decide_failure(request, &attempt, &failure, step(&verdict, again), &why);
    if let classify::Next::ClientError { status } = verdict.next {
        let answer = final_answer::of_client_error(request, &failure, status, rule.as_deref());
        return (Some(attempt), GiveUp::ClientError(answer).into());
    }
    if is_last {
        return (Some(attempt), of_made(&failure).into());
    }
    error.set_retry(true);
    if again {
        return (Some(attempt), error);
    }
    forwarding.tally.add(failure, now, request.live.retry.max_cooldown_ms);
    forwarding.tally.refused_requests += u32::from(verdict.refuses_request());
    (None, error)
}

/// Whether the attempt may be repeated at its provider: there is time left, and no other attempt
/// runs beside it.
fn may_repeat(forwarding: &mut Forwarding, attempt: &Attempt, is_late: bool) -> bool {
    if forwarding.is_hedged {
        return false;
    }
    forwarding.was_alive(attempt.alive());
    forwarding.has_time() && !(is_late && attempt.had_a_share())
}

/// What the provider says of the client's own account goes to the client. It says nothing about the
/// provider, and no other account stands in for it.
fn of_client(
    request: &mut RequestContext,
    forwarding: &Forwarding,
    mut attempt: Box<Attempt>,
    failure: &Failure,
) -> (Option<Box<Attempt>>, Box<Error>) {
    let by = suspect(request, forwarding);
    let setback = Setback { counts: Counts::No, by, cooldown_until: None };
    attempt.ticket.failed(request.now(), setback);
    request.gateway.node.metrics.attempt(&attempt.provider.name, "clients_account");
    let why = "about the client's own account";
    decide_failure(request, &attempt, failure, DecisionStep::ClientError, why);
    let status = failure.status().filter(|status| *status >= 400).unwrap_or(429);
    let answer = final_answer::of_client_error(request, failure, status, None);
    (Some(attempt), GiveUp::ClientError(answer).into())
}

/// Whether no other attempt may follow: the provider may have made a batch or taken a piece of an
/// upload, or makes a reply in the background, whatever becomes of its stream.
fn is_last(request: &RequestContext, forwarding: &Forwarding, attempt: &Attempt) -> bool {
    let makes_one = request.makes_batch() || forwarding.route.operation.is_upload();
    if makes_one && attempt.may_have_made {
        return true;
    }
    forwarding.inbound.peek.is_in_background(request.format)
        && matches!(&attempt.incoming, Incoming::Reply(reply) if reply.id_of_unfinished().is_some())
}

/// The answer if a batch, a reply in the background or a piece of an upload may have been made: a
/// second one would cost as much again, or be refused.
fn of_made(failure: &Failure) -> GiveUp {
    let refusal = Refusal::UpstreamFailed { message: failure.public() };
    GiveUp::Refused { refusal, outcome: RequestOutcome::UpstreamFailed }
}

const fn step(verdict: &Verdict, again: bool) -> DecisionStep {
    match verdict.next {
        classify::Next::ClientError { .. } => DecisionStep::ClientError,
        _ if again => DecisionStep::Retried,
        _ => DecisionStep::AttemptFailed,
    }
}

/// Notes whether the provider's circuit counts a failure, and whose request it was.
fn blame(
    request: &RequestContext,
    forwarding: &Forwarding,
    attempt: &mut Attempt,
    failure: &Failure,
    verdict: &Verdict,
) -> Suspect {
    let cut_short = failure.is_first_byte_timeout() && attempt.was_cut_short();
    let blames = verdict.blames_provider() && !cut_short && attempt.ticket.has_effect();
    let by = suspect(request, forwarding);
    if blames {
        note_failure(request, &attempt.provider, failure, verdict, by);
    }
    // A probe decides, whether or not such a failure counts otherwise. An answer that does not
    // blame the provider clears what an earlier try did.
    attempt.counts = match (verdict.blames_provider(), blames) {
        (false, _) => Counts::No,
        (true, false) => attempt.counts,
        (true, true) if attempt.ticket.is_probe() && verdict.counts == Counts::No => Counts::Yes,
        (true, true) => attempt.counts.max(verdict.counts),
    };
    by
}

/// Notes a failure in the provider's health. A refusal of the request is not the provider's
/// failure, as long as it may be one client's, unless it is about the provider's account.
fn note_failure(
    request: &RequestContext,
    provider: &Provider,
    failure: &Failure,
    verdict: &Verdict,
    by: Suspect,
) {
    let (now, gateway) = (request.now(), &request.gateway);
    let mut message = failure.describe();
    if verdict.refuses_request() {
        let users = gateway.node.health.suspects(provider, by, now);
        if users < by.needed && !client_error::is_operators(&message) {
            return;
        }
        if users >= by.needed && users > 1 {
            message = format!("refuses requests of {users} users: {message}");
        }
    }
    let kind = failure.kind();
    gateway.node.metrics.provider_health.failed(&provider.name, kind.as_str());
    let failed = Failed { kind, status: failure.status(), message: &message };
    gateway.node.health.attempt_failed(provider, now, failed);
}

/// Whose request it is, for failures that one client alone can cause.
fn suspect(request: &RequestContext, forwarding: &Forwarding) -> Suspect {
    let identified = &forwarding.identified;
    Suspect {
        user: identified.caller.user_id().map_or(0, |user| user.0),
        needed: identified.snapshot.active_users(request.now(), USERS_NEEDED).max(1),
    }
}

/// Adds a failure to the decision chain. `why`: the reason from the classification, or the error
/// rule that decided.
fn decide_failure(
    request: &mut RequestContext,
    attempt: &Attempt,
    failure: &Failure,
    step: DecisionStep,
    why: &str,
) {
    let (status, kind, usage) = (failure.status(), failure.kind().as_str(), failure.usage());
    request.trace_failure(|at| AttemptEnd { at, status, kind, usage });
    let at_ms = request.elapsed_ms();
    let Some(record) = &mut request.record else { return };
    // Usage that a failed attempt reported is billed to no one: it is visible only in the chain.
    record.note_bill(None);
    let key = attempt.provider.credential.as_ref();
    let key = key.map(|one| format!("key “{}”: ", one.name)).unwrap_or_default();
    record.decisions.push(Decision {
        provider_id: Some(attempt.provider.id),
        provider_name: attempt.provider.name.as_str().into(),
        step,
        detail: Some(format!("{} ({key}{why})", failure.describe()).into()),
        status,
        at_ms,
        took_ms: Some(millis(attempt.began.elapsed())),
        usage,
    });
}

/// The meaning of a failed attempt, and the error rule that decided it, if one did.
struct Judgement {
    verdict: Verdict,
    rule: Option<Arc<ReadyRule>>,
}

fn classify(
    request: &RequestContext,
    forwarding: &Forwarding,
    attempt: &Attempt,
    failure: &Failure,
) -> Judgement {
    let retry = &request.live.retry;
    let situation = Situation {
        now: request.now(),
        attempts_here: attempt.tries,
        max_attempts_here: attempt.provider.max_retry_attempts,
        switch_on_upstream_auth: retry.switch_on_upstream_auth,
        max_cooldown_ms: retry.max_cooldown_ms,
        count_network_errors: request.live.breaker.count_network_errors,
    };
    let seen = match failure {
        Failure::Network(f) => AttemptFailure::Network(f.what),
        Failure::Unusable { what, .. } => AttemptFailure::Unusable(*what),
        Failure::Unfit(_) => AttemptFailure::Unusable(UnusableReply::WrongFormat),
        Failure::ErrorReply(e) => {
            let reply = e.reply();
            if let Some(rule) = forwarding.identified.snapshot.error_rules.decide(&reply) {
                request.gateway.node.metrics.error_rule(rule.rule.category.as_str());
                return Judgement { verdict: classify::by_rule(&rule, e.status), rule: Some(rule) };
            }
            AttemptFailure::Reply(reply)
        }
    };
    Judgement { verdict: classify::classify(&seen, &situation), rule: None }
}
