//! The attempt loop: the plan's providers in order, until one answers, the client's own error is found, time is up, or
//! none is left.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pingora::protocols::http::ServerSession as Session;

use super::answer;
use super::attempt::{self, Step, Target};
use super::exchange::{Asked, End, Exchange};
use super::failure::Failure;
use super::refusal::{Meaning, Refusal};
use super::settle;
use super::verdict::{self, Judgement, Tally};
use crate::config::Live;
use crate::domain::provider::Provider;
use crate::domain::record::{Decision, DecisionStep, RequestOutcome};
use crate::policy::breaker::Ticket;
use crate::policy::classify;
use crate::state::health::Setback;

/// What the loop does after an attempt.
enum Next {
    /// The client has an answer.
    Over,
    SameAgain,
    Switch,
}

/// Runs the plan to an answer.
///
/// # Errors
/// Pingora's, when the client is gone or cannot be written to.
pub async fn run(session: &mut Session, x: &mut Exchange) -> pingora::Result<()> {
    let live = x.gateway.live.load_full();
    let deadline = deadline(x, &live);
    let mut tally = Tally::default();
    for place in 0..x.order.len() {
        let Some(provider) = provider(x, place) else { break };
        if deadline.is_some_and(|at| Instant::now() >= at) && x.attempts > 0 {
            tally.left_out = x.order.len() - place;
            break;
        }
        let Some(ticket) = x.gateway.health.enter(&provider, x.now()) else {
            decide(x, &provider, DecisionStep::CircuitOpen, "its circuit lets nobody through now");
            tally.skipped += 1;
            continue;
        };
        let now = x.now();
        let entered = match &mut x.permit {
            Some(permit) => permit.enter(&provider, now).await,
            None => true,
        };
        if !entered {
            x.gateway.health.gave_up(&provider, ticket);
            decide(x, &provider, DecisionStep::LimitReached, "what runs there already reaches one of its limits");
            tally.skipped += 1;
            continue;
        }
        if let Next::Over = ask(session, x, &Asking { provider, ticket, live: &live, deadline }, &mut tally).await? {
            return Ok(());
        }
    }
    let left_out = tally.left_out;
    let refusal = tally.refusal(x.now());
    if left_out > 0 {
        let why = format!("the time for attempts was over, with {left_out} more to ask");
        x.decisions.push(gateways(x, DecisionStep::Exhausted, why, None));
    }
    // Where nobody was asked, the gateway refused.
    let outcome = if x.attempts == 0 { RequestOutcome::Refused } else { RequestOutcome::UpstreamFailed };
    refuse(session, x, &refusal, outcome).await
}

struct Asking<'a> {
    provider: Arc<Provider>,
    ticket: Ticket,
    live: &'a Live,
    deadline: Option<Instant>,
}

/// Asks one provider, as often as it may be asked.
async fn ask(session: &mut Session, x: &mut Exchange, asking: &Asking<'_>, tally: &mut Tally) -> pingora::Result<Next> {
    let provider = &asking.provider;
    let requested = x.inbound.as_ref().map(|i| Arc::clone(&i.model)).unwrap_or_else(|| Arc::from(""));
    let model: Arc<str> = match provider.upstream_model(&requested) {
        same if same == &*requested => Arc::clone(&requested),
        other => Arc::from(other),
    };
    let mut target = Target { provider: Arc::clone(provider), model, deadline: asking.deadline, fresh: false };
    let mut tries = 0;
    loop {
        let began = Instant::now();
        x.attempts += 1;
        (x.usage, x.usage_estimated) = (None, false);
        x.asked = Some(Asked { provider: Arc::clone(provider), model: Arc::clone(&target.model), began });
        let step = attempt::attempt(session, x, &target, asking.live).await;
        // Over a connection that the provider had closed while it lay in the pool it was never asked: that is no attempt.
        // The others in the pool may be dead too, so the next one is new.
        if let Step::Failed(failure) = &step
            && failure.is_stale_connection()
        {
            target.fresh = true;
            x.attempts -= 1;
            continue;
        }
        tries += 1;
        match judge(session, x, asking, Outcome { step, tries, took: began.elapsed() }, tally).await? {
            Next::SameAgain => {}
            over_or_next => return Ok(over_or_next),
        }
    }
}

struct Outcome {
    step: Step,
    tries: u32,
    took: Duration,
}

async fn judge(
    session: &mut Session,
    x: &mut Exchange,
    asking: &Asking<'_>,
    outcome: Outcome,
    tally: &mut Tally,
) -> pingora::Result<Next> {
    let provider = &asking.provider;
    match outcome.step {
        Step::Answered { end, provider_ok } => {
            answered(x, asking, provider_ok);
            settle::settle(x, &end);
            Ok(Next::Over)
        }
        Step::ClientGone => {
            x.gateway.health.gave_up(provider, asking.ticket);
            let end =
                End { outcome: RequestOutcome::ClientAborted, status: 499, error: Some("the client left".into()) };
            settle::settle(x, &end);
            session.shutdown().await;
            Ok(Next::Over)
        }
        Step::Unfit(refusal) => {
            x.gateway.health.gave_up(provider, asking.ticket);
            decide(x, provider, DecisionStep::FormatNotConvertible, &refusal.meaning(x.now()).message);
            tally.unfit = Some(refusal);
            Ok(Next::Switch)
        }
        Step::Failed(failure) => {
            failed(session, x, asking, Failed { failure: *failure, tries: outcome.tries, took: outcome.took }, tally)
                .await
        }
    }
}

struct Failed {
    failure: Failure,
    tries: u32,
    took: Duration,
}

async fn failed(
    session: &mut Session,
    x: &mut Exchange,
    asking: &Asking<'_>,
    failed: Failed,
    tally: &mut Tally,
) -> pingora::Result<Next> {
    let provider = &asking.provider;
    let Judgement { verdict, rule } = verdict::classify(x, &failed.failure, asking.live, provider, failed.tries);
    x.gateway.metrics.attempt(&provider.name, verdict.class.as_str());
    let rest_until = match verdict.next {
        classify::Next::NextProvider { rest_until } => rest_until,
        _ => None,
    };
    let again =
        verdict.next == classify::Next::SameProviderAgain && asking.deadline.is_none_or(|at| Instant::now() < at);
    if !again {
        let error = failed.failure.describe();
        let setback = Setback { counts: verdict.counts, rest_until, error: Some(&error) };
        x.gateway.health.failed(provider, asking.ticket, x.now(), setback);
    }
    let step = match verdict.next {
        classify::Next::ClientError { .. } => DecisionStep::ClientError,
        _ if again => DecisionStep::Retried,
        _ => DecisionStep::AttemptFailed,
    };
    let why = rule.as_ref().map_or_else(|| verdict.reason.to_owned(), |rule| rule.label());
    record(x, asking, &failed, (step, &why));
    if let classify::Next::ClientError { status } = verdict.next {
        verdict::pass_on(session, x, &failed.failure, (status, rule.as_deref())).await?;
        return Ok(Next::Over);
    }
    if again {
        return Ok(Next::SameAgain);
    }
    tally.add(failed.failure, x.now());
    Ok(Next::Switch)
}

/// `why`: the reason that the classification names, or the error rule that decided.
fn record(x: &mut Exchange, asking: &Asking<'_>, failed: &Failed, (step, why): (DecisionStep, &str)) {
    // Use that a failed attempt reported is billed to no one: it stays visible in the chain alone.
    (x.usage, x.usage_estimated) = (None, false);
    x.decisions.push(Decision {
        provider_id: Some(asking.provider.id),
        provider_name: asking.provider.name.as_str().into(),
        step,
        detail: Some(format!("{} ({why})", failed.failure.describe()).into()),
        status: failed.failure.status(),
        at_ms: x.elapsed_ms(),
        took_ms: Some(u64::try_from(failed.took.as_millis()).unwrap_or(u64::MAX)),
        usage: failed.failure.usage(),
    });
}

/// The reply's own decision was noted before it was settled; what remains is to count and to remember.
fn answered(x: &mut Exchange, asking: &Asking<'_>, ok: bool) {
    let (provider, now) = (&asking.provider, x.now());
    if ok {
        x.gateway.health.succeeded(provider, asking.ticket, now);
    } else {
        let setback = Setback { counts: true, rest_until: None, error: Some("the reply broke off") };
        x.gateway.health.failed(provider, asking.ticket, now, setback);
    }
    x.gateway.metrics.attempt(&provider.name, if ok { "ok" } else { "broken_off" });
}

fn decide(x: &mut Exchange, provider: &Provider, step: DecisionStep, why: &str) {
    let at_ms = x.elapsed_ms();
    let provider_name = provider.name.as_str().into();
    let provider_id = Some(provider.id);
    x.decisions.push(Decision {
        provider_id,
        provider_name,
        step,
        detail: Some(why.into()),
        status: None,
        at_ms,
        took_ms: None,
        usage: None,
    });
}

fn provider(x: &Exchange, place: usize) -> Option<Arc<Provider>> {
    Some(Arc::clone(x.snapshot.as_ref()?.providers.get(*x.order.get(place)?)?))
}

fn deadline(x: &Exchange, live: &Live) -> Option<Instant> {
    (live.retry.deadline_ms > 0).then(|| x.started + Duration::from_millis(live.retry.deadline_ms))
}

/// The chain's last word, where it is the gateway's and no provider's.
fn told(x: &mut Exchange, refusal: &Refusal, meaning: &Meaning, outcome: RequestOutcome) {
    let step = match outcome {
        RequestOutcome::Refused => DecisionStep::Refused,
        RequestOutcome::UpstreamFailed => DecisionStep::Exhausted,
        _ => return,
    };
    let detail = refusal.detail().unwrap_or_else(|| meaning.message.clone());
    x.decisions.push(gateways(x, step, detail, Some(meaning.status)));
}

/// A decision of the gateway itself, about no provider.
fn gateways(x: &Exchange, step: DecisionStep, detail: String, status: Option<u16>) -> Decision {
    Decision {
        provider_id: None,
        provider_name: "".into(),
        step,
        detail: Some(detail.into()),
        status,
        at_ms: x.elapsed_ms(),
        took_ms: None,
        usage: None,
    }
}

/// Settles, then writes a refusal.
///
/// # Errors
/// Pingora's, when the client cannot be written to.
pub async fn refuse(
    session: &mut Session,
    x: &mut Exchange,
    refusal: &Refusal,
    outcome: RequestOutcome,
) -> pingora::Result<()> {
    match refusal {
        Refusal::Limit(denied) => x.gateway.metrics.refused(denied.limit_type.as_str()),
        Refusal::NoRoom => x.gateway.metrics.bodies.refused.inc(),
        Refusal::ModelNotAllowed { .. }
        | Refusal::ClientNotAllowed
        | Refusal::ClientOutdated { .. }
        | Refusal::SensitiveWord { .. } => x.gateway.metrics.screened(refusal.reason()),
        _ => {}
    }
    let meaning = refusal.meaning(x.now());
    told(x, refusal, &meaning, outcome);
    settle::settle(x, &End { outcome, status: meaning.status, error: Some(meaning.message.clone()) });
    answer::refuse(session, x, &meaning).await
}
