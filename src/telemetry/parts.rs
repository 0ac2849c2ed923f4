//! Counts the parts of replies that have a price of their own.

use prometheus::{CounterVec, Error, IntCounterVec};

use super::metrics::usd;
use super::registration::Registration;
use crate::domain::part::Part;

pub(super) struct PartMetrics {
    parts: IntCounterVec,
    cost: CounterVec,
    tool_checks: IntCounterVec,
}

impl PartMetrics {
    pub(super) fn register(on: &Registration<'_>) -> Result<Self, Error> {
        Ok(Self {
            parts: on.counters(
                "tollgate_cost_parts_total",
                "Parts of replies with a price of their own: passes over other models, tools.",
                &["kind", "priced"],
            )?,
            cost: on.sums("tollgate_cost_parts_usd_total", "Cost of these parts.", &["kind"])?,
            tool_checks: on.counters(
                "tollgate_tool_checks_total",
                "Replies whose tool calls a model of the operator checked, by the result.",
                &["result"],
            )?,
        })
    }

    pub(super) fn tool_check(&self, result: &'static str) {
        self.tool_checks.with_label_values(&[result]).inc();
    }

    pub(super) fn count(&self, parts: &[Part]) {
        for part in parts {
            let kind = part.kind.as_str();
            let priced = match part.cost {
                _ if part.free => "free",
                Some(_) => "yes",
                None => "no",
            };
            self.parts.with_label_values(&[kind, priced]).inc();
            self.cost.with_label_values(&[kind]).inc_by(usd(part.cost).unwrap_or_default());
        }
    }
}
