//! Probes: small requests that the gateway itself makes to providers with a `probe_interval`, with
//! each enabled key in turn. They count for the provider's health and its circuit as a client's
//! request does. Of all nodes that share a database, one probes a provider at a time.
//!
//! What a probe costs is recorded without a key, if the provider reports its tokens; otherwise it
//! is not counted.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use rust_decimal::Decimal;
use serde_json::Value;

use super::gateway::Gateway;
use super::upstream::health_ticket::HealthTicket;
use super::{record, settle};
use crate::domain::clock::Timestamp;
use crate::domain::format::WireFormat;
use crate::domain::ids::{ProviderId, RequestId, SessionId};
use crate::domain::money::NanoUsd;
use crate::domain::provider::Provider;
use crate::domain::record::{Record, RequestOutcome};
use crate::formats::usage::{Bill, UsageReader};
use crate::policy::breaker::Suspect;
use crate::policy::classify::Counts;
use crate::policy::failure::FailureKind;
use crate::state::health::Setback;
use crate::state::health::attempts::{AttemptError, Failed};
use crate::store::StoreError;
use crate::upstream::probe::{ProbeError, ProbeFault, Probed};
use crate::upstream::small_request;

const TICK: Duration = Duration::from_secs(1);
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// Runs until `stopped`. A probe in flight is dropped then.
pub async fn run(gateway: Arc<Gateway>, stopped: impl Future<Output = ()>) {
    tokio::select! {
        () = probe_all(&gateway) => {}
        () = stopped => {}
    }
}

async fn probe_all(gateway: &Gateway) {
    let node = uuid::Uuid::new_v4().to_string();
    let (mut running, mut busy) = (FuturesUnordered::new(), HashSet::new());
    let mut next: HashMap<ProviderId, (Instant, usize)> = HashMap::new();
    loop {
        let snapshot = gateway.node.state.snapshot();
        next.retain(|id, _| snapshot.provider(*id).is_some());
        for provider in snapshot.providers.iter().filter(|provider| provider.is_enabled) {
            let Some(every) = provider.probe_interval else { continue };
            let (due, turn) = next.entry(provider.id).or_insert((Instant::now(), 0));
            if *due > Instant::now() || busy.contains(&provider.id) {
                continue;
            }
            *due = Instant::now() + Duration::from_secs(every.into());
            let (provider, turn, node) = (Arc::clone(provider), *turn, &node);
            if let Some((_, turn)) = next.get_mut(&provider.id) {
                *turn = turn.wrapping_add(1);
            }
            busy.insert(provider.id);
            running.push(async move {
                if let Err(error) = probe(gateway, &provider, turn, node, every).await {
                    tracing::debug!(provider = provider.name, %error, "a provider was not probed");
                }
                provider.id
            });
        }
        let mut tick = std::pin::pin!(tokio::time::sleep(TICK));
        loop {
            tokio::select! {
                () = &mut tick => break,
                Some(provider) = running.next() => {
                    busy.remove(&provider);
                }
            }
        }
    }
}

/// Probes a provider, unless another node has done so within its interval.
async fn probe(
    gateway: &Gateway,
    provider: &Arc<Provider>,
    turn: usize,
    node: &str,
    every: u32,
) -> Result<(), StoreError> {
    let usual = || small_request::usual_model(provider);
    let Some(model) = provider.probe_model.as_deref().or_else(usual) else { return Ok(()) };
    let is_enabled =
        |one: &&Arc<Provider>| one.credential.as_ref().is_none_or(|one| one.is_enabled);
    let enabled: Vec<_> = provider.with_each_credential().iter().filter(is_enabled).collect();
    let Some(one) = enabled.get(turn.checked_rem(enabled.len()).unwrap_or_default()) else {
        return Ok(());
    };
    let store = &gateway.node.store;
    let now = store.shared_time(gateway.node.clock.now()).await?;
    // A little less, so that the node which has it keeps it.
    let until = now.plus_ms(i64::from(every) * 1_000 - 500);
    if !store.take_job(&format!("probe {}", provider.id), node, now, until).await? {
        return Ok(());
    }
    // An open circuit lets a probe through as it does a request.
    let health = &gateway.node.health;
    let Some(mut ticket) = HealthTicket::enter(health, provider, gateway.node.clock.now()) else {
        return Ok(());
    };
    let (began, upstream) = (gateway.node.clock.now(), provider.upstream_model(model));
    let outcome = small_request::send(one, upstream, TIME_LIMIT).await;
    let now = gateway.node.clock.now();
    let failure = failure_of(one, &outcome);
    gateway.node.metrics.provider_health.probed(&provider.name, failure.is_none());
    match (failure, outcome) {
        (None, Ok(answer)) => {
            ticket.succeeded(now);
            bill(gateway, provider, [model, upstream], began, &answer);
        }
        (None, Err(_)) => {}
        (Some(failure), _) => failed(gateway, one, &mut ticket, &failure, now),
    }
    Ok(())
}

/// How a probe failed.
struct ProbeFailure {
    kind: FailureKind,
    status: Option<u16>,
    message: String,
}

/// `None` for a reply.
fn failure_of(provider: &Provider, outcome: &Result<Probed, ProbeError>) -> Option<ProbeFailure> {
    let answer = match outcome {
        Ok(answer) => answer,
        Err(error) => {
            let kind = match error.fault {
                ProbeFault::UnknownHost => FailureKind::Dns,
                ProbeFault::TlsFailed => FailureKind::Tls,
                ProbeFault::TimedOut => FailureKind::Timeout,
                ProbeFault::NoConnection => FailureKind::Broken,
                ProbeFault::BadAddress | ProbeFault::NoToken | ProbeFault::ConnectionRefused => {
                    FailureKind::Connect
                }
            };
            return Some(ProbeFailure { kind, status: None, message: error.text.clone() });
        }
    };
    let text = |reply: &Value| small_request::text(provider.kind.format(), reply);
    let is_reply = || serde_json::from_slice(&answer.body).ok().as_ref().and_then(text).is_some();
    let kind = match answer.status {
        200 if is_reply() => return None,
        200..=299 => FailureKind::Unusable,
        _ => FailureKind::Status,
    };
    let message = String::from_utf8_lossy(&answer.body).into_owned();
    Some(ProbeFailure { kind, status: Some(answer.status), message })
}

/// `one`: the provider with the key that was sent.
fn failed(
    gateway: &Gateway,
    one: &Arc<Provider>,
    ticket: &mut HealthTicket,
    failure: &ProbeFailure,
    now: Timestamp,
) {
    let ProbeFailure { kind, status, message } = failure;
    let failed = Failed { kind: *kind, status: *status, message };
    if one.credential.is_some() && matches!(status, Some(401 | 403 | 429)) {
        // It says something of this key alone.
        let error = Arc::new(AttemptError::new(one, failed, now));
        gateway.node.credentials.failed((one.id, one.credential_id()), error);
        return;
    }
    gateway.node.metrics.provider_health.failed(&one.name, kind.as_str());
    gateway.node.health.attempt_failed(one, now, failed);
    // A refused request may be the fault of the model that is asked for.
    let counts = match status {
        Some(400..=499) => Counts::No,
        _ => Counts::Yes,
    };
    let by = Suspect { user: 0, needed: 1 };
    ticket.failed(now, Setback { counts, by, cooldown_until: None });
}

/// Records what the reply cost, if the provider says so.
fn bill(
    gateway: &Gateway,
    provider: &Provider,
    [model, upstream]: [&str; 2],
    began: Timestamp,
    answer: &Probed,
) {
    let format = provider.kind.format();
    let mut reader = UsageReader::new(format, false);
    reader.feed(&answer.body);
    reader.finish();
    if reader.usage().is_none() {
        return;
    }
    let (snapshot, mut bill) = (gateway.node.state.snapshot(), reader.bill(0));
    record::add_asked(&mut bill, &snapshot, (format, upstream), &[]);
    let multiplier = provider.cost_multiplier;
    let (price, cost) = settle::charge(&snapshot, [model, upstream], multiplier, &mut bill);
    let price_model = price.filter(|price| *price.model != *model);
    let record = Record {
        cost,
        price_model: price_model.map(|price| price.model.as_str().into()),
        ..record_of(provider, [model, upstream], began, bill, multiplier)
    };
    let record = Record { duration_ms: millis(answer.took), ..record };
    let session = SessionId("".into());
    let counters = &gateway.node.counters;
    let permit = counters.bypass(record.request_id, &session, NanoUsd::ZERO, began);
    settle::conclude(gateway, &snapshot, Some(permit), &record, Some(provider), None);
}

fn millis(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

fn record_of(
    provider: &Provider,
    [model, upstream]: [&str; 2],
    began: Timestamp,
    bill: Bill,
    cost_multiplier: Decimal,
) -> Record {
    let format = provider.kind.format();
    let path = match format {
        WireFormat::Native => "/v1/messages".to_owned(),
        WireFormat::Responses => "/v1/responses".to_owned(),
        WireFormat::Chat => "/v1/chat/completions".to_owned(),
        WireFormat::AltCli => format!("/v1beta/models/{model}:generateContent"),
    };
    Record {
        request_id: RequestId::new(),
        started_at: began,
        admitted_ms: 0,
        key_id: None,
        key_name: None,
        user_id: None,
        user_name: None,
        session_id: None,
        provider_id: Some(provider.id),
        provider_name: Some(provider.name.as_str().into()),
        client_format: format,
        provider_format: Some(format),
        endpoint: format!("{path}#probe").into(),
        model: model.into(),
        upstream_model: (model != upstream).then(|| upstream.into()),
        streamed: false,
        status_code: 200,
        outcome: RequestOutcome::Completed,
        error_message: None,
        usage: bill.usage,
        cost: None,
        price_model: None,
        parts: bill.parts,
        cache_miss: None,
        cost_multiplier,
        estimated: bill.estimated,
        duration_ms: 0,
        first_byte_ms: None,
        overhead_us: 0,
        attempts: 1,
        decisions: Vec::new(),
        user_agent: None,
        client_addr: None,
    }
}
