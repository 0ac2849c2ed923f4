//! Concurrent requests: limits hold exactly, and everything is taken back.

use std::sync::Barrier;
use std::thread;

use chrono_tz::Tz;
use tollgate::domain::limits::Limits;
use tollgate::domain::money::NanoUsd;
use tollgate::limits::{CounterSettings, Denied, Permit};
use tollgate::policy::reservation::Reservation;

use super::{
    NOON, Place, TTL_MS, ask, counters, counters_with, key, provider, sessions, settings, user,
};

super::on_each_place! {
    a_thousand_at_once_overshoot_the_last_dollar_by_one_grain_at_most,
    of_a_thousand_at_once_strict_reservation_admits_what_fits_below_the_limit,
    of_many_sessions_racing_for_the_last_places_exactly_the_limit_pass,
    requests_of_a_minute_and_places_at_a_provider_are_given_to_no_more_than_the_limit,
}

/// Runs `work` in `count` threads that begin at the same moment.
fn at_once<R: Send>(count: usize, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let barrier = Barrier::new(count);
    let (work, barrier) = (&work, &barrier);
    thread::scope(|scope| {
        let spawn = |n| {
            let start = move || {
                barrier.wait();
                work(n)
            };
            thread::Builder::new().stack_size(512 * 1_024).spawn_scoped(scope, start).unwrap()
        };
        let running: Vec<_> = (0..count).map(spawn).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn passed(results: Vec<Result<Permit, Denied>>) -> Vec<Permit> {
    results.into_iter().filter_map(Result::ok).collect()
}

fn a_thousand_at_once_overshoot_the_last_dollar_by_one_grain_at_most(place: Place) {
    const GRAIN: i64 = 7_000_000;
    let limit = NanoUsd::usd(10);
    let holders = [
        (key(1, Limits { monthly: Some(limit), ..Limits::default() }), user(0, Limits::default())),
        (
            key(1, Limits::default()),
            user(0, Limits { five_hours: Some(limit), ..Limits::default() }),
        ),
    ];
    for (key, user) in &holders {
        let counters = counters(place, Tz::UTC);
        let spent = ask(&counters, (key, user), "s", 0, NOON).unwrap();
        spent.settle(NOON, NanoUsd::usd(9), None);
        let permits = passed(at_once(1_000, |_| ask(&counters, (key, user), "s", GRAIN, NOON)));
        // 142 grains leave 6 000 000, so one more passes.
        assert_eq!(permits.len(), 143);
        for usage in [counters.user_usage(user, NOON), counters.key_usage(key, NOON)] {
            for (_, window) in usage.money.each() {
                assert_eq!(window.current, NanoUsd::usd(9), "reserved is not spent");
                assert_eq!(window.reserved, NanoUsd(143 * GRAIN), "{window:?}");
            }
        }
        for permit in permits {
            permit.settle(NOON, NanoUsd(GRAIN), None);
        }
        let total = counters.user_usage(user, NOON).money.total.current;
        assert!(total >= limit && total < limit + NanoUsd(GRAIN), "{total}");
        assert_eq!(
            counters.user_usage(user, NOON).money.total.reserved,
            NanoUsd::ZERO,
            "all given back"
        );
    }
}

fn of_a_thousand_at_once_strict_reservation_admits_what_fits_below_the_limit(place: Place) {
    const GRAIN: i64 = 7_000_000;
    let limit = NanoUsd::usd(10);
    let strict = CounterSettings { reservation: Reservation::Strict, ..settings(Tz::UTC) };
    let (key, user) =
        (key(1, Limits { monthly: Some(limit), ..Limits::default() }), user(0, Limits::default()));
    let counters = counters_with(place, strict);
    ask(&counters, (&key, &user), "s", 0, NOON).unwrap().settle(NOON, NanoUsd::usd(9), None);
    let results = at_once(1_000, |_| ask(&counters, (&key, &user), "s", GRAIN, NOON));
    assert!(
        results
            .iter()
            .flat_map(|result| result.as_ref().err())
            .all(|denied| denied.exceeds.is_some())
    );
    let permits = passed(results);
    // 142 grains leave 6 000 000: too little for another.
    assert_eq!(permits.len(), 142);
    for permit in permits {
        permit.settle(NOON, NanoUsd(GRAIN), None);
    }
    let usage = counters.key_usage(&key, NOON).money.monthly;
    assert_eq!(
        (usage.current, usage.reserved),
        (NanoUsd(9_000_000_000 + 142 * GRAIN), NanoUsd::ZERO)
    );
}

fn of_many_sessions_racing_for_the_last_places_exactly_the_limit_pass(place: Place) {
    for (key, user) in
        [(key(1, sessions(5)), user(0, sessions(0))), (key(1, sessions(0)), user(0, sessions(5)))]
    {
        let counters = counters(place, Tz::UTC);
        let permits =
            passed(at_once(64, |n| ask(&counters, (&key, &user), &format!("s{n}"), 0, NOON)));
        assert_eq!(permits.len(), 5);
        drop(permits);
        assert_eq!(counters.user_usage(&user, NOON).sessions.current, 0, "all given back");
        let again =
            passed(at_once(64, |n| ask(&counters, (&key, &user), &format!("s{}", n % 5), 0, NOON)));
        assert_eq!(again.len(), 64, "a live session is not counted against itself");
        again.into_iter().for_each(|permit| permit.settle(NOON, NanoUsd::ZERO, None));
        assert_eq!(counters.key_usage(&key, NOON.plus_ms(TTL_MS - 1)).sessions.current, 5);
        assert_eq!(counters.key_usage(&key, NOON.plus_ms(TTL_MS)).sessions.current, 0);
    }
}

fn requests_of_a_minute_and_places_at_a_provider_are_given_to_no_more_than_the_limit(place: Place) {
    let counters = counters(place, Tz::UTC);
    let (key, user) = (key(1, sessions(0)), user(20, sessions(0)));
    let (capped, limited) =
        (provider(sessions(3)), Limits { daily: Some(NanoUsd(10)), ..Limits::default() });
    let permits =
        passed(at_once(100, |n| ask(&counters, (&key, &user), &format!("s{n}"), 4, NOON)));
    assert_eq!(permits.len(), 20);
    let places = std::sync::Mutex::new(permits);
    let entered = at_once(20, |_| {
        let mut permit = places.lock().unwrap().pop().unwrap();
        (counters.enter(&mut permit, &capped, NOON), permit)
    });
    assert_eq!(entered.iter().filter(|(inside, _)| *inside).count(), 3);
    drop(entered);
    assert_eq!(counters.provider_usage(&capped, NOON).sessions.current, 0);
    let user = super::user(0, sessions(0));
    let entered = at_once(20, |_| {
        let mut permit = ask(&counters, (&key, &user), "s", 4, NOON).unwrap();
        (counters.enter(&mut permit, &provider(limited), NOON), permit)
    });
    assert_eq!(
        entered.iter().filter(|(inside, _)| *inside).count(),
        3,
        "4 + 4 < 10, 4 + 4 + 4 is not"
    );
}
