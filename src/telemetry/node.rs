//! Figures of one node: the configuration in effect, the database, lost log lines.

use prometheus::{Error, IntCounter, IntCounterVec, IntGauge};

use super::line_buffer;
use super::registration::Registration;
use crate::domain::clock::Timestamp;

/// The figures of the node.
pub struct NodeMetrics {
    store_up: IntGauge,
    replica_used: IntGauge,
    replica_lag_seconds: IntGauge,
    snapshot_version: IntGauge,
    providers_left_out: IntGauge,
    reloads: IntCounterVec,
    log_dropped: IntCounter,
    /// 1 if the last reload was refused.
    reload_refused: IntGauge,
    /// 1 while the node serves with the snapshot.
    on_snapshot: IntGauge,
    snapshot_saved: IntGauge,
    snapshot_errors: IntCounter,
}

impl NodeMetrics {
    pub(super) fn register(on: &Registration<'_>) -> Result<Self, Error> {
        Ok(Self {
            store_up: on.gauge("tollgate_store_up", "Whether the database answers.")?,
            replica_used: on.gauge(
                "tollgate_database_replica_used",
                "1 while reports read from database.read_url; 0 if that is not set.",
            )?,
            replica_lag_seconds: on.gauge(
                "tollgate_database_replica_lag_seconds",
                "How far the database of database.read_url is behind; as long as it is used.",
            )?,
            snapshot_version: on.gauge(
                "tollgate_snapshot_version",
                "Version of the configuration data that is in effect.",
            )?,
            providers_left_out: on.gauge(
                "tollgate_providers_left_out",
                "Providers whose credential does not open.",
            )?,
            reloads: on.counters(
                "tollgate_config_reloads_total",
                "Reloads of the configuration file.",
                &["result"],
            )?,
            log_dropped: on
                .counter("tollgate_log_lines_dropped_total", "Log lines lost to a slow reader.")?,
            reload_refused: on.gauge(
                "tollgate_config_reload_refused",
                "1 while the last reload of the configuration file was refused and the old one is \
                 in effect.",
            )?,
            on_snapshot: on.gauge(
                "tollgate_database_snapshot_in_use",
                "1 while the node serves with the snapshot on its disk, because its start did not \
                 reach the database.",
            )?,
            snapshot_saved: on.gauge(
                "tollgate_database_snapshot_timestamp_seconds",
                "When this process last wrote the snapshot of the configuration; 0 if it has not.",
            )?,
            snapshot_errors: on.counter(
                "tollgate_database_snapshot_errors_total",
                "Snapshots of the database that could not be written.",
            )?,
        })
    }

    /// Takes over the figures that other modules keep.
    pub(super) fn update(&self) {
        self.log_dropped
            .inc_by(line_buffer::dropped_total().saturating_sub(self.log_dropped.get()));
    }

    /// Reports whether the database answered the last check.
    pub fn store_up(&self, up: bool) {
        self.store_up.set(i64::from(up));
    }

    /// Reports whether reports read from the replica, and its lag in seconds; `None`: they do not.
    pub fn replica(&self, lag_seconds: Option<u64>) {
        self.replica_used.set(i64::from(lag_seconds.is_some()));
        let lag = lag_seconds.map_or(0, |lag| i64::try_from(lag).unwrap_or(i64::MAX));
        self.replica_lag_seconds.set(lag);
    }

    /// Reports the version of the configuration snapshot in effect.
    pub fn snapshot_version(&self, version: i64) {
        self.snapshot_version.set(version);
    }

    /// Reports how many providers are left out because this process cannot open their credential.
    pub fn providers_left_out(&self, count: usize) {
        self.providers_left_out.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Reports whether the node serves with the snapshot on its disk.
    pub fn on_snapshot(&self, is_on: bool) {
        self.on_snapshot.set(i64::from(is_on));
    }

    /// The snapshot of the configuration was written; it was read from the database at this time.
    pub fn snapshot_saved(&self, taken_at: Timestamp) {
        self.snapshot_saved.set(taken_at.0 / 1000);
    }

    /// A snapshot could not be written.
    pub fn snapshot_failed(&self) {
        self.snapshot_errors.inc();
    }

    /// A reload of the configuration file, accepted or not.
    pub fn reloaded(&self, accepted: bool) {
        self.reloads.with_label_values(&[if accepted { "accepted" } else { "refused" }]).inc();
        self.reload_refused.set(i64::from(!accepted));
    }
}
