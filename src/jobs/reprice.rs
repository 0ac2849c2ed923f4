//! Prices requests from before their model had a price, once it has one.
//!
//! So are parts of requests: tools, and passes over other models.
//!
//! Requests that await a price are in the ledger, so nothing is queued. A check reads the models of
//! such requests, one index look-up each, and prices those that now have a price. The counters are
//! updated batch by batch, after the database.

use std::sync::Arc;

use tokio::time::Instant;

use super::{HOLD_MS, Jobs};
use crate::domain::fast_map::FastMap;
use crate::domain::money::NanoUsd;
use crate::domain::part::PartKind;
use crate::domain::price::Price;
use crate::policy::{bill, price_name};
use crate::store::{StoreError, UnpricedOf, UnpricedParts, Used};

pub(super) const JOB: &str = "reprice";
/// Requests per transaction: a few hundredths of a second on the embedded database.
const BATCH: u32 = 200;

impl Jobs {
    /// Requests a check soon: a price arrived.
    pub fn reprice_soon(&self) {
        self.0.price.notify_one();
    }

    /// Prices everything that can be priced now; returns the number of requests.
    ///
    /// # Errors
    /// [`StoreError`]; requests that were priced before it stay priced.
    pub async fn reprice(&self) -> Result<u64, StoreError> {
        Ok(self.reprice_requests().await? + self.reprice_parts().await?)
    }

    /// Prices parts that had no price when their request was recorded. It reads every request that
    /// has one, so it runs after a price arrived, and rarely otherwise.
    async fn reprice_parts(&self) -> Result<u64, StoreError> {
        let parts = &self.0.parts;
        let (mut after, mut priced) = ([0; 16], 0);
        let mut prices: Option<FastMap<String, Arc<Price>>> = None;
        loop {
            let found = parts.node.store.unpriced_parts_after(&after, BATCH).await?;
            let Some(last) = found.last() else { break };
            after = last.id();
            if prices.is_none() {
                let table = parts.node.store.price_table().await?;
                prices =
                    Some(table.into_iter().map(|price| (price.model.clone(), price)).collect());
            }
            let Some(table) = &prices else { break };
            let late: Vec<UnpricedParts> =
                found.into_iter().filter_map(|request| charged(request, table)).collect();
            let now = self.now().await?;
            if late.is_empty() {
                continue;
            }
            if !parts.node.store.take_job(JOB, &self.0.name, now, now.plus_ms(HOLD_MS)).await? {
                return Ok(priced);
            }
            let (began, counting) = (Instant::now(), self.0.counting.lock().await);
            let costs = parts.node.store.reprice_parts(&late).await?;
            parts.node.counters.spent_late(&costs, parts.node.clock.now());
            drop(counting);
            parts.node.metrics.jobs.repriced.inc_by(costs.rows.len() as u64);
            priced += costs.rows.len() as u64;
            tokio::time::sleep(began.elapsed()).await;
        }
        if priced > 0 {
            tracing::info!(
                requests = priced,
                "parts of requests were priced after their price arrived"
            );
            parts.node.store.leave_job(JOB, &self.0.name, None).await?;
        }
        Ok(priced)
    }

    /// Prices requests that have no cost.
    pub(super) async fn reprice_requests(&self) -> Result<u64, StoreError> {
        let store = &self.0.parts.node.store;
        let (mut model, mut priced, mut at_work) = (String::new(), 0, false);
        while let Some(next) = store.unpriced_model_after(&model).await? {
            model = next;
            // As when a request is settled: each name is tried for all of them before the next one
            // is.
            let upstreams = store.unpriced_upstream_models(&model).await?;
            for names in [price_name::exact, price_name::undated] {
                if let Some(price) = self.first_price(names(&model)).await? {
                    at_work = true;
                    priced += self.price_all(&model, None, &price).await?;
                    break;
                }
                for upstream in &upstreams {
                    if let Some(price) = self.first_price(names(upstream)).await? {
                        at_work = true;
                        priced += self.price_all(&model, Some(upstream), &price).await?;
                    }
                }
            }
        }
        if priced > 0 {
            tracing::info!(requests = priced, "requests were priced after their price arrived");
        }
        if at_work {
            store.leave_job(JOB, &self.0.name, None).await?;
        }
        Ok(priced)
    }

    /// The price of the first of the names that has one.
    async fn first_price(
        &self,
        names: impl IntoIterator<Item = String>,
    ) -> Result<Option<Price>, StoreError> {
        for name in names {
            if let Some(price) = self.0.parts.node.store.price(&name).await? {
                return Ok(Some(price));
            }
        }
        Ok(None)
    }

    async fn price_all(
        &self,
        model: &str,
        upstream: Option<&String>,
        price: &Price,
    ) -> Result<u64, StoreError> {
        let upstream_model = upstream.map(String::as_str);
        let of = UnpricedOf { model, upstream_model, price_model: &price.model };
        let charge = |used: &mut Used, multiplier| {
            let Used { usage, parts, upstream_model, .. } = used;
            let asked = [model, upstream_model.as_deref().unwrap_or(model)];
            let reply =
                bill::PricedReply { own: Some(price), asked, find: |_: &str| None, multiplier };
            reply.charge(usage, parts).unwrap_or_default()
        };
        let parts = &self.0.parts;
        let mut priced = 0;
        loop {
            let now = self.now().await?;
            if !parts.node.store.take_job(JOB, &self.0.name, now, now.plus_ms(HOLD_MS)).await? {
                return Ok(priced);
            }
            let (began, counting) = (Instant::now(), self.0.counting.lock().await);
            let late = parts.node.store.reprice(of, BATCH, &charge).await?;
            parts.node.counters.spent_late(&late, parts.node.clock.now());
            drop(counting);
            let count = late.rows.len();
            parts.node.metrics.jobs.repriced.inc_by(count as u64);
            priced += count as u64;
            if count < BATCH as usize {
                return Ok(priced);
            }
            tokio::time::sleep(began.elapsed()).await;
        }
    }
}

/// The request with the costs of those of its parts that have a price now; `None` if none has.
fn charged(
    mut request: UnpricedParts,
    prices: &FastMap<String, Arc<Price>>,
) -> Option<UnpricedParts> {
    let price = |asked: &str, upstream: &str| {
        price_name::find(asked, upstream, |name| prices.get(name)).map(AsRef::as_ref)
    };
    let mut parts = std::mem::take(&mut request.used.parts);
    let upstream = request.used.upstream_model.as_deref().unwrap_or(&request.model);
    // Tools are charged by the requested model's entry, also if a fallback served.
    let fell_back = parts.iter().any(|part| part.kind == PartKind::FallbackMessage);
    let noted = request.price_model.as_deref().filter(|_| !fell_back);
    let own = noted.and_then(|name| price(name, name)).or_else(|| price(&request.model, upstream));
    let (asked, multiplier) = ([&*request.model, upstream], request.multiplier);
    let find = |model: &str| price(model, model);
    let added = bill::PricedReply { own, asked, find, multiplier }.charge_late(&mut parts);
    let is_priced = parts.iter().all(|part| part.cost.is_some() || part.free);
    request.used.parts = parts;
    let most = NanoUsd(NanoUsd::MAX_OF_REQUEST.0.saturating_sub(request.cost.0).max(0));
    (added != NanoUsd::ZERO || is_priced).then(|| request.with(added.min(most)))
}
