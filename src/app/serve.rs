//! The run of a gateway: opens the listeners, serves requests, stops without losing any.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::time::Duration;

use parking_lot::Mutex;
use pingora::listeners::ListenerConfig;
use pingora::listeners::tls::TlsSettings;
use pingora::protocols::l4::stream::L4BufferSettings;
use pingora::proxy::HttpProxy;
use pingora::server::configuration::{Opt, ServerConf};
use pingora::server::{RunArgs, Server, ShutdownWatch};
use pingora::services::background::background_service;
use pingora::services::listening::Service as Listening;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::watch;

use super::background::Background;
use super::drain::{Drain, Ended, stopped};
use super::embedded_admin::AdminRouter;
use super::in_process::Reached;
use super::listen_socket::{ListenSocket, Proxy, Watched};
use super::parts::{self, Parts};
use super::reloaded::Reloaded;
use super::signals::Signals;
use super::source::ConfigSource;
use super::successor::Successor;
use super::tasks::{self, Tasks};
use super::{banner::Banner, connection_slots, listen, reload, snapshot};
use crate::config::Config;
use crate::proxy::accept::Connections;
use crate::proxy::connections::too_many::{BeforeHandshake, Counted};
use crate::proxy::polling;
use crate::proxy::service::{self, Service};
use crate::setup::{certificates, validity};
use crate::state::Phase;
use crate::telemetry::{self, LogHandle};

/// Pingora's own wait for its runtimes once the grace is over.
const RUNTIME_STOP_S: u64 = 2;
/// Write buffer of each connection: head and body of a typical reply fit, and are sent in one
/// write.
const WRITE_BUFFER: usize = 8 << 10;
/// Read buffer of each TLS connection: one record.
const TLS_READ_BUFFER: usize = 17 << 10;

/// Reads the certificates, and warns of those that have ended or end soon: they prevent no start.
fn look_at_certificates(config: &Config) -> anyhow::Result<()> {
    certificates::usable(config)?;
    for warning in validity::warnings(config) {
        tracing::warn!("{warning}");
    }
    Ok(())
}

/// Serves until a stop is requested. `upgrade`: takes the listeners over from the running process.
///
/// # Errors
/// When a part cannot be built or a listener cannot be bound: then nothing is served. When the
/// proxy ends without a stop.
pub fn serve(
    config: Config,
    source: ConfigSource,
    upgrade: bool,
    log: LogHandle,
) -> anyhow::Result<()> {
    look_at_certificates(&config)?;
    let background = Background::start(config.redis.is_none())?;
    let io = &background.io;
    // First: without a receiver the signal ends the process.
    let hangups = io.block_on(async { reload::hangups() });
    let socket = ListenSocket::claim(config.proxy.addr, upgrade)?;
    let parts = background.wait(parts::build(config, upgrade))??;
    let (stop_sender, stop) = watch::channel(false);
    let (phase_sender, phase) = watch::channel(Phase::Serving);
    let open = Arc::new(AtomicBool::new(false));
    let readiness = tasks::readiness(&parts, Arc::clone(&open), phase.clone());
    let listeners = io.block_on(open_listeners(&parts, io.handle(), &stop, readiness, upgrade))?;
    let tasks = tasks::start(&parts, io.handle(), &stop);
    io.block_on(parts.node.counters.wait());
    io.block_on(polling::adopt(&parts.gateway));
    let reloaded = Reloaded::of(&parts, log.clone());
    // The other signals are handled from here on; the proxy opens later, and only then reports that
    // it is ready.
    let successor = Successor::of(&parts.config, &source);
    let (signals, forced_stop) = io.block_on(async { Signals::new(phase_sender, successor) });
    io.spawn(reload::run(hangups, parts.config.clone(), source, reloaded));
    let (ended_sender, ended) = sync_channel(3);
    let (closed_sender, closed) = watch::channel(false);
    let drain = Drain {
        running: parts.node.metrics.requests_live.clone(),
        open: parts.node.metrics.connections.open.clone(),
        phase: phase.clone(),
        grace: Duration::from_millis(parts.config.shutdown.grace_ms),
        closed,
        stop: stop_sender,
        ended: Mutex::new(Some(ended_sender.clone())),
    };
    let connections = |proxy| Connections {
        proxy: reachable(&parts, proxy, &phase, closed_sender.subscribe()),
        gateway: Arc::clone(&parts.gateway),
        phase: phase.clone(),
        goaway: closed_sender.subscribe(),
        closed: closed_sender,
        counted: Counted::new(connection_slots::of_proxy(&parts)),
    };
    let watched = watched(&parts, open, io.handle(), &phase, &ended_sender);
    log_waiting(upgrade, &parts.config, &log);
    let server = server(&parts, connections, drain, upgrade, |listening| Proxy {
        socket,
        listening,
        watched,
    })?;
    io.spawn(async move {
        forced_stop.comes().await;
        let _ = ended_sender.try_send(Ended::AtOnce);
    });
    let (returned_sender, returned) = sync_channel(1);
    std::thread::Builder::new().name("pingora".to_owned()).spawn(move || {
        server.run(RunArgs { shutdown_signal: Box::new(signals) });
        let _ = returned_sender.send(());
    })?;
    match wait(&ended, &returned) {
        Ended::Drained => finish(io, listeners, tasks, &parts),
        Ended::AtOnce => log_cut(&parts),
        Ended::Failed => anyhow::bail!("the proxy ended unexpectedly; see the log"),
    }
    log.flush();
    Ok(())
}

/// In an upgrade, Pingora waits for the listeners next, and ends the process without a message if
/// they do not come.
fn log_waiting(upgrade: bool, config: &Config, log: &LogHandle) {
    if !upgrade {
        return;
    }
    let socket = config.upgrade_socket().display().to_string();
    tracing::info!(
        socket,
        "waiting for the running process to hand its listeners over: SIGQUIT asks it to. Without \
         it this process ends in some seconds"
    );
    log.flush();
}

/// Logs what a forced stop leaves behind.
fn log_cut(parts: &Parts) {
    parts.ledger.hand_on();
    tracing::warn!(
        cut = parts.node.metrics.requests_live.get(),
        left_in_journal = parts.ledger.stats().pending_records,
        "stopped at once: running requests were cut"
    );
}

/// What the proxy reports to the rest of the process.
fn watched(
    parts: &Parts,
    open: Arc<AtomicBool>,
    others: &Handle,
    phase: &watch::Receiver<Phase>,
    ended: &SyncSender<Ended>,
) -> Watched {
    Watched {
        open,
        banner: Banner::of(parts),
        others: others.clone(),
        phase: phase.clone(),
        in_process: Arc::clone(&parts.in_process),
        ended: ended.clone(),
    }
}

/// The proxy, which can also be reached from inside the process.
fn reachable(
    parts: &Parts,
    proxy: HttpProxy<Service>,
    phase: &watch::Receiver<Phase>,
    goaway: ShutdownWatch,
) -> Arc<HttpProxy<Service>> {
    let proxy = Arc::new(proxy);
    let gateway = Arc::clone(&parts.gateway);
    parts.in_process.reach(Reached {
        proxy: Arc::clone(&proxy),
        gateway,
        phase: phase.clone(),
        goaway,
    });
    proxy
}

/// Waits until everything has ended, a second SIGINT arrives, or the grace is over.
fn wait(ended: &Receiver<Ended>, returned: &Receiver<()>) -> Ended {
    loop {
        if let Ok(ended) = ended.recv_timeout(Duration::from_millis(50)) {
            return ended;
        }
        match returned.try_recv() {
            Ok(()) => return Ended::Drained,
            Err(TryRecvError::Disconnected) => return Ended::Failed,
            Err(TryRecvError::Empty) => {}
        }
    }
}

/// Reports whether the process is ready.
type Readiness = Arc<dyn Fn() -> telemetry::Readiness + Send + Sync>;

/// The listeners beside the proxy's, each with its task.
struct Listeners {
    admin: tokio::task::JoinHandle<()>,
    metrics: tokio::task::JoinHandle<()>,
}

async fn open_listeners(
    parts: &Parts,
    io: &Handle,
    stop: &watch::Receiver<bool>,
    readiness: Readiness,
    upgrade: bool,
) -> anyhow::Result<Listeners> {
    let listener = listen::bind(parts.config.metrics.addr, "metrics", upgrade)?.into_std()?;
    let router = telemetry::router(Arc::clone(&parts.node.metrics), readiness);
    let entry = connection_slots::of_metrics(parts)?;
    let serving = crate::admin::serve(listener, None, router, entry, stopped(stop.clone()));
    let metrics = io.spawn(async move {
        if let Err(e) = serving.await {
            tracing::error!(error = %e, "the metrics listener failed");
        }
    });
    let admin_listener = listen::bind(parts.config.admin.addr, "admin", upgrade)?.into_std()?;
    let tls = parts.config.admin.tls();
    let router = crate::admin::router(parts.admin_context(stop.clone()));
    if parts.config.proxy.expose_admin {
        let _ = parts.gateway.admin.set(Box::new(AdminRouter(router.clone())));
    }
    let entry = connection_slots::of_admin(parts);
    let serving = crate::admin::serve(admin_listener, tls, router, entry, stopped(stop.clone()));
    let admin = io.spawn(async move {
        if let Err(e) = serving.await {
            tracing::error!(error = %e, "the admin listener failed");
        }
    });
    Ok(Listeners { admin, metrics })
}

fn server_conf(config: &Config) -> ServerConf {
    ServerConf {
        threads: threads(config),
        grace_period_seconds: Some(config.shutdown.grace_ms.div_ceil(1000)),
        graceful_shutdown_timeout_seconds: Some(RUNTIME_STOP_S),
        upgrade_sock: config.upgrade_socket().display().to_string(),
        ..ServerConf::default()
    }
}

fn server(
    parts: &Parts,
    connections: impl FnOnce(HttpProxy<Service>) -> Connections,
    drain: Drain,
    upgrade: bool,
    around: impl FnOnce(Listening<Connections>) -> Proxy,
) -> anyhow::Result<Server> {
    let config = &parts.config;
    let opt = Opt { upgrade, ..Opt::default() };
    let mut server = Server::new_with_opt_and_conf(opt, server_conf(config));
    server.bootstrap();
    // The connector of Pingora's driver makes no connection (see `proxy_upstream_filter`), so it
    // gets no root certificates: reading the system's is a sixth of a start's instructions (in the
    // dev profile).
    let conf = ServerConf { ca_file: Some("/dev/null".to_owned()), ..server_conf(config) };
    let http_proxy =
        service::http_proxy(Arc::clone(&parts.gateway), &Arc::new(conf), config.proxy.h2c);
    let connections = connections(http_proxy);
    let counted = Arc::clone(&connections.counted);
    let mut proxy = Listening::new("proxy".to_owned(), connections);
    listen_on(&mut proxy, config)?;
    if config.proxy.tls().is_some() {
        proxy.endpoints().set_pre_tls_callback(Arc::new(BeforeHandshake(counted)));
    }
    server.add_service(background_service("drain", drain));
    server.add_service(around(proxy));
    Ok(server)
}

fn listen_on(proxy: &mut Listening<Connections>, config: &Config) -> anyhow::Result<()> {
    let listener = ListenerConfig::tcp(config.proxy.addr.to_string());
    let Some(tls) = config.proxy.tls() else {
        // Heads and bodies are read into separate buffers: one below them would only cost memory
        // and a copy.
        proxy.add_listener(listener.l4_buffer(L4BufferSettings::new(0, WRITE_BUFFER)));
        return Ok(());
    };
    let (cert, key) = (tls.cert.display().to_string(), tls.key.display().to_string());
    let mut settings = TlsSettings::intermediate(&cert, &key).map_err(|e| {
        anyhow::anyhow!("the proxy's certificate {cert} or key {key} cannot be used: {e}")
    })?;
    settings.enable_h2();
    proxy.add_listener(
        listener.tls(settings).l4_buffer(L4BufferSettings::new(TLS_READ_BUFFER, WRITE_BUFFER)),
    );
    Ok(())
}

fn threads(config: &Config) -> usize {
    match config.proxy.threads {
        0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        n => n,
    }
}

/// The last steps of a stop: the other listeners end, and the journal is delivered to the database.
fn finish(io: &Runtime, listeners: Listeners, tasks: Tasks, parts: &Parts) {
    io.block_on(async {
        let grace = Duration::from_millis(parts.config.shutdown.grace_ms.max(1000));
        let _ =
            tokio::time::timeout(grace, async { tokio::join!(listeners.admin, listeners.metrics) })
                .await;
        let _ = tasks.watch.await;
        if let Some(file) = tasks.health_file {
            let _ = file.await;
        }
        if let Some(exporters) = tasks.exporters {
            let _ = exporters.await;
        }
        if tasks.writer.await.is_err() {
            tracing::error!(
                "the ledger's writer failed: what it had not written stays in the journal"
            );
        }
        // It ends after the writer and the jobs, in two seconds at most.
        if let Some(connection_task) = tasks.connection_task {
            let is_sent = connection_task.await.unwrap_or(false);
            let journal = parts.ledger.stats();
            // What is not in the ledger yet is missing if another node rebuilds the counters.
            if is_sent && journal.pending_records == 0 && journal.held_records == 0 {
                parts.node.counters.end();
            }
        }
        snapshot::at_stop(parts.saver(), tasks.saver).await;
        parts.node.store.close().await;
    });
    let left = parts.ledger.stats().pending_records;
    tracing::info!(left_in_journal = left, "stopped");
}
