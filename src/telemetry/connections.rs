//! Metrics of connections: the clients' and those to providers.

use prometheus::{Error, IntCounter, IntCounterVec, IntGauge};

use super::registration::Registration;

/// Connections of clients, and exchanges with providers by the connection they used.
pub struct ConnectionMetrics {
    /// Clients' connections to the proxy that are open, idle ones included.
    pub open: IntGauge,
    /// Clients' connections that were refused because `proxy.max_connections` were open.
    pub refused: IntCounter,
    upstream_new: IntCounter,
    upstream_reused: IntCounter,
    aborted: IntCounterVec,
}

impl ConnectionMetrics {
    pub(super) fn register(on: &Registration<'_>) -> Result<Self, Error> {
        let upstream = on.counters(
            "tollgate_upstream_connections_total",
            "Exchanges with providers, by whether their connection is new or from the pool.",
            &["connection"],
        )?;
        Ok(Self {
            open: on.gauge("tollgate_connections", "Connections of clients to the proxy, idle ones included.")?,
            refused: on.counter(
                "tollgate_connections_refused_total",
                "Connections of clients that were refused because proxy.max_connections were open.",
            )?,
            upstream_new: upstream.with_label_values(&["new"]),
            upstream_reused: upstream.with_label_values(&["reused"]),
            aborted: on.counters(
                "tollgate_aborted_exchanges_total",
                "Exchanges with providers whose client left: cancelled, drained, or drained in vain (incomplete).",
                &["result"],
            )?,
        })
    }

    /// An exchange with a provider begins on this kind of connection.
    pub fn upstream(&self, reused: bool) {
        if reused { self.upstream_reused.inc() } else { self.upstream_new.inc() }
    }

    /// The client of an exchange left; `result` is what became of the provider's reply.
    pub fn aborted(&self, result: &'static str) {
        self.aborted.with_label_values(&[result]).inc();
    }
}
