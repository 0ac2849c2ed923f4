//! The configuration as the program uses it: typed, validated, immutable.
//!
//! Built only by [`super::load`]. Times end in their unit (`_ms`, `_s`), sizes are bytes, 0 means
//! "none" only if the field says so. The names in YAML and in the environment are in
//! `super::table`.

use std::net::SocketAddr;
use std::path::PathBuf;

use chrono_tz::Tz;

use super::live::Live;
use super::telemetry::Telemetry;
use super::value::Values;
use crate::domain::network::Network;
use crate::domain::secret::Secret;
use crate::policy::reservation::Reservation;

/// Every setting of one process.
#[derive(Debug, Clone)]
pub struct Config {
    /// The listener for model clients (`proxy.*`).
    pub proxy: Proxy,
    /// The administration listener (`admin.*`).
    pub admin: Admin,
    /// The listener of metrics and health checks (`metrics.*`).
    pub metrics: Metrics,
    /// Which database, and how many connections (`database.*`).
    pub database: Database,
    /// The folder of the embedded database, the journal and generated secrets.
    pub data_dir: PathBuf,
    /// `None`: this process counts on its own.
    pub redis: Option<Redis>,
    /// The gateway's own credentials (`auth.*`).
    pub auth: Auth,
    /// Sessions, and their stored messages (`session.*`).
    pub session: Session,
    /// The journal and its writer (`ledger.*`).
    pub ledger: Ledger,
    /// How limits are counted (`limits.*`).
    pub limits: Limits,
    /// The price table's sources (`prices.*`); the treatment of unpriced models is in [`Live`].
    pub prices: Prices,
    /// Which addresses webhooks may have (`webhooks.*`).
    pub webhooks: Webhooks,
    /// Files with official instructions (`instructions.*`).
    pub instructions: Instructions,
    /// The log's form (`log.*`); the level at run time is in [`Live`].
    pub log: Log,
    /// OTLP: what is sent to collectors.
    pub telemetry: Telemetry,
    /// Of calendar windows, and of times that clients send without an offset.
    pub time_zone: Tz,
    /// How the process ends (`shutdown.*`).
    pub shutdown: Shutdown,
    /// The settings that a reload may change.
    pub live: Live,
    /// Every value with its origin: for printing and for comparing two loads.
    pub(super) values: Values,
}

/// The listener for model clients.
#[derive(Debug, Clone)]
pub struct Proxy {
    /// The address to listen on, `0.0.0.0:8080` unless configured.
    pub addr: SocketAddr,
    /// `None` = plain HTTP.
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
    /// The certificate chain, the process's own certificate first.
    pub cert: PathBuf,
    /// The private key of that first certificate.
    pub key: PathBuf,
}

/// The listener of the administration API and the web UI.
#[derive(Debug, Clone)]
pub struct Admin {
    /// The address to listen on, `127.0.0.1:8081` unless configured.
    pub addr: SocketAddr,
    /// `None` = plain HTTP.
    pub tls: Option<TlsFiles>,
    /// The address that users open, `https://gateway.example`; without a trailing slash.
    pub app_url: Option<String>,
    /// Whether login cookies carry `Secure`.
    pub secure_cookies: bool,
}

/// The listener of `/metrics`, `/livez` and `/readyz`.
#[derive(Debug, Clone)]
pub struct Metrics {
    /// The address to listen on, without TLS; `127.0.0.1:9464` unless configured.
    pub addr: SocketAddr,
    /// Series for each user: the first 200 that send a request, the rest as `other`.
    pub per_user: bool,
    /// Series for each key, bounded in the same way.
    pub per_key: bool,
}

/// The database that the process uses.
#[derive(Debug, Clone)]
pub struct Database {
    /// Which database it is.
    pub target: DatabaseTarget,
    /// A standby of it that reports read from, with its password.
    pub read_url: Option<Secret>,
    /// Connections to PostgreSQL (as many again to the standby); ignored for the embedded database.
    pub max_connections: u32,
    /// Keep a snapshot of PostgreSQL, and start with it while the server is away.
    pub snapshot: bool,
    /// Milliseconds; a start does not use a snapshot that is older.
    pub snapshot_max_age_ms: u64,
}

/// The database of configuration, ledger and request log.
#[derive(Debug, Clone)]
pub enum DatabaseTarget {
    /// Embedded, in a file of this directory.
    Sqlite {
        /// The data directory; the store defines the file's name in it.
        dir: PathBuf,
    },
    /// `postgres://…`, including its password.
    Postgres(Secret),
}

/// The gateway's own credentials, and the headers of clients' keys.
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

/// How long sessions live, how they are recognised, and what is stored of their messages.
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
    /// Bytes of a journal file at which the next one begins.
    pub segment_bytes: u64,
    /// Beyond this many unwritten bytes new requests are refused.
    pub max_bytes: u64,
    /// Most records in one transaction, 1–10 000.
    pub batch_rows: usize,
    /// Longest wait in milliseconds before an incomplete batch is written.
    pub flush_interval_ms: u64,
    /// Milliseconds between two syncs of the journal to the disk.
    pub sync_interval_ms: u64,
}

/// How limits are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How requests in flight count against the limits.
    pub reservation: Reservation,
    /// What a node does with requests while Redis does not answer.
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

/// The server of the shared counters.
#[derive(Debug, Clone)]
pub struct Redis {
    /// The address of the server, the cluster or the Sentinels, including the password.
    pub url: Secret,
    /// The password that the Sentinels ask for.
    pub sentinel_password: Option<Secret>,
    /// CAs in place of the public ones.
    pub ca: Option<PathBuf>,
    /// The client certificate.
    pub tls: Option<TlsFiles>,
    /// Begins the name of every key and channel, so that several gateways can share a server.
    pub prefix: String,
    /// Milliseconds that a request waits for Redis at most; after that the node counts locally.
    pub timeout_ms: u64,
    /// Milliseconds after a node's last heartbeat until the reservations of its requests are
    /// released.
    pub lease_ms: u64,
}

/// Where prices come from.
#[derive(Debug, Clone)]
pub struct Prices {
    /// Price table for an empty database; `None` = [`super::BUILT_IN_PRICES`].
    pub seed_file: Option<PathBuf>,
    /// Where a sync fetches from: an `http`, `https` or `file` address.
    pub sync_url: String,
}

/// Where webhooks may be sent.
#[derive(Debug, Clone)]
pub struct Webhooks {
    /// Networks that are allowed although they are not public.
    pub allow_private: Vec<Network>,
}

/// Texts that a responses provider's instruction strategy may insert; read at start.
#[derive(Debug, Clone)]
pub struct Instructions {
    /// Instructions for models with `codex` in their name; `None` = the other text, if there is
    /// one.
    pub short_file: Option<PathBuf>,
    /// Instructions for all other models; `None` = the other text, if there is one.
    pub long_file: Option<PathBuf>,
}

/// What is logged, and in which form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// Least important lines that are written at start: `error`, `warn`, `info`, `debug` or
    /// `trace`.
    pub level: String,
    /// The form of the lines.
    pub format: LogFormat,
    /// One line per request.
    pub access: bool,
}

/// The form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// One line of text for each event.
    Text,
    /// One JSON object on a line for each event.
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

/// How the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shutdown {
    /// How long replies may continue after a stop was requested.
    pub grace_s: u64,
}
