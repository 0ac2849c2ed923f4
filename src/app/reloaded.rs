//! The parts that a reload of the configuration, or a changed secret file, changes.

use std::sync::Arc;

use super::parts::Parts;
use crate::config::Config;
use crate::setup::secrets;
use crate::state::Node;
use crate::telemetry::LogHandle;

/// The secret itself, and what is wrong with it, appear only in the log.
pub(super) const SECRET_REFUSED: &str = "a secret could not be put into effect: the log says why";

/// The parts that a reload changes.
pub(super) struct Reloaded {
    pub node: Arc<Node>,
    pub log: LogHandle,
}

impl Reloaded {
    pub(super) fn of(parts: &Parts, log: LogHandle) -> Self {
        Self { node: Arc::clone(&parts.node), log }
    }

    /// Reports to metrics, `/readyz` and the overview how a change ended; `Err` = why it is not in
    /// effect.
    pub(super) fn record_reload(&self, ended: Result<(), &str>) {
        self.node.metrics.node.reloaded(ended.is_ok());
        match ended {
            Ok(()) => self.node.conditions.reload_accepted(),
            Err(why) => self.node.conditions.reload_refused(why, self.node.clock.now()),
        }
    }

    /// Puts the token and the secret keys of the configuration into effect. Returns whether both
    /// succeeded.
    pub(super) async fn apply_secrets(&self, config: &Config) -> bool {
        let token = match secrets::admin_token(config) {
            Ok(found) => {
                if self.node.admin_token.replace(found.token) {
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
        let Some(ring) = secrets::key_ring(config).filter(|_| !self.node.state.vault().has_file())
        else {
            if self.node.state.vault().has_file() == config.auth.secret_key.is_some() {
                tracing::warn!(
                    "auth.secret_key in place of the data directory's secret.key is in effect \
                     after a restart"
                );
            }
            return true;
        };
        let ids = ring.ids();
        match self.node.state.rekey(ring).await {
            Ok(false) => true,
            Ok(true) => {
                tracing::info!(keys = ids, "the secret keys were changed");
                match self.node.state.publish().await {
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
