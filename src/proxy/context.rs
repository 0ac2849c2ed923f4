//! One request's context (`CTX` in Pingora's terms), from its head to its ledger record.
//!
//! The record is opened once the caller is known and closed exactly once, by
//! [`RequestContext::close`]. Dropping a context with an open record closes the record: a panic in
//! a filter, or a task that the runtime cancels at shutdown, loses neither the record nor the
//! request's concurrency permit.
//!
//! See docs/decisions/10-boxed-values.md.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono_tz::Tz;
use pingora::{Error, ErrorType};

use super::gateway::Gateway;
use super::record::{Ending, OpenRecord};
use super::reply::transcript::Transcript;
use super::upstream::attempt::Attempt;
use super::upstream::forwarding::Forwarding;
use super::upstream::incoming::Incoming;
use super::upstream::relay::Relay;
use crate::config::Live;
use crate::domain::clock::Timestamp;
use crate::domain::format::WireFormat;
use crate::domain::ids::{KeyId, RequestId, UserId};
use crate::domain::key::Key;
use crate::domain::provider::Provider;
use crate::domain::record::{Decision, DecisionStep, RequestOutcome};
use crate::domain::user::User;
use crate::otlp::RequestTrace;
use crate::telemetry::IntGauge;

/// The caller of a request.
#[derive(Debug, Clone)]
pub enum Principal {
    Key {
        key: Arc<Key>,
        user: Arc<User>,
    },
    /// The admin token: every group, no limits.
    Admin,
}

impl Principal {
    /// The id of the key; `None` for the admin token.
    #[must_use]
    pub fn key_id(&self) -> Option<KeyId> {
        match self {
            Self::Key { key, .. } => Some(key.id),
            Self::Admin => None,
        }
    }

    /// The id of the key's owner; `None` for the admin token.
    #[must_use]
    pub fn user_id(&self) -> Option<UserId> {
        match self {
            Self::Key { user, .. } => Some(user.id),
            Self::Admin => None,
        }
    }
}

/// A request (or stream) counted in a gauge until it is dropped.
pub struct InFlight(IntGauge);

impl InFlight {
    /// Adds 1 to `gauge` until the value is dropped.
    #[must_use]
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

/// The context of one request.
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
    /// How the request ends once the current reply is complete.
    pub ending: Ending,
    /// `None` before the caller is known, and once the request is over.
    pub record: Option<Box<OpenRecord>>,
    /// Set by `request_filter` if the request goes to a provider.
    forwarding: Option<Box<Forwarding>>,
    /// Request and reply, if messages are stored.
    pub transcript: Option<Box<Transcript>>,
    /// `None` for a live view of the administration, which a stop does not wait for.
    pub in_flight: Option<InFlight>,
    /// Ids of the request, and what it notes for its spans; `None` if requests have no traces.
    pub trace: Option<Box<RequestTrace>>,
}

impl RequestContext {
    /// The context of a request that begins now, with a new id and the settings in effect.
    #[must_use]
    pub fn new(gateway: Arc<Gateway>) -> Self {
        let started_at = gateway.clock.now();
        let in_flight = Some(InFlight::enter(&gateway.metrics.requests_live));
        let live = gateway.live.load_full();
        Self {
            gateway,
            live,
            id: RequestId::new(),
            started: Instant::now(),
            started_at,
            waited: Duration::ZERO,
            format: WireFormat::Chat,
            head: HeadFacts::default(),
            ending: Ending::internal("the request was cut off inside the gateway"),
            record: None,
            forwarding: None,
            transcript: None,
            in_flight,
            trace: None,
        }
    }

    /// The wall-clock time now, by the gateway's clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.gateway.clock.now()
    }

    /// The time zone of calendar windows, and of times in messages.
    #[must_use]
    pub fn zone(&self) -> Tz {
        self.gateway.counters.zone()
    }

    /// Milliseconds since the request began, by the monotonic clock.
    #[must_use]
    pub fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Time that the gateway itself has spent on the request.
    #[must_use]
    pub fn overhead(&self) -> Duration {
        self.started.elapsed().saturating_sub(self.waited)
    }

    /// alt-cli: a stream is server-sent events if the query asks for them, else one JSON array.
    #[must_use]
    pub fn asked_for_events(&self) -> bool {
        self.head.query.as_deref().is_some_and(|q| q.split('&').any(|pair| pair == "alt=sse"))
    }

    /// Whether a stream for this client is one JSON array.
    #[must_use]
    pub fn reads_array(&self) -> bool {
        self.format == WireFormat::AltCli && !self.asked_for_events()
    }

    /// Sets the forwarding: the request goes to a provider.
    pub fn forward(&mut self, forwarding: Box<Forwarding>) {
        self.forwarding = Some(forwarding);
    }

    /// The forwarding that `request_filter` prepared.
    ///
    /// # Errors
    /// When a hook of a later phase runs for a request that no earlier phase prepared.
    pub fn forwarding(&mut self) -> pingora::Result<&mut Forwarding> {
        self.forwarding.as_deref_mut().ok_or_else(out_of_order)
    }

    /// As [`RequestContext::forwarding`], to read.
    ///
    /// # Errors
    /// As [`RequestContext::forwarding`].
    pub fn forwarding_ref(&self) -> pingora::Result<&Forwarding> {
        self.forwarding.as_deref().ok_or_else(out_of_order)
    }

    /// The attempt that `upstream_peer` began.
    ///
    /// # Errors
    /// As [`RequestContext::forwarding`].
    pub fn attempt(&mut self) -> pingora::Result<&mut Attempt> {
        self.forwarding()?.attempt.as_deref_mut().ok_or_else(out_of_order)
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

    /// The reply is relayed from now on: no further attempt is possible. `whole`: the length of the
    /// body, if all of it has arrived.
    pub fn release(&mut self, whole: Option<usize>) {
        let (first_byte, gateway) = (self.started.elapsed(), Arc::clone(&self.gateway));
        if let Some(record) = &mut self.record {
            record.first_byte = Some(first_byte);
        }
        if let Some(trace) = &mut self.trace {
            trace.first_chunk(first_byte);
        }
        let Some(forwarding) = &mut self.forwarding else { return };
        forwarding.release_body();
        if let Some(Incoming::Reply(relay)) =
            forwarding.attempt.as_mut().map(|attempt| &mut attempt.incoming)
        {
            relay.release(&gateway.metrics.streams_live, whole);
            self.ending =
                Ending { outcome: RequestOutcome::Completed, status: relay.status, error: None };
        }
    }

    /// The relayed reply, once its head is about to be written.
    #[must_use]
    pub fn released_relay(&self) -> Option<&Relay> {
        match &self.forwarding.as_ref()?.attempt.as_ref()?.incoming {
            Incoming::Reply(relay) if relay.is_released() => Some(relay),
            _ => None,
        }
    }

    /// The next bytes complete the reply that is being written.
    pub fn complete(&mut self) {
        if self.record.is_none() {
            return;
        }
        let relayed =
            self.released_relay().filter(|_| self.ending.outcome == RequestOutcome::Completed);
        if let Some(relay) = relayed {
            let estimated_input = self.record.as_ref().map_or(0, |record| record.estimated_input());
            let bill = relay.bill(estimated_input);
            if let Some(record) = &mut self.record {
                record.note_bill(bill);
            }
            self.provider_succeeded();
        }
        let ending = self.ending.clone();
        self.close(&ending);
    }

    fn provider_succeeded(&mut self) {
        let now = self.now();
        if let Ok(attempt) = self.attempt() {
            attempt.ticket.succeeded(now);
            let provider = Arc::clone(&attempt.provider);
            self.gateway.metrics.attempt(&provider.name, "ok");
        }
    }

    /// Notes the usage of an attempt that does not complete.
    pub fn note_partial_usage(&mut self) {
        let Some(record) = self.record.as_ref().filter(|record| record.is_metered()) else {
            return;
        };
        let estimated_input = record.estimated_input();
        let Ok(attempt) = self.attempt() else { return };
        let bill = attempt.incoming.partial_usage(estimated_input, attempt.is_billable);
        if let Some(record) = &mut self.record {
            record.note_bill(bill);
        }
    }

    /// The client closed the connection during an exchange; `result` says what became of the
    /// provider's reply.
    pub fn aborted(&mut self, result: &'static str) {
        self.gateway.metrics.connections.aborted(result);
        let what = match result {
            "drained" => "the client left; the provider's reply was read to its end",
            "incomplete" => "the client left; the provider's reply could not be read to its end",
            _ => return,
        };
        self.ending = Ending { error: Some(what.to_owned()), ..Ending::client_aborted() };
    }

    /// The request is over without a complete reply: because the client `left`, or for the reason
    /// in [`RequestContext::ending`].
    pub fn abandon(&mut self, left: bool) {
        if self.is_open() {
            self.note_partial_usage();
            let ending = match self.ending.outcome {
                RequestOutcome::ClientAborted => self.ending.clone(),
                _ if left => Ending::client_aborted(),
                // The reply should have been completed, and was not.
                RequestOutcome::Completed => Ending::internal("no answer was made"),
                _ => self.ending.clone(),
            };
            self.close(&ending);
        }
    }

    /// Ends the request: prices and journals its record and releases its permit. Only the first
    /// call has an effect, and only if the caller is known.
    ///
    /// Call it before the bytes that complete the reply are sent.
    fn close(&mut self, ending: &Ending) {
        if let Some(record) = self.record.take() {
            let trace = self.trace.take();
            record.settle(self, trace, ending);
        }
    }

    /// Whether the caller is known and the record is not closed yet.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.record.is_some()
    }
}

impl Drop for RequestContext {
    fn drop(&mut self) {
        if self.is_open() {
            self.note_partial_usage();
            let ending = Ending::internal("the request was cut off inside the gateway");
            self.close(&ending);
        }
    }
}

/// A hook ran for a request that no earlier phase prepared.
pub(super) fn out_of_order() -> Box<Error> {
    Error::explain(ErrorType::InternalError, "a hook ran before the phase that it needs").into_in()
}

impl Ending {
    /// The gateway itself failed.
    #[must_use]
    pub fn internal(why: &str) -> Self {
        Self { outcome: RequestOutcome::Internal, status: 500, error: Some(why.to_owned()) }
    }

    /// The client left before its reply was complete.
    #[must_use]
    pub fn client_aborted() -> Self {
        Self {
            outcome: RequestOutcome::ClientAborted,
            status: 499,
            error: Some("the client left".to_owned()),
        }
    }
}
