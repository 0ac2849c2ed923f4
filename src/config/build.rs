//! Builds the typed [`Config`] from checked values.
//!
//! Each line names a path of the table and the expected kind of value. A path or kind that does not
//! fit the table is a programming error: it becomes a problem like any other, and the tests load
//! the defaults.

use std::net::SocketAddr;
use std::path::PathBuf;

use chrono_tz::Tz;
use rust_decimal::Decimal;

use super::live::{
    Breaker, ConnectionBounds, HeaderRules, Live, OnAbort, Retry, Safeguards, StatusPage, Timeouts,
    WebSockets,
};
use super::problem::Problems;
use super::telemetry;
use super::types::{
    Admin, Auth, Config, Database, DatabaseTarget, Instructions, Ledger, Limits, Log, LogFormat,
    Metrics, OnRedisLoss, Prices, Proxy, Redis, Session, Shutdown, TlsFiles, Webhooks,
};
use super::value::{Value, Values};
use crate::domain::network::{Network, Networks};
use crate::domain::secret::Secret;
use crate::policy::reservation::Reservation;
use crate::policy::unpriced::Unpriced;

/// Assigns the values to their fields.
pub(super) fn build(values: Values, problems: &mut Problems) -> Config {
    let mut take = Take { values: &values, problems };
    let data_dir: PathBuf = take.get("data_dir");
    let proxy = proxy(&mut take, &data_dir);
    let admin = admin(&mut take, &proxy);
    let metrics = metrics(&mut take);
    let database = database(&mut take, &data_dir);
    let redis = redis(&mut take);
    let auth = Auth {
        admin_token: take.get("auth.admin_token"),
        secret_key: take.get("auth.secret_key"),
        secret_key_previous: take.get("auth.secret_key_previous"),
        alt_key_headers: take.get("auth.alt_key_headers"),
    };
    let session = session(&mut take);
    let ledger = ledger(&mut take, &database.target);
    let limits = Limits {
        reservation: Reservation::parse(&take.text("limits.reservation")),
        on_redis_loss: OnRedisLoss::parse(&take.text("limits.on_redis_loss")),
    };
    let prices =
        Prices { seed_file: take.get("prices.seed_file"), sync_url: take.get("prices.sync_url") };
    let networks: Vec<String> = take.get("webhooks.allow_private");
    let webhooks = Webhooks {
        allow_private: networks.iter().filter_map(|text| Network::parse(text)).collect(),
    };
    let instructions = Instructions {
        short_file: take.get("instructions.short_file"),
        long_file: take.get("instructions.long_file"),
    };
    let log = log(&mut take);
    let telemetry = telemetry::build(&mut take);
    let time_zone = take.get("time_zone");
    let shutdown = Shutdown { grace_s: take.millis("shutdown.grace") / 1000 };
    let live = live(&mut take);
    Config {
        proxy,
        admin,
        metrics,
        database,
        data_dir,
        redis,
        auth,
        session,
        ledger,
        limits,
        prices,
        webhooks,
        instructions,
        log,
        telemetry,
        time_zone,
        shutdown,
        live,
        values,
    }
}

fn metrics(take: &mut Take) -> Metrics {
    Metrics {
        addr: take.get("metrics.addr"),
        per_user: take.get("metrics.per_user"),
        per_key: take.get("metrics.per_key"),
    }
}

fn log(take: &mut Take) -> Log {
    Log {
        level: take.get("log.level"),
        format: LogFormat::parse(&take.text("log.format")),
        access: take.get("log.access"),
    }
}

fn proxy(take: &mut Take, data_dir: &std::path::Path) -> Proxy {
    Proxy {
        addr: take.get("proxy.addr"),
        tls: take.tls("proxy.tls.cert", "proxy.tls.key"),
        h2c: take.get("proxy.h2c"),
        threads: take.get("proxy.threads"),
        expose_admin: take.get("proxy.expose_admin"),
        upstream_pool_size: take.get("proxy.upstream_pool_size"),
        upgrade_socket: take
            .get::<Option<_>>("proxy.upgrade_socket")
            .or_else(|| Some(data_dir.join("upgrade.sock"))),
    }
}

/// `proxy`: whose listener may serve the administration too.
fn admin(take: &mut Take, proxy: &Proxy) -> Admin {
    let tls = take.tls("admin.tls.cert", "admin.tls.key");
    let app_url: Option<String> = take.get("admin.app_url");
    let over_https = tls.is_some()
        || (proxy.expose_admin && proxy.tls.is_some())
        || app_url.as_ref().is_some_and(|url| url.starts_with("https://"));
    let secure_cookies = match take.values.get("admin.secure_cookies") {
        Value::Flag(flag) => *flag,
        _ => over_https,
    };
    Admin { addr: take.get("admin.addr"), tls, app_url, secure_cookies }
}

fn database(take: &mut Take, data_dir: &std::path::Path) -> Database {
    let target = match take.get::<Option<_>>("database.url") {
        Some(url) => DatabaseTarget::Postgres(url),
        None => DatabaseTarget::Sqlite { dir: data_dir.to_owned() },
    };
    let read_url = take.get("database.read_url");
    Database {
        target,
        read_url,
        max_connections: take.get("database.max_connections"),
        snapshot: take.get("database.snapshot"),
        snapshot_max_age_ms: take.millis("database.snapshot_max_age"),
    }
}

fn session(take: &mut Take) -> Session {
    Session {
        ttl_s: take.millis("session.ttl") / 1000,
        headers: take.get("session.headers"),
        store_messages: take.get("session.store_messages"),
        message_bytes: take.get("session.message_bytes"),
        messages_total_bytes: take.get("session.messages_total_bytes"),
    }
}

fn redis(take: &mut Take) -> Option<Redis> {
    let (prefix, timeout_ms) = (take.text("redis.prefix"), take.millis("redis.timeout"));
    let lease_ms = take.millis("redis.lease");
    let (ca, tls) = (take.get("redis.tls.ca"), take.tls("redis.tls.cert", "redis.tls.key"));
    let sentinel_password = take.get("redis.sentinel_password");
    take.get::<Option<_>>("redis.url").map(|url| Redis {
        url,
        sentinel_password,
        ca,
        tls,
        prefix,
        timeout_ms,
        lease_ms,
    })
}

/// SQLite writes fewer pages for large batches. PostgreSQL does not, and other nodes wait for the rows
/// of sums that a transaction has changed.
fn ledger(take: &mut Take, target: &DatabaseTarget) -> Ledger {
    let rows = match target {
        DatabaseTarget::Sqlite { .. } => 2_000,
        DatabaseTarget::Postgres(_) => 500,
    };
    Ledger {
        segment_bytes: take.get("ledger.segment_bytes"),
        max_bytes: take.get("ledger.max_bytes"),
        batch_rows: take.get::<Option<_>>("ledger.batch_rows").unwrap_or(rows),
        flush_interval_ms: take.millis("ledger.flush_interval"),
        sync_interval_ms: take.millis("ledger.sync_interval"),
    }
}

fn live(take: &mut Take) -> Live {
    let checks = take.text("proxy.safeguards") == "checker";
    let model: Option<String> = take.get("proxy.safeguards_model");
    Live {
        max_body_bytes: take.get("proxy.max_body_bytes"),
        max_inflight_body_bytes: take.get("proxy.max_inflight_body_bytes"),
        max_json_depth: take.get("proxy.max_json_depth"),
        request_read_timeout_ms: take.millis("proxy.request_read_timeout"),
        reply_write_timeout_ms: take.millis("proxy.reply_write_timeout"),
        keepalive_ms: take.millis("proxy.keepalive"),
        keepalive_timeout_ms: take.millis("proxy.keepalive_timeout"),
        head_timeout_ms: take.millis("proxy.head_timeout"),
        max_head_bytes: take.get("proxy.max_head_bytes"),
        max_connections: connections(take, "proxy"),
        admin_max_connections: connections(take, "admin"),
        keepalive_requests: take.get("proxy.keepalive_requests"),
        on_abort: OnAbort::parse(&take.text("proxy.abort")),
        abort_drain_ms: take.millis("proxy.abort_drain"),
        abort_drain_bytes: take.get("proxy.abort_drain_bytes"),
        safeguards: Safeguards {
            model: checks.then(|| model.unwrap_or_default()),
            timeout_ms: take.millis("proxy.safeguards_timeout"),
        },
        websockets: WebSockets {
            are_served: take.get("proxy.websockets"),
            lifetime_ms: take.millis("proxy.websocket_lifetime"),
        },
        background_lifetime_ms: take.millis("proxy.background_lifetime"),
        timeouts: timeouts(take),
        retry: Retry {
            deadline_ms: take.millis("retry.deadline"),
            switch_on_upstream_auth: take.get("retry.switch_on_upstream_auth"),
            max_cooldown_ms: take.millis("retry.max_cooldown"),
        },
        breaker: Breaker {
            count_network_errors: take.get("breaker.count_network_errors"),
            disable_after_failed_probes: take.get("breaker.disable_after_failed_probes"),
        },
        forward_headers: HeaderRules {
            pass_request: take.get("headers.pass_request"),
            pass_response: take.get("headers.pass_response"),
            drop_request: take.get("headers.drop_request"),
            drop_response: take.get("headers.drop_response"),
        },
        // The kind of the setting has checked each network.
        trusted_proxies: Networks::parse(&take.get::<Vec<_>>("trusted_proxies"))
            .unwrap_or_default(),
        pass_provider_headers: take.text("proxy.provider_headers") == "pass",
        shows_standing: take.text("proxy.reply_headers") == "all",
        overhead_header: take.get("proxy.overhead_header"),
        status_page: status_page(take),
        price_sync: take.text("prices.sync") == "daily",
        explain_cache_misses: take.get("session.explain_cache_misses"),
        cache_diagnosis: take.get("session.cache_diagnosis"),
        unpriced: Unpriced::parse(&take.text("prices.unpriced")),
        log_level: take.get("log.level"),
    }
}

fn status_page(take: &mut Take) -> Option<StatusPage> {
    let shown = match &*take.text("status_page.show") {
        "providers" => StatusPage::Providers,
        _ => StatusPage::Groups,
    };
    take.get::<bool>("status_page.enabled").then_some(shown)
}

fn timeouts(take: &mut Take) -> Timeouts {
    Timeouts {
        connect_ms: take.millis("timeouts.connect"),
        tls_ms: take.millis("timeouts.tls"),
        first_byte_streaming_ms: take.millis("timeouts.first_byte_streaming"),
        streaming_idle_ms: take.millis("timeouts.streaming_idle"),
        streaming_content_ms: take.millis("timeouts.streaming_content"),
        request_non_streaming_ms: take.millis("timeouts.request_non_streaming"),
        upstream_keepalive_ms: take.millis("timeouts.upstream_keepalive"),
    }
}

/// Of one listener, by its section.
fn connections(take: &mut Take, listener: &str) -> ConnectionBounds {
    ConnectionBounds {
        total: take.get(&format!("{listener}.max_connections")),
        per_address: take.get(&format!("{listener}.max_connections_per_address")),
    }
}

/// A type of the fields.
pub(super) trait Field: Sized {
    /// `None` for a value of another kind. An unset one has an `Option` alone: every other setting
    /// has a default.
    fn of(value: &Value) -> Option<Self>;

    /// Stands for a value of another kind, which is a problem: nothing runs with it.
    fn placeholder() -> Self;
}

macro_rules! fields {
    ($($type:ty = $placeholder:expr, $pattern:pat => $value:expr;)+) => {
        $(impl Field for $type {
            fn of(value: &Value) -> Option<Self> {
                match value {
                    $pattern => Some($value),
                    _ => None,
                }
            }

            fn placeholder() -> Self {
                $placeholder
            }
        })+
    };
}

fields! {
    SocketAddr = SocketAddr::from(([127, 0, 0, 1], 0)), Value::Address(addr) => *addr;
    bool = false, Value::Flag(flag) => *flag;
    u64 = 0, Value::Count(number) | Value::Size(number) => *number;
    u32 = 0, Value::Count(number) => u32::try_from(*number).unwrap_or(u32::MAX);
    usize = 0, Value::Count(number) | Value::Size(number) =>
        usize::try_from(*number).unwrap_or(usize::MAX);
    Millis = Millis(0), Value::Millis(ms) => Millis(*ms);
    String = String::new(), Value::Text(text) => text.clone();
    Vec<String> = Vec::new(), Value::List(items) => items.clone();
    PathBuf = PathBuf::new(), Value::Path(file) => file.clone();
    Secret = Secret::default(), Value::Secret(secret) => secret.clone();
    Decimal = Decimal::ZERO, Value::Decimal(number) => *number;
    Tz = Tz::UTC, Value::Zone(zone) => *zone;
}

/// A duration in milliseconds.
struct Millis(u64);

impl<T: Field> Field for Option<T> {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Unset => Some(None),
            value => T::of(value).map(Some),
        }
    }

    fn placeholder() -> Self {
        None
    }
}

/// Takes values by path.
pub(super) struct Take<'a> {
    values: &'a Values,
    problems: &'a mut Problems,
}

impl Take<'_> {
    fn misfit(&mut self, path: &str) {
        self.problems.add(
            path,
            "does not fit the table of settings",
            "this is a fault of tollgate: please report it",
        );
    }

    /// The value of a setting as the type of its field.
    pub(super) fn get<T: Field>(&mut self, path: &str) -> T {
        T::of(self.values.get(path)).unwrap_or_else(|| {
            self.misfit(path);
            T::placeholder()
        })
    }

    pub(super) fn text(&mut self, path: &str) -> String {
        self.get(path)
    }

    pub(super) fn millis(&mut self, path: &str) -> u64 {
        self.get::<Millis>(path).0
    }

    /// Both files or neither; a single one is reported by `super::rules`.
    fn tls(&mut self, cert: &str, key: &str) -> Option<TlsFiles> {
        Some(TlsFiles { cert: self.get::<Option<_>>(cert)?, key: self.get::<Option<_>>(key)? })
    }
}
