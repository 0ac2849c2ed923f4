//! The thirteen checks and their order.

use chrono_tz::Tz;
use tollgate::domain::limits::Limits;
use tollgate::domain::money::NanoUsd;
use tollgate::limits::LimitType;

use super::{NOON, Place, ask, counters, key, user};

super::on_each_place! {
    of_any_two_limits_that_are_reached_the_earlier_one_is_reported,
}

/// Limits of a key and a user, and the user's requests per minute.
#[derive(Default)]
struct Held {
    key: Limits,
    user: Limits,
    rpm: u32,
}

impl Held {
    /// Sets one limit so that one request in flight of another session reaches it.
    fn reach(&mut self, limit: LimitType) {
        let nothing = Some(NanoUsd::ZERO);
        match limit {
            LimitType::KeyTotal => self.key.total = nothing,
            LimitType::UserTotal => self.user.total = nothing,
            LimitType::KeyConcurrentSessions => self.key.concurrent_sessions = 1,
            LimitType::UserConcurrentSessions => self.user.concurrent_sessions = 1,
            LimitType::UserRpm => self.rpm = 1,
            LimitType::KeyFiveHours => self.key.five_hours = nothing,
            LimitType::UserFiveHours => self.user.five_hours = nothing,
            LimitType::KeyDaily => self.key.daily = nothing,
            LimitType::UserDaily => self.user.daily = nothing,
            LimitType::KeyWeekly => self.key.weekly = nothing,
            LimitType::UserWeekly => self.user.weekly = nothing,
            LimitType::KeyMonthly => self.key.monthly = nothing,
            LimitType::UserMonthly => self.user.monthly = nothing,
        }
    }
}

fn of_any_two_limits_that_are_reached_the_earlier_one_is_reported(place: Place) {
    let names = LimitType::IN_ORDER.map(LimitType::as_str);
    assert_eq!(
        names,
        [
            "key_total",
            "user_total",
            "key_concurrent_sessions",
            "user_concurrent_sessions",
            "user_rpm",
            "key_5h",
            "user_5h",
            "key_daily",
            "user_daily",
            "key_weekly",
            "user_weekly",
            "key_monthly",
            "user_monthly",
        ]
    );
    let counters = counters(place, Tz::UTC);
    let (free_key, free_user) = (key(1, Limits::default()), user(0, Limits::default()));
    let running = ask(&counters, (&free_key, &free_user), "running", 0, NOON).unwrap();
    for (i, earlier) in LimitType::IN_ORDER.into_iter().enumerate() {
        for later in LimitType::IN_ORDER.into_iter().skip(i) {
            let mut held = Held::default();
            held.reach(later);
            held.reach(earlier);
            let (key, user) = (key(1, held.key), user(held.rpm, held.user));
            let denied =
                ask(&counters, (&key, &user), "new", 7, NOON).err().map(|denied| denied.limit_type);
            assert_eq!(denied, Some(earlier), "with {later:?}");
        }
    }
    let after = counters.user_usage(&free_user, NOON);
    assert_eq!(
        (after.sessions.current, after.rpm.current),
        (1, 1),
        "the refused ones counted towards nothing"
    );
    let key = key(1, Limits { total: Some(NanoUsd(1)), ..Limits::default() });
    assert!(
        ask(&counters, (&key, &free_user), "new", 7, NOON).is_ok(),
        "nor is anything of theirs reserved"
    );
    drop(running);
}
