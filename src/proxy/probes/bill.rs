//! What a probe cost: a record without a user and a key, as the gateway itself pays. It counts for
//! the provider's own limits, which are about what is spent there, and for no others.

use std::time::Duration;

use rust_decimal::Decimal;

use crate::domain::clock::Timestamp;
use crate::domain::cloud::ClaudeCloud;
use crate::domain::format::WireFormat;
use crate::domain::ids::{RequestId, SessionId};
use crate::domain::money::NanoUsd;
use crate::domain::provider::Provider;
use crate::domain::record::{Record, RequestOutcome};
use crate::formats::native::converse::reply;
use crate::formats::usage::{Bill, UsageReader};
use crate::proxy::gateway::Gateway;
use crate::proxy::{record, settle};
use crate::upstream::probe::Probed;

/// Records what the reply cost, if the provider says so.
pub(super) fn bill(
    gateway: &Gateway,
    provider: &Provider,
    [model, upstream]: [&str; 2],
    began: Timestamp,
    answer: &Probed,
) {
    let format = provider.kind.format();
    let is_converse = provider.cloud.for_model(upstream) == ClaudeCloud::Converse;
    let native = is_converse.then(|| reply::native(&answer.body).unwrap_or_default());
    let mut reader = UsageReader::new(format, false);
    reader.feed(native.as_deref().unwrap_or(&answer.body));
    reader.finish();
    if reader.usage().is_none() {
        return;
    }
    let (snapshot, mut bill) = (gateway.node.state.snapshot(), reader.bill(0));
    record::add_asked(&mut bill, &snapshot, (format, upstream), &[]);
    let multiplier = provider.multiplier();
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
        notional_cost: None,
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
