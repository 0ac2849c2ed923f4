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
use crate::formats::error;
use crate::limits::{Amount, Denied, LimitType};

/// Longest `retry-after` of a money limit: clients wait that long without showing a message.
const LONGEST_WAIT_MS: u64 = 60_000;
/// opencode repeats every 429 five times, whatever the answer says. With this value it does so
/// within a second.
const AT_ONCE_MS: &str = "200";

/// The answer to a request that a limit refused.
#[must_use]
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

const fn window(limit_type: LimitType) -> &'static str {
    match limit_type {
        LimitType::KeyTotal | LimitType::UserTotal => "total",
        LimitType::KeyFiveHours | LimitType::UserFiveHours => "5-hour",
        LimitType::KeyDaily | LimitType::UserDaily => "daily",
        LimitType::KeyWeekly | LimitType::UserWeekly => "weekly",
        LimitType::KeyMonthly | LimitType::UserMonthly => "monthly",
        LimitType::KeyConcurrentSessions | LimitType::UserConcurrentSessions => "session",
        LimitType::UserRpm => "request",
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
mod tests {
    use super::*;
    use crate::domain::money::NanoUsd;
    use crate::limits::Exceeds;

    /// 2026-11-22, 14:00 in Berlin.
    const NOW: Timestamp = Timestamp(1_795_352_400_000);
    const HOUR: i64 = 3_600_000;

    fn denied(limit_type: LimitType, nano: i64, reset_in_ms: Option<i64>) -> Denied {
        let limit = Amount::Money(NanoUsd(nano));
        Denied {
            limit_type,
            current: limit,
            limit,
            reset_at: reset_in_ms.map(|ms| NOW.plus_ms(ms)),
            at: NOW,
            exceeds: None,
        }
    }

    fn header<'a>(reply: &'a RefusalReply, name: &str) -> Option<&'a str> {
        reply.headers.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_str())
    }

    const CENT: i64 = 10_000_000;

    /// Limit, nano-dollars, milliseconds until the reset, message.
    const MESSAGES: [(LimitType, i64, Option<i64>, &str); 10] = [
        (
            LimitType::KeyDaily,
            CENT,
            Some(10 * HOUR),
            "The daily limit of this key ($0.01) is used up. It resets at 00:00 (Europe/Berlin).",
        ),
        (
            LimitType::UserDaily,
            50 * CENT,
            Some(10 * HOUR),
            "The daily limit of this key's user ($0.50) is used up. It resets at 00:00 \
             (Europe/Berlin).",
        ),
        (
            LimitType::KeyFiveHours,
            500 * CENT,
            Some(HOUR - 1),
            "The 5-hour limit of this key ($5) is used up. There is room again at 15:00 \
             (Europe/Berlin).",
        ),
        (
            LimitType::UserFiveHours,
            500 * CENT,
            Some(HOUR),
            "The 5-hour limit of this key's user ($5) is used up. There is room again at 15:00 \
             (Europe/Berlin).",
        ),
        (
            LimitType::KeyWeekly,
            500 * CENT,
            Some(10 * HOUR),
            "The weekly limit of this key ($5) is used up. It resets at 00:00 (Europe/Berlin).",
        ),
        (
            LimitType::UserWeekly,
            500 * CENT,
            Some(34 * HOUR),
            "The weekly limit of this key's user ($5) is used up. It resets on Tuesday, 2026-11-24 \
             at 00:00 (Europe/Berlin).",
        ),
        (
            LimitType::KeyMonthly,
            1_234 * CENT,
            Some(202 * HOUR),
            "The monthly limit of this key ($12.34) is used up. It resets on Tuesday, 2026-12-01 \
             at 00:00 (Europe/Berlin).",
        ),
        (
            LimitType::UserMonthly,
            500 * CENT,
            None,
            "The monthly limit of this key's user ($5) is used up. Ask an administrator to \
             raise it.",
        ),
        (
            LimitType::KeyTotal,
            500 * CENT,
            None,
            "The total limit of this key ($5) is used up. It does not reset. Ask an administrator \
             to raise it.",
        ),
        (
            LimitType::UserTotal,
            0,
            None,
            "The total limit of this key's user is $0: it may spend nothing. Ask an administrator \
             to raise it.",
        ),
    ];

    #[test]
    fn each_money_limit_has_a_message_for_people() {
        for (limit_type, nano, reset, wanted) in MESSAGES {
            let reply = reply(&denied(limit_type, nano, reset), Tz::Europe__Berlin);
            assert_eq!(reply.message, wanted);
            assert_eq!(
                (reply.status, header(&reply, "x-should-retry")),
                (429, Some("false")),
                "{limit_type:?}"
            );
            assert_eq!(header(&reply, "retry-after"), None, "{limit_type:?}");
            assert_eq!(reply.extra[0], ("limit_type", json!(limit_type.as_str())));
        }
        let soon = reply(&denied(LimitType::KeyDaily, CENT, Some(59_500)), Tz::UTC);
        assert_eq!(header(&soon, "retry-after"), Some("60"));
    }

    #[test]
    fn what_passes_soon_is_to_be_repeated() {
        let (current, limit) = (Amount::Count(5), Amount::Count(5));
        let reset_at = Some(NOW.plus_ms(11_200));
        let rpm = Denied {
            limit_type: LimitType::UserRpm,
            current,
            limit,
            reset_at,
            at: NOW,
            exceeds: None,
        };
        let exceeds = Some(Exceeds { reserved: NanoUsd(1), own: NanoUsd(1) });
        let reserved = Denied { exceeds, ..denied(LimitType::KeyDaily, 10, None) };
        for (one, wait) in [(rpm, Some("12")), (reserved, None)] {
            let reply = reply(&one, Tz::UTC);
            assert_eq!((reply.kind, header(&reply, "retry-after")), ("rate_limit_error", wait));
            assert_eq!(
                (header(&reply, "x-should-retry"), header(&reply, "retry-after-ms")),
                (None, None)
            );
        }
    }
}
