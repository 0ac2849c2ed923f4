//! The facts of one request, from its head to its ledger record: who asks, for what, since when.
//!
//! What exists once the request goes to a provider is in `upstream`; `exchange.rs` holds both, and
//! ends the request.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono_tz::Tz;

use super::gateway::Gateway;
use super::record::{AskedProvider, Ending, OpenRecord};
use super::transcript::Transcript;
use crate::config::Live;
use crate::domain::clock::Timestamp;
use crate::domain::format::WireFormat;
use crate::domain::ids::RequestId;
use crate::domain::provider::Provider;
use crate::domain::record::{Decision, DecisionStep, RequestOutcome};
use crate::otlp::RequestTrace;
use crate::telemetry::IntGauge;

/// A request (or stream) counted in a gauge until it is dropped.
pub struct InFlight(IntGauge);

impl InFlight {
    /// Adds 1 to `gauge` until the value is dropped.
    pub fn enter(gauge: &IntGauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// The recorded facts of the head besides its route. The query is not recorded.
#[derive(Default)]
pub struct HeadFacts {
    pub endpoint: Arc<str>,
    /// Without the credential.
    pub query: Option<String>,
    pub user_agent: Option<Arc<str>>,
    pub client_ip: Option<IpAddr>,
}

/// The facts of one request.
pub struct RequestContext {
    pub gateway: Arc<Gateway>,
    /// The reloadable settings at the time when the request began.
    pub live: Arc<Live>,
    pub id: RequestId,
    pub started: Instant,
    pub started_at: Timestamp,
    /// Time spent waiting for the client or a provider; not part of the gateway's overhead.
    pub waited: Duration,
    /// The client's format; chat-compatible until the head is read.
    pub format: WireFormat,
    pub head: HeadFacts,
    /// It asks whether tool calls are dangerous: the client's own check, or the gateway's.
    pub is_tool_check: bool,
    /// The client asked over a WebSocket.
    pub is_over_websocket: bool,
    /// Only the selection of its providers is asked for.
    pub is_explained: bool,
    /// How the request ends once the current reply is complete.
    pub ending: Ending,
    /// `None` before the caller is known, and once the request is over.
    pub record: Option<Box<OpenRecord>>,
    /// Request and reply, if messages are stored.
    pub transcript: Option<Box<Transcript>>,
    /// `None` for a live view of the administration, which a stop does not wait for.
    pub in_flight: Option<InFlight>,
    /// Ids of the request, and what it notes for its spans; `None` if requests have no traces.
    pub trace: Option<Box<RequestTrace>>,
}

impl RequestContext {
    /// The context of a request that begins now, with a new id and the settings in effect.
    pub fn new(gateway: Arc<Gateway>) -> Self {
        let started_at = gateway.node.clock.now();
        let in_flight = Some(InFlight::enter(&gateway.node.metrics.requests_live));
        let live = gateway.node.live.load_full();
        Self {
            gateway,
            live,
            id: RequestId::new(),
            started: Instant::now(),
            started_at,
            waited: Duration::ZERO,
            format: WireFormat::Chat,
            head: HeadFacts::default(),
            is_tool_check: false,
            is_over_websocket: false,
            is_explained: false,
            // Without a text, which would be an allocation: `Exchange::abandon` adds it.
            ending: Ending { outcome: RequestOutcome::Internal, status: 500, error: None },
            record: None,
            transcript: None,
            in_flight,
            trace: None,
        }
    }

    /// The path for the record. A check of tool calls, and a request over a WebSocket, are marked
    /// by a fragment, which no client's path has.
    pub fn recorded_endpoint(&self) -> Arc<str> {
        let mark = match (self.is_tool_check, self.is_over_websocket) {
            (true, _) => "tool-check",
            (false, true) => "websocket",
            (false, false) => return Arc::clone(&self.head.endpoint),
        };
        format!("{}#{mark}", self.head.endpoint).into()
    }

    /// The wall-clock time now, by the gateway's clock.
    pub fn now(&self) -> Timestamp {
        self.gateway.node.clock.now()
    }

    /// The time zone of calendar windows, and of times in messages.
    pub fn zone(&self) -> Tz {
        self.gateway.node.counters.zone()
    }

    /// Milliseconds since the request began, by the monotonic clock.
    pub fn elapsed_ms(&self) -> u64 {
        millis(self.started.elapsed())
    }

    /// Time that the gateway itself has spent on the request.
    pub fn overhead(&self) -> Duration {
        self.started.elapsed().saturating_sub(self.waited)
    }

    /// alt-cli: a stream is server-sent events if the query asks for them, else one JSON array.
    pub fn asked_for_events(&self) -> bool {
        self.head.query.as_deref().is_some_and(|q| q.split('&').any(|pair| pair == "alt=sse"))
    }

    /// Whether a stream for this client is one JSON array.
    pub fn reads_array(&self) -> bool {
        self.format == WireFormat::AltCli && !self.asked_for_events()
    }

    /// Whether the client's own account pays at the provider that is asked.
    pub fn is_of_clients_account(&self) -> bool {
        let asked = self.record.as_ref().and_then(|record| record.asked.as_ref());
        asked.is_some_and(|asked| asked.provider.auth.is_clients())
    }

    /// Whether it makes a batch.
    pub fn makes_batch(&self) -> bool {
        self.record.as_ref().is_some_and(|record| record.batch().is_some())
    }

    /// Adds a decision about a provider to the decision chain.
    pub fn decide(&mut self, provider: &Provider, step: DecisionStep, why: &str) {
        self.push_decision(Decision {
            provider_id: Some(provider.id),
            provider_name: provider.name.as_str().into(),
            step,
            detail: Some(why.into()),
            status: None,
            at_ms: self.elapsed_ms(),
            took_ms: None,
            usage: None,
        });
    }

    /// Adds a decision of the gateway itself, not tied to a provider.
    pub fn decide_itself(&mut self, step: DecisionStep, detail: String, status: Option<u16>) {
        self.push_decision(Decision {
            provider_id: None,
            provider_name: "".into(),
            step,
            detail: Some(detail.into()),
            status,
            at_ms: self.elapsed_ms(),
            took_ms: None,
            usage: None,
        });
    }

    /// An attempt at a provider begins.
    pub fn asks(&mut self, asked: AskedProvider) {
        self.trace_attempt(&asked.provider, &asked.model);
        if let Some(record) = &mut self.record {
            record.attempts += 1;
            record.note_bill(None);
            record.asked = Some(asked);
        }
    }

    /// Counts an attempt whose reply the client does not get.
    pub fn tried(&mut self) {
        if let Some(record) = &mut self.record {
            record.attempts += 1;
        }
    }

    /// The gateway answers in the place of the providers that were asked.
    pub fn answers_itself(&mut self, why: &str) {
        if let Some(record) = &mut self.record {
            record.asked = None;
        }
        self.decide_itself(DecisionStep::Exhausted, why.to_owned(), None);
    }

    fn push_decision(&mut self, decision: Decision) {
        if let Some(record) = &mut self.record {
            record.decisions.push(decision);
        }
    }

    /// Whether the caller is known and the record is not closed yet.
    pub const fn is_open(&self) -> bool {
        self.record.is_some()
    }
}

/// Milliseconds of a duration, for texts and decisions.
pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
