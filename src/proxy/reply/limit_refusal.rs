//! The 429 of a limit: message, body fields and headers.
//!
//! A money limit that is used up stays so for hours, so its answer must end a client's run at once
//! and say why. A limit of requests or sessions, or an amount reserved by requests in flight,
//! clears soon: that answer asks the client to retry.

use chrono::Datelike as _;
use chrono_tz::Tz;
use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::refusal_reply::RefusalReply;
use crate::domain::clock::Timestamp;
use crate::domain::limit_type::LimitFigure;
use crate::formats::error;
use crate::limits::{Amount, Denied, LimitType};

/// Longest `retry-after` of a money limit: clients wait that long without showing a message.
const LONGEST_WAIT_MS: u64 = 60_000;
/// opencode repeats every 429 five times, whatever the answer says. With this value it does so
/// within a second.
const AT_ONCE_MS: &str = "200";

/// The answer to a request that a limit refused.
pub(super) fn reply(denied: &Denied, zone: Tz) -> RefusalReply {
    let spent = is_spent(denied);
    let (kind, message) = match spent {
        true => (error::SPENT, for_people(denied, zone)),
        false => ("rate_limit_error", denied.message()),
    };
    let (limit_type, current, limit) = (denied.limit_type.as_str(), denied.current, denied.limit);
    let reset = denied.reset_at.map(Timestamp::to_iso);
    let wait = denied.reset_at.map(|at| at.since(denied.at).max(0).unsigned_abs());
    let remaining = (limit.to_decimal() - current.to_decimal()).max(Decimal::ZERO);
    let mut reply = RefusalReply::new(429, kind, message).code("rate_limit_exceeded");
    reply.extra = vec![
        ("limit_type", json!(limit_type)),
        ("current", number(current)),
        ("limit", number(limit)),
        ("reset_at", json!(reset)),
    ];
    if let Some(at) = denied.reset_at.filter(|_| spent) {
        reply.extra.push(("resets_at", json!(at.0.div_euclid(1000))));
    }
    if let (false, Some(wait)) = (spent, wait) {
        reply.extra.push(("retry_delay_s", json!(wait.div_ceil(1000).max(1))));
    }
    reply = reply
        .header("x-ratelimit-limit", limit)
        .header("x-ratelimit-remaining", remaining.normalize())
        .header("x-ratelimit-type", limit_type);
    if let Some(reset) = reset {
        reply = reply.header("x-ratelimit-reset", reset);
    }
    match spent {
        true => {
            let soon = wait.filter(|wait| *wait <= LONGEST_WAIT_MS);
            reply.final_answer().header("retry-after-ms", AT_ONCE_MS).retry_after(soon)
        }
        false => reply.retry_after(wait),
    }
}

/// Whether a money limit is used up, rather than one that requests in flight could exceed.
const fn is_spent(denied: &Denied) -> bool {
    matches!(denied.limit, Amount::Money(_)) && denied.exceeds.is_none()
}

/// The message that a developer reads in a terminal.
fn for_people(denied: &Denied, zone: Tz) -> String {
    let whose = if denied.limit_type.is_keys() { "this key" } else { "this key's user" };
    let (window, limit) = (window(denied.limit_type), dollars(denied.limit));
    if denied.limit.to_decimal().is_zero() {
        return format!("The {window} limit of {whose} is $0: it may spend nothing. {RAISE}");
    }
    let used_up = format!("The {window} limit of {whose} ({limit}) is used up.");
    match denied.reset_at {
        Some(at) if window == "5-hour" => {
            format!("{used_up} There is room again {}.", moment(at, denied.at, zone))
        }
        Some(at) => format!("{used_up} It resets {}.", moment(at, denied.at, zone)),
        None if window == "total" => format!("{used_up} It does not reset. {RAISE}"),
        None => format!("{used_up} {RAISE}"),
    }
}

const RAISE: &str = "Ask an administrator to raise it.";

fn window(limit_type: LimitType) -> &'static str {
    match limit_type.figure() {
        LimitFigure::Money(period) => period.adjective(),
        LimitFigure::Sessions => "session",
        LimitFigure::Requests => "request",
    }
}

/// `at 00:00 (Europe/Berlin)` within a day, with the date if it is further away. Rounded up to the
/// minute.
fn moment(at: Timestamp, now: Timestamp, zone: Tz) -> String {
    let minute = Timestamp(at.0.saturating_add(59_999).div_euclid(60_000) * 60_000);
    let local = minute.to_utc().with_timezone(&zone);
    let time = local.format("%H:%M");
    if at.since(now) <= 86_400_000 {
        return format!("at {time} ({zone})");
    }
    let (weekday, year, month, day) =
        (local.format("%A"), local.year(), local.month(), local.day());
    format!("on {weekday}, {year}-{month:02}-{day:02} at {time} ({zone})")
}

/// `$5`, `$0.50`, `$0.01`.
fn dollars(amount: Amount) -> String {
    let amount = amount.to_decimal().normalize();
    if amount.scale() == 0 {
        format!("${amount}")
    } else {
        format!("${amount:.*}", amount.scale().max(2) as usize)
    }
}

/// An amount as a JSON number, with exactly its digits.
fn number(amount: Amount) -> Value {
    serde_json::from_str(&amount.to_string()).unwrap_or_default()
}

#[cfg(test)]
#[path = "limit_refusal_tests.rs"]
mod tests;
