//! The configuration as the program uses it: typed, validated, immutable.
//!
//! Built only by [`super::load`]. Times end in their unit (`_ms`, `_s`), sizes are bytes, 0 means
//! "none" only if the field says so. The names in YAML and in the environment are in
//! `super::table`.

use std::net::SocketAddr;
use std::path::PathBuf;

use chrono_tz::Tz;

use super::telemetry::Telemetry;
use super::value::Values;
use crate::domain::network::{Network, Networks};
use crate::domain::secret::Secret;
use crate::policy::reservation::Reservation;
use crate::policy::unpriced::Unpriced;

/// Every setting of one process.
#[derive(Debug, Clone)]
pub struct Config {
    pub proxy: Proxy,
    pub admin: Admin,
    pub metrics: Metrics,
    pub database: Database,
    /// The folder of the embedded database, the journal and generated secrets.
    pub data_dir: PathBuf,
    /// `None`: this process counts on its own.
    pub redis: Option<Redis>,
    pub auth: Auth,
    pub session: Session,
    pub ledger: Ledger,
    pub limits: Limits,
    pub prices: Prices,
    pub webhooks: Webhooks,
    pub instructions: Instructions,
    pub log: Log,
    /// OTLP: what is sent to collectors.
    pub telemetry: Telemetry,
    /// Of daily, weekly and monthly windows, and of times that clients send without an offset.
    pub time_zone: Tz,
    pub shutdown: Shutdown,
    /// The settings that a reload may change.
    pub live: Live,
    /// Every value with its origin: for printing and for comparing two loads.
    pub(super) values: Values,
}

/// The listener for model clients.
#[derive(Debug, Clone)]
pub struct Proxy {
    pub addr: SocketAddr,
    pub tls: Option<TlsFiles>,
    /// HTTP/2 with prior knowledge on a listener without TLS.
    pub h2c: bool,
    /// Worker threads; 0 = one per core.
    pub threads: usize,
    /// Also serve the administration API and the web UI here.
    pub expose_admin: bool,
    /// Idle upstream connections kept for reuse.
    pub upstream_pool_size: usize,
    /// Unix socket over which a new process takes over the listeners. Always set after loading.
    pub upgrade_socket: Option<PathBuf>,
}

/// A certificate chain and its private key, both PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// The listener of the administration API and the web UI.
#[derive(Debug, Clone)]
pub struct Admin {
    pub addr: SocketAddr,
    pub tls: Option<TlsFiles>,
    /// The address that users open, `https://gateway.example`; without a trailing slash.
    pub app_url: Option<String>,
    /// Whether login cookies carry `Secure`.
    pub secure_cookies: bool,
}

/// The listener of `/metrics`, `/livez` and `/readyz`.
#[derive(Debug, Clone)]
pub struct Metrics {
    pub addr: SocketAddr,
    /// Series for users, and for keys.
    pub per_user: bool,
    pub per_key: bool,
}

#[derive(Debug, Clone)]
pub struct Database {
    pub target: Target,
    /// Connections to PostgreSQL; ignored for the embedded database.
    pub max_connections: u32,
}

/// The database of configuration, ledger and request log.
#[derive(Debug, Clone)]
pub enum Target {
    /// Embedded, in a file of this directory.
    Sqlite { dir: PathBuf },
    /// `postgres://…`, including its password.
    Postgres(Secret),
}

#[derive(Debug, Clone)]
pub struct Auth {
    /// `None`: the gateway generates one and keeps it in the data directory.
    pub admin_token: Option<Secret>,
    /// Encrypts provider keys at rest. `None`: the gateway keeps a generated one in the data
    /// directory.
    pub secret_key: Option<Secret>,
    /// Still opens what it sealed, during a rotation.
    pub secret_key_previous: Option<Secret>,
    /// Header names, lower case, that carry a key as `x-alt-api-key` does.
    pub alt_key_headers: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct Session {
    /// Seconds after its last request for which a session stays live.
    pub ttl_s: u64,
    /// Header names, lower case, in order of preference.
    pub headers: Vec<String>,
    /// Whether the bodies that clients send and receive are stored.
    pub store_messages: bool,
    /// Of each body.
    pub message_bytes: usize,
    /// Of all stored messages.
    pub messages_total_bytes: u64,
}

/// The local journal in front of the database, and its writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ledger {
    pub segment_bytes: u64,
    /// Beyond this many unwritten bytes new requests are refused.
    pub max_bytes: u64,
    pub batch_rows: usize,
    pub flush_interval_ms: u64,
    pub sync_interval_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How requests in flight count against the limits.
    pub reservation: Reservation,
    pub on_redis_loss: OnRedisLoss,
}

/// What a node does while Redis is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnRedisLoss {
    /// Continues with its own counters.
    Local,
    /// Admits everything.
    Open,
    /// Refuses everything that would be counted.
    Closed,
}

impl OnRedisLoss {
    pub(super) const NAMES: &'static [&'static str] = &["local", "open", "closed"];

    pub(super) fn parse(text: &str) -> Self {
        match text {
            "open" => Self::Open,
            "closed" => Self::Closed,
            _ => Self::Local,
        }
    }
}

/// How a provider's reply is treated if the client closes its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnAbort {
    /// The provider is stopped, and the usage estimated.
    Cancel,
    /// The reply is read to its end and discarded, and its usage billed.
    Drain,
}

impl OnAbort {
    pub(super) const NAMES: &'static [&'static str] = &["cancel", "drain"];

    pub(super) fn parse(text: &str) -> Self {
        if text == "drain" { Self::Drain } else { Self::Cancel }
    }
}

/// The server of the shared counters.
#[derive(Debug, Clone)]
pub struct Redis {
    /// Including its password.
    pub url: Secret,
    /// CAs in place of the public ones.
    pub ca: Option<PathBuf>,
    /// The client certificate.
    pub tls: Option<TlsFiles>,
    pub prefix: String,
    pub timeout_ms: u64,
    pub lease_ms: u64,
}

#[derive(Debug, Clone)]
pub struct Prices {
    /// Price table for an empty database; `None` = [`super::BUILT_IN_PRICES`].
    pub seed_file: Option<PathBuf>,
    /// Where a sync fetches from: an `http`, `https` or `file` address.
    pub sync_url: String,
}

#[derive(Debug, Clone)]
pub struct Webhooks {
    /// Networks that are allowed although they are not public.
    pub allow_private: Vec<Network>,
}

/// Texts that a responses provider's instruction strategy may insert; read at start.
#[derive(Debug, Clone)]
pub struct Instructions {
    pub short_file: Option<PathBuf>,
    pub long_file: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    pub level: String,
    pub format: LogFormat,
    /// One line per request.
    pub access: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
    /// Text on a terminal, else JSON.
    Auto,
}

impl LogFormat {
    pub(super) const NAMES: &'static [&'static str] = &["auto", "text", "json"];

    pub(super) fn parse(text: &str) -> Self {
        match text {
            "text" => Self::Text,
            "json" => Self::Json,
            _ => Self::Auto,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shutdown {
    /// How long replies may continue after a stop was requested.
    pub grace_s: u64,
}

/// Settings that SIGHUP may change: shared as `Arc<ArcSwap<Live>>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Live {
    pub max_body_bytes: usize,
    /// Of all requests in flight together; not less than `max_body_bytes`.
    pub max_inflight_body_bytes: usize,
    pub max_json_depth: usize,
    /// For the complete body of a client's request; 0 = none.
    pub request_read_timeout_ms: u64,
    /// For each part of a reply that a client reads; 0 = none.
    pub reply_write_timeout_ms: u64,
    /// Of a client's HTTP/1 connection without a request.
    pub keepalive_timeout_ms: u64,
    /// For the head of a request; 0 = none.
    pub head_timeout_ms: u64,
    pub max_head_bytes: usize,
    /// Connections to the proxy.
    pub max_connections: ConnectionBounds,
    /// Connections to the administration.
    pub admin_max_connections: ConnectionBounds,
    /// Requests on one HTTP/1 connection; 0 = no limit.
    pub keepalive_requests: u32,
    pub on_abort: OnAbort,
    /// Bounds of a reply that is drained.
    pub abort_drain_ms: u64,
    pub abort_drain_bytes: usize,
    pub timeouts: Timeouts,
    pub retry: Retry,
    pub breaker: Breaker,
    pub forward_headers: HeaderRules,
    /// Peers whose `X-Forwarded-For` and `Forwarded` headers are trusted for the client's address.
    pub trusted_proxies: Networks,
    /// Forward reply headers that describe a provider's account.
    pub pass_provider_headers: bool,
    /// Report the gateway's own time to clients in a reply header.
    pub overhead_header: bool,
    /// How requests for models without a price are treated.
    pub unpriced: Unpriced,
    pub log_level: String,
}

/// Bounds of a listener's concurrent connections. 0 = no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionBounds {
    pub total: usize,
    /// Of one IPv4 address or one IPv6 /64.
    pub per_address: usize,
}

/// Defaults for providers that set none. 0 = no timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// TCP and TLS together.
    pub connect_ms: u64,
    /// The TLS handshake alone; lies inside `connect_ms`.
    pub tls_ms: u64,
    pub first_byte_streaming_ms: u64,
    pub streaming_idle_ms: u64,
    pub request_non_streaming_ms: u64,
    /// How long an idle upstream connection is kept.
    pub upstream_keepalive_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// From the request's arrival to the first byte of its reply, over all attempts.
    pub deadline_ms: u64,
    /// Try another provider after `invalid_api_key` and `billing_quota_exceeded`.
    pub switch_on_upstream_auth: bool,
    /// Longest cooldown that a provider's `Retry-After` can cause.
    pub max_rest_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Breaker {
    pub count_network_errors: bool,
    /// Probes in a row; 0 = never.
    pub disable_after_failed_probes: u32,
}

/// Header names, lower case, removed in addition to those that are never forwarded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeaderRules {
    pub drop_request: Vec<String>,
    pub drop_response: Vec<String>,
}
