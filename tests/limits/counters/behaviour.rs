//! The limits from the point of view of one caller.

use chrono_tz::Tz;
use tollgate::domain::clock::Timestamp;
use tollgate::domain::ids::{ProviderId, RequestId, SessionId};
use tollgate::domain::limits::{DailyReset, Limits, ResetMode, TimeOfDay};
use tollgate::domain::money::NanoUsd;
use tollgate::domain::provider::Provider;
use tollgate::limits::{
    Admission, Amount, Blocked, CounterSettings, Denied, Exceeds, LimitType, MoneyLeft, MoneyUsage,
    RequestsLeft, Standing,
};
use tollgate::policy::reservation::Reservation;
use tollgate::policy::select::SOON_MS;
use tollgate::policy::window::Window;

use super::{
    NOON, Place, TTL_MS, ask, counters, counters_with, key, provider, sessions, settings, user,
};

/// Ended sessions of one holder that are kept.
const MAX_IDLE: usize = 4_096;

super::on_each_place! {
    one_client_alone_is_refused_when_what_it_spent_reaches_the_limit_and_not_before,
    what_others_reserve_counts_only_where_reservation_is_on,
    strict_reservation_refuses_what_could_exceed_a_limit_unless_nothing_else_runs,
    a_rolling_window_tells_when_enough_will_have_aged_out,
    calendar_windows_sessions_and_rpm_tell_their_reset_and_a_limit_of_zero_has_none,
    an_admission_tells_what_is_left_of_the_tightest_limits,
    a_cost_belongs_to_its_requests_start,
    a_dropped_permit_gives_everything_back_also_in_a_panic,
    a_provider_keeps_its_limits_and_its_sessions,
    sessions_without_end_do_not_fill_the_memory,
    a_session_shows_what_its_latest_request_asks_for_while_the_first_one_runs,
    a_minute_and_a_cost_count_from_the_admission,
    a_fixed_day_ends_at_its_reset_to_the_millisecond,
}

const HOUR: i64 = 3_600_000;

fn five_hours(limit: i64) -> Limits {
    Limits { five_hours: Some(NanoUsd(limit)), ..Limits::default() }
}

fn one_client_alone_is_refused_when_what_it_spent_reaches_the_limit_and_not_before(place: Place) {
    let counters = counters(place, Tz::UTC);
    let (key, user) = (key(1, five_hours(100)), user(0, Limits::default()));
    for spent in [60, 39, 1] {
        let permit = ask(&counters, (&key, &user), "s", 1_000_000, NOON).unwrap();
        permit.settle(NOON, NanoUsd(spent), None);
    }
    let denied = ask(&counters, (&key, &user), "s", 0, NOON).err().unwrap();
    assert_eq!(
        (denied.limit_type, denied.current),
        (LimitType::KeyFiveHours, Amount::Money(NanoUsd(100)))
    );
    assert_eq!(denied.to_string(), "the key_5h limit of 0.0000001 is reached (0.0000001 used)");
}

fn strict_reservation_refuses_what_could_exceed_a_limit_unless_nothing_else_runs(place: Place) {
    let strict = CounterSettings { reservation: Reservation::Strict, ..settings(Tz::UTC) };
    let limit = Limits { weekly: Some(NanoUsd(100)), ..Limits::default() };
    let holders = [
        (key(1, limit), user(0, Limits::default()), LimitType::KeyWeekly),
        (key(1, Limits::default()), user(0, limit), LimitType::UserWeekly),
    ];
    for (key, user, limit_type) in &holders {
        let counters = counters_with(place, strict);
        let ask = |estimate| ask(&counters, (key, user), "s", estimate, NOON);
        // With no other request in flight it may reserve more than the limit: only the spend is
        // compared.
        let alone = ask(500).unwrap();
        assert!(ask(0).is_err(), "the limit is reserved");
        alone.settle(NOON, NanoUsd(30), None);
        let first = ask(40).unwrap();
        let denied = ask(31).err().unwrap();
        let exceeds = Some(Exceeds { reserved: NanoUsd(40), own: NanoUsd(31) });
        let compared = (Amount::Money(NanoUsd(70)), Amount::Money(NanoUsd(100)));
        assert_eq!(
            (denied.limit_type, denied.current, denied.limit),
            (*limit_type, compared.0, compared.1)
        );
        assert_eq!((denied.exceeds, denied.reset_at), (exceeds, None));
        let second = ask(30).unwrap();
        let denied = ask(0).err().unwrap();
        let reserved = Some(Exceeds { reserved: NanoUsd(70), own: NanoUsd(0) });
        assert_eq!((denied.exceeds, denied.reset_at), (reserved, None), "30 of 100 are spent");
        first.settle(NOON, NanoUsd(69), None);
        assert!(ask(1).is_err(), "99 spent, 30 reserved");
        drop(second);
        let last = ask(500).unwrap();
        last.settle(NOON, NanoUsd(2), None);
        assert_eq!(
            ask(0).err().unwrap().current,
            Amount::Money(NanoUsd(101)),
            "one alone may exceed it by itself"
        );
    }
    let denied = Denied {
        limit_type: LimitType::KeyTotal,
        current: Amount::Money(NanoUsd::usd(4)),
        limit: Amount::Money(NanoUsd::usd(5)),
        reset_at: None,
        at: NOON,
        exceeds: Some(Exceeds { reserved: NanoUsd::usd(3), own: NanoUsd::usd(2) }),
    };
    let message = "the key_total limit of 5 could be exceeded: 4 is used (3 of it reserved for requests in flight), \
                   and this request reserves 2";
    assert_eq!(denied.to_string(), message);
}

fn what_others_reserve_counts_only_where_reservation_is_on(place: Place) {
    let (key, user) = (key(1, five_hours(100)), user(0, Limits::default()));
    for reservation in [Reservation::Expected, Reservation::Strict, Reservation::Off] {
        let counters = counters_with(place, CounterSettings { reservation, ..settings(Tz::UTC) });
        let running = ask(&counters, (&key, &user), "s", 100, NOON).unwrap();
        assert_eq!(
            ask(&counters, (&key, &user), "s", 0, NOON).is_err(),
            reservation != Reservation::Off
        );
        running.settle(NOON, NanoUsd(5), None);
        assert!(
            ask(&counters, (&key, &user), "s", 0, NOON).is_ok(),
            "the true cost took its place"
        );
    }
}

fn an_admission_tells_what_is_left_of_the_tightest_limits(place: Place) {
    let counters = counters(place, Tz::UTC);
    let key = key(1, Limits { daily: Some(NanoUsd(100)), ..five_hours(90) });
    let free = user(0, Limits::default());
    let limited = user(5, Limits { weekly: Some(NanoUsd(95)), ..Limits::default() });
    let standing = |user| *ask(&counters, (&key, user), "s", 0, NOON).unwrap().standing();
    let midnight = Timestamp(NOON.0 - 30_000).plus_ms(12 * HOUR);
    let left = |limit_type, limit, remaining, reset_at| {
        Some(MoneyLeft {
            limit_type,
            limit: NanoUsd(limit),
            remaining: NanoUsd(remaining),
            reset_at,
        })
    };
    let before = standing(&free);
    assert_eq!(
        before,
        Standing { requests: None, money: left(LimitType::KeyFiveHours, 90, 90, None) }
    );
    for spent in [20, 65] {
        ask(&counters, (&key, &limited), "s", 0, NOON).unwrap().settle(NOON, NanoUsd(spent), None);
    }
    // The requests of the dropped permits do not count; the admitted one does.
    let after = standing(&limited);
    let requests = RequestsLeft { limit: 5, remaining: 2, reset_at: NOON.plus_ms(60_000) };
    assert_eq!(
        after,
        Standing { requests: Some(requests), money: left(LimitType::KeyFiveHours, 90, 5, None) }
    );
    // Once the window has passed it, the day is the tightest, and has an end.
    let later = NOON.plus_ms(6 * HOUR);
    let permit = ask(&counters, (&key, &limited), "s", 0, later).unwrap();
    assert_eq!(
        permit.standing().money,
        left(LimitType::UserWeekly, 95, 10, Some(midnight.plus_ms(4 * 24 * HOUR)))
    );
    let other = ask(
        &counters,
        (&self::key(2, Limits { daily: Some(NanoUsd(9)), ..Limits::default() }), &limited),
        "t",
        0,
        later,
    );
    assert_eq!(other.unwrap().standing().money, left(LimitType::KeyDaily, 9, 9, Some(midnight)));
}

fn a_rolling_window_tells_when_enough_will_have_aged_out(place: Place) {
    let counters = counters(place, Tz::UTC);
    let (key, user) = (key(1, five_hours(100)), user(0, Limits::default()));
    for (minute, spent) in [(0, 10), (7, 50), (90, 70)] {
        let now = NOON.plus_ms(minute * 60_000);
        ask(&counters, (&key, &user), "s", 0, now).unwrap().settle(now, NanoUsd(spent), None);
    }
    let now = NOON.plus_ms(2 * HOUR);
    let denied = ask(&counters, (&key, &user), "s", 0, now).err().unwrap();
    // 130 of 100: the 10 and the 50 must go; the 50 lies in the minute from 12:07.
    let reset = Timestamp(NOON.0 - 30_000).plus_ms(8 * 60_000 + 5 * HOUR);
    assert_eq!(denied.reset_at, Some(reset));
    assert!(ask(&counters, (&key, &user), "s", 0, reset.plus_ms(-1)).is_err());
    let permit = ask(&counters, (&key, &user), "s", 0, reset).unwrap();
    permit.settle(reset, NanoUsd::ZERO, None);
    let usage = counters.key_usage(&key, reset).money.five_hours;
    let all_gone = Timestamp(NOON.0 - 30_000).plus_ms(91 * 60_000 + 5 * HOUR);
    let expected = MoneyUsage {
        current: NanoUsd(70),
        reserved: NanoUsd::ZERO,
        limit: Some(NanoUsd(100)),
        reset_at: Some(all_gone),
    };
    assert_eq!(usage, expected);
}

fn calendar_windows_sessions_and_rpm_tell_their_reset_and_a_limit_of_zero_has_none(place: Place) {
    let counters = counters(place, Tz::UTC);
    let free = (key(1, Limits::default()), user(0, Limits::default()));
    let running = ask(&counters, (&free.0, &free.1), "running", 0, NOON).unwrap();
    ask(&counters, (&free.0, &free.1), "ended", 0, NOON).unwrap().settle(
        NOON.plus_ms(5),
        NanoUsd(9),
        None,
    );
    let reset = |limits, rpm| {
        let now = NOON.plus_ms(10);
        ask(&counters, (&key(1, limits), &user(rpm, Limits::default())), "new", 0, now)
            .err()
            .unwrap()
            .reset_at
    };
    let money = Some(NanoUsd(9));
    let time = DailyReset { mode: ResetMode::Fixed, time: TimeOfDay::parse("12:30").unwrap() };
    let half_past = Timestamp(NOON.0 - 30_000).plus_ms(HOUR / 2);
    assert_eq!(
        reset(Limits { daily: money, daily_reset: time, ..Limits::default() }, 0),
        Some(half_past)
    );
    assert_eq!(
        reset(Limits { weekly: money, ..Limits::default() }, 0).unwrap().to_iso(),
        "2026-11-23T00:00:00.000Z"
    );
    assert_eq!(
        reset(Limits { monthly: money, ..Limits::default() }, 0).unwrap().to_iso(),
        "2026-12-01T00:00:00.000Z"
    );
    assert_eq!(reset(Limits { total: money, ..Limits::default() }, 0), None);
    assert_eq!(reset(five_hours(0), 0), None);
    assert_eq!(reset(sessions(2), 0), Some(NOON.plus_ms(5 + TTL_MS)));
    assert_eq!(reset(sessions(1), 0), None, "one end is not enough");
    assert_eq!(reset(Limits::default(), 2), Some(NOON.plus_ms(60_000)));
    drop(running);
}

fn a_cost_belongs_to_its_requests_start(place: Place) {
    let counters = counters(place, Tz::UTC);
    let (key, user) = (key(1, Limits::default()), user(0, Limits::default()));
    let sunday = Timestamp(NOON.0).plus_ms(4 * 24 * HOUR + 11 * HOUR + 59 * 60_000);
    assert_eq!(sunday.to_iso(), "2026-11-22T23:59:30.000Z");
    let monday = sunday.plus_ms(60_000);
    ask(&counters, (&key, &user), "s", 50, sunday).unwrap().settle(monday, NanoUsd(40), None);
    let usage = counters.key_usage(&key, monday);
    let spent = usage.money.each().map(|(_, window)| window.current.0);
    assert_eq!(spent, [40, 0, 0, 40, 40]);
}

fn a_dropped_permit_gives_everything_back_also_in_a_panic(place: Place) {
    let counters = counters(place, Tz::UTC);
    let limits = Limits { total: Some(NanoUsd(1)), concurrent_sessions: 1, ..Limits::default() };
    let (key, user) = (key(1, limits), user(1, Limits::default()));
    for _ in 0..3 {
        let mut permit = ask(&counters, (&key, &user), "s", 10, NOON).unwrap();
        assert!(counters.enter(&mut permit, &provider(sessions(1)), NOON));
        drop(permit);
    }
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _permit = ask(&counters, (&key, &user), "s", 10, NOON).unwrap();
        std::panic::resume_unwind(Box::new("a filter failed"));
    }));
    assert!(panicked.is_err());
    assert!(ask(&counters, (&key, &user), "other", 10, NOON).is_ok());
}

fn a_provider_keeps_its_limits_and_its_sessions(place: Place) {
    let counters = counters(place, Tz::UTC);
    let (key, user) = (key(1, Limits::default()), user(0, Limits::default()));
    let limits = Limits { weekly: Some(NanoUsd(100)), concurrent_sessions: 1, ..Limits::default() };
    let (first, mut second) = (provider(limits), provider(limits));
    second.id = ProviderId(2);
    let blocked = |p, session| counters.blocked(p, session, NOON);
    let served_by = |now| {
        let permit = ask(&counters, (&key, &user), "s", 0, now).unwrap();
        permit.session_provider()
    };
    let soon = NOON.plus_ms(SOON_MS);
    let session_cap = Some(Blocked::SessionCap { until: soon });
    let mut permit = ask(&counters, (&key, &user), "s", 60, NOON).unwrap();
    assert!(counters.enter(&mut permit, &first, NOON));
    assert_eq!((blocked(&first, "s"), blocked(&first, "o")), (None, session_cap));
    assert!(counters.enter(&mut permit, &second, NOON), "failing over");
    assert_eq!((blocked(&first, "o"), blocked(&second, "o")), (None, session_cap));
    assert_eq!(served_by(NOON), Some(ProviderId(2)));
    permit.settle(NOON, NanoUsd(100), Some(ProviderId(2)));
    let monday = Window::Weekly.reset(NOON, Tz::UTC);
    assert_eq!(blocked(&second, "s"), Some(Blocked::Limit { until: monday }));
    let total = Limits { total: Some(NanoUsd(1)), ..limits };
    let third = Provider { limits: total, ..second.clone() };
    assert_eq!(blocked(&third, "s"), Some(Blocked::Limit { until: None }), "never");
    assert_eq!(counters.provider_usage(&second, NOON).money.weekly.current, NanoUsd(100));
    assert_eq!(counters.provider_usage(&first, NOON).money.total.current, NanoUsd::ZERO);
    let later = NOON.plus_ms(TTL_MS);
    assert_eq!(served_by(later), None, "the session is over");
    let admin = counters.counters.bypass(RequestId::new(), &SessionId::from("o"), NanoUsd(5), NOON);
    admin.settle(NOON, NanoUsd(5), Some(ProviderId(1)));
    assert_eq!(counters.provider_usage(&first, NOON).money.total.current, NanoUsd(5));
}

fn a_session_shows_what_its_latest_request_asks_for_while_the_first_one_runs(place: Place) {
    let counters = counters(place, Tz::UTC);
    let (key, user) = (key(1, Limits::default()), user(0, Limits::default()));
    let begin = |model: &str| {
        let (request, session, asks) =
            (RequestId::new(), &SessionId::from("s"), &super::asks(model));
        let (key, user, estimate) = (&key, &user, NanoUsd::ZERO);
        let ask = Admission { request, now: NOON, key, user, session, estimate, asks };
        counters.wait(NOON, counters.counters.admit(&ask)).unwrap()
    };
    let shown = || counters.live_sessions(NOON)[0].asks.clone();
    let first = begin("first");
    assert_eq!(shown(), Some(super::asks("first")));
    let second = begin("second");
    assert_eq!(shown(), Some(super::asks("second")));
    second.settle(NOON, NanoUsd::ZERO, None);
    first.settle(NOON, NanoUsd::ZERO, None);
    assert_eq!(shown(), Some(super::asks("second")), "the latest, not the last to end");
}

fn a_minute_and_a_cost_count_from_the_admission(place: Place) {
    let counters = counters(place, Tz::UTC);
    let (key, user) = (key(1, Limits::default()), user(2, Limits::default()));
    let admit = |now: Timestamp| {
        let (request, session, asks) = (RequestId::new(), &SessionId::from("s"), &super::asks("m"));
        let (key, user, estimate) = (&key, &user, NanoUsd::ZERO);
        let ask = Admission { request, now, key, user, session, estimate, asks };
        counters.wait(now, counters.counters.admit(&ask)).map_err(|refused| refused.to_string())
    };
    let first = admit(NOON).unwrap();
    let second = admit(NOON.plus_ms(10_000)).unwrap();
    assert!(admit(NOON.plus_ms(20_000)).is_err());
    first.settle(NOON.plus_ms(30_000), NanoUsd(5), None);
    assert!(admit(NOON.plus_ms(59_999)).is_err(), "what ended still counts in its minute");
    let third = admit(NOON.plus_ms(60_000)).unwrap();
    drop(second);
    let fourth = admit(NOON.plus_ms(60_001)).unwrap();
    drop(fourth);
    drop(third);
    let usage = counters.user_usage(&user, NOON.plus_ms(60_001));
    assert_eq!(usage.rpm.current, 0);
    // Admitted at 12:00:30, it leaves the five hours with that minute.
    let key_usage = counters.key_usage(&key, NOON.plus_ms(60_001)).money.five_hours;
    assert_eq!(key_usage.current, NanoUsd(5));
    assert_eq!(key_usage.reset_at, Some(Timestamp(NOON.0 + 30_000).plus_ms(5 * HOUR)));
}

fn sessions_without_end_do_not_fill_the_memory(place: Place) {
    let counters = counters(place, Tz::UTC);
    let (key, user) = (key(1, Limits::default()), user(0, Limits::default()));
    for n in 0..MAX_IDLE + 500 {
        ask(&counters, (&key, &user), &format!("s{n}"), 0, NOON).unwrap().settle(
            NOON,
            NanoUsd::ZERO,
            None,
        );
    }
    let live = counters.live_sessions(NOON);
    assert_eq!(live.len(), MAX_IDLE);
    assert_eq!(counters.key_usage(&key, NOON).sessions.current, live.len() as u64);
    assert!(
        live.iter().any(|session| session.session.as_str() == format!("s{}", MAX_IDLE + 499)),
        "the latest are kept"
    );
}

#[test]
fn sessions_end_after_their_ttl_also_if_the_clock_was_set_back() {
    let counters = counters(Place::Own, Tz::UTC);
    let (key, user) = (key(1, Limits::default()), user(0, Limits::default()));
    let serve = |session, now| {
        ask(&counters, (&key, &user), session, 0, now).unwrap().settle(now, NanoUsd::ZERO, None);
    };
    let live = |now| counters.key_usage(&key, now).sessions.current;
    serve("before", NOON);
    serve("ahead", NOON.plus_ms(HOUR));
    serve("both", NOON.plus_ms(HOUR + 1));
    let back = NOON.plus_ms(60_000);
    serve("both", back);
    assert_eq!(live(back), 2, "the first one ended when the clock was ahead");
    assert_eq!(live(back.plus_ms(TTL_MS - 1)), 2);
    assert_eq!(live(back.plus_ms(TTL_MS)), 0);
}

#[test]
fn a_clock_that_steps_back_erases_nothing_that_was_counted_before_or_while_it_was_ahead() {
    let day = |mode| DailyReset { mode, time: TimeOfDay::default() };
    // The clock is ahead by minutes, past midnight, past the week's end, past the month's; then
    // back.
    for ahead in [5 * 60_000, 13 * HOUR, 6 * 24 * HOUR, 20 * 24 * HOUR] {
        for mode in [ResetMode::Fixed, ResetMode::Rolling] {
            let counters = counters(Place::Own, Tz::UTC);
            let limits = Limits { daily_reset: day(mode), ..Limits::default() };
            let (key, user) = (key(1, limits), user(0, Limits::default()));
            let spend = |now: Timestamp, cost| {
                ask(&counters, (&key, &user), "s", 0, now).unwrap().settle(
                    now,
                    NanoUsd(cost),
                    None,
                );
            };
            let held = |now| {
                let usage = counters.key_usage(&key, now);
                usage.money.each().map(|(_, window)| window.current.0)
            };
            spend(NOON, 1);
            let running = ask(&counters, (&key, &user), "s", 7, NOON).unwrap();
            spend(NOON.plus_ms(ahead), 10);
            let back = NOON.plus_ms(60_000);
            spend(back, 100);
            let short = ahead <= 24 * HOUR;
            // Buckets reach back a day; weeks and months are kept as sums.
            assert_eq!(
                held(back),
                if short { [111; 5] } else { [110, 110, 111, 111, 111] },
                "{ahead} {mode:?}"
            );
            running.settle(back, NanoUsd(1_000), None);
            let expected = if short { [1_111; 5] } else { [1_110, 1_110, 1_111, 1_111, 1_111] };
            assert_eq!(held(back), expected, "{ahead} {mode:?}");
            // The clock continues from there: amounts ahead of it are in the window of their time
            // stamp.
            let next_month = NOON.plus_ms(20 * 24 * HOUR);
            let monthly = counters.key_usage(&key, next_month).money.monthly.current.0;
            assert_eq!(monthly, if ahead == 20 * 24 * HOUR { 10 } else { 0 });
        }
    }
}

fn a_fixed_day_ends_at_its_reset_to_the_millisecond(place: Place) {
    let counters = counters(place, Tz::UTC);
    let reset = DailyReset { mode: ResetMode::Fixed, time: TimeOfDay::parse("13:00").unwrap() };
    let limits = Limits { daily: Some(NanoUsd(50)), daily_reset: reset, ..Limits::default() };
    let (key, user) = (key(1, limits), user(0, Limits::default()));
    let at = Timestamp(NOON.0 - 30_000).plus_ms(HOUR);
    let spent = |now| counters.key_usage(&key, now).money.daily.current;
    let running = ask(&counters, (&key, &user), "s", 0, NOON).unwrap();
    ask(&counters, (&key, &user), "s", 0, NOON).unwrap().settle(NOON, NanoUsd(50), None);
    let before = at.plus_ms(-1);
    assert_eq!(spent(before), NanoUsd(50));
    let denied = ask(&counters, (&key, &user), "s", 0, before).err().unwrap();
    assert_eq!(denied.limit_type, LimitType::KeyDaily);
    // The record has come to this minute by something that knows no day.
    running.settle(at, NanoUsd(7), None);
    assert!(ask(&counters, (&key, &user), "s", 0, at).is_ok(), "a new day has begun");
    let counters = self::counters(place, Tz::UTC);
    let spent = |now| counters.key_usage(&key, now).money.daily.current;
    ask(&counters, (&key, &user), "s", 0, NOON).unwrap().settle(NOON, NanoUsd(50), None);
    assert_eq!((spent(before), spent(at)), (NanoUsd(50), NanoUsd::ZERO));
}
