//! Redis' answers as the counters' own types.

use redis::Value;

use super::super::admission::{Admission, Amount, Asks, Denied, Exceeds};
use super::super::listing::LiveSession;
use super::super::provider::{Blocked, room_at};
use super::super::settings::CounterSettings;
use super::super::standing::{MoneyLeft, RequestsLeft, Standing};
use super::super::usage::{CountUsage, HolderUsage, MoneyUsage};
use super::scripts::{Spans, whole};
use crate::domain::clock::Timestamp;
use crate::domain::format::WireFormat;
use crate::domain::ids::{KeyId, ProviderId, SessionId, UserId};
use crate::domain::limit_type::{LimitFigure, LimitType};
use crate::domain::limits::{ByPeriod, Limits, Period};
use crate::domain::money::NanoUsd;
use crate::policy::select::SOON_MS;
use crate::policy::window::Window;

const MINUTE_MS: i64 = 60_000;

pub(super) fn text(value: Option<&Value>) -> &str {
    match value {
        Some(Value::BulkString(bytes)) => std::str::from_utf8(bytes).unwrap_or(""),
        _ => "",
    }
}

/// `None` for an empty text and for anything that is not a whole number.
pub(super) fn int(value: Option<&Value>) -> Option<i64> {
    match value {
        Some(Value::Int(number)) => Some(*number),
        value => text(value).parse().ok(),
    }
}

/// An amount: a whole number, or two parts with a plus between ([`whole`]).
fn amount(value: Option<&Value>) -> NanoUsd {
    let Some((low, high)) = text(value).split_once('+') else {
        return NanoUsd(int(value).unwrap_or(0));
    };
    whole(low.parse().unwrap_or(0), high.parse().unwrap_or(0))
}

/// What an admission found that passed, as `lua/admit.lua` packs it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Passed {
    /// The check of the tightest money limit; 0 if there is none.
    check: u8,
    /// A place at the provider was taken.
    pub(super) is_placed: bool,
    /// The provider of the live session.
    pub(super) before: Option<ProviderId>,
    /// What counts against that limit.
    current: i64,
    /// Requests of the minute before this one.
    requests: u64,
    /// When it passed, by Redis' clock.
    pub(super) at: Timestamp,
}

impl Passed {
    /// `None` if it is anything else.
    pub(super) fn read(answer: &Value) -> Option<Self> {
        let Value::BulkString(bytes) = answer else { return None };
        let ([check, placed], numbers) = bytes.split_first_chunk()?;
        let (numbers, []) = numbers.as_chunks() else { return None };
        let numbers: &[[u8; 8]; 4] = numbers.try_into().ok()?;
        let [before, current, requests, at] =
            numbers.map(|number| f64::from_le_bytes(number) as i64);
        Some(Self {
            check: *check,
            is_placed: *placed == 1,
            before: Some(before).filter(|id| *id != 0).map(ProviderId),
            current,
            requests: u64::try_from(requests).unwrap_or(0),
            at: Timestamp(at),
        })
    }
}

/// When a refusal was made, by Redis' clock: the last of `{check, current, reset, reserved, time}`.
pub(super) fn time_of_refusal(answer: &[Value]) -> Option<Timestamp> {
    int(answer.get(4)).map(Timestamp)
}

/// `{check, current, reset, reserved, time}`; `reserved` only if reservations refused.
pub(super) fn denied(
    answer: &[Value],
    ask: &Admission<'_>,
    spans: &Spans,
    settings: &CounterSettings,
) -> Option<Denied> {
    let Some(Value::Int(check)) = answer.first() else { return None };
    let limit_type = LimitType::from_repr(u8::try_from(*check).ok()?)?;
    let (current, reset) = (int(answer.get(1))?, int(answer.get(2)));
    let limits = ask.limits(limit_type);
    let LimitFigure::Money(period) = limit_type.figure() else {
        let current = Amount::Count(current.try_into().unwrap_or(0));
        let (limit, reset_at) = (Amount::Count(ask.most(limit_type)), reset.map(Timestamp));
        return Some(Denied { limit_type, current, limit, reset_at, at: ask.now, exceeds: None });
    };
    let limit = period.limit_of(limits)?;
    let own = ask.estimate.max(NanoUsd::ZERO);
    let exceeds = int(answer.get(3)).map(|reserved| Exceeds { reserved: NanoUsd(reserved), own });
    let reset_at = match rolling_ms(period, limits) {
        _ if exceeds.is_some() => None,
        Some(length) => reset.map(|minute| ages_out(minute, length)),
        None => ends(period, limits, ask.now, spans, settings).filter(|_| limit > NanoUsd::ZERO),
    };
    let (current, limit) = (Amount::Money(NanoUsd(current)), Amount::Money(limit));
    Some(Denied { limit_type, current, limit, reset_at, at: ask.now, exceeds })
}

/// The remaining amounts of an admission's limits.
pub(super) fn standing(
    passed: &Passed,
    ask: &Admission<'_>,
    spans: &Spans,
    settings: &CounterSettings,
) -> Standing {
    Standing {
        requests: RequestsLeft::after(ask.user.rpm, passed.requests, ask.now),
        money: money_left(passed, ask, spans, settings),
    }
}

fn money_left(
    passed: &Passed,
    ask: &Admission<'_>,
    spans: &Spans,
    settings: &CounterSettings,
) -> Option<MoneyLeft> {
    let limit_type = LimitType::from_repr(passed.check)?;
    let limits = ask.limits(limit_type);
    let period = limit_type.period()?;
    let limit = period.limit_of(limits)?;
    let remaining = limit - NanoUsd(passed.current);
    let calendar = rolling_ms(period, limits).is_none();
    let reset_at = ends(period, limits, ask.now, spans, settings).filter(|_| calendar);
    Some(MoneyLeft { limit_type, limit, remaining, reset_at })
}

/// The holder whose figures are read.
pub(super) struct ReplyReader<'a> {
    pub(super) limits: &'a Limits,
    pub(super) rpm: u32,
    pub(super) now: Timestamp,
    pub(super) spans: &'a Spans,
    pub(super) settings: &'a CounterSettings,
}

/// `{'ok', last minute, sessions, requests}`, and for each spending limit, in the order of the
/// checks, what is spent and what is reserved.
pub(super) fn usage(answer: &[Value], reader: &ReplyReader<'_>) -> HolderUsage {
    let ReplyReader { limits, now, spans, settings, .. } = reader;
    let last = int(answer.get(1));
    let money = ByPeriod::of(|period| {
        let place = 4 + 2 * period.place();
        let amount = |place: usize| amount(answer.get(place));
        let reset_at = match rolling_ms(period, limits) {
            // The window holds whole minutes.
            Some(length) => {
                let begins = now.0.div_euclid(MINUTE_MS) - length / MINUTE_MS;
                last.filter(|minute| *minute >= begins).map(|minute| ages_out(minute, length))
            }
            None => ends(period, limits, *now, spans, settings),
        };
        let (current, reserved) = (amount(place), amount(place + 1));
        MoneyUsage { current, reserved, limit: period.limit_of(limits), reset_at }
    });
    let count = |place: usize, limit: u32| CountUsage {
        current: int(answer.get(place)).and_then(|n| u64::try_from(n).ok()).unwrap_or(0),
        limit: u64::from(limit),
    };
    HolderUsage { money, sessions: count(2, limits.concurrent_sessions), rpm: count(3, reader.rpm) }
}

/// `'cap'`, `'limit'` with the places of those that what is spent reaches, or nothing. Redis does
/// not tell when amounts leave a rolling window.
pub(super) fn blocked(
    value: Option<&Value>,
    limits: &Limits,
    now: Timestamp,
    settings: &CounterSettings,
) -> Option<Blocked> {
    let (why, soon) = (text(value), now.plus_ms(SOON_MS));
    if why == "cap" {
        return Some(Blocked::SessionCap { until: soon });
    }
    let places = why.strip_prefix("limit")?.bytes();
    let spans = Spans::at(now, settings);
    let spent =
        places.filter_map(|place| Period::IN_ORDER.get(usize::from(place.checked_sub(b'1')?)));
    let ends = spent.map(|period| match rolling_ms(*period, limits) {
        _ if period.limit_of(limits).is_none_or(|limit| limit <= NanoUsd::ZERO) => None,
        Some(_) => Some(soon),
        None => ends(*period, limits, now, &spans, settings),
    });
    Some(Blocked::Limit { until: room_at(now, ends) })
}

/// `{member, run, start, end, requests, cost, provider, user, model, format}`
pub(super) fn session(row: &Value) -> Option<LiveSession> {
    let Value::Array(row) = row else { return None };
    let (key, session) = text(row.first()).split_once(':')?;
    Some(LiveSession {
        user: UserId(int(row.get(7))?),
        key: KeyId(key.parse().ok()?),
        session: SessionId::from(session),
        provider: int(row.get(6)).map(ProviderId),
        asks: WireFormat::parse(text(row.get(9)))
            .map(|format| Asks { model: text(row.get(8)).into(), format }),
        running: int(row.get(1)).and_then(|n| u32::try_from(n).ok()).unwrap_or(0),
        started_at: Timestamp(int(row.get(2))?),
        last_end: int(row.get(3)).map(Timestamp),
        requests: int(row.get(4)).and_then(|n| u64::try_from(n).ok()).unwrap_or(0),
        cost: amount(row.get(5)),
    })
}

fn rolling_ms(period: Period, limits: &Limits) -> Option<i64> {
    Window::of(period, limits.daily_reset).and_then(Window::rolling_ms)
}

/// A minute is in a rolling window until all of it is outside. Redis may send any number.
const fn ages_out(minute: i64, length_ms: i64) -> Timestamp {
    Timestamp(minute.saturating_add(1).saturating_mul(MINUTE_MS).saturating_add(length_ms))
}

fn ends(
    period: Period,
    limits: &Limits,
    now: Timestamp,
    spans: &Spans,
    settings: &CounterSettings,
) -> Option<Timestamp> {
    match Window::of(period, limits.daily_reset)? {
        Window::FiveHours => None,
        day @ Window::Daily(_) => Some(day.calendar(now, settings.time_zone).end),
        window => spans.of(window).map(|span| span.end),
    }
}
