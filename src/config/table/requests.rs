//! The settings of requests to providers, and of the process.

use super::{DAY, HOUR, MIN, MS, S};
use crate::config::kind::Kind::{Choice, Count, Duration, Flag, Headers};
use crate::config::kind::Zero::{MeansNone, Refused};
use crate::config::setting::{Setting, setting};
use crate::config::types::LogFormat;

const LEVELS: &[&str] = &["error", "warn", "info", "debug", "trace"];

pub(super) const ROWS: &[Setting] = &[
    // Requests upstream.
    setting(
        "timeouts.connect",
        Duration { min: 10 * MS, max: 5 * MIN, zero: Refused },
        "10s",
        "Connecting to a provider, TLS included.",
    )
    .live(),
    setting(
        "timeouts.tls",
        Duration { min: 10 * MS, max: 5 * MIN, zero: Refused },
        "5s",
        "The TLS handshake alone, within timeouts.connect.",
    )
    .live(),
    setting(
        "timeouts.first_byte_streaming",
        Duration { min: 10 * MS, max: HOUR, zero: MeansNone },
        "1m",
        "From a streaming request sent to the first event of its reply. Providers may set \
         their own.",
    )
    .live(),
    setting(
        "timeouts.streaming_idle",
        Duration { min: 10 * MS, max: HOUR, zero: MeansNone },
        "2m",
        "Longest silence within a streamed reply. Providers may set their own.",
    )
    .live(),
    setting(
        "timeouts.request_non_streaming",
        Duration { min: 10 * MS, max: DAY, zero: MeansNone },
        "10m",
        "A whole exchange that is not streamed. Providers may set their own.",
    )
    .live(),
    setting(
        "timeouts.upstream_keepalive",
        Duration { min: S, max: HOUR, zero: MeansNone },
        "90s",
        "How long an idle upstream connection is kept for reuse; 0 = as long as the provider \
         keeps it.",
    )
    .live(),
    setting(
        "retry.deadline",
        Duration { min: 100 * MS, max: HOUR, zero: Refused },
        "1m",
        "From a request's arrival to the first byte of its reply, over all attempts.",
    )
    .live(),
    setting(
        "retry.switch_on_upstream_auth",
        Flag,
        "false",
        "Try another provider when one says that its key or its account is no good.",
    )
    .live(),
    setting(
        "retry.max_cooldown",
        Duration { min: S, max: DAY, zero: Refused },
        "10m",
        "Longest cooldown that a provider's `Retry-After` can request.",
    )
    .live(),
    setting(
        "breaker.count_network_errors",
        Flag,
        "true",
        "Let refused, reset and timed-out connections open a provider's circuit, as its error \
         replies do.",
    )
    .live(),
    setting(
        "breaker.disable_after_failed_probes",
        Count { min: 0, max: 1000 },
        "0",
        "Disable a provider once so many probes of its open circuit failed in a row, unless it is \
         the last one; 0 = never.",
    )
    .live(),
    setting("headers.drop_request", Headers, "", "Request headers not passed on to providers.")
        .live(),
    setting("headers.drop_response", Headers, "", "Reply headers not passed back to clients.")
        .live(),
    // The process.
    setting("log.level", Choice(LEVELS), "info", "Least important lines that are written.")
        .variable_is("LOG_LEVEL")
        .live(),
    setting(
        "log.format",
        Choice(LogFormat::NAMES),
        "auto",
        "text, json, or auto: text on a terminal, else json.",
    )
    .variable_is("LOG_FORMAT"),
    setting(
        "log.access",
        Flag,
        "true",
        "Write one line per request, without bodies and credentials.",
    ),
    setting(
        "shutdown.grace",
        Duration { min: S, max: HOUR, zero: MeansNone },
        "1m",
        "How long running replies may go on after a stop was asked for.",
    ),
];
