//! Random histories, compared with a model that keeps every event and sums them up each time.

use chrono_tz::Tz;
use proptest::prelude::{
    Just, ProptestConfig, Strategy, any, prop_assert_eq, prop_oneof, proptest,
};
use proptest::test_runner::TestCaseError;
use tollgate::domain::clock::Timestamp;
use tollgate::domain::ids::{ProviderId, UserId};
use tollgate::domain::key::Key;
use tollgate::domain::limits::{DailyReset, Limits, ResetMode, TimeOfDay};
use tollgate::domain::money::NanoUsd;
use tollgate::domain::user::User;
use tollgate::limits::Permit;
use tollgate::limits::{HolderUsage, LimitType};
use tollgate::policy::window::Window;
use tollgate::store::{SpendRow, SpendSeen, SpendTotal};

use super::{Place, TTL_MS, Tested, ask, counters_at, key, settings, user};

pub(super) const ZONE: Tz = Tz::Europe__Berlin;
const MINUTE: i64 = 60_000;

#[derive(Debug, Clone)]
enum Step {
    Wait { ms: i64 },
    Admit { key: usize, session: usize, estimate: i64 },
    Settle { nth: usize, cost: i64 },
    Drop { nth: usize },
    ChangeDay { of_key: Option<usize>, reset: DailyReset },
}

fn resets() -> impl Strategy<Value = DailyReset> {
    (any::<bool>(), 0u32..24, 0u32..60).prop_map(|(rolling, hour, minute)| DailyReset {
        mode: if rolling { ResetMode::Rolling } else { ResetMode::Fixed },
        time: TimeOfDay::parse(&format!("{hour:02}:{minute:02}")).unwrap(),
    })
}

fn steps() -> impl Strategy<Value = Step> {
    let spans = prop_oneof![
        Just(1),
        Just(20 * 1_000),
        Just(5 * MINUTE),
        Just(3 * 60 * MINUTE),
        Just(30 * 60 * MINUTE)
    ];
    prop_oneof![
        3 => (spans, 0..100i64).prop_map(|(span, part)| Step::Wait { ms: span * part / 100 }),
        4 => (0..2usize, 0..4usize, 0..30i64).prop_map(|(key, session, estimate)| Step::Admit { key, session, estimate }),
        3 => (0..9usize, 0..40i64).prop_map(|(nth, cost)| Step::Settle { nth, cost }),
        1 => (0..9usize).prop_map(|nth| Step::Drop { nth }),
        1 => (0..3usize, resets()).prop_map(|(of, reset)| Step::ChangeDay { of_key: (of < 2).then_some(of), reset }),
    ]
}

fn limits() -> impl Strategy<Value = Limits> {
    let money =
        || prop_oneof![2 => Just(None), 1 => (0..300i64).prop_map(|limit| Some(NanoUsd(limit)))];
    (money(), money(), money(), money(), money(), 0..4u32, resets()).prop_map(
        |(five_hours, daily, weekly, monthly, total, concurrent_sessions, daily_reset)| Limits {
            five_hours,
            daily,
            weekly,
            monthly,
            total,
            concurrent_sessions,
            daily_reset,
        },
    )
}

/// A request that was admitted and not taken back.
struct Event {
    key: usize,
    session: usize,
    started: Timestamp,
    /// Reserved while it is in flight, then spent.
    amount: i64,
    ended: Option<Timestamp>,
}

struct Model {
    now: Timestamp,
    keys: [Key; 2],
    user: User,
    events: Vec<Event>,
    strict: bool,
}

impl Model {
    /// The limit that refuses a request, according to docs/limits-and-money.md.
    fn refusal(&self, key: usize, session: usize, estimate: i64) -> Option<LimitType> {
        LimitType::IN_ORDER.into_iter().find(|limit| {
            let of_key = limit.is_keys().then_some(key);
            let limits = if limit.is_keys() { &self.keys[key].limits } else { &self.user.limits };
            match limit.period() {
                Some(period) => {
                    let start = self.start(*limit, limits);
                    let (spent, current) =
                        (self.sum(of_key, start, false), self.sum(of_key, start, true));
                    // Strict: together with others that hold an amount, no request may exceed the
                    // limit.
                    let own = if self.strict && current > spent { estimate } else { 0 };
                    period
                        .limit_of(limits)
                        .is_some_and(|limit| current >= limit.0 || current + own > limit.0)
                }
                None if *limit == LimitType::UserRpm => {
                    self.user.rpm > 0 && self.rpm() >= u64::from(self.user.rpm)
                }
                None => {
                    let cap = u64::from(limits.concurrent_sessions);
                    cap > 0 && !self.is_live(key, session) && self.sessions(of_key) >= cap
                }
            }
        })
    }

    /// The first instant whose requests count. Rolling windows drop complete minutes.
    fn start(&self, limit: LimitType, limits: &Limits) -> Timestamp {
        let window = match limit {
            LimitType::KeyFiveHours | LimitType::UserFiveHours => Window::FiveHours,
            LimitType::KeyDaily | LimitType::UserDaily => Window::Daily(limits.daily_reset),
            LimitType::KeyWeekly | LimitType::UserWeekly => Window::Weekly,
            LimitType::KeyMonthly | LimitType::UserMonthly => Window::Monthly,
            _ => return Timestamp(i64::MIN),
        };
        let start = window.start(self.now, ZONE);
        if window.rolling_ms().is_some() {
            Timestamp(start.0 - start.0.rem_euclid(MINUTE))
        } else {
            start
        }
    }

    fn sum(&self, key: Option<usize>, from: Timestamp, running_too: bool) -> i64 {
        let counts = |e: &&Event| {
            key.is_none_or(|key| e.key == key)
                && e.started >= from
                && (running_too || e.ended.is_some())
        };
        self.events.iter().filter(counts).map(|e| e.amount).sum()
    }

    fn rpm(&self) -> u64 {
        self.events.iter().filter(|e| self.now.since(e.started) < MINUTE).count() as u64
    }

    fn is_live(&self, key: usize, session: usize) -> bool {
        let mut of_session = self.events.iter().filter(|e| (e.key, e.session) == (key, session));
        of_session.any(|e| e.ended.is_none_or(|ended| self.now.since(ended) < TTL_MS))
    }

    fn sessions(&self, key: Option<usize>) -> u64 {
        let slots = (0..2).flat_map(|key| (0..4).map(move |session| (key, session)));
        slots.filter(|(k, s)| key.is_none_or(|key| key == *k) && self.is_live(*k, *s)).count()
            as u64
    }

    /// What a reader must see: spending limits in the order 5 h, day, week, month, total; then
    /// sessions.
    fn usage(&self, key: Option<usize>) -> ([i64; 5], u64) {
        let limits = key.map_or(&self.user.limits, |key| &self.keys[key].limits);
        let windows = [
            LimitType::KeyFiveHours,
            LimitType::KeyDaily,
            LimitType::KeyWeekly,
            LimitType::KeyMonthly,
            LimitType::KeyTotal,
        ];
        (windows.map(|window| self.sum(key, self.start(window, limits), false)), self.sessions(key))
    }

    fn compare(&self, counters: &Tested, with_sessions: bool) -> Result<(), TestCaseError> {
        let seen = |usage: HolderUsage| {
            let money = usage.money.each().map(|(_, window)| window);
            (
                money.map(|money| money.current.0),
                if with_sessions { usage.sessions.current } else { 0 },
            )
        };
        let expected = |key| {
            let (money, sessions) = self.usage(key);
            (money, if with_sessions { sessions } else { 0 })
        };
        for (n, key) in self.keys.iter().enumerate() {
            prop_assert_eq!(
                seen(counters.key_usage(key, self.now)),
                expected(Some(n)),
                "key {} at {:?}",
                n,
                self.now
            );
        }
        let user = counters.user_usage(&self.user, self.now);
        prop_assert_eq!(seen(user), expected(None), "user at {:?}", self.now);
        if with_sessions {
            prop_assert_eq!(user.rpm.current, self.rpm());
        }
        Ok(())
    }

    /// The ledger's rows, as the store would sum them.
    fn rows(&self) -> Vec<SpendRow> {
        let ended = self.events.iter().filter(|event| event.ended.is_some());
        let row = |event: &Event| SpendRow {
            minute: Timestamp(event.started.0 - event.started.0.rem_euclid(MINUTE)),
            key_id: Some(self.keys[event.key].id),
            user_id: Some(UserId(1)),
            provider_id: Some(ProviderId(1)),
            cost: NanoUsd(event.amount),
        };
        ended.map(row).collect()
    }
}

/// A request in flight: its permit, and its index among the events.
struct Running(Permit, usize);

fn take(running: &mut Vec<Running>, nth: usize) -> Option<Running> {
    (!running.is_empty()).then(|| running.swap_remove(nth % running.len()))
}

fn run(model: &mut Model, counters: &Tested, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut running: Vec<Running> = Vec::new();
    let mut gone: Vec<usize> = Vec::new();
    for step in steps {
        match step {
            Step::Wait { ms } => model.now = model.now.plus_ms(ms),
            Step::ChangeDay { of_key: Some(key), reset } => {
                model.keys[key].limits.daily_reset = reset
            }
            Step::ChangeDay { of_key: None, reset } => model.user.limits.daily_reset = reset,
            Step::Admit { key, session, estimate } => {
                let who = (&model.keys[key], &model.user);
                let asked = ask(counters, who, &format!("s{session}"), estimate, model.now);
                let refused = asked.as_ref().err().map(|denied| denied.limit_type);
                prop_assert_eq!(
                    refused,
                    model.refusal(key, session, estimate),
                    "at {:?}",
                    model.now
                );
                if let Ok(permit) = asked {
                    running.push(Running(permit, model.events.len()));
                    let started = model.now;
                    model.events.push(Event {
                        key,
                        session,
                        started,
                        amount: estimate,
                        ended: None,
                    });
                }
            }
            Step::Settle { nth, cost } => {
                if let Some(Running(permit, event)) = take(&mut running, nth) {
                    permit.settle(model.now, NanoUsd(cost), Some(ProviderId(1)));
                    model.events[event].amount = cost;
                    model.events[event].ended = Some(model.now);
                }
            }
            Step::Drop { nth } => {
                if let Some(Running(permit, event)) = take(&mut running, nth) {
                    drop(permit);
                    gone.push(event);
                    // Out of every sum: long before any window, and over.
                    let long_ago = Timestamp(0);
                    let event = &mut model.events[event];
                    (event.amount, event.started, event.ended) = (0, long_ago, Some(long_ago));
                }
            }
        }
        model.compare(counters, true)?;
    }
    Ok(())
}

/// A history: steps, the limits of two keys and their user, requests per minute, and when it
/// begins.
#[derive(Debug, Clone)]
struct History {
    steps: Vec<Step>,
    keys: [Limits; 2],
    user: Limits,
    rpm: u32,
    begin: i64,
    strict: bool,
}

fn histories() -> impl Strategy<Value = History> {
    // 2024: before the clocks change in spring and autumn, before a month's and the year's end
    let begin = prop_oneof![
        Just(1_711_749_600_000i64),
        Just(1_729_890_000_000),
        Just(1_717_190_000_000),
        Just(1_735_600_000_000)
    ];
    let steps = proptest::collection::vec(steps(), 1..120);
    (steps, [limits(), limits()], limits(), 0..8u32, begin, any::<bool>()).prop_map(
        |(steps, keys, user, rpm, begin, strict)| History { steps, keys, user, rpm, begin, strict },
    )
}

fn equals_a_model(place: Place, history: History) -> Result<(), TestCaseError> {
    let [first, second] = history.keys;
    let keys = [key(1, first), key(2, second)];
    let (now, user) = (Timestamp(history.begin), user(history.rpm, history.user));
    let mut model = Model { now, keys, user, events: Vec::new(), strict: history.strict };
    let counters = counters_at(place, now, history.strict);
    run(&mut model, &counters, history.steps)?;

    // Restarted from the ledger, the counters have the same figures.
    let rows = model.rows();
    let as_total = |row: &SpendRow| SpendTotal {
        key_id: row.key_id,
        user_id: row.user_id,
        provider_id: row.provider_id,
        cost: row.cost,
    };
    let totals: Vec<SpendTotal> = rows.iter().map(as_total).collect();
    let from = counters.counters.rebuild_from(model.now);
    let rows = rows.into_iter().filter(|row| row.minute.plus_ms(MINUTE) > from).collect();
    let past = SpendSeen { rows, totals, ..SpendSeen::default() };
    let rebuilt = match place {
        Place::Own => {
            let rebuilt = counters_at(place, model.now, history.strict);
            rebuilt.counters.rebuild(&past, model.now);
            rebuilt
        }
        Place::Redis => super::shared_from(settings(ZONE), past, model.now),
    };
    model.compare(&rebuilt, false)?;
    prop_assert_eq!(
        rebuilt.key_usage(&key(3, Limits::default()), model.now).money.total.current,
        NanoUsd::ZERO
    );
    Ok(())
}

proptest! {
    #[test]
    fn counters_equal_a_model_that_keeps_every_event(history in histories()) {
        equals_a_model(Place::Own, history)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn shared_counters_equal_it_too(history in histories()) {
        equals_a_model(Place::Redis, history)?;
    }
}
