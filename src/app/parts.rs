//! The composition root: every shared part, and the order in which they are built.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use anyhow::Context;
use arc_swap::ArcSwap;
use parking_lot::Mutex;

use super::in_process::InProcess;
use super::opening::Counted;
use super::snapshot::{self, Started};
use crate::config::{Config, Live};
use crate::domain::clock::{Clock, SystemClock};
use crate::jobs::{JobParts, Jobs};
use crate::ledger::Ledger;
use crate::limits::Counters;
use crate::messages::{MessageQueue, Messages};
use crate::otlp::{self, Exporters, Relay};
use crate::proxy::gateway::{Fixed, Gateway, OtlpParts};
use crate::proxy::instructions::Instructions;
use crate::setup::in_use::InUse;
use crate::setup::{journal, secrets, warnings};
use crate::state::health::Health;
use crate::state::{
    AdminToken, ClientVersions, Conditions, Events, FailedSessions, RejectedRequests, Snapshot,
    State,
};
use crate::store::Store;
use crate::telemetry::Metrics;
use crate::upstream::Upstreams;

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
    let counters = Counters::from_config(&config)?;
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
        failed_sessions: FailedSessions::default(),
        unpriced_models: Arc::default(),
        events: events.clone(),
        client_versions: ClientVersions::default(),
        live: Arc::clone(&live),
        listings: Arc::default(),
        rejected: Arc::new(RejectedRequests::new(clock.now())),
        messages,
        admin: OnceLock::new(),
        admin_token: Arc::new(AdminToken::new(admin_token.token)),
        fixed: fixed(&config, &state.snapshot())?,
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
        return Ok((journal::open(config, clock)?, opening));
    }
    // First what a process left behind that did not stop cleanly; then the counters include all
    // past spending.
    let ledger = journal::delivered(config, clock, store).await?;
    let opening = counters
        .load(store, clock.now())
        .await
        .context("loading past spending into the counters")?;
    Ok((ledger, opening))
}

/// The jobs on stored data.
fn jobs(config: &Config, store: &Store, gateway: &Gateway) -> Jobs {
    Jobs::new(JobParts {
        store: store.clone(),
        clock: Arc::clone(&gateway.clock),
        by_server: true,
        counters: gateway.counters.clone(),
        metrics: Arc::clone(&gateway.metrics),
        time_zone: config.time_zone,
    })
}

/// The settings that change only with a restart.
fn fixed(config: &Config, snapshot: &Snapshot) -> anyhow::Result<Fixed> {
    if let Some(warning) = warnings::without_instructions(config, snapshot) {
        tracing::warn!("{warning}");
    }
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
