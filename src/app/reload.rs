//! SIGHUP: the configuration is read anew; what can change live does, the rest is named in the log.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::parts::Parts;
use super::serve::Source;
use crate::config::{self, Config, Live};
use crate::domain::clock::Clock;
use crate::state::Conditions;
use crate::telemetry::{LogHandle, Metrics};

/// What a reload reaches.
pub struct Reloaded {
    pub live: Arc<ArcSwap<Live>>,
    pub log: LogHandle,
    pub metrics: Arc<Metrics>,
    pub conditions: Arc<Conditions>,
    pub clock: Arc<dyn Clock>,
}

impl Reloaded {
    #[must_use]
    pub fn of(parts: &Parts, log: &LogHandle) -> Self {
        Self {
            live: Arc::clone(&parts.live),
            log: log.clone(),
            metrics: Arc::clone(&parts.metrics),
            conditions: Arc::clone(&parts.conditions),
            clock: Arc::clone(&parts.clock),
        }
    }
}

/// Hang-ups from now on: one that nobody listens to ends the process. Call it within a runtime.
pub fn hangups() -> Option<Signal> {
    let failed = "SIGHUP cannot be heard: the configuration can only be changed by a restart";
    signal(SignalKind::hangup()).inspect_err(|e| tracing::error!(error = %e, "{failed}")).ok()
}

/// Waits for hang-ups for as long as the process runs.
pub async fn on_hangup(hangups: Option<Signal>, mut current: Config, source: Source, parts: Reloaded) {
    let Reloaded { live, log, metrics, conditions, clock } = parts;
    let Some(mut hangups) = hangups else { return };
    while hangups.recv().await.is_some() {
        match config::load(source.file.as_deref(), &config::process_env) {
            Err(problems) => {
                metrics.reloaded(false);
                conditions.reload_refused(&one_line(&problems.to_string()), clock.now());
                tracing::error!(%problems, "the new configuration has faults: the old one stays in force");
            }
            Ok(new) => {
                let changes = current.changes(&new);
                tracing::info!(changes = changes.describe(), "read the configuration again");
                log.set_level(&new.live.log_level);
                metrics.reloaded(true);
                conditions.reload_accepted();
                live.store(Arc::new(new.live.clone()));
                current = new;
            }
        }
    }
}

/// The faults on one line, for a banner.
fn one_line(faults: &str) -> String {
    faults.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}
