//! Checks across settings: pairs, order, collisions, settings without effect, files that must be
//! readable.

use std::fs::File;
use std::net::SocketAddr;

use super::problem::Problems;
use super::sections::{OnAbort, ToolChecks};
use super::setting::ValueFault;
use super::table::SETTINGS;
use super::types::Config;
use super::values::SettingValues;
use crate::bounded::{Handling, show_duration, show_size};

/// Adds the problems between settings.
pub(super) fn check(config: &Config, problems: &mut Problems) {
    let values = &config.values;
    pairs(values, problems);
    without_effect(config, problems);
    order(config, problems);
    collisions(config, problems);
    files(values, problems);
    super::telemetry_rules::check(config, problems);
}

fn pairs(values: &SettingValues, problems: &mut Problems) {
    for of in ["proxy", "admin", "redis"] {
        let (cert, key) = (format!("{of}.tls.cert"), format!("{of}.tls.key"));
        let (cert, key) = (cert.as_str(), key.as_str());
        match (values.text(cert), values.text(key)) {
            (None, Some(_)) => problems.add(cert, format!("is missing beside {key}"), "set both"),
            (Some(_), None) => problems.add(key, format!("is missing beside {cert}"), "set both"),
            _ => {}
        }
    }
}

/// A configured setting without effect is an error.
fn without_effect(config: &Config, problems: &mut Problems) {
    let given = |path: &str| config.values.is_given(path);
    if config.proxy.h2c && config.proxy.tls().is_some() {
        let wrong = "has no effect on a listener with TLS, which offers HTTP/2 anyway";
        problems.add("proxy.h2c", wrong, "remove it");
    }
    for (paths, has_effect, condition, instead) in conditions(config) {
        for path in paths.iter().filter(|path| !has_effect && given(path)) {
            let wrong = format!("has no effect {condition}");
            problems.add(path, wrong, format!("remove it, or {instead}"));
        }
    }
    let safeguards = &config.live.safeguards;
    if safeguards.checks == ToolChecks::Checker && safeguards.named_model.is_none() {
        problems.add(
            "proxy.safeguards_model",
            "is missing beside proxy.safeguards: checker",
            "name the model that judges tool calls",
        );
    }
    let (proxy, admin) = (config.live.proxy_connections(), config.live.admin_connections());
    for (listener, bounds) in [("proxy", proxy), ("admin", admin)] {
        let path = format!("{listener}.max_connections_per_address");
        if given(&path) && bounds.total > 0 && bounds.per_address > bounds.total {
            problems.add(
                &path,
                format!("has no effect above {listener}.max_connections ({})", bounds.total),
                format!("lower it, or raise {listener}.max_connections"),
            );
        }
    }
    let (first_byte, deadline) =
        (config.live.timeouts.first_byte_streaming_ms, config.live.retry.deadline_ms);
    if given("timeouts.first_byte_streaming") && first_byte > deadline {
        problems.add(
            "timeouts.first_byte_streaming",
            format!("has no effect above retry.deadline ({})", show_duration(deadline)),
            "lower it, or raise retry.deadline",
        );
    }
}

/// Settings, whether they have an effect, when they have none, and what would give them one.
type Condition = (&'static [&'static str], bool, &'static str, &'static str);

/// Settings that the embedded database does not have.
const OF_POSTGRES: [&str; 5] = [
    "database.read_url",
    "database.read_url_file",
    "database.max_connections",
    "database.snapshot",
    "database.snapshot_max_age",
];

fn conditions(config: &Config) -> [Condition; 9] {
    let redis = config.redis.as_ref().map_or("", |redis| redis.url.expose());
    [
        (
            &OF_POSTGRES,
            config.database.url.is_some(),
            "on the embedded database",
            "set database.url to a PostgreSQL address",
        ),
        (
            &["database.snapshot_max_age"],
            config.database.snapshot,
            "without database.snapshot",
            "set database.snapshot to true",
        ),
        (
            &["auth.secret_key_previous"],
            config.auth.secret_key.is_some(),
            "without auth.secret_key",
            "set both",
        ),
        (
            &["redis.prefix", "redis.timeout", "redis.lease", "limits.on_redis_loss"],
            config.redis.is_some(),
            "without redis.url",
            "set redis.url",
        ),
        (
            &["redis.tls.ca", "redis.tls.cert", "redis.tls.key"],
            redis.starts_with("rediss"),
            "without TLS to Redis",
            "write redis.url as rediss://…",
        ),
        (
            &["redis.sentinel_password", "redis.sentinel_password_file"],
            redis.contains("+sentinel://"),
            "without Sentinels",
            "write redis.url as redis+sentinel://…",
        ),
        (
            &["proxy.abort_drain", "proxy.abort_drain_bytes"],
            config.live.on_abort == OnAbort::Drain,
            "without proxy.abort: drain",
            "set proxy.abort: drain",
        ),
        (
            &["proxy.safeguards_model", "proxy.safeguards_timeout"],
            config.live.safeguards.checks == ToolChecks::Checker,
            "without proxy.safeguards: checker",
            "set proxy.safeguards: checker",
        ),
        (
            &["session.message_bytes", "session.messages_total_bytes"],
            config.session.store_messages,
            "without session.store_messages: true",
            "set session.store_messages: true",
        ),
    ]
}

fn order(config: &Config, problems: &mut Problems) {
    let timeouts = &config.live.timeouts;
    if timeouts.tls_ms > timeouts.connect_ms {
        problems.add(
            "timeouts.tls",
            format!(
                "is longer than timeouts.connect ({}), which it is part of",
                show_duration(timeouts.connect_ms)
            ),
            "lower it, or raise timeouts.connect",
        );
    }
    let (one, all) = (config.live.max_body_bytes, config.live.max_inflight_body_bytes);
    if all < one {
        problems.add(
            "proxy.max_inflight_body_bytes",
            format!(
                "is less than proxy.max_body_bytes ({}), which one request may take",
                show_size(one as u64)
            ),
            "raise it, or lower proxy.max_body_bytes",
        );
    }
    let ledger = &config.ledger;
    if ledger.segment_bytes > ledger.max_bytes / 2 {
        problems.add(
            "ledger.segment_bytes",
            format!("is more than half of ledger.max_bytes ({})", show_size(ledger.max_bytes)),
            "lower it, or raise ledger.max_bytes",
        );
    }
}

/// Two listeners on one port.
fn collisions(config: &Config, problems: &mut Problems) {
    let listeners: [(&str, SocketAddr); 3] = [
        ("proxy.addr", config.proxy.addr),
        ("admin.addr", config.admin.addr),
        ("metrics.addr", config.metrics.addr),
    ];
    for (i, (path, addr)) in listeners.iter().enumerate() {
        for (other_path, other) in &listeners[..i] {
            let same_host = addr.ip() == other.ip()
                || addr.ip().is_unspecified()
                || other.ip().is_unspecified();
            if addr.port() != 0 && addr.port() == other.port() && same_host {
                problems.add(
                    path,
                    format!("uses the port of {other_path} ({other})"),
                    "give each listener its own",
                );
            }
        }
    }
}

fn files(values: &SettingValues, problems: &mut Problems) {
    for setting in SETTINGS.iter().filter(|setting| setting.handling == Handling::File) {
        let Some(path) = values.text(setting.path) else { continue };
        let readable =
            File::open(path).and_then(|file| file.metadata()).map(|about| about.is_file());
        let wrong = match readable {
            Ok(true) => continue,
            Ok(false) => "is not a file".to_owned(),
            Err(error) => format!("cannot be read: {error}"),
        };
        let fault = ValueFault { wrong, remedy: (setting.shape)() };
        let variable = values.origin(setting.path).variable();
        problems.of(setting.path, variable, Some(path.to_owned()), fault);
    }
}
