//! Disables credentials that their provider refused, in the database.
//!
//! It sets the credential's own switch, with the reason, an audit record and a notification. Writes
//! are serialised over all nodes, so only one finds the credential enabled. Only an administrator
//! enables it again, or enters another text. The last enabled credential of a provider stays
//! enabled: its failures count for the provider's circuit.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::CredentialPlace;
use crate::domain::provider::{LastError, Provider};
use crate::domain::provider_credential::ProviderCredential;
use crate::state::health::attempts::AttemptError;
use crate::state::publish::StateError;
use crate::state::{Node, ProviderChange, ProviderNews};
use crate::store::AuditEntry;

/// Interval between two tries while the database does not answer.
const PAUSE: Duration = Duration::from_secs(1);
/// The actor in the audit log.
const ACTOR: &str = "gateway";

/// The task; see the header.
pub struct DisableRefused {
    /// Its credentials' states have the refusals.
    pub node: Arc<Node>,
}

impl DisableRefused {
    /// Runs until `stop` resolves. Database errors are logged once.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        tokio::pin!(stop);
        let mut failing = false;
        loop {
            let again = async {
                match failing {
                    true => tokio::time::sleep(PAUSE).await,
                    false => self.node.credentials.refused.notified().await,
                }
            };
            tokio::select! {
                () = &mut stop => return,
                () = again => {}
            }
            match self.disable_all().await {
                Ok(()) => failing = false,
                Err(error) => {
                    if !std::mem::replace(&mut failing, true) {
                        tracing::warn!(%error, "a refused key of a provider could not be disabled \
                            in the database: this node does not use it");
                    }
                }
            }
        }
    }

    /// An error of one does not keep the others from being disabled; the last is returned.
    async fn disable_all(&self) -> Result<(), StateError> {
        let mut result = Ok(());
        for provider in &self.node.state.snapshot().providers {
            for one in &provider.variants {
                let place = (provider.id, one.credential_id());
                let entry = self.node.credentials.entry(place);
                let error = entry.lock().refused.clone();
                if let Some(error) = error
                    && let Err(failed) = self.disable(place, &error).await
                {
                    result = Err(failed);
                }
            }
        }
        result
    }

    /// Disables the credential, unless another node was first or an administrator enabled it since.
    async fn disable(
        &self,
        place: CredentialPlace,
        error: &AttemptError,
    ) -> Result<(), StateError> {
        let mut tx = self.node.state.store().begin().await?;
        let Some(stored) = tx.provider(place.0).await? else { return Ok(()) };
        let before = stored.provider;
        let is_it = |one: &&mut ProviderCredential| {
            one.id == place.1 && one.is_enabled && error.at >= one.since.max(before.health_since)
        };
        let (now, mut after) = (self.node.clock.now(), before.clone());
        let Some(one) = after.credentials.iter_mut().find(is_it) else {
            drop(tx);
            return self.published(place).await;
        };
        let why = LastError {
            kind: error.kind.as_str().to_owned(),
            status: error.status,
            message: error.message.to_string(),
            at: error.at,
        };
        let name = one.name.clone();
        (one.is_enabled, one.refused) = (false, Some(why));
        // Two nodes may have found the last two to be refused.
        if !after.credentials.iter().any(|one| one.is_enabled) {
            self.node.credentials.forget_refusal(place);
            return Ok(());
        }
        after.updated_at = now;
        tx.update_provider(&after, None).await?;
        tx.audit(&AuditEntry {
            at: now,
            actor: ACTOR.to_owned(),
            action: "providers.disableRefusedKey".to_owned(),
            target: format!("provider {}", before.id),
            before: Some(json!({ "name": before.name, "credential": name, "isEnabled": true })),
            after: Some(json!({
                "name": before.name,
                "credential": name,
                "isEnabled": false,
                "lastError": { "status": error.status, "message": error.message },
            })),
            client_addr: None,
        })
        .await?;
        tx.commit().await?;
        self.tell(&before, &name, error);
        self.published(place).await
    }

    /// From now on this node knows what the database says of the credential.
    async fn published(&self, place: CredentialPlace) -> Result<(), StateError> {
        self.node.state.publish().await?;
        self.node.credentials.forget_refusal(place);
        Ok(())
    }

    fn tell(&self, provider: &Provider, credential: &str, error: &AttemptError) {
        tracing::warn!(
            provider = provider.name,
            key = credential,
            status = error.status,
            error = &*error.message,
            "a key that its provider refused was disabled: an administrator can enable it again"
        );
        self.node.events.provider(ProviderChange {
            provider_id: provider.id,
            provider_name: provider.name.as_str().into(),
            news: ProviderNews::KeyRefused { name: credential.into() },
            last_error: Some(Arc::from(&*error.message)),
            at: error.at,
        });
    }
}
