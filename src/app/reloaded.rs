//! The parts that a reload of the configuration, or a changed secret file, changes.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::parts::Parts;
use crate::config::{Config, Live};
use crate::domain::clock::Clock;
use crate::setup::secrets;
use crate::state::{AdminToken, Conditions, State};
use crate::telemetry::{LogHandle, Metrics};

/// The secret itself, and what is wrong with it, appear only in the log.
pub(super) const SECRET_REFUSED: &str = "a secret could not be put into effect: the log says why";

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
        self.metrics.node.reloaded(ended.is_ok());
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
                    tracing::warn!(
                        "the admin token has changed: logins with the old one have ended"
                    );
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
        let Some(ring) = secrets::key_ring(config).filter(|_| !self.state.vault().has_file())
        else {
            if self.state.vault().has_file() == config.auth.secret_key.is_some() {
                tracing::warn!(
                    "auth.secret_key in place of the data directory's secret.key is in effect \
                     after a restart"
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
                        tracing::error!(%error, "the secret keys were changed, and the credentials \
                            not read again");
                        false
                    }
                }
            }
            Err(error) => {
                tracing::error!(keys = ids, %error, "the new secret keys do not fit: the old ones \
                    stay in effect");
                false
            }
        }
    }
}
