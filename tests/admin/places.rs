//! Connection slots for any number of connections, for tests that serve the administration
//! themselves.

use std::sync::Arc;

use tollgate::domain::network::Networks;
use tollgate::state::{ConnectionSlots, Entry, Listener, SlotBounds};
use tollgate::telemetry::{IntCounter, IntGauge};

pub fn slots() -> Entry {
    let counter = |name| IntCounter::new(name, "a test's").unwrap();
    let slots = ConnectionSlots::new(Listener {
        name: "admin",
        open: IntGauge::new("open", "a test's").unwrap(),
        refused_total: counter("total"),
        refused_address: counter("address"),
    });
    let exempt = Networks::default();
    Arc::new(move |address| {
        slots.enter(address, SlotBounds { total: 0, per_address: 0, exempt: &exempt })
    })
}
