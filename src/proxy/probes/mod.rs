//! Probes: small requests that the gateway itself makes to providers with a `probe_interval`, with
//! each enabled key in turn. They count for the provider's health and its circuit as a client's
//! request does. Of all nodes that share a database, one probes a provider at a time.

mod bill;
mod judge;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;

use self::judge::ProbeResult;
use super::gateway::Gateway;
use super::upstream::health_ticket::HealthTicket;
use crate::domain::ids::{ProviderId, SessionId};
use crate::domain::provider::Provider;
use crate::state::ProbedProviders;
use crate::store::StoreError;
use crate::upstream::small_request;

const TICK: Duration = Duration::from_secs(1);
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// How soon a provider is tried again that another node, perhaps one that has died, still has.
const RETRY: Duration = Duration::from_secs(60);

/// Runs until `stopped`. A probe in flight is dropped then.
pub async fn run(gateway: Arc<Gateway>, stopped: impl Future<Output = ()>) {
    tokio::select! {
        () = probe_all(&gateway) => {}
        () = stopped => {}
    }
}

/// When a provider is probed next, and with which of its keys.
struct NextProbe {
    due: Instant,
    turn: usize,
}

async fn probe_all(gateway: &Gateway) {
    let (mut running, mut busy) = (FuturesUnordered::new(), HashSet::new());
    let (mut next, mut refused) = (HashMap::<ProviderId, NextProbe>::new(), HashSet::new());
    loop {
        let (snapshot, now) = (gateway.node.state.snapshot(), Instant::now());
        next.retain(|id, _| snapshot.provider(*id).is_some());
        for provider in snapshot.providers.iter().filter(|provider| provider.is_enabled) {
            let Some((every, model)) = provider.probes() else { continue };
            let first = NextProbe { due: now, turn: 0 };
            let next = next.entry(provider.id).or_insert(first);
            // A shorter interval takes effect at once.
            next.due = next.due.min(now + every);
            if next.due > now || !busy.insert(provider.id) {
                continue;
            }
            next.due = now + every;
            next.turn = next.turn.wrapping_add(1);
            let (provider, model, turn) = (Arc::clone(provider), model.to_owned(), next.turn);
            running.push(async move {
                let result = probe(gateway, &provider, &model, turn, every).await;
                (provider, result)
            });
        }
        let mut tick = std::pin::pin!(tokio::time::sleep(TICK));
        loop {
            tokio::select! {
                () = &mut tick => break,
                Some((provider, result)) = running.next() => {
                    busy.remove(&provider.id);
                    let now = gateway.node.clock.now();
                    let is_here = gateway.node.probed.is_here(provider.id, now);
                    if let Some(next) = next.get_mut(&provider.id).filter(|_| !is_here) {
                        next.due = next.due.min(Instant::now() + RETRY);
                    }
                    log(&mut refused, &provider, result);
                }
            }
        }
    }
}

/// Logs the first of several refused probes.
fn log(
    refused: &mut HashSet<ProviderId>,
    provider: &Provider,
    result: Result<Option<ProbeResult>, StoreError>,
) {
    match result {
        Ok(Some(ProbeResult::Refused(why))) if refused.insert(provider.id) => {
            tracing::warn!(
                provider = provider.name,
                error = why,
                "a provider refuses its probes: \
                check probe_model"
            );
        }
        Ok(None | Some(ProbeResult::Refused(_))) => {}
        Ok(Some(_)) => {
            refused.remove(&provider.id);
        }
        Err(error) => {
            tracing::debug!(provider = provider.name, %error, "a provider was not probed");
        }
    }
}

/// Probes a provider. `None` if another node has done so within its interval, and while its circuit,
/// a cooldown or its limits let no request through.
async fn probe(
    gateway: &Gateway,
    provider: &Arc<Provider>,
    model: &str,
    turn: usize,
    every: Duration,
) -> Result<Option<ProbeResult>, StoreError> {
    let (store, clock, probed) = (&gateway.node.store, &gateway.node.clock, &gateway.node.probed);
    let every = i64::try_from(every.as_millis()).unwrap_or(i64::MAX);
    let now = store.shared_time(clock.now()).await?;
    // A little less, so that the node which has it keeps it.
    let until = now.plus_ms(every.saturating_sub(500));
    if !store.take_job(&ProbedProviders::job(provider.id), probed.holder(), now, until).await? {
        probed.forget(provider.id);
        return Ok(None);
    }
    probed.note(provider.id, clock.now().plus_ms(every.saturating_mul(2)));
    let is_enabled =
        |one: &&Arc<Provider>| one.credential.as_ref().is_none_or(|one| one.is_enabled);
    let enabled: Vec<_> = provider.with_each_credential().iter().filter(is_enabled).collect();
    let Some(one) = enabled.get(turn.checked_rem(enabled.len()).unwrap_or_default()) else {
        return Ok(None);
    };
    let (counters, session) = (&gateway.node.counters, SessionId("".into()));
    let asked = std::slice::from_ref(provider);
    if !counters.blocked(asked, None, &session, clock.now()).await.is_empty() {
        return Ok(None);
    }
    // An open circuit lets a probe through as it does a request.
    let Some(mut ticket) = HealthTicket::enter(&gateway.node.health, provider, clock.now()) else {
        return Ok(None);
    };
    let (began, upstream) = (clock.now(), provider.upstream_model(model));
    let answer = small_request::send(one, upstream, TIME_LIMIT).await;
    let result = judge::judge(gateway, one, &mut ticket, &answer);
    gateway.node.metrics.provider_health.probed(&provider.name, result.as_str());
    if let (ProbeResult::Ok, Ok(answer)) = (&result, answer) {
        bill::bill(gateway, provider, [model, upstream], began, &answer);
    }
    Ok(Some(result))
}
