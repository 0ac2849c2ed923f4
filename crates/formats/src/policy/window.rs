//! The spending windows: when the current one began, and when the next begins.
//!
//! Calendar windows follow the wall clock of one IANA time zone. A boundary (a date and a time of
//! day) is the first instant at which that clock shows it or a later time. So a time that occurs
//! twice counts at its first occurrence, a time that does not exist counts when the clock jumps
//! over it, and a day that a zone skipped has no window. Windows never overlap and leave no gap,
//! and each boundary passes once.

use chrono::{
    Datelike as _, Days, Months, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, TimeZone as _,
};
use chrono_tz::Tz;

use crate::domain::clock::Timestamp;
use crate::domain::limits::{DailyReset, Period, ResetMode, TimeOfDay};

/// Five hours in milliseconds.
pub const FIVE_HOURS_MS: i64 = 5 * 3_600_000;
/// 24 hours in milliseconds. A calendar day may be shorter or longer.
pub const DAY_MS: i64 = 24 * 3_600_000;

/// One of the four windows of spending limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// The past five hours.
    FiveHours,
    /// From the daily reset time to the next, or the past 24 hours.
    Daily(DailyReset),
    /// From Monday 00:00.
    Weekly,
    /// From the first of the month, 00:00.
    Monthly,
}

/// A time range: `start` is included, `end` is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The first instant.
    pub start: Timestamp,
    /// The instant after the last.
    pub end: Timestamp,
}

impl Span {
    /// Whether `at` is within the range.
    #[inline]
    pub fn contains(&self, at: Timestamp) -> bool {
        self.start <= at && at < self.end
    }
}

impl Window {
    /// The windows that begin on a certain date: the calendar week and the calendar month.
    pub const BY_DATE: [Self; 2] = [Self::Weekly, Self::Monthly];

    /// The window of a limit's period. A lifetime has none.
    #[inline]
    pub const fn of(period: Period, reset: DailyReset) -> Option<Self> {
        match period {
            Period::FiveHours => Some(Self::FiveHours),
            Period::Daily => Some(Self::Daily(reset)),
            Period::Weekly => Some(Self::Weekly),
            Period::Monthly => Some(Self::Monthly),
            Period::Total => None,
        }
    }

    /// The length of a rolling window; `None` for a calendar window.
    pub const fn rolling_ms(self) -> Option<i64> {
        match self {
            Self::FiveHours => Some(FIVE_HOURS_MS),
            Self::Daily(DailyReset { mode: ResetMode::Rolling, .. }) => Some(DAY_MS),
            Self::Daily(_) | Self::Weekly | Self::Monthly => None,
        }
    }

    /// When the window that contains `now` began.
    pub fn start(self, now: Timestamp, tz: Tz) -> Timestamp {
        match self.rolling_ms() {
            Some(length) => now.plus_ms(-length),
            None => self.calendar(now, tz).start,
        }
    }

    /// When a calendar window ends and spending restarts at zero. `None` for a rolling window,
    /// which resets continuously.
    pub fn reset(self, now: Timestamp, tz: Tz) -> Option<Timestamp> {
        self.rolling_ms().is_none().then(|| self.calendar(now, tz).end)
    }

    /// The calendar window that contains `now`. For a rolling window: its length up to and
    /// including `now`.
    pub fn calendar(self, now: Timestamp, tz: Tz) -> Span {
        let today = tz.from_utc_datetime(&now.to_utc().naive_utc()).date_naive();
        match self {
            Self::FiveHours | Self::Daily(DailyReset { mode: ResetMode::Rolling, .. }) => {
                Span { start: self.start(now, tz), end: now.plus_ms(1) }
            }
            Self::Daily(reset) => {
                around(now, tz, [-1, 0, 1, 2].map(|n| day(today, n).and_time(time(reset.time))))
            }
            Self::Weekly => {
                let monday = day(today, -i64::from(today.weekday().num_days_from_monday()));
                around(now, tz, [-7, 0, 7, 14].map(|n| midnight(day(monday, n))))
            }
            Self::Monthly => {
                let first = today.with_day(1).unwrap_or(today);
                let month = |n| midnight(first.checked_add_months(Months::new(n)).unwrap_or(first));
                let before = midnight(first.checked_sub_months(Months::new(1)).unwrap_or(first));
                around(now, tz, [before, month(0), month(1), month(2)])
            }
        }
    }
}

/// The span between the two boundaries next to `now`. Four are enough, even if the clock was set
/// back over one.
fn around(now: Timestamp, tz: Tz, boundaries: [NaiveDateTime; 4]) -> Span {
    let mut span = Span { start: Timestamp(i64::MIN), end: Timestamp(i64::MAX) };
    for at in boundaries.map(|boundary| first_reached(boundary, tz)) {
        if at <= now {
            span.start = span.start.max(at);
        } else {
            span.end = span.end.min(at);
        }
    }
    span
}

/// The first instant at which the zone's wall clock shows `wall` or a later time.
pub fn first_reached(wall: NaiveDateTime, tz: Tz) -> Timestamp {
    match tz.from_local_datetime(&wall).earliest() {
        Some(instant) => Timestamp(instant.timestamp_millis()),
        None => after_gap(wall, tz),
    }
}

/// The instant at which the clock jumps over `wall`, found by bisecting the days around it, down to
/// the second.
fn after_gap(wall: NaiveDateTime, tz: Tz) -> Timestamp {
    let reads = |utc: i64| {
        let instant = Timestamp(utc * 1_000).to_utc().naive_utc();
        instant + TimeDelta::seconds(i64::from(offset_seconds(tz, &instant)))
    };
    // No zone was ever further than 16 hours from UTC.
    let around = wall.and_utc().timestamp();
    let (mut before, mut after) = (around - 16 * 3_600, around + 16 * 3_600);
    while after - before > 1 {
        let middle = before + (after - before) / 2;
        if reads(middle) >= wall { after = middle } else { before = middle }
    }
    Timestamp(after * 1_000)
}

fn offset_seconds(tz: Tz, utc: &NaiveDateTime) -> i32 {
    use chrono::Offset as _;
    tz.offset_from_utc_datetime(utc).fix().local_minus_utc()
}

fn midnight(date: NaiveDate) -> NaiveDateTime {
    date.and_time(NaiveTime::MIN)
}

fn time(of_day: TimeOfDay) -> NaiveTime {
    NaiveTime::from_hms_opt(of_day.hour(), of_day.minute(), 0).unwrap_or(NaiveTime::MIN)
}

/// The date this many days later (or earlier); at the ends of the calendar the date itself.
fn day(date: NaiveDate, days: i64) -> NaiveDate {
    let count = Days::new(days.unsigned_abs());
    let moved = if days < 0 { date.checked_sub_days(count) } else { date.checked_add_days(count) };
    moved.unwrap_or(date)
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use proptest::prelude::{ProptestConfig, Strategy, prop_assert_eq, proptest};

    use super::*;

    fn instant(iso: &str) -> Timestamp {
        DateTime::parse_from_rfc3339(iso).unwrap().to_utc().into()
    }

    fn fixed(time: &str) -> Window {
        Window::Daily(DailyReset { mode: ResetMode::Fixed, time: TimeOfDay::parse(time).unwrap() })
    }

    /// zone, window, now, start, end
    const ODD_DAYS: &str = "
        Europe/Berlin      00:00   2024-07-10T12:00:00+02:00 2024-07-10T00:00:00+02:00 \
        2024-07-11T00:00:00+02:00
        Europe/Berlin      18:30   2024-07-10T12:00:00+02:00 2024-07-09T18:30:00+02:00 \
        2024-07-10T18:30:00+02:00
        Asia/Kathmandu     00:00   2024-01-01T00:10:00+05:45 2024-01-01T00:00:00+05:45 \
        2024-01-02T00:00:00+05:45
        # 02:30 does not exist: the jump from 02:00 to 03:00
        Europe/Berlin      02:30   2024-03-31T12:00:00+02:00 2024-03-31T03:00:00+02:00 \
        2024-04-01T02:30:00+02:00
        # 02:30 occurs twice: the first counts, the second does not
        Europe/Berlin      02:30   2024-10-27T02:45:00+01:00 2024-10-27T02:30:00+02:00 \
        2024-10-28T02:30:00+01:00
        # midnight does not exist
        America/Sao_Paulo  00:00   2017-10-15T12:00:00-02:00 2017-10-15T01:00:00-02:00 \
        2017-10-16T00:00:00-02:00
        # the clock goes back from midnight to 23:00
        America/Sao_Paulo  00:00   2018-02-17T23:30:00-03:00 2018-02-17T00:00:00-02:00 \
        2018-02-18T00:00:00-03:00
        # from 00:01 back to 23:01: Sunday has begun, though the clock reads Saturday again
        America/St_Johns   00:00   2010-11-06T23:30:00-03:30 2010-11-07T00:00:00-02:30 \
        2010-11-08T00:00:00-03:30
        # the 30th was skipped
        Pacific/Apia       00:00   2011-12-29T12:00:00-10:00 2011-12-29T00:00:00-10:00 \
        2011-12-31T00:00:00+14:00
        Africa/Cairo       weekly  2024-04-28T23:59:59+03:00 2024-04-22T00:00:00+02:00 \
        2024-04-29T00:00:00+03:00
        UTC                weekly  2026-11-23T00:00:00+00:00 2026-11-23T00:00:00+00:00 \
        2026-11-30T00:00:00+00:00
        UTC                monthly 2024-02-29T23:59:59+00:00 2024-02-01T00:00:00+00:00 \
        2024-03-01T00:00:00+00:00
        UTC                monthly 2025-12-31T23:59:59+00:00 2025-12-01T00:00:00+00:00 \
        2026-01-01T00:00:00+00:00
        Europe/Berlin      monthly 2024-03-31T23:00:00+00:00 2024-04-01T00:00:00+02:00 \
        2024-05-01T00:00:00+02:00";

    #[test]
    fn boundaries_of_odd_days() {
        let lines = ODD_DAYS
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        for line in lines {
            let words: Vec<&str> = line.split_whitespace().collect();
            let tz: Tz = words[0].parse().unwrap();
            let window = match words[1] {
                "weekly" => Window::Weekly,
                "monthly" => Window::Monthly,
                time => fixed(time),
            };
            let [now, start, end] = [2, 3, 4].map(|n| instant(words[n]));
            let span = window.calendar(now, tz);
            assert_eq!(
                (span.start.to_iso(), span.end.to_iso()),
                (start.to_iso(), end.to_iso()),
                "{line}"
            );
            assert_eq!(
                (window.start(now, tz), window.reset(now, tz)),
                (start, Some(end)),
                "{line}"
            );
        }
    }

    #[test]
    fn rolling_windows_have_a_length_and_no_reset() {
        let now = instant("2024-03-31T12:00:00Z");
        let tz = Tz::Europe__Berlin;
        let rolling =
            Window::Daily(DailyReset { mode: ResetMode::Rolling, ..DailyReset::default() });
        assert_eq!((rolling.start(now, tz), rolling.reset(now, tz)), (now.plus_ms(-DAY_MS), None));
        assert_eq!(Window::FiveHours.start(now, tz), now.plus_ms(-FIVE_HOURS_MS));
    }

    const ZONES: [Tz; 9] = [
        Tz::UTC,
        Tz::Europe__Berlin,
        Tz::America__Sao_Paulo,
        Tz::America__St_Johns,
        Tz::Asia__Kathmandu,
        Tz::Pacific__Apia,
        Tz::Africa__Cairo,
        Tz::Australia__Lord_Howe,
        Tz::Asia__Tehran,
    ];

    /// Steps through the wall clock minute by minute, and notes when it first shows a boundary or a
    /// later time.
    fn walked(window: Window, now: Timestamp, tz: Tz) -> (Timestamp, Timestamp) {
        const MINUTE: i64 = 60_000;
        let read =
            |at: i64| tz.from_utc_datetime(&Timestamp(at).to_utc().naive_utc()).naive_local();
        let is_boundary = |wall: NaiveDateTime| match window {
            Window::Daily(reset) => wall.time() == time(reset.time),
            Window::Weekly => {
                wall.time() == NaiveTime::MIN && wall.weekday() == chrono::Weekday::Mon
            }
            _ => wall.time() == NaiveTime::MIN && wall.day() == 1,
        };
        let days = match window {
            Window::Daily(_) => 4,
            Window::Weekly => 9,
            _ => 34,
        };
        let mut at = now.0 - now.0.rem_euclid(MINUTE) - days * DAY_MS;
        let mut latest = read(at);
        let mut start = None;
        loop {
            at += MINUTE;
            let wall = read(at);
            let mut passed = false;
            // Every minute that the clock has shown or jumped over for the first time.
            while latest < wall {
                latest += TimeDelta::minutes(1);
                passed |= is_boundary(latest);
            }
            match (passed, at > now.0) {
                (true, true) => return (start.unwrap(), Timestamp(at)),
                (true, false) => start = Some(Timestamp(at)),
                (false, _) => {}
            }
        }
    }

    fn windows() -> impl Strategy<Value = Window> {
        (0u32..6, 0u32..24, 0u32..60).prop_map(|(kind, hour, minute)| match kind {
            0 => Window::Weekly,
            1 => Window::Monthly,
            2 => fixed("00:00"),
            // Times at which clocks are changed.
            3 => fixed(&format!("{:02}:{minute:02}", hour % 4)),
            _ => fixed(&format!("{hour:02}:{minute:02}")),
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn calendar_windows_equal_a_clock_walked_minute_by_minute(
            zone in 0..ZONES.len(),
            window in windows(),
            // 1990 to 2027
            now in 631_152_000_000i64..1_800_000_000_000,
        ) {
            let (now, tz) = (Timestamp(now), ZONES[zone]);
            let span = window.calendar(now, tz);
            prop_assert_eq!((span.start, span.end), walked(window, now, tz));
        }

        #[test]
        fn the_same_near_changes_of_the_clock(zone in 1..ZONES.len(), window in windows(), year in 1990i32..2024, nth in 0usize..3, hours in -60i64..60) {
            let tz = ZONES[zone];
            let new_year = midnight(NaiveDate::from_ymd_opt(year, 1, 1).unwrap()).and_utc().timestamp_millis();
            let changes: Vec<i64> = (0..366 * 24)
                .map(|hour| new_year + hour * 3_600_000)
                .filter(|at| {
                    let offset = |at: i64| offset_seconds(tz, &Timestamp(at).to_utc().naive_utc());
                    offset(*at) != offset(at + 3_600_000)
                })
                .collect();
            if let Some(change) = changes.get(nth) {
                let now = Timestamp(change + hours * 1_800_000 + 17);
                let span = window.calendar(now, tz);
                prop_assert_eq!((span.start, span.end), walked(window, now, tz));
            }
        }
    }
}
