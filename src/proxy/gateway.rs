//! The parts that every request uses, built once by `app`.

use std::sync::{Arc, OnceLock, Weak};

use http::HeaderName;
use tokio::runtime::Handle;

use super::body_budget::BodyBudget;
use super::embedded_admin::EmbeddedAdmin;
use super::instructions::Instructions;
use super::pending_replies::PendingReplies;
use crate::http_client::in_process::InProcessProxy;
use crate::ledger::Ledger;
use crate::messages::Messages;
use crate::otlp::{Meter, Relay, Tracer};
use crate::policy::reservation::Reservation;
use crate::state::{
    CacheSessions, ClientVersions, FailedSessions, FirstBytes, Node, StoredHistory,
};
use crate::upstream::Upstreams;

/// The shared parts of the data plane. Only calls about batches and files wait for the database.
pub struct Gateway {
    /// What the parts of this process share.
    pub node: Arc<Node>,
    /// Receives the record of every authenticated request.
    pub ledger: Arc<Ledger>,
    /// Connections to providers.
    pub upstreams: Upstreams,
    /// Bounds the bodies of requests in flight.
    pub bodies: Arc<BodyBudget>,
    /// Sessions that are not bound to their provider, since it failed them.
    pub failed_sessions: FailedSessions,
    /// How fast providers answer requests of groups that ask the fastest.
    pub first_bytes: FirstBytes,
    /// Which provider stores the history of conversations that are continued by a reply's id.
    pub stored_history: StoredHistory,
    /// Replies in the background that are not billed yet.
    pub pending_replies: PendingReplies,
    /// The latest prompts of sessions, as fingerprints.
    pub cache_sessions: CacheSessions,
    /// The versions in use of known clients.
    pub client_versions: ClientVersions,
    /// Stores transcripts; `None` if they are not stored.
    pub messages: Option<Messages>,
    /// The administration, if it is served on this listener too.
    pub admin: OnceLock<Box<dyn EmbeddedAdmin>>,
    /// The way for requests that the gateway makes itself; gone once the process stops.
    pub in_process: Weak<dyn InProcessProxy>,
    /// The settings that a reload does not change.
    pub fixed: Fixed,
    /// OTLP, as far as requests use it.
    pub otlp: OtlpParts,
    /// The runtime of the database's connections.
    pub io: Handle,
}

/// The parts of OTLP that requests use. All are `None` if OTLP is off.
#[derive(Default)]
pub struct OtlpParts {
    /// Begins and ends the traces of requests; `None` if requests have none.
    pub tracer: Option<Arc<Tracer>>,
    /// Counts requests for the collector; `None` if it gets no metrics.
    pub meter: Option<Arc<Meter>>,
    /// Passes clients' telemetry to a collector; `None` if that is off.
    pub relay: Option<Relay>,
}

/// Settings that change only with a restart.
pub struct Fixed {
    /// Headers that may carry a key besides `Authorization` and `x-api-key`.
    pub alt_key_headers: Vec<HeaderName>,
    /// Headers that may carry a session id, in order.
    pub session_headers: Vec<HeaderName>,
    /// What a request reserves while it is in flight.
    pub reservation: Reservation,
    /// The operator's official instruction texts.
    pub instructions: Instructions,
    /// One log line per request.
    pub access_log: bool,
}
