//! What tasks and the administration get of the shared parts.

use std::sync::Arc;

use tokio::sync::watch;

use super::opening;
use super::parts::Parts;
use super::price_sync::PriceSync;
use super::snapshot::{self, Recovery, Saver};
use super::store_watch::StoreWatch;
use crate::admin::playground::{InProcessProxy, Playground};
use crate::domain::version;
use crate::formats::client_address::client_address;
use crate::http_client::Webhooks;
use crate::limits::{FromStore, Keeper};
use crate::state::{HealthFile, Peers, SwitchOff};

/// A record that waits for longer is missing after a rebuild from the ledger: nodes send again only
/// what they settled in the last two minutes.
const LATEST_MS: u64 = 60_000;

impl Parts {
    /// The task that watches for opening balances of an import; `None` with shared counters.
    pub(super) fn opening_watch(&self) -> Option<opening::Watch> {
        let watch = || opening::Watch {
            counted: Arc::clone(&self.opening),
            counters: self.counters.clone(),
            store: self.store.clone(),
            state: Arc::clone(&self.state),
            clock: Arc::clone(&self.clock),
        };
        self.config.redis.is_none().then(watch)
    }

    /// The task that writes the snapshot of the database; `None` if none is kept.
    pub(super) fn saver(&self) -> Option<Saver> {
        snapshot::is_on(&self.config, self.state.vault()).then(|| Saver {
            dir: self.config.data_dir.clone(),
            store: self.store.clone(),
            state: Arc::clone(&self.state),
            counters: self.counters.clone(),
            conditions: Arc::clone(&self.conditions),
            metrics: Arc::clone(&self.metrics),
            clock: Arc::clone(&self.clock),
        })
    }

    /// The task that ends the service with a snapshot; `None` after a start with the database.
    pub(super) fn recovery(&self) -> Option<Recovery> {
        let started = self.started.lock().take()?;
        let recovery = Recovery {
            config: self.config.clone(),
            store: self.store.clone(),
            state: Arc::clone(&self.state),
            counters: self.counters.clone(),
            conditions: Arc::clone(&self.conditions),
            metrics: Arc::clone(&self.metrics),
            clock: Arc::clone(&self.clock),
            started,
        };
        recovery.report(None);
        Some(recovery)
    }

    /// The task that checks the database.
    pub(super) fn store_watch(&self) -> StoreWatch {
        StoreWatch {
            store: self.store.clone(),
            metrics: Arc::clone(&self.metrics),
            conditions: Arc::clone(&self.conditions),
            clock: Arc::clone(&self.clock),
        }
    }

    /// The sender of notifications.
    #[must_use]
    pub(super) fn notifier(&self) -> crate::notify::Notifier {
        crate::notify::Notifier {
            store: self.store.clone(),
            state: Arc::clone(&self.state),
            counters: self.counters.clone(),
            events: self.events.clone(),
            clock: Arc::clone(&self.clock),
            by_server: true,
            metrics: Arc::clone(&self.metrics),
            webhooks: Webhooks::new(self.config.webhooks.allow_private.clone()),
            time_zone: self.config.time_zone,
            unpriced: Arc::clone(&self.gateway.unpriced_models),
            backoff: crate::notify::usual_backoff(),
        }
    }

    /// The task that disables providers that fail for too long.
    #[must_use]
    pub(super) fn switch_off(&self) -> SwitchOff {
        SwitchOff {
            state: Arc::clone(&self.state),
            health: Arc::clone(&self.health),
            events: self.events.clone(),
            live: Arc::clone(&self.live),
            clock: Arc::clone(&self.clock),
        }
    }

    /// The task that maintains shared counters; `None` for a node's own.
    pub(super) fn keeper(&self) -> Option<Keeper> {
        let (store, journal) = (self.store.clone(), Arc::clone(&self.ledger));
        let is_delivered = Box::new(move || {
            let stats = journal.stats();
            stats.left_bytes == 0 && stats.oldest_age_ms < LATEST_MS
        });
        let ledger = FromStore { store, is_delivered };
        self.counters.keeper(Arc::new(ledger), Arc::clone(&self.clock))
    }

    /// The task that shares providers' health. An invalid address was refused with the counters.
    pub(super) fn peers(&self) -> Option<Peers> {
        let redis = self.config.redis.as_ref()?;
        let (state, health) = (Arc::clone(&self.state), Arc::clone(&self.health));
        Peers::new(&redis.server().ok()?, &redis.prefix, state, health).ok()
    }

    /// The providers' state when the previous process ended; and the task that stores it, if Redis
    /// does not.
    pub(super) fn health_file(&self) -> Option<HealthFile> {
        if self.config.redis.is_some() {
            return None;
        }
        let (state, health, clock) =
            (Arc::clone(&self.state), Arc::clone(&self.health), Arc::clone(&self.clock));
        Some(HealthFile::open(&self.config.data_dir, state, health, clock))
    }

    /// The task that fetches the price list each day.
    pub(super) fn price_sync(&self, stop: watch::Receiver<bool>) -> PriceSync {
        PriceSync::new(self.admin_context(stop))
    }

    /// The administration's context, until `stop` is set.
    #[must_use]
    pub(super) fn admin_context(&self, stop: watch::Receiver<bool>) -> Arc<crate::admin::Context> {
        let ledger = Arc::clone(&self.ledger);
        let (live, trusting) = (Arc::clone(&self.gateway.live), Arc::clone(&self.gateway.live));
        let syncing = Arc::clone(&self.gateway.live);
        Arc::new(crate::admin::Context {
            state: Arc::clone(&self.state),
            store: self.store.clone(),
            clock: Arc::clone(&self.clock),
            client_address: Arc::new(move |peer, headers| {
                client_address(peer, headers, &trusting.load().trusted_proxies)
            }),
            admin_token: Arc::clone(&self.gateway.admin_token),
            time_zone: self.config.time_zone,
            app_url: self.config.admin.app_url.clone(),
            secure_cookies: self.config.admin.secure_cookies,
            version: version::NUMBER,
            proxy: crate::admin::context::ProxyPlace {
                port: self.config.proxy.addr.port(),
                tls: self.config.proxy.tls.is_some(),
            },
            metrics: Arc::clone(&self.metrics),
            jobs: self.jobs.clone(),
            webhooks: Webhooks::new(self.config.webhooks.allow_private.clone()),
            price_list: self.config.prices.sync_url.clone(),
            has_own_seed: self.config.prices.seed_file.is_some(),
            price_sync: Arc::new(move || syncing.load().price_sync),
            unpriced_models: Arc::clone(&self.gateway.unpriced_models),
            unpriced: Arc::new(move || live.load().unpriced),
            counters: Arc::new(self.counters.clone()),
            health: Arc::clone(&self.health),
            events: self.events.clone(),
            conditions: Arc::clone(&self.conditions),
            journal: Arc::new(move || ledger.stats()),
            listings: Arc::clone(&self.gateway.listings),
            rejected: Arc::clone(&self.gateway.rejected),
            store_messages: self.config.session.store_messages,
            playground: Playground::new(Arc::clone(&self.in_process) as Arc<dyn InProcessProxy>),
            stop,
        })
    }
}
