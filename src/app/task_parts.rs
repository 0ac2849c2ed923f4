//! What tasks and the administration get of the shared parts.

use std::sync::Arc;

use tokio::sync::watch;

use super::opening;
use super::parts::Parts;
use super::price_sync::PriceSync;
use super::snapshot::{self, Recovery, Saver};
use crate::admin::playground::Playground;
use crate::domain::version;
use crate::http_client::Webhooks;
use crate::http_client::in_process::InProcessProxy;
use crate::limits::{ConnectionTask, FromStore};
use crate::state::{HealthFile, Peers};

/// A record that waits for longer is missing after a rebuild from the ledger: nodes send again only
/// what they settled in the last two minutes.
const LATEST_MS: u64 = 60_000;

impl Parts {
    /// The task that watches for opening balances of an import; `None` with shared counters.
    pub(super) fn opening_watch(&self) -> Option<opening::Watch> {
        let watch =
            || opening::Watch { counted: Arc::clone(&self.opening), node: Arc::clone(&self.node) };
        self.config.redis.is_none().then(watch)
    }

    /// The task that writes the snapshot of the database; `None` if none is kept.
    pub(super) fn saver(&self) -> Option<Saver> {
        let (dir, node) = (self.config.data_dir.clone(), Arc::clone(&self.node));
        snapshot::is_on(&self.config, node.state.vault()).then(|| Saver { dir, node })
    }

    /// The task that ends the service with a snapshot; `None` after a start with the database.
    pub(super) fn recovery(&self) -> Option<Recovery> {
        let started = self.started.lock().take()?;
        let (config, node) = (self.config.clone(), Arc::clone(&self.node));
        let recovery = Recovery { config, node, started };
        recovery.report(None);
        Some(recovery)
    }

    /// The sender of notifications.
    pub(super) fn notifier(&self) -> crate::notify::Notifier {
        crate::notify::Notifier {
            node: Arc::clone(&self.node),
            by_server: true,
            webhooks: Webhooks::new(self.config.webhooks.allow_private.as_ref().to_vec()),
            time_zone: self.config.time_zone,
            backoff: crate::notify::usual_backoff(),
        }
    }

    /// The task that maintains shared counters; `None` for a node's own.
    pub(super) fn connection_task(&self) -> Option<ConnectionTask> {
        let (store, journal) = (self.node.store.clone(), Arc::clone(&self.ledger));
        let is_delivered = Box::new(move || {
            let stats = journal.stats();
            stats.left_bytes == 0 && stats.oldest_age_ms < LATEST_MS
        });
        let ledger = FromStore { store, is_delivered };
        self.node.counters.connection_task(Arc::new(ledger), Arc::clone(&self.node.clock))
    }

    /// The task that shares providers' health. An invalid address was refused with the counters.
    pub(super) fn peers(&self) -> Option<Peers> {
        let redis = self.config.redis.as_ref()?;
        Peers::new(&redis.server().ok()?, &redis.prefix, Arc::clone(&self.node)).ok()
    }

    /// The providers' state when the previous process ended; and the task that stores it, if Redis
    /// does not.
    pub(super) fn health_file(&self) -> Option<HealthFile> {
        let open = || HealthFile::open(&self.config.data_dir, Arc::clone(&self.node));
        self.config.redis.is_none().then(open)
    }

    /// The task that fetches the price list each day.
    pub(super) fn price_sync(&self, stop: watch::Receiver<bool>) -> PriceSync {
        PriceSync::new(self.admin_context(stop))
    }

    /// The administration's context, until `stop` is set.
    pub(super) fn admin_context(&self, stop: watch::Receiver<bool>) -> Arc<crate::admin::Context> {
        let ledger = Arc::clone(&self.ledger);
        Arc::new(crate::admin::Context {
            node: Arc::clone(&self.node),
            time_zone: self.config.time_zone,
            app_url: self.config.admin.app_url.clone(),
            secure_cookies: self.config.secure_cookies(),
            version: version::NUMBER,
            proxy: crate::admin::context::ProxyPlace {
                port: self.config.proxy.addr.port(),
                tls: self.config.proxy.tls().is_some(),
            },
            jobs: self.jobs.clone(),
            webhooks: Webhooks::new(self.config.webhooks.allow_private.as_ref().to_vec()),
            price_list: self.config.prices.sync_url.clone(),
            has_own_seed: self.config.prices.seed_file.is_some(),
            journal: Arc::new(move || ledger.stats()),
            store_messages: self.config.session.store_messages,
            session_header: self.config.session.headers.first().cloned(),
            playground: Playground::new(Arc::clone(&self.in_process) as Arc<dyn InProcessProxy>),
            stop,
        })
    }
}
