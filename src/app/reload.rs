//! SIGHUP: reads the configuration again. Settings that can change live are applied, the others are
//! named in the log. Files with secrets are checked every few seconds, so that a changed one needs
//! no signal.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::parts::Parts;
use super::secret_files::SecretFiles;
use super::secrets;
use super::serve::Source;
use super::supervisor;
use crate::config::{self, Config, Live};
use crate::domain::clock::Clock;
use crate::state::{AdminToken, Conditions, State};
use crate::telemetry::{LogHandle, Metrics};

/// How often files with secrets are checked.
const LOOK: Duration = Duration::from_secs(2);

/// The secret itself, and what is wrong with it, appear only in the log.
pub(super) const SECRET_REFUSED: &str = "a secret could not be put in force: the log says why";

/// The parts that a reload changes.
pub(super) struct Reloaded {
    pub live: Arc<ArcSwap<Live>>,
    pub log: LogHandle,
    pub metrics: Arc<Metrics>,
    pub state: Arc<State>,
    pub admin_token: Arc<AdminToken>,
    pub conditions: Arc<Conditions>,
    pub clock: Arc<dyn Clock>,
}

/// Hang-ups from now on: one without a listener ends the process. Call it within a runtime.
pub(super) fn hangups() -> Option<Signal> {
    let failed = "SIGHUP cannot be receivers: the configuration can only be changed by a restart";
    signal(SignalKind::hangup()).inspect_err(|e| tracing::error!(error = %e, "{failed}")).ok()
}

/// Waits for hang-ups and for changed files until the process ends.
pub(super) async fn run(mut hangups: Option<Signal>, mut current: Config, source: Source, parts: Reloaded) {
    let mut files = SecretFiles::default();
    loop {
        let hung_up = async {
            match &mut hangups {
                Some(hangups) => hangups.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            signal = hung_up => match signal {
                Some(()) => {
                    supervisor::reloading();
                    reload(&mut current, &source, &parts).await;
                    files = SecretFiles::default();
                    supervisor::ready();
                }
                None => hangups = None,
            },
            () = tokio::time::sleep(LOOK) => files.look(&mut current, &parts).await,
        }
    }
}

async fn reload(current: &mut Config, source: &Source, parts: &Reloaded) {
    match config::load(source.file.as_deref(), &config::process_env) {
        Err(problems) => {
            parts.record_reload(Err(&one_line(&problems.to_string())));
            tracing::error!(%problems, "the new configuration has faults: the old one stays in force");
        }
        Ok(new) => {
            let changes = current.changes(&new);
            tracing::info!(changes = changes.describe(), "read the configuration again");
            parts.log.set_level(&new.live.log_level);
            parts.live.store(Arc::new(new.live.clone()));
            *current = new;
            let applied = parts.apply_secrets(current).await;
            parts.record_reload(if applied { Ok(()) } else { Err(SECRET_REFUSED) });
        }
    }
}

impl Reloaded {
    pub(super) fn of(parts: &Parts, log: LogHandle) -> Self {
        Self {
            live: Arc::clone(&parts.live),
            log,
            metrics: Arc::clone(&parts.metrics),
            conditions: Arc::clone(&parts.conditions),
            clock: Arc::clone(&parts.clock),
            state: Arc::clone(&parts.state),
            admin_token: Arc::clone(&parts.gateway.admin_token),
        }
    }

    /// Reports to metrics, `/readyz` and the overview how a change ended; `Err` = why it is not in
    /// effect.
    pub(super) fn record_reload(&self, ended: Result<(), &str>) {
        self.metrics.reloaded(ended.is_ok());
        match ended {
            Ok(()) => self.conditions.reload_accepted(),
            Err(why) => self.conditions.reload_refused(why, self.clock.now()),
        }
    }

    /// Puts the token and the secret keys of the configuration into effect. Returns whether both
    /// succeeded.
    pub(super) async fn apply_secrets(&self, config: &Config) -> bool {
        let token = match secrets::admin_token(config) {
            Ok(found) => {
                if self.admin_token.replace(found.token) {
                    tracing::warn!("the admin token has changed: logins with the old one have ended");
                }
                true
            }
            Err(error) => {
                tracing::error!(error = format!("{error:#}"), "the admin token stays as it was");
                false
            }
        };
        self.apply_keys(config).await && token
    }

    async fn apply_keys(&self, config: &Config) -> bool {
        let Some(ring) = secrets::key_ring(config).filter(|_| !self.state.vault().has_file()) else {
            if self.state.vault().has_file() == config.auth.secret_key.is_some() {
                tracing::warn!(
                    "auth.secret_key in place of the data directory's secret.key is in force after a restart"
                );
            }
            return true;
        };
        let ids = ring.ids();
        match self.state.rekey(ring).await {
            Ok(false) => true,
            Ok(true) => {
                tracing::info!(keys = ids, "the secret keys were changed");
                match self.state.publish().await {
                    Ok(()) => true,
                    Err(error) => {
                        tracing::error!(%error, "the secret keys were changed, and the credentials not read again");
                        false
                    }
                }
            }
            Err(error) => {
                tracing::error!(keys = ids, %error, "the new secret keys do not fit: the old ones stay in force");
                false
            }
        }
    }
}

/// The errors on one line, for a banner.
fn one_line(faults: &str) -> String {
    faults.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}
