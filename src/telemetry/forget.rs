//! Drops series of what no longer exists: names must not accumulate.

use std::collections::HashMap;

use prometheus::core::Collector as _;

/// Drops the series of providers that `keep` rejects.
pub(super) fn forget<T: prometheus::core::MetricVecBuilder>(
    family: &prometheus::core::MetricVec<T>,
    keep: &impl Fn(&str) -> bool,
) {
    for family_now in family.collect() {
        for series in family_now.get_metric() {
            let labels: HashMap<&str, &str> =
                series.get_label().iter().map(|l| (l.name(), l.value())).collect();
            if labels.get("provider").is_some_and(|name| !keep(name)) {
                let _ = family.remove(&labels);
            }
        }
    }
}
