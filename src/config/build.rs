//! Builds the typed [`Config`] from checked values.
//!
//! Each line names a path of the table and the expected kind of value. A path or kind that does not
//! fit the table is a programming error: it becomes a problem like any other, and the tests load
//! the defaults.

use std::net::SocketAddr;
use std::path::PathBuf;

use chrono_tz::Tz;
use rust_decimal::Decimal;

use super::live::{Breaker, ConnectionBounds, HeaderRules, Live, OnAbort, Retry, Timeouts};
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
    let data_dir = take.path("data_dir").unwrap_or_default();
    let proxy = proxy(&mut take, &data_dir);
    let admin = admin(&mut take, &proxy);
    let metrics = metrics(&mut take);
    let database = database(&mut take, &data_dir);
    let redis = redis(&mut take);
    let auth = Auth {
        admin_token: take.secret("auth.admin_token"),
        secret_key: take.secret("auth.secret_key"),
        secret_key_previous: take.secret("auth.secret_key_previous"),
        alt_key_headers: take.list("auth.alt_key_headers"),
    };
    let session = session(&mut take);
    let ledger = ledger(&mut take);
    let limits = Limits {
        reservation: Reservation::parse(&take.text("limits.reservation")),
        on_redis_loss: OnRedisLoss::parse(&take.text("limits.on_redis_loss")),
    };
    let prices =
        Prices { seed_file: take.path("prices.seed_file"), sync_url: take.text("prices.sync_url") };
    let networks = take.list("webhooks.allow_private");
    let webhooks = Webhooks {
        allow_private: networks.iter().filter_map(|text| Network::parse(text)).collect(),
    };
    let instructions = Instructions {
        short_file: take.path("instructions.short_file"),
        long_file: take.path("instructions.long_file"),
    };
    let log = log(&mut take);
    let telemetry = telemetry::build(&mut take);
    let time_zone = take.zone("time_zone");
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
        addr: take.address("metrics.addr"),
        per_user: take.flag("metrics.per_user"),
        per_key: take.flag("metrics.per_key"),
    }
}

fn log(take: &mut Take) -> Log {
    Log {
        level: take.text("log.level"),
        format: LogFormat::parse(&take.text("log.format")),
        access: take.flag("log.access"),
    }
}

fn proxy(take: &mut Take, data_dir: &std::path::Path) -> Proxy {
    Proxy {
        addr: take.address("proxy.addr"),
        tls: take.tls("proxy.tls.cert", "proxy.tls.key"),
        h2c: take.flag("proxy.h2c"),
        threads: take.size("proxy.threads"),
        expose_admin: take.flag("proxy.expose_admin"),
        upstream_pool_size: take.size("proxy.upstream_pool_size"),
        upgrade_socket: take
            .path("proxy.upgrade_socket")
            .or_else(|| Some(data_dir.join("upgrade.sock"))),
    }
}

/// `proxy`: whose listener may serve the administration too.
fn admin(take: &mut Take, proxy: &Proxy) -> Admin {
    let tls = take.tls("admin.tls.cert", "admin.tls.key");
    let app_url = take.optional_text("admin.app_url");
    let over_https = tls.is_some()
        || (proxy.expose_admin && proxy.tls.is_some())
        || app_url.as_ref().is_some_and(|url| url.starts_with("https://"));
    let secure_cookies = match take.values.get("admin.secure_cookies") {
        Value::Flag(flag) => *flag,
        _ => over_https,
    };
    Admin { addr: take.address("admin.addr"), tls, app_url, secure_cookies }
}

fn database(take: &mut Take, data_dir: &std::path::Path) -> Database {
    let target = match take.secret("database.url") {
        Some(url) => DatabaseTarget::Postgres(url),
        None => DatabaseTarget::Sqlite { dir: data_dir.to_owned() },
    };
    let read_url = take.secret("database.read_url");
    let max_connections =
        u32::try_from(take.number("database.max_connections")).unwrap_or(u32::MAX);
    Database {
        target,
        read_url,
        max_connections,
        snapshot: take.flag("database.snapshot"),
        snapshot_max_age_ms: take.millis("database.snapshot_max_age"),
    }
}

fn session(take: &mut Take) -> Session {
    Session {
        ttl_s: take.millis("session.ttl") / 1000,
        headers: take.list("session.headers"),
        store_messages: take.flag("session.store_messages"),
        message_bytes: take.size("session.message_bytes"),
        messages_total_bytes: take.number("session.messages_total_bytes"),
    }
}

fn redis(take: &mut Take) -> Option<Redis> {
    let (prefix, timeout_ms) = (take.text("redis.prefix"), take.millis("redis.timeout"));
    let lease_ms = take.millis("redis.lease");
    let (ca, tls) = (take.path("redis.tls.ca"), take.tls("redis.tls.cert", "redis.tls.key"));
    let sentinel_password = take.secret("redis.sentinel_password");
    take.secret("redis.url").map(|url| Redis {
        url,
        sentinel_password,
        ca,
        tls,
        prefix,
        timeout_ms,
        lease_ms,
    })
}

fn ledger(take: &mut Take) -> Ledger {
    Ledger {
        segment_bytes: take.number("ledger.segment_bytes"),
        max_bytes: take.number("ledger.max_bytes"),
        batch_rows: take.size("ledger.batch_rows"),
        flush_interval_ms: take.millis("ledger.flush_interval"),
        sync_interval_ms: take.millis("ledger.sync_interval"),
    }
}

fn live(take: &mut Take) -> Live {
    Live {
        max_body_bytes: take.size("proxy.max_body_bytes"),
        max_inflight_body_bytes: take.size("proxy.max_inflight_body_bytes"),
        max_json_depth: take.size("proxy.max_json_depth"),
        request_read_timeout_ms: take.millis("proxy.request_read_timeout"),
        reply_write_timeout_ms: take.millis("proxy.reply_write_timeout"),
        keepalive_ms: take.millis("proxy.keepalive"),
        keepalive_timeout_ms: take.millis("proxy.keepalive_timeout"),
        head_timeout_ms: take.millis("proxy.head_timeout"),
        max_head_bytes: take.size("proxy.max_head_bytes"),
        max_connections: connections(take, "proxy"),
        admin_max_connections: connections(take, "admin"),
        keepalive_requests: u32::try_from(take.number("proxy.keepalive_requests"))
            .unwrap_or(u32::MAX),
        on_abort: OnAbort::parse(&take.text("proxy.abort")),
        abort_drain_ms: take.millis("proxy.abort_drain"),
        abort_drain_bytes: take.size("proxy.abort_drain_bytes"),
        timeouts: Timeouts {
            connect_ms: take.millis("timeouts.connect"),
            tls_ms: take.millis("timeouts.tls"),
            first_byte_streaming_ms: take.millis("timeouts.first_byte_streaming"),
            streaming_idle_ms: take.millis("timeouts.streaming_idle"),
            streaming_content_ms: take.millis("timeouts.streaming_content"),
            request_non_streaming_ms: take.millis("timeouts.request_non_streaming"),
            upstream_keepalive_ms: take.millis("timeouts.upstream_keepalive"),
        },
        retry: Retry {
            deadline_ms: take.millis("retry.deadline"),
            switch_on_upstream_auth: take.flag("retry.switch_on_upstream_auth"),
            max_cooldown_ms: take.millis("retry.max_cooldown"),
        },
        breaker: Breaker {
            count_network_errors: take.flag("breaker.count_network_errors"),
            disable_after_failed_probes: u32::try_from(
                take.number("breaker.disable_after_failed_probes"),
            )
            .unwrap_or(u32::MAX),
        },
        forward_headers: HeaderRules {
            pass_request: take.list("headers.pass_request"),
            pass_response: take.list("headers.pass_response"),
            drop_request: take.list("headers.drop_request"),
            drop_response: take.list("headers.drop_response"),
        },
        // The kind of the setting has checked each network.
        trusted_proxies: Networks::parse(&take.list("trusted_proxies")).unwrap_or_default(),
        pass_provider_headers: take.text("proxy.provider_headers") == "pass",
        overhead_header: take.flag("proxy.overhead_header"),
        price_sync: take.text("prices.sync") == "daily",
        unpriced: Unpriced::parse(&take.text("prices.unpriced")),
        log_level: take.text("log.level"),
    }
}

/// Of one listener, by its section.
fn connections(take: &mut Take, listener: &str) -> ConnectionBounds {
    ConnectionBounds {
        total: take.size(&format!("{listener}.max_connections")),
        per_address: take.size(&format!("{listener}.max_connections_per_address")),
    }
}

/// Takes values by path and kind.
pub(super) struct Take<'a> {
    values: &'a Values,
    problems: &'a mut Problems,
}

impl Take<'_> {
    /// An unset value of these kinds is an error: every such setting has a default.
    fn misfit(&mut self, path: &str) {
        self.problems.add(
            path,
            "does not fit the table of settings",
            "this is a fault of tollgate: please report it",
        );
    }

    fn address(&mut self, path: &str) -> SocketAddr {
        match self.values.get(path) {
            Value::Address(addr) => *addr,
            _ => {
                self.misfit(path);
                SocketAddr::from(([127, 0, 0, 1], 0))
            }
        }
    }

    pub(super) fn flag(&mut self, path: &str) -> bool {
        match self.values.get(path) {
            Value::Flag(flag) => *flag,
            _ => {
                self.misfit(path);
                false
            }
        }
    }

    /// A count or a number of bytes.
    fn number(&mut self, path: &str) -> u64 {
        match self.values.get(path) {
            Value::Count(number) | Value::Size(number) => *number,
            _ => {
                self.misfit(path);
                0
            }
        }
    }

    /// As [`Self::number`], for sizes in memory.
    pub(super) fn size(&mut self, path: &str) -> usize {
        usize::try_from(self.number(path)).unwrap_or(usize::MAX)
    }

    pub(super) fn millis(&mut self, path: &str) -> u64 {
        match self.values.get(path) {
            Value::Millis(ms) => *ms,
            _ => {
                self.misfit(path);
                0
            }
        }
    }

    pub(super) fn text(&mut self, path: &str) -> String {
        self.optional_text(path).unwrap_or_else(|| {
            self.misfit(path);
            String::new()
        })
    }

    pub(super) fn optional_text(&mut self, path: &str) -> Option<String> {
        match self.values.get(path) {
            Value::Text(text) => Some(text.clone()),
            Value::Unset => None,
            _ => {
                self.misfit(path);
                None
            }
        }
    }

    fn list(&mut self, path: &str) -> Vec<String> {
        match self.values.get(path) {
            Value::List(items) => items.clone(),
            _ => {
                self.misfit(path);
                Vec::new()
            }
        }
    }

    pub(super) fn path(&mut self, path: &str) -> Option<PathBuf> {
        match self.values.get(path) {
            Value::Path(file) => Some(file.clone()),
            Value::Unset => None,
            _ => {
                self.misfit(path);
                None
            }
        }
    }

    pub(super) fn secret(&mut self, path: &str) -> Option<Secret> {
        match self.values.get(path) {
            Value::Secret(secret) => Some(secret.clone()),
            Value::Unset => None,
            _ => {
                self.misfit(path);
                None
            }
        }
    }

    /// A number with decimals.
    pub(super) fn decimal(&mut self, path: &str) -> Decimal {
        match self.values.get(path) {
            Value::Decimal(number) => *number,
            _ => {
                self.misfit(path);
                Decimal::ZERO
            }
        }
    }

    fn zone(&mut self, path: &str) -> Tz {
        match self.values.get(path) {
            Value::Zone(zone) => *zone,
            _ => {
                self.misfit(path);
                Tz::UTC
            }
        }
    }

    /// Both files or neither; a single one is reported by `super::rules`.
    fn tls(&mut self, cert: &str, key: &str) -> Option<TlsFiles> {
        Some(TlsFiles { cert: self.path(cert)?, key: self.path(key)? })
    }
}
