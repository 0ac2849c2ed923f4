//! The composition root: every shared part, and the order in which they are built.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock, Weak};

use anyhow::Context;
use arc_swap::ArcSwap;
use http::HeaderName;
use parking_lot::Mutex;
use tokio::runtime::Handle;

use super::counters;
use super::in_process::InProcess;
use super::opening::OpeningCounted;
use super::snapshot::{self, Started};
use crate::config::Config;
use crate::domain::clock::{Clock, SystemClock};
use crate::http_client::in_process::InProcessProxy;
use crate::jobs::{JobParts, Jobs};
use crate::ledger::Ledger;
use crate::messages::{MessageQueue, Messages};
use crate::otlp::{self, Exporters, Relay};
use crate::proxy::gateway::{Fixed, Gateway, OtlpParts};
use crate::proxy::instructions::Instructions;
use crate::proxy::pending_replies::PendingReplies;
use crate::setup::in_use::InUse;
use crate::setup::{journal, secrets, warnings};
use crate::state::health::Health;
use crate::state::{
    AdminToken, CacheSessions, ClientVersions, Conditions, CredentialStates, CredentialUses,
    Events, FailedSessions, FirstBytes, Node, ProbedProviders, RejectedRequests, Snapshot,
    StoredHistory,
};
use crate::store::SpendRow;
use crate::telemetry::Metrics;
use crate::upstream::Upstreams;

/// Every shared part, once.
pub(super) struct Parts {
    pub config: Config,
    /// What all parts share.
    pub node: Arc<Node>,
    /// The opening balances that the counters contain.
    pub opening: Arc<OpeningCounted>,
    /// Journal and writer.
    pub ledger: Arc<Ledger>,
    /// Clean-up, and pricing of stored records.
    pub jobs: Jobs,
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
    let node = Arc::new(Node {
        store,
        state,
        counters: counters::of(&config)?,
        metrics: Arc::new(Metrics::by_holder(config.metrics.per_user, config.metrics.per_key)?),
        health: Arc::new(Health::new(events.clone())),
        credentials: CredentialStates::default(),
        credential_uses: CredentialUses::default(),
        probed: ProbedProviders::default(),
        conditions: Conditions::default(),
        events,
        live: Arc::new(ArcSwap::from_pointee(config.live.clone())),
        admin_token: Arc::new(AdminToken::new(admin_token.token)),
        listings: Arc::default(),
        rejected: Arc::new(RejectedRequests::new(clock.now())),
        unpriced_models: Arc::default(),
        clock,
    });
    let (ledger, opening) = counted(&config, &node, started.as_mut()).await?;
    let (messages, message_queue) = messages(&config, &node.metrics);
    let (otlp, exporters) = telemetry(&config, &node)?;
    let in_process: Arc<InProcess> = Arc::default();
    let gateway = Gateway {
        in_process: Arc::downgrade(&in_process) as Weak<dyn InProcessProxy>,
        ..gateway(&config, &node, &ledger, messages, otlp)?
    };
    let gateway = Arc::new(gateway);
    let jobs = Jobs::new(JobParts {
        node: Arc::clone(&node),
        by_server: true,
        time_zone: config.time_zone,
    });
    Ok(Parts {
        jobs,
        config,
        node,
        opening: Arc::new(OpeningCounted::new(opening)),
        ledger,
        gateway,
        in_process,
        message_queue: Mutex::new(message_queue),
        exporters: Mutex::new(exporters),
        token_file: admin_token.file,
        started: Mutex::new(started),
        _in_use: in_use,
    })
}

/// The parts of the data plane.
fn gateway(
    config: &Config,
    node: &Arc<Node>,
    ledger: &Arc<Ledger>,
    messages: Option<Messages>,
    otlp: OtlpParts,
) -> anyhow::Result<Gateway> {
    Ok(Gateway {
        node: Arc::clone(node),
        ledger: Arc::clone(ledger),
        upstreams: Upstreams::new(config.proxy.upstream_pool_size),
        bodies: Arc::default(),
        failed_sessions: FailedSessions::default(),
        first_bytes: FirstBytes::default(),
        stored_history: StoredHistory::default(),
        pending_replies: PendingReplies::new(&config.data_dir),
        cache_sessions: CacheSessions::default(),
        client_versions: ClientVersions::default(),
        messages,
        admin: OnceLock::new(),
        in_process: Weak::<InProcess>::new(),
        fixed: fixed(config, &node.state.snapshot())?,
        otlp,
        io: Handle::current(),
    })
}

/// The journal, and the counters with past spending; returns the opening balances in it.
async fn counted(
    config: &Config,
    node: &Node,
    started: Option<&mut Started>,
) -> anyhow::Result<(Arc<Ledger>, Vec<SpendRow>)> {
    let Node { clock, store, counters, .. } = node;
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

/// The settings that change only with a restart.
fn fixed(config: &Config, snapshot: &Snapshot) -> anyhow::Result<Fixed> {
    if let Some(warning) = warnings::without_instructions(config, snapshot) {
        tracing::warn!("{warning}");
    }
    // Parsed once: a look-up by a text parses its name for each request.
    let names =
        |texts: &[String]| texts.iter().map(HeaderName::try_from).collect::<Result<Vec<_>, _>>();
    Ok(Fixed {
        alt_key_headers: names(&config.auth.alt_key_headers)?,
        session_headers: names(&config.session.headers)?,
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
fn telemetry(config: &Config, node: &Node) -> anyhow::Result<(OtlpParts, Option<Exporters>)> {
    let (mut parts, mut exporters) = (OtlpParts::default(), None);
    if let Some(settings) = &config.telemetry.otlp {
        let started = otlp::start(settings, &node.metrics, &node.clock)?;
        (parts.tracer, parts.meter) = (started.tracer, started.meter);
        exporters = Some(started.exporters);
    }
    if let Some(settings) = &config.telemetry.relay {
        parts.relay =
            Some(Relay::new(settings, Arc::clone(&node.metrics)).context("the OTLP relay")?);
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
