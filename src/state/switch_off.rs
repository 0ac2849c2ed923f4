//! Disables a provider after enough failed probes of its circuit
//! (`breaker.disable_after_failed_probes`).
//!
//! It sets the administrator's switch (`is_enabled`), with the reason, an audit record and a
//! notification. Writes are serialised over all nodes, so only one node finds the provider enabled
//! and disables it; the others receive the change as any other. A provider stays enabled while it
//! is the only one for a model of a group. Only an administrator enables it again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::Node;
use super::events::{ProviderChange, ProviderNews};
use super::health::attempts::AttemptError;
use super::publish::StateError;
use crate::domain::ids::ProviderId;
use crate::domain::provider::{LastError, Provider, SwitchedOff};
use crate::policy::stand_in;
use crate::store::AuditEntry;

/// Interval between two checks. A circuit that opens on this node is checked at once.
const LOOK: Duration = Duration::from_secs(1);
/// The actor in the audit log.
const ACTOR: &str = "gateway";

/// The task; see the header.
pub struct SwitchOff {
    /// Its health counts failed probes, and its live settings have the bound.
    pub node: Arc<Node>,
}

/// The result of a check, for the next one.
#[derive(Default)]
struct Memory {
    /// Providers over the bound: their failed probes at the last check, and whether they were
    /// handled for these.
    looked_at: HashMap<ProviderId, (u32, bool)>,
    failing: bool,
}

/// The result for one provider.
enum Done {
    Disabled(SwitchedOff),
    /// It is the only one for this.
    Kept {
        group: String,
        model: String,
    },
    /// Another node was first, or an administrator has changed the provider.
    Nothing,
}

impl SwitchOff {
    /// Runs until `stop` resolves. Database errors are logged once, and the next check tries again.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        tokio::pin!(stop);
        let mut circuits = self.node.events.watch_circuits();
        let mut memory = Memory::default();
        loop {
            tokio::select! {
                () = &mut stop => return,
                // It matters neither which circuit it was, nor whether some were missed.
                _ = circuits.recv() => {}
                () = tokio::time::sleep(LOOK) => {}
            }
            self.look(&mut memory).await;
        }
    }

    async fn look(&self, memory: &mut Memory) {
        let bound = self.node.live.load().breaker.disable_after_failed_probes;
        let snapshot = self.node.state.snapshot();
        let mut over = HashMap::new();
        for provider in &snapshot.providers {
            // Even if nothing is to be disabled: this drops the state of an earlier address.
            let (probes, error) = self.node.health.failed_probes(provider);
            if bound == 0 || probes < bound || !provider.is_enabled {
                continue;
            }
            // The node whose probe failed has the reason: the others leave it the first second. A
            // provider that had to stay enabled is skipped until its next probe.
            let (is_due, was_done) = match memory.looked_at.get(&provider.id) {
                Some((before, was_done)) if *before == probes => (!was_done, *was_done),
                _ => (error.is_some(), false),
            };
            over.insert(provider.id, (probes, was_done));
            if !is_due {
                continue;
            }
            let done = self.disable(provider, probes, error.as_deref()).await;
            over.insert(provider.id, (probes, done.is_ok()));
            if let Err(error) = &done
                && !memory.failing
            {
                tracing::warn!(provider = provider.name, %error, "a failing provider could not be \
                    disabled");
            }
            memory.failing = done.is_err();
            if let Ok(done) = done {
                self.tell(provider, probes, done);
            }
        }
        memory.looked_at = over;
    }

    async fn disable(
        &self,
        provider: &Provider,
        probes: u32,
        error: Option<&AttemptError>,
    ) -> Result<Done, StateError> {
        let mut tx = self.node.state.store().begin().await?;
        let all = tx.providers().await?;
        let Some(stored) = all.iter().map(|one| &one.provider).find(|one| one.id == provider.id)
        else {
            return Ok(Done::Nothing);
        };
        if !stored.is_enabled || stored.health_since != provider.health_since {
            return Ok(Done::Nothing);
        }
        // If its credential does not open here, it serves nothing.
        let snapshot = self.node.state.snapshot();
        let serves = |one: &&Provider| {
            one.is_enabled && one.id != stored.id && snapshot.provider(one.id).is_some()
        };
        let others: Vec<&Provider> = all.iter().map(|one| &one.provider).filter(serves).collect();
        if let Some(gap) = stand_in::gap(stored, &others) {
            return Ok(Done::Kept { group: gap.group.to_owned(), model: gap.model.to_owned() });
        }
        let now = self.node.clock.now();
        let why = SwitchedOff { at: now, failed_probes: probes, error: error.map(last_error) };
        let switched_off = Some(why.clone());
        let disabled =
            Provider { is_enabled: false, switched_off, updated_at: now, ..stored.clone() };
        tx.update_provider(&disabled, None).await?;
        let reason = why.error.as_ref().map(
            |error| json!({ "kind": error.kind, "status": error.status, "message": error.message }),
        );
        tx.audit(&AuditEntry {
            at: now,
            actor: ACTOR.to_owned(),
            action: "providers.disableFailingProvider".to_owned(),
            target: format!("provider {}", stored.id),
            before: Some(json!({ "name": stored.name, "isEnabled": true })),
            after: Some(
                json!({ "name": stored.name, "isEnabled": false, "failedProbes": probes, "lastError": reason }),
            ),
            client_addr: None,
        })
        .await?;
        tx.commit().await?;
        if let Err(error) = self.node.state.publish().await {
            tracing::warn!(%error, "a provider was disabled, and the configuration not read again: \
                the next look does");
        }
        Ok(Done::Disabled(why))
    }

    fn tell(&self, provider: &Provider, probes: u32, done: Done) {
        match done {
            Done::Disabled(why) => {
                let error = why.error.as_ref().map(|error| error.message.as_str());
                tracing::warn!(
                    provider = provider.name,
                    failed_probes = probes,
                    error,
                    "a failing provider was disabled: an administrator can enable it again"
                );
                self.node.events.provider(ProviderChange {
                    provider_id: provider.id,
                    provider_name: provider.name.as_str().into(),
                    news: ProviderNews::SwitchedOff { failed_probes: probes },
                    last_error: error.map(Arc::from),
                    at: why.at,
                });
            }
            Done::Kept { group, model } => tracing::warn!(
                provider = provider.name,
                failed_probes = probes,
                group,
                model,
                "a failing provider stays enabled: no other one of its group serves the model"
            ),
            Done::Nothing => {}
        }
    }
}

fn last_error(error: &AttemptError) -> LastError {
    LastError {
        kind: error.kind.as_str().to_owned(),
        status: error.status,
        message: error.message.to_string(),
        at: error.at,
    }
}
