//! Counts second providers that were asked because the first had sent nothing yet.

use prometheus::{CounterVec, Error, IntCounterVec};

use super::forget::forget;
use super::metrics::usd;
use super::registration::Registration;
use crate::domain::money::NanoUsd;

/// The hedges of streams.
pub struct HedgeMetrics {
    hedges: IntCounterVec,
    cost: CounterVec,
}

impl HedgeMetrics {
    pub(super) fn register(on: &Registration<'_>) -> Result<Self, Error> {
        Ok(Self {
            hedges: on.counters(
                "tollgate_hedges_total",
                "Second providers that were asked because the first had sent nothing yet, by whose \
                 reply the client got.",
                &["outcome"],
            )?,
            cost: on.sums(
                "tollgate_hedge_cost_usd_total",
                "Cost of the attempts that lost against the other provider, by their provider.",
                &["provider"],
            )?,
        })
    }

    /// A hedge ended: the client got the reply of the `first` provider, of the `second`, or
    /// `none`; or the second `failed`.
    pub fn ended(&self, outcome: &'static str) {
        self.hedges.with_label_values(&[outcome]).inc();
    }

    /// An attempt lost, and cost this much.
    pub fn lost(&self, provider: &str, cost: Option<NanoUsd>) {
        self.cost.with_label_values(&[provider]).inc_by(usd(cost).unwrap_or_default());
    }

    pub(super) fn keep(&self, keep: &impl Fn(&str) -> bool) {
        forget(&self.cost, keep);
    }
}
