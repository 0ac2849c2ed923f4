//! Which connections the listeners accept: applies the current settings to each listener's slots.

use std::sync::Arc;

use super::parts::Parts;
use crate::config::{ConnectionBounds, Live};
use crate::state::{ConnectionSlots, Entry, Listener, SlotBounds};
use crate::telemetry::{IntCounter, IntGauge};

/// For the proxy's listener.
pub(super) fn of_proxy(parts: &Parts) -> Entry {
    entry(parts, "proxy", parts.node.metrics.connections.open.clone(), Live::proxy_connections)
}

/// For the administration's listener.
pub(super) fn of_admin(parts: &Parts) -> Entry {
    let open = parts.node.metrics.connections.admin_open.clone();
    entry(parts, "admin", open, Live::admin_connections)
}

/// For the metrics' listener: no limit, and no metrics of its own.
pub(super) fn of_metrics(parts: &Parts) -> anyhow::Result<Entry> {
    let counter = |name| IntCounter::new(name, "of the metrics' listener");
    let slots = ConnectionSlots::new(Listener {
        name: "metrics",
        open: IntGauge::new("open", "of the metrics' listener")?,
        refused_total: counter("total")?,
        refused_address: counter("address")?,
    });
    let node = Arc::clone(&parts.node);
    Ok(Arc::new(move |address| {
        let live = node.live.load();
        slots.enter(address, SlotBounds { total: 0, per_address: 0, exempt: &live.trusted_proxies })
    }))
}

fn entry(
    parts: &Parts,
    name: &'static str,
    open: IntGauge,
    bounds: fn(&Live) -> ConnectionBounds,
) -> Entry {
    let (refused_total, refused_address) = parts.node.metrics.connections.refused(name);
    let slots = ConnectionSlots::new(Listener { name, open, refused_total, refused_address });
    let node = Arc::clone(&parts.node);
    Arc::new(move |address| {
        let live = node.live.load();
        let ConnectionBounds { total, per_address } = bounds(&live);
        slots.enter(address, SlotBounds { total, per_address, exempt: &live.trusted_proxies })
    })
}
