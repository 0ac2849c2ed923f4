//! The settlement of a request: prices its usage, settles its permit, appends its record to the
//! journal, counts it and logs it. It is never refused. `exchange.rs` decides when.

use std::sync::Arc;
use std::time::Instant;

use rust_decimal::Decimal;

use super::caller::Principal;
use super::cold_cache::{self, MissRates};
use super::context::{RequestContext, millis};
use super::gateway::Gateway;
use super::record::{Ending, OpenRecord};
use crate::domain::cache_miss::CacheMiss;
use crate::domain::feature_policy::FeatureUse;
use crate::domain::ids::{KeyId, ProviderId, UserId};
use crate::domain::money::NanoUsd;
use crate::domain::network;
use crate::domain::part::{Part, PartKind};
use crate::domain::price::{CostKind, Price};
use crate::domain::provider::Provider;
use crate::domain::record::{Decision, DecisionStep, Record, RequestOutcome};
use crate::domain::trace::SpanContext;
use crate::domain::usage::{ServiceTier, Usage};
use crate::formats::usage::{self, Bill};
use crate::limits::Permit;
use crate::otlp::RequestTrace;
use crate::policy::{bill, cost, price_name};
use crate::state::{NodeEvent, Snapshot};
use crate::telemetry;

impl OpenRecord {
    /// Settles the request. A full journal is logged as an error; new requests are refused until it
    /// has space (`admit`).
    pub(super) fn settle(
        mut self: Box<Self>,
        ctx: &RequestContext,
        trace: Option<Box<RequestTrace>>,
        ending: &Ending,
    ) {
        let (gateway, ended) = (&ctx.gateway, Instant::now());
        self.last_decision(ctx, ending, ended);
        let span = trace.as_ref().map(|trace| trace.own);
        let permit = self.permit.take();
        let asked = self
            .asked
            .as_ref()
            .filter(|_| gateway.otlp.meter.is_some())
            .map(|asked| Arc::clone(&asked.provider));
        let is_metered = self.is_metered();
        let admitted = permit.as_ref().and_then(Permit::admitted);
        let admitted_ms = admitted.map_or(0, |at| at.since(ctx.started_at));
        let mut record = self.finish(ctx, ending, ended);
        record.admitted_ms = admitted_ms;
        if is_metered {
            note_session(ctx, &record);
        }
        conclude(gateway, &self.snapshot, permit, &record, asked.as_deref(), span);
        end_trace(ctx, trace, &record);
        gateway.node.events.tell(|| NodeEvent::Request(Arc::new(record)));
    }

    /// The record of a reply that its provider still makes, with what is billed if its end is never
    /// seen. Nothing is settled.
    pub(super) fn unfinished(
        mut self,
        ctx: &RequestContext,
        trace: Option<Box<RequestTrace>>,
        ending: &Ending,
    ) -> UnfinishedRequest {
        let permit = self.permit.take();
        let features = self.body.as_mut().map(|body| std::mem::take(&mut body.features));
        if let Some(body) = &mut self.body {
            body.print = None;
        }
        let record = self.finish(ctx, ending, Instant::now());
        note_session(ctx, &record);
        let free = Record { usage: Usage::default(), cost: Some(NanoUsd::ZERO), ..record.clone() };
        end_trace(ctx, trace, &free);
        UnfinishedRequest { record, permit, features: features.unwrap_or_default() }
    }

    /// The end of the decision chain: the provider that answered, how, and how long that took.
    fn last_decision(&mut self, ctx: &RequestContext, ending: &Ending, ended: Instant) {
        let step = match ending.outcome {
            RequestOutcome::Completed => DecisionStep::Succeeded,
            RequestOutcome::BrokenOff | RequestOutcome::ClientAborted => {
                DecisionStep::AttemptFailed
            }
            _ => return,
        };
        let Some(asked) = &self.asked else { return };
        let changes = self.bill.as_ref().and_then(|bill| usage::describe_changes(&bill.changes));
        let said = ending.error.clone().or(changes);
        let key = asked.provider.credential.as_ref().map(|one| format!("key “{}”", one.name));
        let said = match (key, said) {
            (Some(key), Some(said)) => Some(format!("{key}: {said}")),
            (key, said) => key.or(said),
        };
        self.decisions.push(Decision {
            provider_id: Some(asked.provider.id),
            provider_name: asked.provider.name.as_str().into(),
            step,
            detail: said.map(Arc::from),
            status: Some(ending.status),
            at_ms: millis(ended - ctx.started),
            took_ms: Some(millis(ended - asked.began)),
            usage: None,
        });
    }

    /// Takes what the record needs.
    fn finish(&mut self, ctx: &RequestContext, ending: &Ending, ended: Instant) -> Record {
        let duration = ended - ctx.started;
        let overhead = duration.saturating_sub(ctx.waited);
        let Priced { cost, notional, entry, multiplier, cache_miss } = self.price(ctx);
        let Bill { usage, estimated, parts, diagnosis, .. } = self.bill.take().unwrap_or_default();
        let miss = cache_miss.as_ref().map(cold_cache::explained);
        self.add_to_success([miss, diagnosis.map(|diagnosis| diagnosis.describe())]);
        self.decisions.iter_mut().for_each(clip);
        let names = names(&self.caller);
        let provider = self.answering();
        let provider_format = self.asked.as_ref().map(|a| a.provider.kind.format());
        let (model, session_id, streamed) = match self.body.take() {
            Some(body) => (body.model, Some(body.session), body.stream),
            None => (Arc::from(""), None, false),
        };
        Record {
            request_id: ctx.id,
            started_at: ctx.started_at,
            admitted_ms: 0,
            key_id: names.key_id,
            key_name: names.key_name,
            user_id: names.user_id,
            user_name: names.user_name,
            session_id,
            provider_id: provider.as_ref().map(|(id, _)| *id),
            provider_name: provider.map(|(_, name)| name),
            client_format: ctx.format,
            provider_format,
            endpoint: ctx.recorded_endpoint(),
            upstream_model: self.asked.take().filter(|a| a.model != model).map(|a| a.model),
            model,
            streamed,
            status_code: ending.status,
            outcome: ending.outcome,
            error_message: ending.error.clone(),
            usage,
            cost,
            notional_cost: notional,
            price_model: entry,
            parts,
            cache_miss,
            cost_multiplier: multiplier,
            estimated,
            duration_ms: millis(duration),
            first_byte_ms: self.first_byte.map(millis),
            overhead_us: u64::try_from(overhead.as_micros()).unwrap_or(u64::MAX),
            attempts: self.attempts,
            decisions: std::mem::take(&mut self.decisions),
            user_agent: ctx.head.user_agent.clone(),
            client_addr: ctx.head.client_ip.map(network::text),
        }
    }

    /// Adds lines to the decision of the provider that answered.
    fn add_to_success(&mut self, lines: [Option<String>; 2]) {
        let last = self.decisions.last_mut();
        let Some(last) = last.filter(|last| last.step == DecisionStep::Succeeded) else { return };
        for line in lines.into_iter().flatten() {
            last.detail = Some(match last.detail.take() {
                Some(said) => format!("{said}; {line}").into(),
                None => line.into(),
            });
        }
    }

    /// The provider that answered, or the last one that was asked.
    fn answering(&self) -> Option<(ProviderId, Arc<str>)> {
        let provider = &self.asked.as_ref()?.provider;
        // The last decision is nearly always its own.
        let own = self.decisions.last().filter(|last| last.provider_id == Some(provider.id));
        let name = own.map(|own| Arc::clone(&own.provider_name));
        Some((provider.id, name.unwrap_or_else(|| provider.name.as_str().into())))
    }

    /// Without usage the cost is zero. With usage of a model without a price it is `None`, which
    /// the record shows as unpriced.
    fn price(&mut self, ctx: &RequestContext) -> Priced {
        let free = |multiplier| Priced {
            cost: Some(NanoUsd::ZERO),
            notional: None,
            entry: None,
            multiplier,
            cache_miss: None,
        };
        let print = self.body.as_mut().and_then(|body| body.print.take());
        let (Some(asked), Some(body), Some(bill)) = (&self.asked, &self.body, &mut self.bill)
        else {
            return free(Decimal::ONE);
        };
        let multiplier = asked.provider.multiplier();
        if !self.operation.is_metered() {
            return free(multiplier);
        }
        let names = [&*body.model, &*asked.model];
        let is_clients = asked.provider.auth.is_clients();
        let listed = if is_clients { Decimal::ONE } else { multiplier };
        let (price, mut cost) = charge(&self.snapshot, names, listed, bill);
        let notional = if is_clients { cost.replace(NanoUsd::ZERO) } else { None };
        if is_clients {
            bill.parts.iter_mut().for_each(|part| part.cost = Some(NanoUsd::ZERO));
        }
        let (key, rates) = (self.caller.key_id(), MissRates { price, multiplier });
        let missed = |print: Box<_>| cold_cache::missed(ctx, key, body, *print, asked, bill, rates);
        let cache_miss = print.and_then(missed);
        let other = price.filter(|price| *price.model != *body.model);
        let entry = other.map(|price| price.model.as_str().into());
        Priced { cost, notional, entry, multiplier, cache_miss }
    }
}

/// A request whose reply its provider still makes.
pub(super) struct UnfinishedRequest {
    pub record: Record,
    pub permit: Option<Permit>,
    /// What the request uses.
    pub features: Vec<FeatureUse>,
}

/// Settles the permit of a request that is over, appends its record, counts and logs it.
pub(super) fn conclude(
    gateway: &Gateway,
    snapshot: &Snapshot,
    permit: Option<Permit>,
    record: &Record,
    asked: Option<&Provider>,
    span: Option<SpanContext>,
) {
    let (now, is_admitted) = (gateway.node.clock.now(), permit.is_some());
    let trace_id = span.map(|span| tracing::field::display(span.trace_id));
    if record.cost.is_none() {
        let upstream = record.upstream_model.as_ref().unwrap_or(&record.model);
        gateway.node.unpriced_models.note(&record.model, Some(upstream), now);
    }
    if let Some(permit) = permit {
        // A refused request counts towards nothing: dropping its permit releases everything.
        match record.outcome {
            RequestOutcome::Refused => drop(permit),
            _ => permit.settle(now, record.cost.unwrap_or_default(), record.provider_id),
        }
    }
    // The reserve of a full journal belongs to requests in flight, not to refusals, and at most
    // half of it to what no provider is asked for.
    let refused = record.outcome == RequestOutcome::Refused;
    let ledger = &gateway.ledger;
    if (refused && !ledger.has_room()) || (!is_admitted && !ledger.has_reserve()) {
        tracing::debug!(request_id = %record.request_id, trace_id, "a request that cost nothing is \
            not recorded: the journal is full");
    } else if let Err(e) = ledger.append(record) {
        tracing::error!(request_id = %record.request_id, trace_id, error = %e, "the journal did not take a record");
    }
    if let (RequestOutcome::Completed, Some(key), 1..) =
        (record.outcome, record.key_id, record.usage.output)
        && record.usage.tier != ServiceTier::Batch
    {
        gateway.node.counters.learn_output(key, &record.model, record.usage.output);
    }
    gateway.node.metrics.request_done(record);
    let priced_name = priced_name(snapshot, record);
    gateway.node.metrics.request_of(record, priced_name);
    if let (Some(meter), Some(provider)) = (&gateway.otlp.meter, asked) {
        meter.count(record, provider, priced_name);
    }
    if gateway.fixed.access_log {
        telemetry::access_log(record, span);
    }
}

/// Charges a reply, and each of its parts: the entry of the model that made it, and the cost.
pub(super) fn charge<'s>(
    snapshot: &'s Snapshot,
    asked: [&str; 2],
    multiplier: Decimal,
    bill: &mut Bill,
) -> (Option<&'s Price>, Option<NanoUsd>) {
    let own = snapshot.price_for(asked[0], asked[1]).map(AsRef::as_ref);
    let find = |model: &str| snapshot.price_for(model, model).map(AsRef::as_ref);
    // Services that choose among models, or fall back to another, say which one served.
    let other = bill.model.as_str().filter(|served| {
        !asked.iter().any(|asked| price_name::is_same(asked, served))
            && !bill.parts.iter().any(|part| part.kind.is_pass())
    });
    let other = other.and_then(|served| Some((served, find(served)?)));
    let own = other.map_or(own, |(_, price)| Some(price));
    let searches = bill.usage.web_searches;
    if searches > 0 && own.is_some_and(|own| own.rates.base(CostKind::WebSearch).is_none()) {
        bill.parts.push(Part::calls(PartKind::WebSearch, searches));
    }
    if let Some((served, _)) = other {
        let usage = Usage { web_searches: 0, ..bill.usage };
        bill.parts.insert(0, Part::new(PartKind::Message, Some(served.into()), usage));
    }
    if bill.parts.is_empty() {
        let total = |price: &Price| cost::total(&price.rates, &bill.usage, multiplier);
        return (own, own.map(|price| total(price).min(NanoUsd::MAX_OF_REQUEST)));
    }
    let reply = bill::PricedReply { own, asked, find, multiplier };
    let cost = reply.charge(&bill.usage, &mut bill.parts);
    let fell_back = bill.parts.iter().find(|part| part.kind == PartKind::FallbackMessage);
    (fell_back.map_or(own, |part| reply.price(part)), cost)
}

/// Whether a session stays bound to its provider. What is not an answer of that provider, and no
/// failure of one, changes nothing.
fn note_session(ctx: &RequestContext, record: &Record) {
    let (Some(key), Some(session)) = (record.key_id, &record.session_id) else { return };
    let sessions = &ctx.gateway.failed_sessions;
    let Some(provider) = record.provider_id else { return };
    match record.outcome {
        RequestOutcome::Completed | RequestOutcome::ClientError => {
            sessions.answered(key, session, provider);
        }
        // The client left a reply that had begun.
        RequestOutcome::ClientAborted if record.first_byte_ms.is_some() => {
            sessions.answered(key, session, provider);
        }
        RequestOutcome::UpstreamFailed | RequestOutcome::BrokenOff => {
            sessions.failed(key, session, provider, ctx.now());
        }
        _ => {}
    }
}

/// Writes the access line of a request that was refused before its credential was checked. It has
/// no record: unauthenticated requests must not fill the ledger. `identify` writes the lines of
/// those that failed authentication.
pub(super) fn log_stranger(ctx: &RequestContext, ending: &Ending) {
    if ctx.gateway.fixed.access_log {
        telemetry::access_log(&of_stranger(ctx, ending), ctx.span());
    }
}

/// Writes the access line of a WebSocket, at its end. The requests over it have records.
pub(super) fn log_websocket(ctx: &RequestContext, caller: &Principal, end: String) {
    if !ctx.gateway.fixed.access_log {
        return;
    }
    let ending = Ending { outcome: RequestOutcome::Completed, status: 101, error: Some(end) };
    let mut line = of_stranger(ctx, &ending);
    line.endpoint = ctx.recorded_endpoint();
    let names = names(caller);
    (line.key_id, line.key_name) = (names.key_id, names.key_name);
    (line.user_id, line.user_name) = (names.user_id, names.user_name);
    telemetry::access_log(&line, ctx.span());
}

/// Ends the trace of a settled request.
fn end_trace(ctx: &RequestContext, trace: Option<Box<RequestTrace>>, record: &Record) {
    let (Some(tracer), Some(trace)) = (&ctx.gateway.otlp.tracer, trace) else { return };
    if trace.own.sampled {
        ctx.gateway.node.metrics.exemplars.note(record, trace.own);
        tracer.finish(*trace, record, ctx.started.elapsed());
    }
}

/// Ends the trace of a request whose caller is unknown.
pub(super) fn end_trace_of_stranger(ctx: &mut RequestContext, ending: &Ending) {
    let Some(trace) = ctx.trace.take() else { return };
    if let Some(tracer) = &ctx.gateway.otlp.tracer {
        tracer.finish_stranger(*trace, &of_stranger(ctx, ending), ctx.started.elapsed());
    }
}

/// A request without a record, as one.
pub(super) fn of_stranger(ctx: &RequestContext, ending: &Ending) -> Record {
    Record {
        request_id: ctx.id,
        started_at: ctx.started_at,
        admitted_ms: 0,
        key_id: None,
        key_name: None,
        user_id: None,
        user_name: None,
        session_id: None,
        provider_id: None,
        provider_name: None,
        client_format: ctx.format,
        provider_format: None,
        endpoint: Arc::clone(&ctx.head.endpoint),
        upstream_model: None,
        model: Arc::from(""),
        streamed: false,
        status_code: ending.status,
        outcome: ending.outcome,
        error_message: ending.error.clone(),
        usage: Usage::default(),
        cost: None,
        notional_cost: None,
        price_model: None,
        parts: Vec::new(),
        cache_miss: None,
        cost_multiplier: Decimal::ONE,
        estimated: false,
        duration_ms: ctx.elapsed_ms(),
        first_byte_ms: None,
        overhead_us: u64::try_from(ctx.overhead().as_micros()).unwrap_or(u64::MAX),
        attempts: 0,
        decisions: Vec::new(),
        user_agent: ctx.head.user_agent.clone(),
        client_addr: ctx.head.client_ip.map(network::text),
    }
}

/// Bytes of a decision's text. A provider's words are in it, once for each attempt.
const MAX_DETAIL: usize = 1_024;

fn clip(decision: &mut Decision) {
    let Some(detail) = decision.detail.as_deref().filter(|text| text.len() > MAX_DETAIL) else {
        return;
    };
    decision.detail = detail.get(..detail.floor_char_boundary(MAX_DETAIL)).map(Arc::from);
}

/// What a request costs.
struct Priced {
    cost: Option<NanoUsd>,
    /// At list price, if the client's own account pays.
    notional: Option<NanoUsd>,
    /// The price entry, if it is not the requested model's own.
    entry: Option<Arc<str>>,
    multiplier: Decimal,
    cache_miss: Option<CacheMiss>,
}

/// Key and user, as the record names them.
#[derive(Default)]
struct CallerNames {
    key_id: Option<KeyId>,
    key_name: Option<Arc<str>>,
    user_id: Option<UserId>,
    user_name: Option<Arc<str>>,
}

fn names(caller: &Principal) -> CallerNames {
    match caller {
        Principal::Admin => CallerNames::default(),
        Principal::Key { key, user } => CallerNames {
            key_id: Some(key.id),
            key_name: Some(key.name.as_str().into()),
            user_id: Some(user.id),
            user_name: Some(user.name.as_str().into()),
        },
    }
}

/// The name of the requested model in the price table: a bounded set, for metrics.
fn priced_name<'a>(snapshot: &Snapshot, record: &'a Record) -> Option<&'a str> {
    let names = [Some(&*record.model), record.price_model.as_deref()];
    names.into_iter().flatten().find(|name| snapshot.prices.contains_key(*name))
}
