//! The beginning and the end of a request's trace: the client's context, the sampling, and the
//! hand-over to the exporter.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::HeaderMap;
use tokio::sync::mpsc;

use super::content::Content;
use super::sampling::Sampling;
use super::trace::{RequestHead, RequestTrace, parent};
use crate::config::Otlp;
use crate::domain::record::Record;
use crate::domain::trace::{SpanContext, SpanId, TraceId};
use crate::telemetry::Metrics;

/// A finished request, whose spans are to be made.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) trace: RequestTrace,
    pub(super) record: Record,
    /// From the request's start to its end.
    pub(super) took: Duration,
    /// Its share of [`WAITING_BYTES`].
    _weight: Weight,
}

/// Bytes of requests' contents that may wait. Without contents, their number is the bound.
const WAITING_BYTES: usize = 64 << 20;

/// Bytes that wait, until this is dropped.
#[derive(Debug)]
struct Weight {
    waiting: Arc<AtomicUsize>,
    bytes: usize,
}

impl Weight {
    /// `None` if too many wait.
    fn of(waiting: &Arc<AtomicUsize>, bytes: usize) -> Option<Self> {
        let weight = Self { waiting: Arc::clone(waiting), bytes };
        let before = waiting.fetch_add(bytes, Ordering::Relaxed);
        (before.saturating_add(bytes) <= WAITING_BYTES).then_some(weight)
    }
}

impl Drop for Weight {
    fn drop(&mut self) {
        self.waiting.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Finished {
    /// How many spans it has.
    pub(super) fn spans(&self) -> u64 {
        1 + self.trace.attempts.len() as u64
    }
}

/// Begins and ends traces. Shared by all requests.
pub struct Tracer {
    sampling: Sampling,
    to_providers: bool,
    content: bool,
    queue: mpsc::Sender<Box<Finished>>,
    waiting: Arc<AtomicUsize>,
    metrics: Arc<Metrics>,
}

impl Tracer {
    /// A tracer by the settings, and the queue's other end.
    pub(super) fn new(
        settings: &Otlp,
        metrics: Arc<Metrics>,
    ) -> (Self, mpsc::Receiver<Box<Finished>>) {
        let (queue, receiver) = mpsc::channel(settings.queue);
        let sampling = Sampling::new(settings.sampler, settings.sample_ratio);
        let (to_providers, content) = (settings.to_providers, settings.content);
        let waiting = Arc::default();
        (Self { sampling, to_providers, content, queue, waiting, metrics }, receiver)
    }

    /// The trace of a request. `head` is called only if the request is sampled.
    pub fn begin(
        &self,
        headers: &HeaderMap,
        head: impl FnOnce() -> RequestHead,
    ) -> Box<RequestTrace> {
        let (parent, state) = parent(headers);
        let trace_id =
            parent.map_or_else(|| TraceId(fastrand::u128(1..)), |parent| parent.trace_id);
        let sampled = self.sampling.admits(trace_id, parent);
        Box::new(RequestTrace {
            own: SpanContext { trace_id, span_id: SpanId(fastrand::u64(1..)), sampled },
            parent: parent.map(|parent| parent.span_id),
            state,
            to_providers: self.to_providers,
            head: if sampled { head() } else { RequestHead::default() },
            stages: Vec::new(),
            attempts: Vec::new(),
            parameters: None,
            content: (sampled && self.content).then(Box::<Content>::default),
        })
    }

    /// Ends the trace of a settled request. Never waits: a full queue drops it.
    pub fn finish(&self, trace: RequestTrace, record: &Record, took: Duration) {
        if !trace.own.sampled {
            return;
        }
        let bytes = trace.content.as_ref().map_or(0, |content| content.bytes());
        let spans = 1 + trace.attempts.len() as u64;
        let Some(_weight) = Weight::of(&self.waiting, bytes) else {
            return self.metrics.otlp.dropped("traces", "queue_full", spans);
        };
        let finished = Box::new(Finished { trace, record: record.clone(), took, _weight });
        if let Err(error) = self.queue.try_send(finished) {
            let (mpsc::error::TrySendError::Full(lost) | mpsc::error::TrySendError::Closed(lost)) =
                error;
            self.metrics.otlp.dropped("traces", "queue_full", lost.spans());
        }
    }

    /// Ends the trace of a request whose caller is unknown. Strangers do not decide on sampling:
    /// otherwise they could fill the queue.
    pub fn finish_stranger(&self, trace: RequestTrace, record: &Record, took: Duration) {
        if self.sampling.admits_root(trace.own.trace_id) {
            self.finish(trace, record, took);
        }
    }
}
