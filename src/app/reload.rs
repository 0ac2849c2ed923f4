//! SIGHUP: the configuration is read anew; what can change live does, the rest is named in the log.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::signal::unix::{SignalKind, signal};

use super::serve::Source;
use crate::config::{self, Config, Live};
use crate::telemetry::{LogHandle, Metrics};

/// What a reload reaches.
pub struct Reloaded {
    pub live: Arc<ArcSwap<Live>>,
    pub log: LogHandle,
    pub metrics: Arc<Metrics>,
}

/// Waits for hang-ups for as long as the process runs.
pub async fn on_hangup(mut current: Config, source: Source, parts: Reloaded) {
    let Reloaded { live, log, metrics } = parts;
    let mut hangups = match signal(SignalKind::hangup()) {
        Ok(hangups) => hangups,
        Err(e) => {
            tracing::error!(error = %e, "SIGHUP cannot be heard: the configuration can only be changed by a restart");
            return;
        }
    };
    while hangups.recv().await.is_some() {
        match config::load(source.file.as_deref(), &config::process_env) {
            Err(problems) => {
                metrics.reloaded(false);
                tracing::error!(%problems, "the new configuration has faults: the old one stays in force");
            }
            Ok(new) => {
                let changes = current.changes(&new);
                tracing::info!(changes = changes.describe(), "read the configuration again");
                log.set_level(&new.live.log_level);
                metrics.reloaded(true);
                live.store(Arc::new(new.live.clone()));
                current = new;
            }
        }
    }
}
