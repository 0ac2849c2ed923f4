//! What request bodies take, and how often there was no room for one.

use prometheus::{Error, IntCounter, IntGauge};

use super::registration::Registration;

/// Figures of the bodies of all requests in progress. The gauge is brought up to date when somebody
/// looks.
pub struct BodyMetrics {
    /// Bytes held now.
    pub held: IntGauge,
    /// Requests refused for want of room.
    pub refused: IntCounter,
}

impl BodyMetrics {
    pub(super) fn register(on: &Registration<'_>) -> Result<Self, Error> {
        Ok(Self {
            held: on.gauge("tollgate_request_body_bytes", "Bytes of request bodies that are held now.")?,
            refused: on.counter(
                "tollgate_request_bodies_refused_total",
                "Requests refused because the bodies of others took all room (proxy.max_inflight_body_bytes).",
            )?,
        })
    }
}
