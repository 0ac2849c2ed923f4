//! Figures of background work: clean-up, late pricing, notifications.

use prometheus::{Error, IntCounter, IntCounterVec, IntGauge, Opts, Registry};

/// The result of a notification's delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// The receiver accepted it.
    Delivered,
    /// Given up after every attempt.
    Failed,
    /// The queue was full.
    Dropped,
}

/// The figures; counters unless they say otherwise.
pub struct JobMetrics {
    /// Request log rows removed.
    pub pruned: IntCounter,
    /// Requests priced late.
    pub repriced: IntCounter,
    notifications: IntCounterVec,
    /// Notifications waiting to be delivered (a gauge).
    pub notifications_waiting: IntGauge,
}

impl JobMetrics {
    pub(super) fn register(registry: &Registry) -> Result<Self, Error> {
        let counter = |name: &str, help: &str| {
            let counter = IntCounter::new(name, help)?;
            registry.register(Box::new(counter.clone()))?;
            Ok::<_, Error>(counter)
        };
        let notifications = IntCounterVec::new(
            Opts::new("tollgate_notifications_total", "Notifications, by what became of them."),
            &["event", "result"],
        )?;
        registry.register(Box::new(notifications.clone()))?;
        let waiting = IntGauge::new(
            "tollgate_notifications_waiting",
            "Notifications that wait to be delivered.",
        )?;
        registry.register(Box::new(waiting.clone()))?;
        Ok(Self {
            pruned: counter(
                "tollgate_pruned_rows_total",
                "Rows of the request log removed because of their age.",
            )?,
            repriced: counter(
                "tollgate_repriced_requests_total",
                "Requests priced after their price arrived.",
            )?,
            notifications,
            notifications_waiting: waiting,
        })
    }

    /// A notification's end. `event` is its kind, one of a small set.
    pub fn notified(&self, event: &'static str, result: Delivery) {
        let result = match result {
            Delivery::Delivered => "delivered",
            Delivery::Failed => "failed",
            Delivery::Dropped => "dropped",
        };
        self.notifications.with_label_values(&[event, result]).inc();
    }
}
