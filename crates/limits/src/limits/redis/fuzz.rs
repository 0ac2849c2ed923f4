//! The fuzz target for the reader of Redis' answers: any bytes that may come from there. Only
//! `tests/fuzz` builds this.
//!
//! What must hold: no panic, also by arithmetic; a refusal names a limit that exists and that the
//! holder has; a window's end is not in the past; no text is longer than the answer.

use redis::Value;

use super::super::admission::{Admission, Amount, Asks};
use super::super::example::{key, user};
use super::super::provider::Blocked;
use super::super::settings::CounterSettings;
use super::reply::{self, Passed, ReplyReader};
use super::scripts::Spans;
use crate::domain::clock::Timestamp;
use crate::domain::format::WireFormat;
use crate::domain::ids::{RequestId, SessionId};
use crate::domain::limit_type::LimitType;
use crate::domain::limits::{ByPeriod, DailyReset, Limits, ResetMode};
use crate::domain::money::NanoUsd;
use crate::policy::reservation::Reservation;

const NOW: Timestamp = Timestamp(1_700_000_000_000);

/// Reads the bytes as each kind of answer that the gateway expects.
///
/// # Panics
/// When a property from this file's header does not hold.
pub fn answer(data: &[u8]) {
    let Ok(value) = redis::parse_redis_value(data) else { return };
    let _ = reply::int(Some(&value));
    for mode in [ResetMode::Fixed, ResetMode::Rolling] {
        blocks(&value, &limits(mode));
        Passed::read(&value).iter().for_each(|passed| stands(passed, limits(mode)));
    }
    if let Some(session) = reply::session(&value) {
        assert!(session.session.as_str().len() <= data.len());
        assert!(session.asks.is_none_or(|asks| asks.model.len() <= data.len()));
    }
    let Value::Array(parts) = value else { return };
    parts.iter().for_each(|part| drop(reply::session(part)));
    for mode in [ResetMode::Fixed, ResetMode::Rolling] {
        with_limits(&parts, limits(mode));
    }
}

fn settings() -> CounterSettings {
    let time_zone = chrono_tz::Europe::Berlin;
    CounterSettings { session_ttl_ms: 300_000, reservation: Reservation::Expected, time_zone }
}

fn blocks(value: &Value, limits: &Limits) {
    let until = match reply::blocked(Some(value), limits, NOW, &settings()) {
        Some(Blocked::SessionCap { until }) => Some(until),
        Some(Blocked::Limit { until }) => until,
        None => None,
    };
    assert!(until.is_none_or(|at| at > NOW), "{until:?}");
}

fn with_admission(limits: Limits, check: impl FnOnce(&Admission<'_>, &Spans, &CounterSettings)) {
    let settings = settings();
    let asks = Asks { model: "m".into(), format: WireFormat::Native };
    let ask = Admission {
        request: RequestId(uuid::Uuid::nil()),
        now: NOW,
        key: &key(limits),
        user: &user(limits),
        session: &SessionId::from("s"),
        estimate: NanoUsd(1),
        asks: &asks,
    };
    check(&ask, &Spans::at(NOW, &settings), &settings);
}

fn stands(passed: &Passed, limits: Limits) {
    with_admission(limits, |ask, spans, settings| {
        let left = reply::standing(passed, ask, spans, settings);
        assert!(left.requests.is_none_or(|left| left.remaining < left.limit), "{left:?}");
        if let Some(money) = left.money {
            assert!(money.limit_type.period().is_some(), "{money:?}");
            assert!(money.reset_at.is_none_or(|at| at > NOW), "{money:?}");
        }
    });
}

fn with_limits(parts: &[Value], limits: Limits) {
    with_admission(limits, |ask, spans, settings| refused_or_used(parts, ask, spans, settings));
}

fn refused_or_used(
    parts: &[Value],
    ask: &Admission<'_>,
    spans: &Spans,
    settings: &CounterSettings,
) {
    if let Some(denied) = reply::denied(parts, ask, spans, settings) {
        assert!(LimitType::IN_ORDER.contains(&denied.limit_type));
        let money = denied.limit_type.period().is_some();
        assert_eq!(money, matches!(denied.limit, Amount::Money(_)), "{denied:?}");
    }
    let limits = &ask.key.limits;
    let usage = reply::usage(parts, &ReplyReader { limits, rpm: 5, now: NOW, spans, settings });
    for (period, window) in usage.money.each() {
        assert!(window.reset_at.is_none_or(|at| at > NOW), "{period:?}: {window:?}");
        assert!(window.limit.is_some(), "{period:?}");
    }
}

fn limits(mode: ResetMode) -> Limits {
    let daily_reset = DailyReset { mode, ..DailyReset::default() };
    Limits { concurrent_sessions: 2, daily_reset, ..Limits::default() }
        .with_money(ByPeriod::of(|_| Some(NanoUsd(1_000))))
}
