//! Places for any number of connections, for tests that serve the administration themselves.

use std::sync::Arc;

use tollgate::domain::network::Networks;
use tollgate::state::{Entry, Listener, PlaceBounds, Places};
use tollgate::telemetry::{IntCounter, IntGauge};

pub fn places() -> Entry {
    let counter = |name| IntCounter::new(name, "a test's").unwrap();
    let places = Places::new(Listener {
        name: "admin",
        open: IntGauge::new("open", "a test's").unwrap(),
        refused_total: counter("total"),
        refused_address: counter("address"),
    });
    let exempt = Networks::default();
    Arc::new(move |address| {
        places.enter(address, PlaceBounds { total: 0, per_address: 0, exempt: &exempt })
    })
}
