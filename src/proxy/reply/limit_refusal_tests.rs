//! The messages of limits that refuse, and what a client does after them.

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
    let rpm =
        Denied { limit_type: LimitType::UserRpm, current, limit, reset_at, at: NOW, exceeds: None };
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
