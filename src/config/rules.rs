//! Checks across settings: pairs, order, collisions, settings without effect, files that must be
//! readable.

use std::fs::File;
use std::net::SocketAddr;

use super::problem::Problems;
use super::sections::{OnAbort, ToolChecks};
use super::setting::ValueFault;
use super::table::SETTINGS;
use super::types::Config;
use super::values::Values;
use crate::bounded::{Role, show_duration, show_size};

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

fn pairs(values: &Values, problems: &mut Problems) {
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

fn database_without_effect(config: &Config, problems: &mut Problems) {
    let given = |path| config.values.is_given(path);
    for path in [
        "database.read_url",
        "database.read_url_file",
        "database.max_connections",
        "database.snapshot",
        "database.snapshot_max_age",
    ] {
        if given(path) && config.database.url.is_none() {
            problems.add(
                path,
                "has no effect on the embedded database",
                "remove it, or set database.url to a PostgreSQL address",
            );
        }
    }
    if given("database.snapshot_max_age") && !config.database.snapshot {
        problems.add(
            "database.snapshot_max_age",
            "has no effect without database.snapshot",
            "remove it, or set database.snapshot to true",
        );
    }
}

/// A configured setting without effect is an error.
fn without_effect(config: &Config, problems: &mut Problems) {
    let given = |path| config.values.is_given(path);
    if config.proxy.h2c && config.proxy.tls().is_some() {
        problems.add(
            "proxy.h2c",
            "has no effect on a listener with TLS, which offers HTTP/2 anyway",
            "remove it",
        );
    }
    database_without_effect(config, problems);
    if config.auth.secret_key_previous.is_some() && config.auth.secret_key.is_none() {
        problems.add(
            "auth.secret_key_previous",
            "has no effect without auth.secret_key",
            "remove it, or set both",
        );
    }
    redis_without_effect(config, problems);
    live_without_effect(config, problems);
    let (proxy, admin) = (config.live.proxy_connections(), config.live.admin_connections());
    for (listener, bounds) in [("proxy", proxy), ("admin", admin)] {
        let path = format!("{listener}.max_connections_per_address");
        if config.values.is_given(&path) && bounds.total > 0 && bounds.per_address > bounds.total {
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

/// As [`without_effect`], of settings that belong to a choice.
fn live_without_effect(config: &Config, problems: &mut Problems) {
    let drains = config.live.on_abort == OnAbort::Drain;
    let stores = config.session.store_messages;
    let safeguards = &config.live.safeguards;
    let checks = safeguards.checks == ToolChecks::Checker;
    if checks && safeguards.named_model.is_none() {
        problems.add(
            "proxy.safeguards_model",
            "is missing beside proxy.safeguards: checker",
            "name the model that judges tool calls",
        );
    }
    for (path, has_effect, choice) in [
        ("proxy.abort_drain", drains, "proxy.abort: drain"),
        ("proxy.abort_drain_bytes", drains, "proxy.abort: drain"),
        ("proxy.safeguards_model", checks, "proxy.safeguards: checker"),
        ("proxy.safeguards_timeout", checks, "proxy.safeguards: checker"),
        ("session.message_bytes", stores, "session.store_messages: true"),
        ("session.messages_total_bytes", stores, "session.store_messages: true"),
    ] {
        if config.values.is_given(path) && !has_effect {
            let wrong = format!("has no effect without {choice}");
            problems.add(path, wrong, format!("remove it, or set {choice}"));
        }
    }
}

/// As [`without_effect`], of the settings of Redis.
fn redis_without_effect(config: &Config, problems: &mut Problems) {
    let given = |path: &str| config.values.is_given(path);
    let url = config.redis.as_ref().map_or("", |redis| redis.url.expose());
    for path in ["redis.prefix", "redis.timeout", "redis.lease", "limits.on_redis_loss"] {
        if given(path) && config.redis.is_none() {
            problems.add(path, "has no effect without redis.url", "remove it, or set redis.url");
        }
    }
    for path in ["redis.tls.ca", "redis.tls.cert", "redis.tls.key"] {
        if given(path) && !url.starts_with("rediss") {
            problems.add(
                path,
                "has no effect without TLS to Redis",
                "remove it, or write redis.url as rediss://…",
            );
        }
    }
    for path in ["redis.sentinel_password", "redis.sentinel_password_file"] {
        if given(path) && !url.contains("+sentinel://") {
            problems.add(
                path,
                "has no effect without Sentinels",
                "remove it, or write redis.url as redis+sentinel://…",
            );
        }
    }
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

fn files(values: &Values, problems: &mut Problems) {
    for setting in SETTINGS.iter().filter(|setting| setting.role == Role::File) {
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
