//! The memory of request bodies, and how often it was used up.

use prometheus::{Error, IntCounter, IntGauge};

use super::registration::Registration;

/// Figures of the bodies of all requests in flight. The gauge is updated at each scrape.
pub struct BodyMetrics {
    /// Bytes held now.
    pub held: IntGauge,
    /// Requests refused because the budget was used up.
    pub refused: IntCounter,
}

impl BodyMetrics {
    pub(super) fn register(on: &Registration<'_>) -> Result<Self, Error> {
        Ok(Self {
            held: on.gauge(
                "tollgate_request_body_bytes",
                "Bytes of request bodies that are held now.",
            )?,
            refused: on.counter(
                "tollgate_request_bodies_refused_total",
                "Requests refused because the bodies of others took all room \
                 (proxy.max_inflight_body_bytes).",
            )?,
        })
    }
}
