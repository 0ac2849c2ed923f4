//! The settings of requests to providers, and of the process.

use super::{DAY, HOUR, MIN, MS, S};
use crate::config::kind::SettingKind::{Choice, Count, Duration, Flag, Headers};
use crate::config::kind::Zero::{MeansNone, Refused};
use crate::config::setting::{Setting, setting};
use crate::config::types::LogFormat;

const LEVELS: &[&str] = &["error", "warn", "info", "debug", "trace"];

pub(super) const ROWS: &[Setting] = &[
    // Requests upstream.
    setting("timeouts.connect", Duration { min: 10 * MS, max: 5 * MIN, zero: Refused }, "10s")
        .live(),
    setting("timeouts.tls", Duration { min: 10 * MS, max: 5 * MIN, zero: Refused }, "5s").live(),
    setting(
        "timeouts.first_byte_streaming",
        Duration { min: 10 * MS, max: HOUR, zero: MeansNone },
        "1m",
    )
    .live(),
    setting("timeouts.streaming_idle", Duration { min: 10 * MS, max: HOUR, zero: MeansNone }, "2m")
        .live(),
    setting(
        "timeouts.streaming_content",
        Duration { min: 10 * MS, max: HOUR, zero: MeansNone },
        "10m",
    )
    .live(),
    setting(
        "timeouts.request_non_streaming",
        Duration { min: 10 * MS, max: DAY, zero: MeansNone },
        "10m",
    )
    .live(),
    setting("timeouts.upstream_keepalive", Duration { min: S, max: HOUR, zero: MeansNone }, "90s")
        .live(),
    setting("retry.deadline", Duration { min: 100 * MS, max: HOUR, zero: Refused }, "1m").live(),
    setting("retry.switch_on_upstream_auth", Flag, "false").live(),
    setting("retry.max_cooldown", Duration { min: S, max: DAY, zero: Refused }, "10m").live(),
    setting("breaker.count_network_errors", Flag, "true").live(),
    setting("breaker.disable_after_failed_probes", Count { min: 0, max: 1000 }, "0").live(),
    setting("headers.pass_request", Headers, "").live(),
    setting("headers.pass_response", Headers, "").live(),
    setting("headers.drop_request", Headers, "").live(),
    setting("headers.drop_response", Headers, "").live(),
    // The process.
    setting("log.level", Choice(LEVELS), "info").variable_is("LOG_LEVEL").live(),
    setting("log.format", Choice(LogFormat::NAMES), "auto").variable_is("LOG_FORMAT"),
    setting("log.access", Flag, "true"),
    setting("shutdown.grace", Duration { min: S, max: HOUR, zero: MeansNone }, "1m"),
];
