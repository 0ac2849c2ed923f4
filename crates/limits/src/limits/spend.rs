//! What one holder (key, user or provider) spent, in every window.
//!
//! Buckets of one minute, by the minute of the request's admission, feed the rolling windows and
//! the daily calendar window; week, month and lifetime are sums. All windows are updated at most
//! once a minute: their bounds lie on minutes. The cost of a long request is added to the windows
//! that contain its admission, or to none.
//!
//! A clock that steps back erases nothing: the windows become those of the earlier time, with
//! everything that was counted in them before and since. Amounts ahead of the clock count as
//! present. For the rolling windows and the day this holds for steps of up to a day
//! ([`SPARE_MINUTES`]).

use std::collections::VecDeque;

use chrono_tz::Tz;

use super::held::HeldAmounts;
use crate::domain::clock::Timestamp;
use crate::domain::limits::{DailyReset, Period, ResetMode, TimeOfDay};
use crate::domain::money::NanoUsd;
use crate::policy::window::{DAY_MS, FIVE_HOURS_MS, Span, Window};

const MINUTE_MS: i64 = 60_000;
/// Buckets are kept for longer than the longest day (25 hours, when clocks go back).
pub(super) const KEEP_MINUTES: i64 = 26 * 60;

/// Additional minutes, in case the clock was ahead and steps back.
const SPARE_MINUTES: i64 = 24 * 60;
/// A time that is behind by less than this comes from a late thread, not from a step of the clock.
const LATE_MINUTES: i64 = 2;

#[derive(Debug)]
pub(super) struct Spend {
    /// Ascending; minutes without an amount have no bucket.
    buckets: VecDeque<Bucket>,
    /// The minute of the last update.
    minute: i64,
    five_hours: Rolling,
    day: Rolling,
    /// The daily calendar window, and the reset time that it was built for.
    daily: Calendar,
    daily_time: TimeOfDay,
    weekly: Calendars,
    monthly: Calendars,
    total: HeldAmounts,
    /// The last late costs in the ledger from which this was made; 0 if it was not.
    pub(super) late: i64,
}

/// A holder's lifetime spend, its spend in the current windows [`Window::BY_DATE`], and in each
/// minute of the past day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) total: NanoUsd,
    pub(super) by_date: [NanoUsd; 2],
    pub(super) minutes: Vec<(i64, NanoUsd)>,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    minute: i64,
    held: HeldAmounts,
}

/// The sum of the buckets from a minute on.
#[derive(Debug)]
struct Rolling {
    length: i64,
    from: i64,
    sum: HeldAmounts,
}

#[derive(Debug, Clone, Copy)]
struct Calendar {
    span: Span,
    sum: HeldAmounts,
}

/// The week (month) that contains the present, and the one before: a clock that steps back may
/// return to it.
#[derive(Debug, Clone, Copy)]
struct Calendars {
    current: Calendar,
    other: Calendar,
}

impl Default for Spend {
    fn default() -> Self {
        let never = Calendar {
            span: Span { start: Timestamp(0), end: Timestamp(0) },
            sum: HeldAmounts::NONE,
        };
        let rolling = |length_ms| Rolling {
            length: length_ms / MINUTE_MS,
            from: i64::MIN,
            sum: HeldAmounts::NONE,
        };
        Self {
            buckets: VecDeque::new(),
            minute: i64::MIN,
            five_hours: rolling(FIVE_HOURS_MS),
            day: rolling(DAY_MS),
            daily: never,
            daily_time: TimeOfDay::default(),
            weekly: Calendars { current: never, other: never },
            monthly: Calendars { current: never, other: never },
            total: HeldAmounts::NONE,
            late: 0,
        }
    }
}

impl Spend {
    /// Updates every window except the daily calendar one, whose reset time only a reader has.
    pub(super) fn refresh(&mut self, now: Timestamp, tz: Tz) {
        let minute = minute_of(now);
        if minute <= self.minute && minute > self.minute.saturating_sub(LATE_MINUTES) {
            return;
        }
        if minute < self.minute {
            self.five_hours.retreat(&self.buckets, minute);
            self.day.retreat(&self.buckets, minute);
        } else {
            self.five_hours.advance(&self.buckets, minute);
            self.day.advance(&self.buckets, minute);
        }
        self.minute = minute;
        let keep = minute - KEEP_MINUTES - SPARE_MINUTES;
        while self.buckets.front().is_some_and(|bucket| bucket.minute < keep) {
            self.buckets.pop_front();
        }
        self.weekly.refresh(Window::Weekly, now, tz);
        self.monthly.refresh(Window::Monthly, now, tz);
    }

    /// The time by which the windows go after [`Self::refresh`]: `now`, or the minute that they are
    /// at if `now` is a little behind it.
    pub(super) fn present(&self, now: Timestamp) -> Timestamp {
        let minute = minute_of(now);
        if minute < self.minute && minute > self.minute.saturating_sub(LATE_MINUTES) {
            return Timestamp(self.minute * MINUTE_MS);
        }
        now
    }

    /// Adds an amount to the windows that contain `at`, or subtracts a negative one. Call
    /// [`Self::refresh`] first.
    pub(super) fn add(&mut self, at: Timestamp, held: HeldAmounts) {
        if held == HeldAmounts::NONE {
            return;
        }
        self.total += held;
        self.add_to_windows(at, held);
    }

    /// As [`Self::add`], unless the ledger from which this was made had these late costs. `number`:
    /// as in [`LateCosts`](crate::store::LateCosts).
    pub(super) fn add_late(&mut self, at: Timestamp, held: HeldAmounts, number: i64) {
        if number == 0 || number > self.late {
            self.add(at, held);
        }
    }

    /// As [`Self::add`], without the lifetime's sum: for amounts that it already contains.
    pub(super) fn add_to_windows(&mut self, at: Timestamp, held: HeldAmounts) {
        let minute = minute_of(at);
        let at = Timestamp(minute * MINUTE_MS);
        let (weekly, monthly) = (&mut self.weekly, &mut self.monthly);
        let weeks_and_months =
            [&mut weekly.current, &mut weekly.other, &mut monthly.current, &mut monthly.other];
        for calendar in weeks_and_months {
            if calendar.span.contains(at) {
                calendar.sum += held;
            }
        }
        // Amounts ahead of the clock count as present, as in the rolling windows.
        if at >= self.daily.span.start {
            self.daily.sum += held;
        }
        if minute < self.minute.saturating_sub(KEEP_MINUTES) {
            return;
        }
        self.bucket(minute).held += held;
        for rolling in [&mut self.five_hours, &mut self.day] {
            if minute >= rolling.from {
                rolling.sum += held;
            }
        }
    }

    pub(super) fn add_to_total(&mut self, held: HeldAmounts) {
        self.total += held;
    }

    /// The amount held in a period. Call [`Self::refresh`] first.
    pub(super) fn held(
        &mut self,
        period: Period,
        reset: DailyReset,
        now: Timestamp,
        tz: Tz,
    ) -> HeldAmounts {
        match Window::of(period, reset) {
            Some(Window::FiveHours) => self.five_hours.sum,
            Some(Window::Daily(DailyReset { mode: ResetMode::Rolling, .. })) => self.day.sum,
            Some(Window::Daily(reset)) => self.daily(reset, now, tz).sum,
            Some(Window::Weekly) => self.weekly.held(),
            Some(Window::Monthly) => self.monthly.held(),
            None => self.total,
        }
    }

    /// When less than `limit` will be held, if nothing is added. `None`: never, or unknown. Call
    /// [`Self::held`] first.
    pub(super) fn below_at(
        &self,
        period: Period,
        reset: DailyReset,
        limit: NanoUsd,
    ) -> Option<Timestamp> {
        if limit <= NanoUsd::ZERO {
            return None;
        }
        match self.rolling(period, reset) {
            Some(rolling) => rolling.below_at(&self.buckets, limit),
            None => self.ends_at(period, reset),
        }
    }

    /// When the present spend will no longer count: the end of a calendar window; for a rolling
    /// one, when the last amount ages out.
    pub(super) fn resets_at(&self, period: Period, reset: DailyReset) -> Option<Timestamp> {
        match self.rolling(period, reset) {
            Some(rolling) => {
                let inside =
                    self.buckets.iter().rev().take_while(|bucket| bucket.minute >= rolling.from);
                let mut spent = inside.filter(|bucket| bucket.held.spent != NanoUsd::ZERO);
                spent.next().map(|last| rolling.ages_out(last.minute))
            }
            None => self.ends_at(period, reset),
        }
    }

    /// Takes over the spend from another record of the same holder; reservations stay.
    pub(super) fn adopt(&mut self, mut from: Self, now: Timestamp, tz: Tz) {
        from.refresh(now, tz);
        let mut left = self.total.reserved;
        for bucket in self.buckets.iter().filter(|bucket| bucket.held.reserved != NanoUsd::ZERO) {
            from.add(
                Timestamp(bucket.minute * MINUTE_MS),
                HeldAmounts::reserved(bucket.held.reserved),
            );
            left -= bucket.held.reserved;
        }
        // Of requests older than the buckets.
        from.total += HeldAmounts::reserved(left);
        *self = from;
    }

    /// What was ever spent.
    pub(super) const fn total_spent(&self) -> NanoUsd {
        self.total.spent
    }

    /// The spend as figures from which another record can start.
    pub(super) fn sums(&self) -> Sums {
        let kept = self
            .buckets
            .iter()
            .filter(|bucket| bucket.minute >= self.minute.saturating_sub(KEEP_MINUTES));
        let minutes = kept.map(|bucket| (bucket.minute, bucket.held.spent)).collect();
        let by_date = [&self.weekly, &self.monthly].map(|window| window.held().spent);
        Sums { total: self.total.spent, by_date, minutes }
    }

    /// Nothing was ever spent, and nothing is reserved.
    pub(super) fn is_empty(&self) -> bool {
        self.total == HeldAmounts::NONE
    }

    /// Frees memory of aged buckets.
    pub(super) fn shrink(&mut self) {
        if self.buckets.capacity() > 2 * self.buckets.len() + 8 {
            self.buckets.shrink_to_fit();
        }
    }

    fn rolling(&self, period: Period, reset: DailyReset) -> Option<&Rolling> {
        match Window::of(period, reset)? {
            Window::FiveHours => Some(&self.five_hours),
            Window::Daily(DailyReset { mode: ResetMode::Rolling, .. }) => Some(&self.day),
            _ => None,
        }
    }

    /// The end of a calendar window.
    pub(super) fn ends_at(&self, period: Period, reset: DailyReset) -> Option<Timestamp> {
        match Window::of(period, reset)? {
            Window::FiveHours | Window::Daily(DailyReset { mode: ResetMode::Rolling, .. }) => None,
            Window::Daily(_) => Some(self.daily.span.end),
            Window::Weekly => Some(self.weekly.current.span.end),
            Window::Monthly => Some(self.monthly.current.span.end),
        }
    }

    /// The daily calendar window, summed again if a day begins or the reset time changed.
    fn daily(&mut self, reset: DailyReset, now: Timestamp, tz: Tz) -> &Calendar {
        let at = Timestamp(self.minute * MINUTE_MS).max(now);
        if !self.daily.span.contains(at) || reset.time != self.daily_time {
            let span = Window::Daily(reset).calendar(at, tz);
            let inside = self
                .buckets
                .iter()
                .rev()
                .take_while(|b| Timestamp(b.minute * MINUTE_MS) >= span.start);
            let sum = inside.fold(HeldAmounts::NONE, |sum, bucket| sum + bucket.held);
            self.daily = Calendar { span, sum };
            self.daily_time = reset.time;
        }
        &self.daily
    }

    fn bucket(&mut self, minute: i64) -> &mut Bucket {
        let place = match self.buckets.back() {
            Some(last) if last.minute == minute => self.buckets.len() - 1,
            Some(last) if last.minute > minute => {
                self.buckets.partition_point(|bucket| bucket.minute < minute)
            }
            _ => self.buckets.len(),
        };
        if self.buckets.get(place).is_none_or(|found| found.minute != minute) {
            self.buckets.insert(place, Bucket { minute, held: HeldAmounts::NONE });
        }
        &mut self.buckets[place]
    }
}

impl Calendars {
    fn refresh(&mut self, window: Window, now: Timestamp, tz: Tz) {
        if self.current.span.contains(now) {
            return;
        }
        std::mem::swap(&mut self.current, &mut self.other);
        if !self.current.span.contains(now) {
            self.current = Calendar { span: window.calendar(now, tz), sum: HeldAmounts::NONE };
        }
    }

    /// Of the current window, and of one ahead of the clock.
    fn held(&self) -> HeldAmounts {
        let ahead = self.other.span.start >= self.current.span.end;
        if ahead { self.current.sum + self.other.sum } else { self.current.sum }
    }
}

impl Rolling {
    /// The clock stepped back: the window begins earlier.
    fn retreat(&mut self, buckets: &VecDeque<Bucket>, minute: i64) {
        self.from = minute - self.length;
        let inside = buckets.iter().rev().take_while(|bucket| bucket.minute >= self.from);
        self.sum = inside.fold(HeldAmounts::NONE, |sum, bucket| sum + bucket.held);
    }

    fn advance(&mut self, buckets: &VecDeque<Bucket>, minute: i64) {
        let from = minute - self.length;
        if from <= self.from {
            return;
        }
        let first = buckets.partition_point(|bucket| bucket.minute < self.from);
        for aged in buckets.range(first..).take_while(|bucket| bucket.minute < from) {
            self.sum -= aged.held;
        }
        self.from = from;
    }

    /// A minute is in the window until all of it is outside.
    const fn ages_out(&self, minute: i64) -> Timestamp {
        Timestamp((minute + 1 + self.length) * MINUTE_MS)
    }

    fn below_at(&self, buckets: &VecDeque<Bucket>, limit: NanoUsd) -> Option<Timestamp> {
        let first = buckets.partition_point(|bucket| bucket.minute < self.from);
        let mut left = self.sum.both();
        for bucket in buckets.range(first..) {
            left -= bucket.held.both();
            if left < limit {
                return Some(self.ages_out(bucket.minute));
            }
        }
        None
    }
}

const fn minute_of(at: Timestamp) -> i64 {
    at.0.div_euclid(MINUTE_MS)
}
