//! Metrics of connections: those of clients and those to providers.

use prometheus::{Error, IntCounter, IntCounterVec, IntGauge};

use super::registration::Registration;

/// The limits of a listener's connections, named after their settings.
const LIMITS: [&str; 2] = ["max_connections", "max_connections_per_address"];

/// Connections of clients, and exchanges with providers by the kind of their connection.
pub struct ConnectionMetrics {
    /// Clients' open connections to the proxy, including idle ones and TLS handshakes.
    pub open: IntGauge,
    /// Connections to the administration.
    pub admin_open: IntGauge,
    refused: IntCounterVec,
    /// Of them, those with a WebSocket.
    pub websockets: IntGauge,
    /// WebSockets to providers.
    pub provider_websockets: IntGauge,
    /// HTTP/2 connections that were closed because of their frames.
    pub floods: IntCounter,
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
        let refused = on.counters(
            "tollgate_connections_refused_total",
            "Connections that were refused, by listener (proxy, admin) and by the limit that was \
             reached: max_connections or max_connections_per_address.",
            &["listener", "limit"],
        )?;
        // Exported from the start: otherwise the first increase would not be visible.
        for listener in ["proxy", "admin"] {
            for limit in LIMITS {
                let _ = refused.with_label_values(&[listener, limit]);
            }
        }
        Ok(Self {
            open: on.gauge(
                "tollgate_connections",
                "Connections of clients to the proxy, idle ones and TLS handshakes included.",
            )?,
            provider_websockets: on.gauge(
                "tollgate_provider_websockets",
                "WebSockets to providers, idle ones included.",
            )?,
            websockets: on.gauge(
                "tollgate_websockets",
                "Connections of clients to the proxy with a WebSocket.",
            )?,
            admin_open: on
                .gauge("tollgate_admin_connections", "Connections to the administration.")?,
            refused,
            floods: on.counter(
                "tollgate_http2_floods_total",
                "HTTP/2 connections of clients that were closed for too many frames without \
                 requests or data.",
            )?,
            upstream_new: upstream.with_label_values(&["new"]),
            upstream_reused: upstream.with_label_values(&["reused"]),
            aborted: on.counters(
                "tollgate_aborted_exchanges_total",
                "Exchanges with providers whose client left: cancelled, drained, or drained in \
                 vain (incomplete).",
                &["result"],
            )?,
        })
    }

    /// The counters of a listener's refused connections: in total, and by address.
    pub fn refused(&self, listener: &'static str) -> (IntCounter, IntCounter) {
        let [total, address] =
            LIMITS.map(|limit| self.refused.with_label_values(&[listener, limit]));
        (total, address)
    }

    /// An exchange with a provider begins on this kind of connection.
    pub fn upstream(&self, reused: bool) {
        if reused { self.upstream_reused.inc() } else { self.upstream_new.inc() }
    }

    /// The client of an exchange closed its connection; `result` says what became of the provider's
    /// reply.
    pub fn aborted(&self, result: &'static str) {
        self.aborted.with_label_values(&[result]).inc();
    }
}
