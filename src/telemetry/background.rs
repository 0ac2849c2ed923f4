//! Replies that providers make in the background.

use prometheus::{Error, IntCounter, IntGauge};

use super::registration::Registration;

/// Figures of the replies that this process follows. The gauge is updated at each scrape.
pub struct BackgroundMetrics {
    /// Replies that are not billed yet.
    pub open: IntGauge,
    /// Polls without a usable answer.
    pub failed_polls: IntCounter,
}

impl BackgroundMetrics {
    pub(super) fn register(on: &Registration<'_>) -> Result<Self, Error> {
        Ok(Self {
            open: on.gauge(
                "tollgate_background_replies",
                "Responses in the background that this process follows and has not billed yet.",
            )?,
            failed_polls: on.counter(
                "tollgate_background_polls_failed_total",
                "Polls of responses in the background that the provider did not answer with 200.",
            )?,
        })
    }
}
