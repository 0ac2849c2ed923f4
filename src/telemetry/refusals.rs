//! Counters of refused requests and client errors, by reason.

use prometheus::{Error, IntCounterVec};

use super::registration::Registration;

/// One family for each stage that can refuse a request, and one for errors that are the client's
/// own.
pub(super) struct Refusals {
    pub(super) limits: IntCounterVec,
    pub(super) screened: IntCounterVec,
    pub(super) unauthenticated: IntCounterVec,
    pub(super) error_rules: IntCounterVec,
}

impl Refusals {
    pub(super) fn register(on: &Registration<'_>) -> Result<Self, Error> {
        Ok(Self {
            limits: on.counters(
                "tollgate_refusals_total",
                "Requests refused by a limit.",
                &["limit"],
            )?,
            screened: on.counters(
                "tollgate_screened_total",
                "Requests refused for what they hold or who sends them, before any limit is \
                 looked at.",
                &["reason"],
            )?,
            unauthenticated: on.counters(
                "tollgate_unauthenticated_total",
                "Requests refused before their caller was known, for their credentials or their head.",
                &["reason"],
            )?,
            error_rules: on.counters(
                "tollgate_error_rule_matches_total",
                "Upstream errors that an error rule made the client's own, by the rule's category.",
                &["category"],
            )?,
        })
    }
}
