//! Background tasks: the ledger's writer, the watch for other nodes' changes, housekeeping, the
//! store's health.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::counters;
use super::drain::stopped;
use super::parts::Parts;
use super::{provider_watch, snapshot, store_watch};
use crate::domain::clock::Timestamp;
use crate::domain::provider_credential::KEY_NAME;
use crate::limits::Holder;
use crate::messages;
use crate::policy::provider_state::ProviderState;
use crate::proxy::{polling, probes};
use crate::state::credentials::CredentialFigures;
use crate::state::credentials::refusal::DisableRefused;
use crate::state::provider_summary::ProviderSummary;
use crate::state::{CredentialStates, Node, Phase, Snapshot, SwitchOff, refresh};
use crate::telemetry::{KeyTotals, Metrics, Readiness};

/// How often idle entries are dropped.
const HOUSEKEEPING: Duration = Duration::from_secs(30);
/// How long housekeeping waits for the database.
const PRUNING: Duration = Duration::from_secs(10);

/// The tasks that a stop waits for.
pub(super) struct Tasks {
    /// Ends once the journal is delivered, or given up for this process.
    pub writer: JoinHandle<()>,
    /// Ends after the writer and the jobs; whether Redis has all counts.
    pub connection_task: Option<JoinHandle<bool>>,
    /// Ends once the last uses of credentials are stored, or given up.
    pub watch: JoinHandle<()>,
    /// Ends once the open circuits are stored.
    pub health_file: Option<JoinHandle<()>>,
    /// Writes the snapshot of the database.
    pub saver: Option<JoinHandle<()>>,
    /// Ends once queued telemetry is sent, or given up.
    pub exporters: Option<JoinHandle<()>>,
}

/// Starts the tasks. They end when `stop` is set; the connection task ends after the writer and
/// the jobs.
pub(super) fn start(parts: &Parts, io: &Handle, stop: &watch::Receiver<bool>) -> Tasks {
    // Before the notifier: circuits that were already open are not reported again.
    let health_file = parts.health_file().map(|file| io.spawn(file.run(stopped(stop.clone()))));
    let node = &parts.node;
    let versions = parts.gateway.client_versions.clone();
    io.spawn(versions.run(node.store.clone(), Arc::clone(&node.clock), stopped(stop.clone())));
    io.spawn(refresh::run(Arc::clone(&node.state), stopped(stop.clone())));
    io.spawn(housekeeping(
        Arc::clone(node),
        parts.config.session.messages_total_bytes,
        stop.clone(),
    ));
    io.spawn(store_watch::run(Arc::clone(node), stop.clone()));
    let jobs = io.spawn(parts.jobs.clone().run(stopped(stop.clone())));
    io.spawn(polling::run(Arc::clone(&parts.gateway), stopped(stop.clone())));
    let price_sync = parts.price_sync(stop.clone());
    io.spawn(price_sync.run(stopped(stop.clone())));
    io.spawn(parts.notifier().run(stopped(stop.clone())));
    io.spawn(DisableRefused { node: Arc::clone(node) }.run(stopped(stop.clone())));
    io.spawn(SwitchOff { node: Arc::clone(node) }.run(stopped(stop.clone())));
    let watch = io.spawn(provider_watch::run(Arc::clone(node), stopped(stop.clone())));
    io.spawn(probes::run(Arc::clone(&parts.gateway), stopped(stop.clone())));
    if let Some(recovery) = parts.recovery() {
        io.spawn(recovery.run(stop.clone()));
    }
    let saver = parts.saver().map(|saver| io.spawn(saver.run(stop.clone())));
    if saver.is_none() {
        snapshot::switched_off(&parts.config);
    }
    if let Some(watch) = parts.opening_watch() {
        io.spawn(watch.run(stop.clone()));
    }
    scrape_hooks(parts);
    let ledger = Arc::clone(&parts.ledger);
    let store = node.store.clone();
    let stop = stop.clone();
    let queue = parts.message_queue.lock().take();
    if let Some(peers) = parts.peers() {
        io.spawn(peers.run(stopped(stop.clone())));
    }
    // The connection task runs until the writer and the jobs have ended. If a node rebuilds the
    // counters from the ledger before that, this connection task sends the records that the ledger
    // does not have yet.
    let (delivered, is_delivered) = watch::channel(false);
    let ended = async move {
        stopped(is_delivered).await;
        let _ = jobs.await;
    };
    let connection_task =
        parts.connection_task().map(|connection_task| io.spawn(connection_task.run(ended)));
    let exporters = exporters(parts, io, &stop);
    let writer = io.spawn(async move {
        let messages = async {
            if let Some(queue) = queue {
                queue.run(store.clone(), stopped(stop.clone())).await;
            }
        };
        let records = async {
            ledger.run(store.clone(), stopped(stop.clone())).await;
            delivered.send_replace(true);
        };
        tokio::join!(records, messages);
    });
    Tasks { writer, watch, connection_task, health_file, saver, exporters }
}

/// Sends telemetry to the collector, if that is configured.
fn exporters(parts: &Parts, io: &Handle, stop: &watch::Receiver<bool>) -> Option<JoinHandle<()>> {
    let exporters = parts.exporters.lock().take()?;
    let stop = stop.clone();
    Some(io.spawn(async move {
        if let Err(error) = exporters.run(stop).await {
            tracing::error!(%error, "no telemetry is sent");
        }
    }))
}

/// Sweeps the shared parts regularly. `messages_total_bytes` bounds the stored messages of
/// sessions.
async fn housekeeping(node: Arc<Node>, messages_total_bytes: u64, stop: watch::Receiver<bool>) {
    let mut stop = std::pin::pin!(stopped(stop));
    loop {
        tokio::select! {
            () = &mut stop => return,
            () = tokio::time::sleep(HOUSEKEEPING) => {}
        }
        let now = node.clock.now();
        let snapshot = node.state.snapshot();
        node.counters.sweep(now, &|holder| match holder {
            Holder::Key(id) => snapshot.key(id).is_some(),
            Holder::User(id) => snapshot.user(id).is_some(),
            Holder::Provider(id) => snapshot.provider(id).is_some(),
        });
        node.health.keep_only(|id| snapshot.provider(id).is_some());
        node.credentials.keep_only(|(provider, id)| {
            snapshot.provider(provider).is_some_and(|one| one.has_credential(id))
        });
        node.listings.keep_only(|id| snapshot.provider(id).is_some());
        node.metrics.forget_breakers();
        node.metrics
            .keep_providers(|name| snapshot.providers.iter().any(|provider| provider.name == name));
        // Bounded: if the database does not answer, the rest must still be swept.
        match tokio::time::timeout(PRUNING, node.store.prune_web_sessions(now)).await {
            Ok(Ok(_)) => {}
            Ok(Err(e)) => tracing::warn!(error = %e, "expired logins could not be removed"),
            Err(_) => {
                tracing::warn!("expired logins could not be removed: the database does not answer")
            }
        }
        let oldest =
            now.plus_ms(-i64::from(snapshot.settings.cleanup_retention_days) * 24 * 3_600_000);
        let pruning = messages::prune(&node.store, oldest, messages_total_bytes);
        match tokio::time::timeout(PRUNING, pruning).await {
            Ok(Ok(())) | Err(_) => {}
            Ok(Err(e)) => {
                tracing::warn!(error = %e, "old messages of sessions could not be removed")
            }
        }
    }
}

/// Figures that are read at each scrape.
fn scrape_hooks(parts: &Parts) {
    // The node holds the metrics, and they hold this.
    let node = Arc::downgrade(&parts.node);
    let (ledger, bodies) = (Arc::clone(&parts.ledger), Arc::clone(&parts.gateway.bodies));
    let gateway = Arc::downgrade(&parts.gateway);
    parts.node.metrics.before_scrape(Box::new(move |metrics| {
        let Some(node) = node.upgrade() else { return };
        let Node { counters, health, .. } = &*node;
        let (snapshot, now) = (node.state.snapshot(), node.clock.now());
        metrics.node.snapshot_version(snapshot.version);
        metrics.node.providers_left_out(snapshot.faults.len());
        let unpriced = node.unpriced_models.still(&snapshot).len();
        metrics.unpriced_models.set(i64::try_from(unpriced).unwrap_or(i64::MAX));
        metrics.sessions_live.set(i64::try_from(counters.sessions_here(now)).unwrap_or(i64::MAX));
        metrics.bodies.held.set(i64::try_from(bodies.held()).unwrap_or(i64::MAX));
        credential_metrics(metrics, &node.credentials, &snapshot, now);
        if let Some(gateway) = gateway.upgrade() {
            let whole = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
            let sockets = gateway.upstreams.sockets.count();
            metrics.connections.provider_websockets.set(whole(sockets));
            metrics.background.open.set(whole(gateway.pending_replies.open()));
        }
        for provider in &snapshot.providers {
            let circuit = health.figures(provider, now);
            let state = match (circuit.open, circuit.half_open) {
                (_, true) => "half_open",
                (true, false) => "open",
                (false, false) => "closed",
            };
            metrics.breaker_state(&provider.name, state);
            metrics.provider_health.switched_off(&provider.name, provider.switched_off.is_some());
            let seen = health.seen(provider, now).state;
            for state in ProviderState::ALL {
                let is_in = provider.is_enabled && state == seen;
                metrics.provider_health.state(&provider.name, state.as_str(), is_in);
            }
        }
        let journal = ledger.stats();
        journal_metrics(metrics, &journal);
        counters::measure(counters, metrics);
    }));
}

fn credential_metrics(
    metrics: &Metrics,
    credentials: &CredentialStates,
    snapshot: &Snapshot,
    now: Timestamp,
) {
    let shown = &metrics.credentials;
    shown.begin(|provider, key| {
        let mut named = snapshot.providers.iter().filter(|one| one.name == provider);
        named.any(|one| one.credentials.iter().any(|credential| credential.name == key))
    });
    for provider in &snapshot.providers {
        for one in provider.with_each_credential() {
            let seen = credentials.seen(one, now);
            let key = one.credential.as_ref().map_or(KEY_NAME, |one| &one.name);
            for window in &seen.windows {
                shown.window(&provider.name, key, &window.name, window.used);
            }
            if let Some(credential) = &one.credential {
                let CredentialFigures { requests: attempts, failures, .. } = seen.figures;
                let (is_usable, is_refused) = (seen.is_usable, credential.refused.is_some());
                let totals =
                    KeyTotals { id: credential.id, attempts, failures, is_usable, is_refused };
                shown.key(&provider.name, key, &totals);
            }
        }
    }
}

fn journal_metrics(metrics: &Metrics, journal: &crate::ledger::JournalStats) {
    let whole = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let shown = &metrics.journal;
    shown.pending_records.set(whole(journal.pending_records));
    shown.pending_bytes.set(whole(journal.pending_bytes));
    shown.oldest_age_seconds.set(whole(journal.oldest_age_ms / 1000));
    // Counters only grow: adds the difference since the last scrape.
    let grow = |counter: &crate::telemetry::IntCounter, total: u64| {
        counter.inc_by(total.saturating_sub(counter.get()))
    };
    shown.held_records.set(whole(journal.held_records));
    grow(&shown.append_errors, journal.append_errors);
    grow(&shown.lost_records, journal.lost_records);
    grow(&shown.sync_errors, journal.sync_errors);
    grow(&shown.set_aside, journal.refused_records.saturating_add(journal.damaged_ranges));
    grow(&shown.writer_batches, journal.writer_batches);
    grow(&shown.writer_errors, journal.writer_errors);
    grow(&shown.writer_rows, journal.writer_rows);
}

/// Ready means: migrated, database reachable, space in the journal, and the proxy accepts
/// connections (`open`). Providers that fail or are left out, and a refused configuration file, are
/// reported, and leave it ready.
pub(super) fn readiness(
    parts: &Parts,
    open: Arc<AtomicBool>,
    phase: watch::Receiver<Phase>,
) -> Arc<dyn Fn() -> Readiness + Send + Sync> {
    let (node, ledger) = (Arc::clone(&parts.node), Arc::clone(&parts.ledger));
    Arc::new(move || {
        let Node { state, conditions, health, .. } = &*node;
        let journal = ledger.trouble().map_or(Ok(()), |trouble| Err(trouble.to_owned()));
        let store = conditions.database().map_or(Ok(()), |fault| Err(fault.text.clone()));
        let stopping =
            if *phase.borrow() == Phase::Serving { Ok(()) } else { Err("is stopping".to_owned()) };
        let proxy = if open.load(Ordering::Relaxed) {
            Ok(())
        } else {
            Err("takes no connections yet".to_owned())
        };
        let needed = vec![
            ("database", store),
            ("journal", journal),
            ("proxy", proxy),
            ("process", stopping),
        ];
        // A provider that is left out is reported; the others serve.
        let faults = &state.peek().faults;
        let snapshot = if faults.is_empty() { Ok(()) } else { Err(faults.join("; ")) };
        // In neither case is another node better: each has the same providers, and the old
        // configuration serves.
        let providers =
            ProviderSummary::of(&state.peek(), health, &node.credentials, node.clock.now())
                .fault()
                .map_or(Ok(()), Err);
        let reload = conditions
            .reload()
            .map(|fault| format!("the file was refused, the old one is in effect: {}", fault.text));
        let readiness = Readiness::of(needed).with_optional("snapshot", snapshot);
        let readiness = readiness.with_optional("providers", providers);
        let readiness = readiness.with_optional("configuration", reload.map_or(Ok(()), Err));
        counters::readiness(&node.counters, snapshot::readiness(conditions, readiness))
    })
}
