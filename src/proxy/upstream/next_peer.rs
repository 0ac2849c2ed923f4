//! The next attempt: its provider, the request in that provider's format, and the peer.
//!
//! See docs/decisions/04-errors-request-retries.md.

use std::sync::Arc;

use pingora::Result;
use pingora::proxy::Session;
use pingora::upstreams::peer::HttpPeer;

use super::attempt::Attempt;
use super::credential;
use super::final_answer::exhausted;
use super::forwarding::Forwarding;
use super::health_ticket::HealthTicket;
use super::reach::reach;
use super::render;
use super::timing::TimeLeft;
use crate::domain::provider::Provider;
use crate::domain::record::DecisionStep;
use crate::formats::route::Operation;
use crate::proxy::context::RequestContext;
use crate::proxy::record::AskedProvider;

/// The peer of the next attempt: the same provider's if it may be retried (`current` then has the
/// attempt), else that of the next provider that admits the request. Afterwards `current` has the
/// attempt, also if it failed before it had a peer.
///
/// # Errors
/// Why the attempt failed; with a [`GiveUp`](crate::proxy::reply::give_up::GiveUp) as its cause
/// when no provider is left.
pub(in crate::proxy) async fn next_peer(
    session: &mut Session,
    request: &mut RequestContext,
    forwarding: &mut Forwarding,
    current: &mut Option<Box<Attempt>>,
) -> Result<Box<HttpPeer>> {
    let mut attempt = match current.take() {
        Some(attempt) => attempt,
        None => next_provider(request, forwarding).await?,
    };
    let peer = prepare(session, request, forwarding, &mut attempt).await;
    *current = Some(attempt);
    peer
}

/// Renders the request and begins the attempt.
async fn prepare(
    session: &mut Session,
    request: &mut RequestContext,
    forwarding: &Forwarding,
    attempt: &mut Attempt,
) -> Result<Box<HttpPeer>> {
    begin(session, request, forwarding, attempt).await?;
    asks(request, forwarding, attempt);
    let (live, provider) = (&request.live, &attempt.provider);
    let reached = reach(&request.gateway, live, provider, request.now(), attempt.fresh).await?;
    Ok(attempt.reaches(reached))
}

/// Renders the request, and begins the times of the attempt.
pub(in crate::proxy) async fn begin(
    session: &mut Session,
    request: &mut RequestContext,
    forwarding: &Forwarding,
    attempt: &mut Attempt,
) -> Result<()> {
    // Before the attempt begins: a request that this provider's format cannot express is none, and
    // no failure of the provider.
    attempt.rendered = render::render(session, request, forwarding, attempt).await?;
    let left = TimeLeft { deadline: forwarding.deadline, others: forwarding.remaining() > 0 };
    attempt.begin(&request.live, forwarding.inbound.stream, left);
    Ok(())
}

/// Notes in the record which provider the reply comes from, unless its attempt fails.
pub(in crate::proxy) fn asks(
    request: &mut RequestContext,
    forwarding: &Forwarding,
    attempt: &Attempt,
) {
    let asked = AskedProvider {
        provider: Arc::clone(&attempt.provider),
        model: Arc::clone(&attempt.model),
        began: attempt.began,
        reply: None,
    };
    request.asks(asked);
    if let Some(body) = request.record.as_mut().and_then(|record| record.body.as_mut())
        && body.is_degraded.is_some()
    {
        body.model = Arc::clone(forwarding.inbound.model_at(&attempt.provider));
    }
}

/// The next provider whose circuit and limits admit the request.
async fn next_provider(
    request: &mut RequestContext,
    forwarding: &mut Forwarding,
) -> Result<Box<Attempt>> {
    loop {
        let attempts = request.record.as_ref().map_or(0, |record| record.attempts);
        if attempts > 0 && !forwarding.has_time() {
            forwarding.tally.left_out = forwarding.remaining();
            return Err(exhausted(request, forwarding).into());
        }
        let Some(provider) = forwarding.next_provider() else {
            return Err(exhausted(request, forwarding).into());
        };
        if !forwarding.may_have_own(&provider) {
            let why = "the client's own credential was sent to another host";
            skip(request, forwarding, &provider, DecisionStep::Disabled, why);
            continue;
        }
        let now = request.now();
        let health = &request.gateway.node.health;
        let ticket = match forwarding.route.operation {
            Operation::CountTokens | Operation::Stored(_) | Operation::Upload(_) => {
                HealthTicket::without_effect(health, &provider, now)
            }
            _ => HealthTicket::enter(health, &provider, now),
        };
        let Some(ticket) = ticket else {
            let why = "its circuit lets nobody through now";
            skip(request, forwarding, &provider, DecisionStep::CircuitOpen, why);
            continue;
        };
        let chosen = match provider.variants.is_empty() {
            true => provider,
            false => match credential::choose(request, forwarding, &provider) {
                Some(chosen) => chosen,
                None => {
                    drop(ticket);
                    let why = "none of its keys can be used now";
                    skip(request, forwarding, &provider, DecisionStep::Cooldown, why);
                    continue;
                }
            },
        };
        let permit = request.record.as_mut().and_then(|record| record.permit.as_mut());
        let entered = match permit {
            Some(permit) => permit.enter(&chosen, now).await,
            None => true,
        };
        if entered {
            let model = forwarding.inbound.model_at(&chosen);
            let mut attempt = Box::new(Attempt::new(chosen, model, ticket));
            attempt.own = forwarding.own_credential(&attempt.provider);
            return Ok(attempt);
        }
        drop(ticket);
        let why = "what runs there already reaches one of its limits";
        skip(request, forwarding, &chosen, DecisionStep::LimitReached, why);
    }
}

fn skip(
    request: &mut RequestContext,
    forwarding: &mut Forwarding,
    provider: &Provider,
    step: DecisionStep,
    why: &str,
) {
    request.decide(provider, step, why);
    let is_own = provider.kind.format() == request.format;
    forwarding.tally.skip(is_own, request.now());
}
