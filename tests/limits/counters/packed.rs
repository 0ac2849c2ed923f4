//! What packed values must keep: amounts beyond what a double holds, minutes of thousands of
//! requests, sessions that outlast their score.

use chrono_tz::Tz;
use tollgate::domain::ids::ProviderId;
use tollgate::domain::limits::{DailyReset, Limits, ResetMode, TimeOfDay};
use tollgate::domain::money::NanoUsd;
use tollgate::limits::{Blocked, LimitType};
use tollgate::store::{SpendRow, SpendSeen, SpendTotal};

use super::{NOON, Place, TTL_MS, ask, counters, key, provider, sessions, user};

super::on_each_place! {
    sums_beyond_the_doubles_are_exact_to_the_last_billionth_in_every_window,
    thousands_of_requests_of_a_minute_are_counted_aged_out_and_taken_back,
    a_session_that_goes_on_for_hours_is_one_and_ends_once,
    spending_of_many_minutes_ages_out_minute_by_minute,
    requests_that_end_hours_after_they_began_count_at_their_start,
}

/// 2^53: from here on not every whole number is a double.
const DOUBLES: i64 = 1 << 53;
const MINUTE: i64 = 60_000;

fn sums_beyond_the_doubles_are_exact_to_the_last_billionth_in_every_window(place: Place) {
    let rolling = DailyReset { mode: ResetMode::Rolling, time: TimeOfDay::default() };
    for daily_reset in [DailyReset::default(), rolling] {
        let counters = counters(place, Tz::UTC);
        let limits = Limits { daily: Some(NanoUsd(i64::MAX)), daily_reset, ..Limits::default() };
        let (key, user) = (key(1, limits), user(0, limits));
        let mut total = 0;
        let windows = |usage: super::HolderUsage| usage.money.each().map(|(_, window)| window);
        for (n, cost) in
            [DOUBLES + 1, 1, 7, (DOUBLES << 3) + 3, DOUBLES - 1].into_iter().enumerate()
        {
            let now = NOON.plus_ms(i64::try_from(n).unwrap() * MINUTE);
            let permit = ask(&counters, (&key, &user), "s", cost, now).unwrap();
            let running = windows(counters.key_usage(&key, now)).map(|window| window.reserved.0);
            assert_eq!(running, [cost; 5]);
            permit.settle(now, NanoUsd(cost), Some(ProviderId(1)));
            total += cost;
            for usage in [
                counters.key_usage(&key, now),
                counters.user_usage(&user, now),
                counters.provider_usage(&provider(limits), now),
            ] {
                let found = windows(usage).map(|window| (window.current.0, window.reserved.0));
                assert_eq!(found, [(total, 0); 5], "after {} of {cost}", n + 1);
            }
            assert_eq!(counters.live_sessions(now)[0].cost, NanoUsd(total));
        }
        // The first two minutes leave the five hours, and the sum stays exact.
        let later = NOON.plus_ms(302 * MINUTE);
        let left = total - (DOUBLES + 1) - 1;
        assert_eq!(counters.key_usage(&key, later).money.five_hours.current, NanoUsd(left));
        // A long pause: the sums come from the buckets.
        let later = NOON.plus_ms(20 * 60 * MINUTE);
        let usage = counters.user_usage(&user, later);
        assert_eq!((usage.money.five_hours.current.0, usage.money.total.current.0), (0, total));
        if daily_reset == rolling {
            assert_eq!(usage.money.daily.current, NanoUsd(total));
        }
    }
}

fn thousands_of_requests_of_a_minute_are_counted_aged_out_and_taken_back(place: Place) {
    const COUNT: i64 = 700;
    let counters = counters(place, Tz::UTC);
    let (key, user) = (key(1, Limits::default()), user(0, Limits::default()));
    let mut permits = std::collections::VecDeque::new();
    for n in 0..COUNT {
        let now = NOON.plus_ms(n * 50);
        permits.push_back(ask(&counters, (&key, &user), "s", 0, now).unwrap());
    }
    let at = NOON.plus_ms(COUNT * 50);
    let count = |now| counters.user_usage(&user, now).rpm.current;
    assert_eq!(count(at), 700);
    // The first, one of the middle, the last: those alone are taken back.
    drop(permits.pop_front());
    drop(permits.remove(300));
    drop(permits.pop_back());
    assert_eq!(count(at), 697);
    permits.drain(..).for_each(|permit| permit.settle(at, NanoUsd::ZERO, None));
    // Ten have aged out; the first of them was taken back.
    assert_eq!(count(NOON.plus_ms(60_000 + 9 * 50)), 688);
    let limited = super::user(100, Limits::default());
    let now = NOON.plus_ms(60_000 + 500 * 50);
    let denied = ask(&counters, (&key, &limited), "s", 0, now).err().unwrap();
    assert_eq!(denied.limit_type, LimitType::UserRpm);
    // 198 count (501 to 698); below a hundred once 599 has aged out.
    assert_eq!(denied.current.to_string(), "198");
    assert_eq!(denied.reset_at, Some(NOON.plus_ms(60_000 + 599 * 50)));
    assert_eq!(count(NOON.plus_ms(60_000 + 698 * 50 - 1)), 1);
    assert_eq!(count(NOON.plus_ms(60_000 + 698 * 50)), 0);
}

fn a_session_that_goes_on_for_hours_is_one_and_ends_once(place: Place) {
    let counters = counters(place, Tz::UTC);
    let (key, user) = (key(1, sessions(2)), user(0, sessions(2)));
    let mut now = NOON;
    for n in 0..40 {
        now = NOON.plus_ms(n * TTL_MS * 2 / 3);
        let permit = ask(&counters, (&key, &user), "long", 0, now).unwrap();
        permit.settle(now, NanoUsd(1), None);
        let other = ask(&counters, (&key, &user), &format!("short-{n}"), 0, now);
        // Of the short ones one is still live when the next but one comes.
        match other {
            Ok(permit) => permit.settle(now, NanoUsd(1), None),
            Err(denied) => {
                let free = NOON.plus_ms((n - 1) * TTL_MS * 2 / 3 + TTL_MS);
                assert_eq!(
                    (denied.limit_type, denied.reset_at),
                    (LimitType::KeyConcurrentSessions, Some(free))
                );
            }
        }
        let live = counters.live_sessions(now);
        assert_eq!(live.len(), 2, "{live:?}");
        let long = live.iter().find(|live| live.session.as_str() == "long").unwrap();
        assert_eq!(long.requests, u64::try_from(n).unwrap() + 1);
    }
    assert_eq!(counters.user_usage(&user, now.plus_ms(TTL_MS - 1)).sessions.current, 1);
    assert_eq!(counters.user_usage(&user, now.plus_ms(TTL_MS)).sessions.current, 0);
    assert!(counters.live_sessions(now.plus_ms(TTL_MS)).is_empty());
    assert_eq!(counters.blocked(&provider(sessions(1)), "s", now), None::<Blocked>);
}

fn spending_of_many_minutes_ages_out_minute_by_minute(place: Place) {
    let counters = counters(place, Tz::UTC);
    let (key, user) = (key(1, Limits::default()), user(0, Limits::default()));
    for minute in 0..90 {
        let now = NOON.plus_ms(minute * MINUTE);
        let permit = ask(&counters, (&key, &user), "s", 9, now).unwrap();
        permit.settle(now, NanoUsd(1 << (minute % 50)), None);
    }
    let cost = |minute: i64| 1_i64 << (minute % 50);
    for gone in [0, 1, 2, 3, 40, 41, 89] {
        let now = NOON.plus_ms((301 + gone) * MINUTE);
        let left: i64 = (gone + 1..90).map(cost).sum();
        assert_eq!(counters.key_usage(&key, now).money.five_hours.current, NanoUsd(left), "{gone}");
    }
}

fn requests_that_end_hours_after_they_began_count_at_their_start(place: Place) {
    let counters = counters(place, Tz::UTC);
    let (key, user) = (key(1, Limits::default()), user(0, Limits::default()));
    let permits: Vec<_> = (0..6)
        .map(|n| ask(&counters, (&key, &user), "s", 100, NOON.plus_ms(n * MINUTE)).unwrap())
        .collect();
    let now = NOON.plus_ms(303 * MINUTE);
    // The reservations of the first three minutes have left the window with them.
    assert_eq!(counters.user_usage(&user, now).money.five_hours.reserved, NanoUsd(300));
    assert_eq!(counters.user_usage(&user, now).money.total.reserved, NanoUsd(600));
    for (n, permit) in permits.into_iter().enumerate() {
        if n % 2 == 0 { drop(permit) } else { permit.settle(now, NanoUsd(7), None) }
    }
    let usage = counters.user_usage(&user, now);
    assert_eq!(
        (usage.money.five_hours.current, usage.money.five_hours.reserved),
        (NanoUsd(14), NanoUsd::ZERO)
    );
    assert_eq!(
        (usage.money.total.current, usage.money.total.reserved),
        (NanoUsd(21), NanoUsd::ZERO)
    );
}

#[test]
fn sums_from_the_ledger_beyond_the_doubles_are_exact_in_redis() {
    let cost = NanoUsd((DOUBLES << 4) + 5);
    let (key, user) = (key(1, Limits::default()), user(0, Limits::default()));
    let (key_id, user_id) = (Some(key.id), Some(user.id));
    let row = |minute| SpendRow { minute, key_id, user_id, provider_id: None, cost };
    let rows = vec![row(NOON), row(NOON.plus_ms(-MINUTE))];
    let total = SpendTotal { key_id, user_id, provider_id: None, cost: cost + cost };
    let ledger = SpendSeen { rows, totals: vec![total], ..SpendSeen::default() };
    let counters = super::shared_from(super::settings(Tz::UTC), ledger, NOON);
    for usage in [counters.key_usage(&key, NOON), counters.user_usage(&user, NOON)] {
        for (_, window) in usage.money.each() {
            assert_eq!(window.current, cost + cost);
        }
    }
}
