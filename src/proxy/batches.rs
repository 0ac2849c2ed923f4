//! The polls of batches. Once one has ended, its results are read line by line and priced one by
//! one, at the batch tier; the batch then gets its one record. Results without a reply cost
//! nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::gateway::Gateway;
use super::held;
use super::late_bill::{self, BatchCharge};
use super::record;
use super::settle;
use crate::domain::batch::BatchAsk;
use crate::domain::endpoint::{ApiEndpoint, ReplyFigures};
use crate::domain::format::WireFormat;
use crate::domain::money::NanoUsd;
use crate::domain::part::{Part, PartKind};
use crate::domain::provider::Provider;
use crate::domain::record::Record;
use crate::domain::usage::{ServiceTier, Usage};
use crate::formats;
use crate::formats::batch::google;
use crate::formats::route::{self, Collection, StoredCall};
use crate::formats::usage::{BodyKind, UsageReader};
use crate::policy::price_name;
use crate::state::Snapshot;
use crate::upstream::ProviderCall;
use crate::upstream::probe::fetch;

/// Of the results' head, and of each piece of them.
const TIME_LIMIT: Duration = Duration::from_secs(60);
/// Of all results of a batch.
const RESULTS_TIME_LIMIT: Duration = Duration::from_secs(600);
/// The longest result, in bytes. A longer one is estimated.
const MOST_OF_LINE: usize = 32 * 1024 * 1024;

/// Takes what the provider says of a batch that is not billed yet: bills it, if it has ended.
///
/// # Errors
/// Why its results could not be read: they are read again at the next poll.
pub(super) async fn polled(
    gateway: &Gateway,
    provider: &Provider,
    (collection, id): (&'static Collection, &str),
    body: &[u8],
) -> Result<(), String> {
    let said: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let Some((record, batch)) = gateway.pending_replies.batch(provider.id, id) else {
        return Ok(());
    };
    if formats::batch::id_of(&said) != Some(id) {
        return Err("it is not described".to_owned());
    }
    let has_ended = held::has_ended(collection, &said);
    let own = formats::batch::with_own_address(body).and_then(|own| String::from_utf8(own).ok());
    let own = own.unwrap_or_else(|| held::description(collection, &said));
    let account = (provider.id, provider.credential_id());
    let now = held::of_record(&record, account, (collection, id), own, !has_ended);
    if has_ended {
        let mut results = Results::new(gateway.node.state.snapshot(), record.clone(), batch);
        // In another form, the client itself may have named a member so.
        if *collection == route::GOOGLE_BATCHES {
            google::results(&said).iter().for_each(|result| results.add_google(result));
            if google::lacks_results(&said) {
                return Err("its results are not described".to_owned());
            }
        }
        if let Some(call) = results_of(collection, id, &said) {
            let reading = read(provider, &call, &mut results);
            let is_there = tokio::time::timeout(RESULTS_TIME_LIMIT, reading).await;
            let is_there = is_there.map_err(|_| "its results took longer than 10 minutes")??;
            if !is_there && gateway.pending_replies.misses(provider.id, id) {
                let why = "the provider does not have its results any more";
                late_bill::lost(gateway, (provider.id, id), why);
            }
            if !is_there {
                return Err("its results were not found".to_owned());
            }
        }
        // Its files first: once it is billed, they may be deleted.
        if let Some(now) = &now {
            held::add_files(gateway, now).await;
        }
        late_bill::batch_ended(gateway, (provider.id, id), results.charge());
    }
    gateway.pending_replies.found(provider.id, id);
    if let Some(now) = now {
        held::renew(gateway, collection, now).await;
    }
    Ok(())
}

/// The call that gives the results of a batch that has ended; `None` if it has none.
fn results_of(collection: &Collection, id: &str, said: &Value) -> Option<StoredCall> {
    if *collection == route::MESSAGE_BATCHES {
        let url = said["results_url"].as_str();
        return url.map(|_| StoredCall::get(&route::MESSAGE_BATCHES, id, route::RESULTS));
    }
    if *collection == route::GOOGLE_BATCHES {
        let file = google::results_file(said)?;
        return Some(StoredCall::get(&route::GOOGLE_FILES, file, route::DOWNLOAD));
    }
    let file = said["output_file_id"].as_str()?;
    Some(StoredCall::get(&route::FILES, file, route::CONTENT))
}

/// Reads the results to their end; `false`: the provider does not have them.
async fn read(
    provider: &Provider,
    call: &StoredCall,
    results: &mut Results,
) -> Result<bool, String> {
    let answer = fetch(provider, ProviderCall::Stored(call), TIME_LIMIT).await;
    let mut answer = answer.map_err(|error| error.text)?;
    if matches!(answer.status(), StatusCode::NOT_FOUND | StatusCode::GONE) {
        return Ok(false);
    }
    if answer.status() != StatusCode::OK {
        return Err(format!("the results were answered with {}", answer.status()));
    }
    let (mut line, mut is_cut) = (Vec::new(), false);
    while let Some(piece) = answer.chunk().await.map_err(|error| error.to_string())? {
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            is_cut |= line.len() + part.len() > MOST_OF_LINE;
            if !is_cut {
                line.extend_from_slice(part);
            }
            if part.ends_with(b"\n") {
                results.add(&line, is_cut);
                line.clear();
                is_cut = false;
            }
        }
    }
    results.add(&line, is_cut);
    Ok(true)
}

/// The results that were read so far.
struct Results {
    snapshot: Arc<Snapshot>,
    record: Record,
    batch: Arc<BatchAsk>,
    /// By the place of the model.
    models: BTreeMap<usize, OfModel>,
    estimated: bool,
    /// Results without a reply.
    without: u64,
}

/// The results of one model.
struct OfModel {
    usage: Usage,
    /// `None`: one of them has no price.
    cost: Option<NanoUsd>,
    count: u64,
}

/// A result of Google's form. It has a reply, or an error.
#[derive(Deserialize)]
struct GoogleLine<'b> {
    #[serde(borrow)]
    response: Option<&'b RawValue>,
}

/// A result: in Anthropic's form `result`, in OpenAI's form `response`.
#[derive(Deserialize)]
struct ResultLine<'b> {
    #[serde(borrow)]
    result: Option<MessageResult<'b>>,
    #[serde(borrow)]
    response: Option<LineResponse<'b>>,
}

#[derive(Deserialize)]
struct MessageResult<'b> {
    #[serde(borrow)]
    message: Option<&'b RawValue>,
}

#[derive(Deserialize)]
struct LineResponse<'b> {
    status_code: u16,
    #[serde(borrow)]
    body: Option<&'b RawValue>,
}

impl Results {
    fn new(snapshot: Arc<Snapshot>, record: Record, batch: Arc<BatchAsk>) -> Self {
        let (models, estimated, without) = Default::default();
        Self { snapshot, record, batch, models, estimated, without }
    }

    /// Adds a line. `is_cut`: it is too long to be read.
    fn add(&mut self, line: &[u8], is_cut: bool) {
        if line.trim_ascii().is_empty() {
            return;
        }
        if google::is_googles(&self.batch.path) {
            return self.add_google_line(line, is_cut);
        }
        let read: Option<ResultLine<'_>> = serde_json::from_slice(line).ok();
        let is_unread = is_cut || read.is_none();
        let reply = read.and_then(|read| {
            let response = read.response.filter(|response| response.status_code == 200);
            let of_line = response.and_then(|response| response.body);
            read.result.and_then(|result| result.message).or(of_line)
        });
        match reply {
            Some(reply) => self.price(reply.get().as_bytes()),
            None if is_unread => self.price(b"{}"),
            None => self.without += 1,
        }
    }

    fn add_google_line(&mut self, line: &[u8], is_cut: bool) {
        match serde_json::from_slice(line).ok().filter(|_| !is_cut) {
            Some(GoogleLine { response: Some(reply) }) => self.price(reply.get().as_bytes()),
            Some(GoogleLine { response: None }) => self.without += 1,
            None => self.price(b"{}"),
        }
    }

    /// Adds a result that the description of a batch has.
    fn add_google(&mut self, result: &Value) {
        match &result["response"] {
            Value::Null => self.without += 1,
            reply => self.price(reply.to_string().as_bytes()),
        }
    }

    /// Prices a reply as it would be alone, at the batch tier.
    fn price(&mut self, reply: &[u8]) {
        let (format, mut reader) = match &*self.batch.path {
            "/v1/messages" => (WireFormat::Native, UsageReader::new(WireFormat::Native, false)),
            google::ACTION => (WireFormat::AltCli, UsageReader::new(WireFormat::AltCli, false)),
            "/v1/responses" => {
                (WireFormat::Responses, UsageReader::new(WireFormat::Responses, false))
            }
            path if has_own_figures(path) => {
                (WireFormat::Chat, UsageReader::of_endpoint(ReplyFigures::Own, BodyKind::Json))
            }
            _ => (WireFormat::Chat, UsageReader::new(WireFormat::Chat, false)),
        };
        let embedded = match &*self.batch.path {
            google::EMBED => google::embedded(reply),
            _ => None,
        };
        reader.feed(embedded.as_ref().map_or(reply, String::as_bytes));
        reader.finish();
        let all = self.batch.groups.iter().fold(0_u64, |sum, one| sum.saturating_add(one.input));
        let mut bill = reader.bill(all / self.batch.count().max(1));
        let place = bill.model.as_str().map_or(0, |served| place_of(&self.batch.models, served));
        let model = self.batch.models.get(place).map_or(&*self.record.model, String::as_str);
        let upstream = self.record.upstream_model.as_deref().filter(|_| place == 0);
        let names = [model, upstream.unwrap_or(model)];
        record::add_asked(&mut bill, &self.snapshot, (format, names[1]), &[]);
        if has_own_figures(&self.batch.path) {
            // The items of a list are no images.
            bill.parts.clear();
        }
        bill.usage.tier = ServiceTier::Batch;
        for part in &mut bill.parts {
            part.usage.tier = ServiceTier::Batch;
        }
        let multiplier = self.record.cost_multiplier;
        let (_, cost) = settle::charge(&self.snapshot, names, multiplier, &mut bill);
        let none = Usage { tier: ServiceTier::Batch, ..Usage::default() };
        let of_model = self.models.entry(place).or_insert(OfModel {
            usage: none,
            cost: Some(NanoUsd::ZERO),
            count: 0,
        });
        of_model.usage = of_model.usage.plus(&bill.usage);
        of_model.cost = of_model.cost.zip(cost).map(|(sum, cost)| sum.saturating_add(cost));
        of_model.count += 1;
        self.estimated |= bill.estimated;
    }

    /// All of them together.
    fn charge(self) -> BatchCharge {
        let none = Usage { tier: ServiceTier::Batch, ..Usage::default() };
        let models = || self.models.values();
        let usage = models().fold(none, |sum, one| sum.plus(&one.usage));
        let cost = models().try_fold(NanoUsd::ZERO, |sum, one| Some(sum.saturating_add(one.cost?)));
        let count = models().fold(0, |sum, one| sum + one.count);
        let parts = self.models.iter().map(|(place, one)| {
            let model = self.batch.models.get(*place).map(|model| model.as_str().into());
            let part = Part::new(PartKind::Message, model, one.usage);
            Part { quantity: one.count, cost: one.cost, ..part }
        });
        let detail = format!(
            "{count} of {} requests were answered, {} failed or were cancelled",
            self.batch.count(),
            self.without
        );
        BatchCharge { usage, cost, parts: parts.collect(), estimated: self.estimated, detail }
    }
}

/// The model that was asked for, by the one that served: the same, or the longest beginning of it.
fn place_of(models: &[String], served: &str) -> usize {
    let is_it = |model: &str| price_name::is_same(model, served) || served.starts_with(model);
    let fitting = models.iter().enumerate().filter(|(_, model)| is_it(model));
    fitting.max_by_key(|(_, model)| model.len()).map_or(0, |(place, _)| place)
}

/// Whether replies at this path have figures of their own form.
fn has_own_figures(path: &str) -> bool {
    ApiEndpoint::of(path).is_some_and(ApiEndpoint::has_units)
}
