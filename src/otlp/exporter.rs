//! The tasks that send: one for each signal, with one batch at a time.
//!
//! A batch is sent when it is full, or a second after its first item. If the collector does not
//! accept it, it is sent again for some time; meanwhile the queue fills, and what does not fit is
//! dropped. Everything that is lost is counted.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::logs::v1::{ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::metrics::v1::{ResourceMetrics, ScopeMetrics};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::logs::LogLine;
use super::meter::Meter;
use super::metrics::MetricSource;
use super::tracer::{Finished, Tracer};
use super::transport::{CollectorError, SendError, SignalBatch, Transport};
use super::{logs, proto, spans};
use crate::config::Otlp;
use crate::domain::clock::Clock;
use crate::telemetry::Metrics;

/// Requests, and log lines, of one batch.
const BATCH: usize = 256;
/// How long a batch waits for more.
const LINGER: Duration = Duration::from_secs(1);
/// Times that a batch is sent, and the wait after the first; it doubles each time.
const TRIES: u32 = 5;
const BACKOFF: Duration = Duration::from_secs(1);
/// The longest wait that a collector can ask for.
const MAX_AFTER: Duration = Duration::from_secs(30);
/// How long a stop waits for what is queued.
const DRAIN: Duration = Duration::from_secs(5);

/// What is to be sent, and where.
pub struct Exporters {
    settings: Otlp,
    metrics: Arc<Metrics>,
    clock: Arc<dyn Clock>,
    spans: Option<mpsc::Receiver<Box<Finished>>>,
    lines: Option<mpsc::Receiver<LogLine>>,
    meter: Option<Arc<Meter>>,
}

/// What requests use, and the tasks to run.
pub struct Started {
    /// `None` without traces.
    pub tracer: Option<Arc<Tracer>>,
    /// `None` without metrics.
    pub meter: Option<Arc<Meter>>,
    /// To be run beside the requests.
    pub exporters: Exporters,
}

/// Makes the parts. Log lines are queued from now on, if they are to be sent.
///
/// # Errors
/// A metric registered twice or malformed: a programming error.
pub fn start(
    settings: &Otlp,
    metrics: &Arc<Metrics>,
    clock: &Arc<dyn Clock>,
) -> Result<Started, prometheus::Error> {
    let (tracer, spans) =
        settings.traces.then(|| Tracer::new(settings, Arc::clone(metrics))).unzip();
    let lines = settings.logs.then(|| logs::queue(settings, metrics, clock));
    let meter = settings.metrics.then(Meter::new).transpose()?.map(Arc::new);
    if settings.traces {
        metrics.exemplars.turn_on();
    }
    for (signal, is_sent) in
        [("traces", settings.traces), ("metrics", settings.metrics), ("logs", settings.logs)]
    {
        if is_sent {
            metrics.otlp.begin(signal);
        }
    }
    let (settings, metrics, clock) = (settings.clone(), Arc::clone(metrics), Arc::clone(clock));
    let exporters = Exporters { settings, metrics, clock, spans, lines, meter: meter.clone() };
    Ok(Started { tracer: tracer.map(Arc::new), meter, exporters })
}

impl Exporters {
    /// Sends until `stop` is set, and then the rest.
    ///
    /// # Errors
    /// When the connection cannot be prepared: nothing is sent.
    pub async fn run(self, stop: watch::Receiver<bool>) -> Result<(), CollectorError> {
        let transport = Transport::new(&self.settings)?;
        let sender = Arc::new(Sending {
            transport,
            resource: proto::resource(&self.settings),
            metrics: Arc::clone(&self.metrics),
            stop,
        });
        let spans = async {
            if let Some(queue) = self.spans {
                sender.queue(queue, |sender, batch| sender.spans(batch)).await;
            }
        };
        let lines = async {
            if let Some(queue) = self.lines {
                sender.queue(queue, |sender, batch| sender.lines(batch)).await;
            }
        };
        let figures = async {
            if let Some(meter) = self.meter {
                let source =
                    MetricSource::new(Arc::clone(&self.metrics), meter, Arc::clone(&self.clock));
                sender
                    .figures(&source, Duration::from_millis(self.settings.metrics_interval_ms))
                    .await;
            }
        };
        tokio::join!(spans, lines, figures);
        Ok(())
    }
}

/// Sends batches, with retries.
struct Sending {
    transport: Transport,
    resource: Resource,
    metrics: Arc<Metrics>,
    stop: watch::Receiver<bool>,
}

impl Sending {
    /// Resolves when the stop is requested.
    async fn stopped(&self) {
        let mut stop = self.stop.clone();
        while !*stop.borrow_and_update() {
            if stop.changed().await.is_err() {
                return;
            }
        }
    }

    /// Resolves when a stop must not wait for the collector any longer.
    async fn cut_off(&self) {
        self.stopped().await;
        sleep(DRAIN).await;
    }

    /// Sends everything from a queue, until the stop, and then the rest of it.
    async fn queue<T>(
        &self,
        mut queue: mpsc::Receiver<T>,
        pack: impl Fn(&Self, Vec<T>) -> (SignalBatch, u64),
    ) {
        let mut failing = false;
        loop {
            let mut batch = Vec::new();
            tokio::select! {
                biased;
                () = self.stopped() => break,
                count = queue.recv_many(&mut batch, BATCH) => if count == 0 { return },
            }
            let until = Instant::now() + LINGER;
            while batch.len() < BATCH {
                let wanted = BATCH - batch.len();
                tokio::select! {
                    () = self.stopped() => break,
                    more = timeout_at(until, queue.recv_many(&mut batch, wanted)) => {
                        if !more.is_ok_and(|count| count > 0) { break }
                    }
                }
            }
            let (batch, items) = pack(self, batch);
            self.deliver(&batch, items, &mut failing).await;
        }
        queue.close();
        let rest = async {
            loop {
                let mut batch = Vec::new();
                if queue.recv_many(&mut batch, BATCH).await == 0 {
                    return;
                }
                let (batch, items) = pack(self, batch);
                self.deliver(&batch, items, &mut failing).await;
            }
        };
        if timeout(DRAIN, rest).await.is_err() {
            tracing::warn!("telemetry for the collector was dropped at the stop");
        }
    }

    /// Sends the metrics at an interval, and once more at the stop.
    async fn figures(&self, source: &MetricSource, interval: Duration) {
        let mut failing = false;
        loop {
            let is_last = tokio::select! {
                () = self.stopped() => true,
                () = sleep(interval) => false,
            };
            let (metrics, points) = source.collect();
            let scope_metrics = vec![ScopeMetrics {
                scope: Some(proto::scope()),
                metrics,
                ..ScopeMetrics::default()
            }];
            let resource = Some(self.resource.clone());
            let resource_metrics =
                vec![ResourceMetrics { resource, scope_metrics, ..ResourceMetrics::default() }];
            let batch = SignalBatch::Metrics(ExportMetricsServiceRequest { resource_metrics });
            if !is_last {
                self.deliver(&batch, points, &mut failing).await;
                continue;
            }
            let _late = timeout(DRAIN, self.deliver(&batch, points, &mut failing)).await;
            return;
        }
    }

    fn spans(&self, requests: impl IntoIterator<Item = Box<Finished>>) -> (SignalBatch, u64) {
        let spans: Vec<Span> =
            requests.into_iter().flat_map(|request| spans::of(&request)).collect();
        let items = spans.len() as u64;
        let scope_spans =
            vec![ScopeSpans { scope: Some(proto::scope()), spans, ..ScopeSpans::default() }];
        let resource = Some(self.resource.clone());
        let resource_spans =
            vec![ResourceSpans { resource, scope_spans, ..ResourceSpans::default() }];
        (SignalBatch::Traces(ExportTraceServiceRequest { resource_spans }), items)
    }

    fn lines(&self, lines: Vec<LogLine>) -> (SignalBatch, u64) {
        let log_records: Vec<_> = lines.into_iter().map(LogLine::into_record).collect();
        let items = log_records.len() as u64;
        let scope_logs =
            vec![ScopeLogs { scope: Some(proto::scope()), log_records, ..ScopeLogs::default() }];
        let resource = Some(self.resource.clone());
        let resource_logs = vec![ResourceLogs { resource, scope_logs, ..ResourceLogs::default() }];
        (SignalBatch::Logs(ExportLogsServiceRequest { resource_logs }), items)
    }

    /// Sends a batch until it is accepted, or cannot be. The first failure and the next success are
    /// logged.
    async fn deliver(&self, batch: &SignalBatch, items: u64, failing: &mut bool) {
        let (signal, otlp) = (batch.signal(), &self.metrics.otlp);
        let mut wait = BACKOFF;
        for attempt in 1..=TRIES {
            let sent = tokio::select! {
                sent = self.transport.send(batch) => sent,
                () = self.cut_off() => Err(SendError::cut_off()),
            };
            let error = match sent {
                Ok(rejected) => {
                    if std::mem::take(failing) {
                        tracing::info!(signal, "the collector takes telemetry again");
                    }
                    otlp.exported(signal, items.saturating_sub(rejected));
                    otlp.dropped(signal, "rejected", rejected);
                    return;
                }
                Err(error) => error,
            };
            if !std::mem::replace(failing, true) {
                tracing::warn!(signal, %error, "the collector does not take telemetry");
            }
            let is_last = attempt == TRIES || !error.may_retry || *self.stop.borrow();
            if is_last {
                otlp.dropped(signal, "export_failed", items);
                return;
            }
            self.pause(&error, wait).await;
            wait *= 2;
        }
    }

    /// Waits before the next try; a stop ends the wait.
    async fn pause(&self, error: &SendError, wait: Duration) {
        let wait = error.after.map_or(wait, |after| after.min(MAX_AFTER));
        tokio::select! {
            () = self.stopped() => {}
            () = sleep(wait) => {}
        }
    }
}
