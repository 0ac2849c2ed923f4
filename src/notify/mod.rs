//! Notifications: a circuit opened, a provider fails or works again, a limit is nearly used up, a
//! model has no price, a vendor's invoice differs from the ledger, the users of the day before.
//!
//! It receives events ([`crate::state::Events`]) and checks the clock. Requests never wait for it;
//! events that it loses because of a slow receiver are counted. Settings are read when needed, so a
//! change takes effect at once. On several nodes each message is sent by one of them: it is claimed
//! in the database first.

mod circuit;
mod cost;
mod delivery;
mod invoices;
mod leaderboard;
mod message;
mod provider;
mod unpriced;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use chrono_tz::Tz;
use tokio::sync::broadcast::error::RecvError;

use crate::crypto::vault::SealedFor;
use crate::domain::clock::Timestamp;
use crate::domain::secret::Secret;
use crate::http_client::Webhooks;
use crate::state::Node;
use crate::store::{StoreError, StoredNotifications};
use delivery::Outbox;

/// How often the clock is checked.
const TICK: Duration = Duration::from_secs(20);

/// The parts that the work needs.
pub struct Notifier {
    /// Its events and counters are watched; its database has the settings, and the claims of
    /// messages.
    pub node: Arc<Node>,
    /// The database's server decides what is due, if there is one; otherwise the node's clock. A
    /// node whose clock is ahead would claim messages that others then do not send.
    pub by_server: bool,
    /// Sends the messages, to allowed addresses only.
    pub webhooks: Webhooks,
    /// Decides when a day ends, and when the leaderboard is due.
    pub time_zone: Tz,
    /// Waits between the attempts to deliver a message.
    pub backoff: Vec<Duration>,
}

/// Waits between attempts: a receiver may be unreachable for half an hour.
pub fn usual_backoff() -> Vec<Duration> {
    [1, 5, 30, 120, 600, 1200].map(Duration::from_secs).to_vec()
}

/// An error that prevented a notification.
#[derive(Debug, thiserror::Error)]
enum NotifyError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the signing key {0}")]
    Vault(#[from] crate::crypto::vault::VaultError),
}

impl Notifier {
    /// Runs until `shutdown` resolves. Deliveries that still wait are dropped then.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let (outbox, waiting) = delivery::outbox(Arc::clone(&self.node.metrics));
        tokio::select! {
            () = shutdown => {}
            () = self.watch(&outbox) => {}
            () = self.tick(&outbox) => {}
            () = self.reconcile(&outbox) => {}
            () = delivery::deliver(waiting, &self) => {}
        }
    }

    async fn watch(&self, outbox: &Outbox) {
        let mut circuits = self.node.events.watch_circuits();
        let mut providers = self.node.events.watch_providers();
        loop {
            let missed = tokio::select! {
                circuit = circuits.recv() => match circuit {
                    Ok(change) => {
                        self.heed(circuit::opened(self, outbox, &change).await);
                        continue;
                    }
                    Err(missed) => missed,
                },
                provider = providers.recv() => match provider {
                    Ok(change) => {
                        self.heed(provider::changed(self, outbox, &change).await);
                        continue;
                    }
                    Err(missed) => missed,
                },
            };
            match missed {
                RecvError::Lagged(missed) => tracing::debug!(missed, "notifications missed events"),
                RecvError::Closed => std::future::pending::<()>().await,
            }
        }
    }

    async fn tick(&self, outbox: &Outbox) {
        let mut checked = crate::domain::clock::Timestamp(0);
        loop {
            self.heed(leaderboard::if_due(self, outbox).await);
            self.heed(cost::if_due(self, outbox, &mut checked).await);
            self.heed(unpriced::if_any(self, outbox).await);
            tokio::time::sleep(TICK).await;
        }
    }

    /// Apart from the other checks: vendors may take minutes.
    async fn reconcile(&self, outbox: &Outbox) {
        loop {
            self.heed(invoices::if_due(self, outbox).await);
            tokio::time::sleep(TICK).await;
        }
    }

    fn heed(&self, done: Result<(), NotifyError>) {
        if let Err(error) = done {
            tracing::warn!(%error, "a notification could not be made");
        }
    }

    /// The present.
    async fn now(&self) -> Result<Timestamp, NotifyError> {
        let own = self.node.clock.now();
        Ok(if self.by_server { self.node.store.shared_time(own).await? } else { own })
    }

    /// The settings, if notifications are enabled.
    async fn settings(&self) -> Result<Option<StoredNotifications>, NotifyError> {
        let stored = self.node.store.notifications().await?;
        Ok(stored.settings.enabled.then_some(stored))
    }

    fn secret(&self, stored: &StoredNotifications) -> Result<Option<Secret>, NotifyError> {
        let open = |cipher: &String| self.node.state.vault().open(SealedFor::WebhookSecret, cipher);
        Ok(stored.secret_cipher.as_ref().map(open).transpose()?)
    }
}
