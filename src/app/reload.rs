//! SIGHUP: the configuration is read anew; what can change live does, the rest is named in the log.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::parts::Parts;
use super::secrets;
use super::serve::Source;
use crate::config::{self, Config, Live};
use crate::domain::secret::Secret;
use crate::state::AdminToken;
use crate::telemetry::{LogHandle, Metrics};

/// What a reload reaches.
pub struct Reloaded {
    pub admin_token: Arc<AdminToken>,
    pub live: Arc<ArcSwap<Live>>,
    pub log: LogHandle,
    pub metrics: Arc<Metrics>,
}

impl Reloaded {
    pub fn of(parts: &Parts, log: &LogHandle) -> Self {
        Self {
            admin_token: Arc::clone(&parts.gateway.admin_token),
            live: Arc::clone(&parts.live),
            log: log.clone(),
            metrics: Arc::clone(&parts.metrics),
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
    let Reloaded { admin_token, live, log, metrics } = parts;
    let Some(mut hangups) = hangups else { return };
    while hangups.recv().await.is_some() {
        let read = config::load(source.file.as_deref(), &config::process_env)
            .map_err(|problems| problems.to_string())
            .and_then(|new| token(&current, &new).map(|token| (new, token)).map_err(|error| format!("{error:#}")));
        match read {
            Err(problems) => {
                metrics.reloaded(false);
                tracing::error!(%problems, "the new configuration has faults: the old one stays in force");
            }
            Ok((new, token)) => {
                let changes = current.changes(&new);
                tracing::info!(changes = changes.describe(), "read the configuration again");
                log.set_level(&new.live.log_level);
                metrics.reloaded(true);
                live.store(Arc::new(new.live.clone()));
                if let Some(token) = token {
                    admin_token.replace(token);
                    tracing::warn!("the admin token has changed: logins with the old one have ended");
                }
                current = new;
            }
        }
    }
}

/// The admin token, if the new configuration has another one.
fn token(current: &Config, new: &Config) -> anyhow::Result<Option<Secret>> {
    if current.auth.admin_token == new.auth.admin_token {
        return Ok(None);
    }
    // Where it is unset now, the data directory has one, or gets one.
    secrets::admin_token(new).map(|found| Some(found.token))
}
