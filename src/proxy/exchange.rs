//! One request's context: what each stage learned, from the first byte to the ledger record.
//!
//! It settles itself when it is dropped unsettled: a panic in a filter, or a task that Pingora cuts at shutdown, neither
//! loses the record nor keeps the concurrency that the request held.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;

use super::gateway::Gateway;
use super::room::Room;
use super::{keep, settle};
use crate::counters::Permit;
use crate::domain::clock::Timestamp;
use crate::domain::format::WireFormat;
use crate::domain::ids::{KeyId, RequestId, SessionId, UserId};
use crate::domain::key::Key;
use crate::domain::provider::Provider;
use crate::domain::record::{Decision, RequestOutcome};
use crate::domain::usage::Usage;
use crate::domain::user::User;
use crate::formats::peek::Peek;
use crate::formats::route::{Operation, Route};
use crate::state::Snapshot;
use crate::store::Clip;

/// Who asks.
#[derive(Debug, Clone)]
pub enum Caller {
    Key {
        key: Arc<Key>,
        user: Arc<User>,
    },
    /// The admin token: every group, no limits.
    Admin,
}

impl Caller {
    #[must_use]
    pub fn key_id(&self) -> Option<KeyId> {
        match self {
            Self::Key { key, .. } => Some(key.id),
            Self::Admin => None,
        }
    }

    #[must_use]
    pub fn user_id(&self) -> Option<UserId> {
        match self {
            Self::Key { user, .. } => Some(user.id),
            Self::Admin => None,
        }
    }
}

/// The request as far as its body is understood.
pub struct Inbound {
    pub model: Arc<str>,
    pub stream: bool,
    /// The decoded body, in the pieces it arrived in; empty once it was let go.
    pub body: Vec<Bytes>,
    pub body_len: usize,
    pub peek: Peek,
    pub session: SessionId,
    /// The room that the body takes, as long as it is there.
    pub room: Option<Room>,
}

/// How a request ended, as far as the reply goes.
#[derive(Debug, Clone)]
pub struct End {
    pub outcome: RequestOutcome,
    pub status: u16,
    pub error: Option<String>,
}

/// The provider that answered, or the last one that was asked.
pub struct Asked {
    pub provider: Arc<Provider>,
    pub model: Arc<str>,
    /// When the last attempt at it began.
    pub began: Instant,
}

/// A request in a gauge of those that run; leaves it when dropped.
pub struct Running(crate::telemetry::IntGauge);

impl Running {
    #[must_use]
    pub fn enter(gauge: &crate::telemetry::IntGauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// The context of one request.
pub struct Exchange {
    pub gateway: Arc<Gateway>,
    pub request_id: RequestId,
    pub started: Instant,
    pub started_at: Timestamp,
    /// Time spent waiting for the client or a provider: not the gateway's own.
    pub waited: Duration,
    pub format: WireFormat,
    pub route: Option<Route>,
    pub endpoint: Arc<str>,
    pub query: Option<String>,
    pub user_agent: Option<Arc<str>>,
    pub client_ip: Option<IpAddr>,
    pub snapshot: Option<Arc<Snapshot>>,
    pub caller: Option<Caller>,
    pub inbound: Option<Arc<Inbound>>,
    pub permit: Option<Permit>,
    pub order: Vec<usize>,
    pub decisions: Vec<Decision>,
    pub attempts: u32,
    pub asked: Option<Asked>,
    pub usage: Option<Usage>,
    pub usage_estimated: bool,
    pub first_byte: Option<Duration>,
    /// Set by the first settlement; later ones do nothing.
    pub settled: bool,
    /// The request's body, where that is kept and the body itself is gone.
    pub request_kept: Option<Clip>,
    /// The reply as it went to the client, where that is kept.
    pub reply_kept: Mutex<Clip>,
    /// Counts the request as running for as long as it lives.
    pub running: Option<Running>,
}

impl Exchange {
    #[must_use]
    pub fn new(gateway: Arc<Gateway>) -> Self {
        let started_at = gateway.clock.now();
        let running = Some(Running::enter(&gateway.metrics.requests_live));
        Self {
            gateway,
            request_id: RequestId::new(),
            started: Instant::now(),
            started_at,
            waited: Duration::ZERO,
            format: WireFormat::Chat,
            route: None,
            endpoint: Arc::from(""),
            query: None,
            user_agent: None,
            client_ip: None,
            snapshot: None,
            caller: None,
            inbound: None,
            permit: None,
            order: Vec::new(),
            decisions: Vec::new(),
            attempts: 0,
            asked: None,
            usage: None,
            usage_estimated: false,
            first_byte: None,
            settled: false,
            request_kept: None,
            reply_kept: Mutex::default(),
            running,
        }
    }

    #[must_use]
    pub fn operation(&self) -> Option<&Operation> {
        self.route.as_ref().map(|r| &r.operation)
    }

    #[must_use]
    pub fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// alt-cli: a stream is server-sent events when asked for so, else one JSON array.
    #[must_use]
    pub fn asked_for_events(&self) -> bool {
        self.query.as_deref().is_some_and(|q| q.split('&').any(|pair| pair == "alt=sse"))
    }

    /// Lets go of the request's body: nobody can be asked again. What the record needs of the request stays.
    pub fn let_body_go(&mut self) {
        keep::note_request(self);
        // Nobody else holds it by now; if somebody did, the body would go with the request.
        if let Some(inbound) = self.inbound.as_mut().and_then(Arc::get_mut) {
            inbound.body = Vec::new();
            inbound.room = None;
        }
    }

    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.gateway.clock.now()
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let error = Some("the request was cut off inside the gateway".to_owned());
        settle::settle(self, &End { outcome: RequestOutcome::Internal, status: 500, error });
        keep::offer(self);
    }
}
