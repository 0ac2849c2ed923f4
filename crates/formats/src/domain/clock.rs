//! Wall-clock time as milliseconds since the Unix epoch, and its sources.
//!
//! Pure code takes a [`Timestamp`] as an argument; other code holds an `Arc<dyn Clock>`, which
//! tests replace.

use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, SecondsFormat, TimeZone, Utc};
use serde::{Deserialize, Serialize};

/// Times that threads read one after the other, and then compare, differ by less than this. A time
/// that is further ahead of now means that the clock was set back.
pub const JITTER_MS: i64 = 1_000;

/// Milliseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Later by `ms` milliseconds (earlier when negative); saturates.
    #[must_use]
    pub fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to `self`; negative when `earlier` is later.
    pub fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Whether `earlier` lies less than `ms` milliseconds in the past. `false` if it lies ahead,
    /// because the clock was set back.
    pub fn is_within(self, ms: i64, earlier: Self) -> bool {
        (-JITTER_MS..ms).contains(&self.since(earlier))
    }

    /// As a calendar time in UTC. Out-of-range values become the epoch.
    pub fn to_utc(self) -> DateTime<Utc> {
        Utc.timestamp_millis_opt(self.0).single().unwrap_or(DateTime::UNIX_EPOCH)
    }

    /// ISO 8601 with milliseconds and `Z`, the wire form of every time.
    ///
    /// Every request writes one: written by hand, as chrono takes some thousand instructions.
    pub fn to_iso(self) -> String {
        let Some((year, month, day)) = civil(self.0.div_euclid(DAY_MS)) else {
            return self.to_utc().to_rfc3339_opts(SecondsFormat::Millis, true);
        };
        let ms = self.0.rem_euclid(DAY_MS).unsigned_abs();
        let mut text = *b"0000-00-00T00:00:00.000Z";
        let fields = [
            (0..4, year),
            (5..7, month),
            (8..10, day),
            (11..13, ms / 3_600_000),
            (14..16, ms / 60_000 % 60),
            (17..19, ms / 1000 % 60),
            (20..23, ms % 1000),
        ];
        for (place, number) in fields {
            put(&mut text[place], number);
        }
        // It is ASCII.
        String::from_utf8(text.to_vec()).unwrap_or_default()
    }
}

const DAY_MS: i64 = 86_400_000;

/// The number's last digits, as many as fit.
fn put(place: &mut [u8], mut number: u64) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
    }
}

/// Year, month and day of the Gregorian calendar, by days since the epoch; `None` outside the years
/// 1 to 9999.
///
/// A year begins in March here, so that the leap day is its last, and an era has 400 years.
fn civil(days: i64) -> Option<(u64, u64, u64)> {
    // Days since 0000-03-01.
    let days = u64::try_from(days.checked_add(719_468)?).ok()?;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (1..=9999).contains(&year).then_some((year, month, day))
}

impl From<DateTime<Utc>> for Timestamp {
    fn from(time: DateTime<Utc>) -> Self {
        Self(time.timestamp_millis())
    }
}

/// A source of wall-clock time.
pub trait Clock: Send + Sync + 'static {
    /// The time now. It may be earlier than that of a previous call, because wall clocks are
    /// corrected.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
    fn now(&self) -> Timestamp {
        let since_epoch =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
    }
}

/// A clock that moves only when set: for tests and replays.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that shows this time until it is changed.
    pub fn at(now: Timestamp) -> Self {
        Self(AtomicI64::new(now.0))
    }

    /// Sets the time, also to an earlier one.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.0, Ordering::SeqCst);
    }

    /// Moves the time by `ms` milliseconds, back if negative.
    pub fn advance_ms(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_ahead_of_now_is_not_within_the_past() {
        let now = Timestamp(1_000_000);
        for (ago, within) in
            [(0, true), (4_999, true), (5_000, false), (-JITTER_MS, true), (-JITTER_MS - 1, false)]
        {
            assert_eq!(now.is_within(5_000, now.plus_ms(-ago)), within, "{ago}");
        }
    }

    #[test]
    fn times_are_written_as_chrono_writes_them() {
        let by_chrono =
            |time: Timestamp| time.to_utc().to_rfc3339_opts(SecondsFormat::Millis, true);
        // From before year 1 to beyond year 9999, in steps that cover every time of day; each day
        // of 150 years; and the ends.
        let far = (-70_000_000_000_000..260_000_000_000_000).step_by(9_999_999_967);
        let daily = (0..55_000).map(|day| day * DAY_MS - 1 + day % 2);
        let ends =
            [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX, 253_402_300_799_999, 253_402_300_800_000];
        for ms in far.chain(daily).chain(ends) {
            assert_eq!(Timestamp(ms).to_iso(), by_chrono(Timestamp(ms)), "{ms}");
        }
    }
}
