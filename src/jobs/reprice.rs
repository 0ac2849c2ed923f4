//! Prices requests from before their model had a price, once it has one.
//!
//! Requests that await a price are in the ledger, so nothing is queued. A check reads the models of
//! such requests, one index look-up each, and prices those that now have a price. The counters are
//! updated batch by batch, after the database.

use tokio::time::Instant;

use super::{HOLD_MS, Jobs};
use crate::domain::price::Price;
use crate::policy::{bill, price_name};
use crate::store::{StoreError, UnpricedOf, Used};

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
            let Used { usage, parts, upstream_model } = used;
            let asked = [model, upstream_model.as_deref().unwrap_or(model)];
            let reply = bill::Reply { own: Some(price), asked, find: |_: &str| None, multiplier };
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
