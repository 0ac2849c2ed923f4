//! The composition root: every shared part, and the order in which they are built.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context;
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::in_process::InProcess;
use super::in_use::InUse;
use super::opening::Counted;
use super::snapshot::{self, Started};
use super::{secrets, seed};
use crate::admin::playground::{InProcessProxy, Playground};
use crate::config::{Config, Live, Target};
use crate::crypto::vault::Vault;
use crate::domain::clock::{Clock, SystemClock};
use crate::domain::version;
use crate::formats::client_address::client_address;
use crate::http_client::Webhooks;
use crate::jobs::{JobParts, Jobs};
use crate::ledger::{Ledger, LedgerSettings};
use crate::limits::Counters;
use crate::messages::{MessageQueue, Messages};
use crate::otlp::{self, Exporters, Relay};
use crate::policy::builtin_rules::BUILTIN_RULES;
use crate::proxy::gateway::{Fixed, Gateway, OtlpParts};
use crate::proxy::request::instructions::Instructions;
use crate::state::builtin;
use crate::state::health::Health;
use crate::state::{
    AdminToken, ClientVersions, Conditions, Events, RejectedRequests, State, SwitchOff, reseal,
};
use crate::store::{Backend, Store};
use crate::telemetry::Metrics;
use crate::upstream::Upstreams;

/// How long the ledger's writer may take at a stop to write the remaining records to the database.
const DRAIN: Duration = Duration::from_secs(15);

/// Every shared part, once.
pub(super) struct Parts {
    pub config: Config,
    pub clock: Arc<dyn Clock>,
    pub store: Store,
    /// Keys, users, providers, prices: the snapshot in effect.
    pub state: Arc<State>,
    /// Spend, sessions, requests per minute.
    pub counters: Counters,
    /// The opening balances that the counters contain.
    pub opening: Arc<Counted>,
    /// Shows the next start that this process counted in Redis.
    pub marker: Option<super::marker::Marker>,
    /// Journal and writer.
    pub ledger: Arc<Ledger>,
    pub metrics: Arc<Metrics>,
    /// Circuits and cooldowns of providers.
    pub health: Arc<Health>,
    /// Faults of this node as a whole.
    pub conditions: Arc<Conditions>,
    /// Events, for live views and other subscribers.
    pub events: Events,
    /// Clean-up, and pricing of stored records.
    pub jobs: Jobs,
    /// Settings that a reload can replace.
    pub live: Arc<ArcSwap<Live>>,
    pub gateway: Arc<Gateway>,
    /// The administration's access to the proxy.
    pub in_process: Arc<InProcess>,
    /// Messages to be stored, until the storing task takes them.
    pub message_queue: Mutex<Option<MessageQueue>>,
    /// Sends telemetry to a collector, until its task takes it.
    pub exporters: Mutex<Option<Exporters>>,
    /// The path of the admin token, if the gateway generated it.
    pub token_file: Option<PathBuf>,
    /// What a start without the database leaves for its end, until its task takes it.
    pub started: Mutex<Option<Started>>,
    /// Held, so that no `tollgate move` starts meanwhile.
    _in_use: InUse,
}

/// Opens the database that the configuration names.
///
/// # Errors
/// When it cannot be reached.
pub(super) async fn store(config: &Config) -> anyhow::Result<Store> {
    no_unfinished_restore(config)?;
    match &config.database.target {
        Target::Sqlite { dir } => {
            Store::open_sqlite(dir).await.context("opening the embedded database")
        }
        Target::Postgres(url) => {
            let opened = Store::open_postgres(url, config.database.max_connections).await;
            with_replica(config, opened.context("connecting to PostgreSQL")?)
        }
    }
}

/// Reports do not read from a replica that is further behind.
const LARGEST_LAG: Duration = Duration::from_secs(30);

/// The store with the configured replica, if there is one. It is used once it was checked.
///
/// # Errors
/// When its address is invalid.
pub(super) fn with_replica(config: &Config, store: Store) -> anyhow::Result<Store> {
    match &config.database.read_url {
        Some(url) => store
            .with_replica(url, config.database.max_connections, LARGEST_LAG)
            .context("database.read_url"),
        None => Ok(store),
    }
}

/// # Errors
/// When a restore of this data directory has not finished.
pub(super) fn no_unfinished_restore(config: &Config) -> anyhow::Result<()> {
    super::backup::no_unfinished_restore(&config.data_dir)
}

/// Migrates the database, and adds prices and error rules that it lacks.
///
/// # Errors
/// The step that fails. A database that is newer or half migrated is refused, unchanged.
pub(super) async fn prepare(
    config: &Config,
    store: &Store,
    clock: &dyn Clock,
) -> anyhow::Result<()> {
    for name in store.migrate().await.context("migrating the database")? {
        tracing::info!(name, "migrated the database");
    }
    store.check_schema().await.context("the database")?;
    let seeded =
        seed::prices(config, store, clock.now()).await.context("loading the seed price table")?;
    if seeded > 0 {
        tracing::info!(models = seeded, "loaded the seed price table");
    }
    let rules = builtin::install(store, BUILTIN_RULES, clock.now())
        .await
        .context("loading the built-in error rules")?;
    if rules > 0 {
        tracing::info!(rules, "loaded built-in error rules");
    }
    Ok(())
}

/// Builds every part. The database is migrated first; one that is newer or half migrated is
/// refused. `upgrade`: another process still uses the same data for some seconds.
///
/// # Errors
/// The first part that cannot be built, with the reason.
pub(super) async fn build(config: Config, upgrade: bool) -> anyhow::Result<Parts> {
    secrets::data_dir(&config)?;
    let in_use = InUse::to_serve(&config.data_dir)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let admin_token = secrets::admin_token(&config)?;
    let events = Events::default();
    let (store, state, mut started) = snapshot::begin(&config, &*clock, upgrade, &events).await?;
    let metrics = Arc::new(Metrics::by_holder(config.metrics.per_user, config.metrics.per_key)?);
    let (counters, marker) = super::counting::build(&config)?;
    let (ledger, opening) = counted(&config, &clock, &store, &counters, started.as_mut()).await?;
    let health = Arc::new(Health::new(events.clone()));
    let live = Arc::new(ArcSwap::from_pointee(config.live.clone()));
    let (messages, message_queue) = messages(&config, &metrics);
    let (otlp, exporters) = telemetry(&config, &metrics, &clock)?;
    let gateway = Arc::new(Gateway {
        clock: Arc::clone(&clock),
        state: Arc::clone(&state),
        counters: counters.clone(),
        ledger: Arc::clone(&ledger),
        metrics: Arc::clone(&metrics),
        upstreams: Upstreams::new(config.proxy.upstream_pool_size),
        bodies: Arc::default(),
        health: Arc::clone(&health),
        events: events.clone(),
        client_versions: ClientVersions::default(),
        live: Arc::clone(&live),
        listings: Arc::default(),
        rejected: Arc::new(RejectedRequests::new(clock.now())),
        messages,
        admin: OnceLock::new(),
        admin_token: Arc::new(AdminToken::new(admin_token.token)),
        fixed: fixed(&config)?,
        otlp,
    });
    Ok(Parts {
        jobs: jobs(&config, &store, &gateway),
        config,
        clock,
        store,
        state,
        counters,
        opening: Arc::new(Counted::new(opening)),
        marker,
        ledger,
        metrics,
        health,
        conditions: Arc::default(),
        events,
        live,
        gateway,
        in_process: Arc::default(),
        message_queue: Mutex::new(message_queue),
        exporters: Mutex::new(exporters),
        token_file: admin_token.file,
        started: Mutex::new(started),
        _in_use: in_use,
    })
}

/// The journal, and the counters with past spending; returns the opening balances in it.
async fn counted(
    config: &Config,
    clock: &Arc<dyn Clock>,
    store: &Store,
    counters: &Counters,
    started: Option<&mut Started>,
) -> anyhow::Result<(Arc<Ledger>, Vec<crate::store::SpendRow>)> {
    if let Some(started) = started {
        // What ended processes left waits for the database, and is counted here.
        let opening = started.count(counters, config, clock.now()).await?;
        return Ok((open_ledger(config, clock)?, opening));
    }
    // First what a process left behind that did not stop cleanly; then the counters include all
    // past spending.
    let ledger = delivered_ledger(config, clock, store).await?;
    let opening = rebuilt(counters, store, config, &**clock).await?;
    Ok((ledger, opening))
}

/// Counts past spending; returns the opening balances in it.
async fn rebuilt(
    counters: &Counters,
    store: &Store,
    config: &Config,
    clock: &dyn Clock,
) -> anyhow::Result<Vec<crate::store::SpendRow>> {
    let rebuilt = super::rebuild::counters(counters, store, config.time_zone, clock.now());
    rebuilt.await.context("rebuilding the counters")
}

/// The vault, with stored credentials converted to this version's form.
///
/// # Errors
/// When the store cannot be read or written.
pub(super) async fn ready_vault(
    vault: Vault,
    store: &Store,
    upgrade: bool,
) -> anyhow::Result<Vault> {
    bind_credentials(store, &vault, upgrade)
        .await
        .context("sealing credentials in this version's form")?;
    Ok(vault)
}

/// Binds credentials that an earlier version sealed to their providers. Processes of that version
/// cannot open them afterwards: if one may run beside this one, this is left to the next write and
/// to `tollgate secret rotate`.
async fn bind_credentials(store: &Store, vault: &Vault, upgrade: bool) -> anyhow::Result<()> {
    if upgrade || store.backend() == Backend::Postgres {
        return report_unbound(store).await;
    }
    let bound = reseal::bind_all(vault, store).await?;
    if bound > 0 {
        tracing::info!(bound, "bound stored credentials to their providers");
    }
    Ok(())
}

/// Reports credentials in the form of an earlier version.
///
/// # Errors
/// When the store cannot be read.
pub(super) async fn report_unbound(store: &Store) -> anyhow::Result<()> {
    let (texts, _) = store.sealed_texts().await?;
    let unbound = texts.iter().filter(|text| !reseal::is_bound(text)).count();
    if unbound > 0 {
        tracing::warn!(
            unbound,
            "credentials are sealed in the form of an earlier version, which is not bound to \
             their providers: run `tollgate secret rotate` once no gateway of that version \
             works on this database"
        );
    }
    Ok(())
}

/// The jobs on stored data.
fn jobs(config: &Config, store: &Store, gateway: &Gateway) -> Jobs {
    Jobs::new(JobParts {
        store: store.clone(),
        clock: Arc::clone(&gateway.clock),
        counters: gateway.counters.clone(),
        metrics: Arc::clone(&gateway.metrics),
        time_zone: config.time_zone,
    })
}

/// The journal, after delivering what an earlier process left in it.
async fn delivered_ledger(
    config: &Config,
    clock: &Arc<dyn Clock>,
    store: &Store,
) -> anyhow::Result<Arc<Ledger>> {
    let ledger = open_ledger(config, clock)?;
    Arc::clone(&ledger).run(store.clone(), std::future::ready(())).await;
    Ok(ledger)
}

/// The journal of this process.
///
/// # Errors
/// When its directory cannot be created or locked.
pub(super) fn open_ledger(config: &Config, clock: &Arc<dyn Clock>) -> anyhow::Result<Arc<Ledger>> {
    Ledger::open(&journal_root(config), ledger_settings(config), Arc::clone(clock))
        .context("opening the journal")
}

/// The directory of the journals of all processes on this data directory.
pub(super) fn journal_root(config: &Config) -> PathBuf {
    config.data_dir.join("journal")
}

/// The settings that change only with a restart.
fn fixed(config: &Config) -> anyhow::Result<Fixed> {
    Ok(Fixed {
        alt_key_headers: config.auth.alt_key_headers.clone(),
        session_headers: config.session.headers.clone(),
        reservation: config.limits.reservation,
        instructions: instructions(config)?,
        access_log: config.log.access,
    })
}

/// The operator's instruction texts.
fn instructions(config: &Config) -> anyhow::Result<Instructions> {
    let read = |file: &Option<PathBuf>| {
        file.as_ref()
            .map(|path| std::fs::read_to_string(path).with_context(|| path.display().to_string()))
            .transpose()
    };
    Ok(Instructions {
        short: read(&config.instructions.short_file)?,
        long: read(&config.instructions.long_file)?,
    })
}

/// The parts of OTLP that requests use, and the tasks that send; nothing if it is off.
fn telemetry(
    config: &Config,
    metrics: &Arc<Metrics>,
    clock: &Arc<dyn Clock>,
) -> anyhow::Result<(OtlpParts, Option<Exporters>)> {
    let (mut parts, mut exporters) = (OtlpParts::default(), None);
    if let Some(settings) = &config.telemetry.otlp {
        let started = otlp::start(settings, metrics, clock)?;
        (parts.tracer, parts.meter) = (started.tracer, started.meter);
        exporters = Some(started.exporters);
    }
    if let Some(settings) = &config.telemetry.relay {
        parts.relay = Some(Relay::new(settings, Arc::clone(metrics)).context("the OTLP relay")?);
    }
    Ok((parts, exporters))
}

/// Both ends of the message queue, if messages are stored.
fn messages(config: &Config, metrics: &Metrics) -> (Option<Messages>, Option<MessageQueue>) {
    if !config.session.store_messages {
        return (None, None);
    }
    let (messages, queue) =
        Messages::new(config.session.message_bytes, metrics.journal.messages_lost.clone());
    (Some(messages), Some(queue))
}

fn ledger_settings(config: &Config) -> LedgerSettings {
    let from = config.ledger;
    LedgerSettings {
        segment_bytes: from.segment_bytes,
        max_bytes: from.max_bytes,
        batch_rows: from.batch_rows,
        flush_interval_ms: from.flush_interval_ms,
        sync_interval_ms: from.sync_interval_ms,
        drain_ms: u64::try_from(DRAIN.as_millis()).unwrap_or(u64::MAX),
    }
}

impl Parts {
    /// The sender of notifications.
    #[must_use]
    pub(super) fn notifier(&self) -> crate::notify::Notifier {
        crate::notify::Notifier {
            store: self.store.clone(),
            state: Arc::clone(&self.state),
            counters: self.counters.clone(),
            events: self.events.clone(),
            clock: Arc::clone(&self.clock),
            metrics: Arc::clone(&self.metrics),
            webhooks: Webhooks::new(self.config.webhooks.allow_private.clone()),
            time_zone: self.config.time_zone,
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

    /// The administration's context, until `stop` is set.
    #[must_use]
    pub(super) fn admin_context(&self, stop: watch::Receiver<bool>) -> Arc<crate::admin::Context> {
        let ledger = Arc::clone(&self.ledger);
        let (live, trusting) = (Arc::clone(&self.gateway.live), Arc::clone(&self.gateway.live));
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
