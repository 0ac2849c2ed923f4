//! Requests of the past 60 seconds, as a sliding window.
//!
//! A request counts for 60 s from its admission, to the millisecond. Above a thousand entries,
//! requests of the same tenth of a second share one, at the end of that tenth: each may count a
//! tenth of a second too long, and memory stays bounded.
//!
//! Entries use a monotonic time derived from the clock. If the clock steps back by more than
//! [`JITTER_MS`], the difference is added to all its later values. So no entry is dropped early,
//! and none counts for longer than its minute.

use std::collections::VecDeque;

use crate::domain::clock::{JITTER_MS, Timestamp};

pub(super) const WINDOW_MS: i64 = 60_000;
const EXACT_ENTRIES: usize = 1_024;
const COARSE_MS: i64 = 100;

#[derive(Debug, Default)]
pub(super) struct Rpm {
    /// Ascending in time, one for each.
    entries: VecDeque<RpmEntry>,
    total: u64,
    /// The latest time seen, and the offset that is added to the clock.
    latest: i64,
    added_ms: i64,
}

#[derive(Debug, Clone, Copy)]
struct RpmEntry {
    at: i64,
    count: u64,
}

/// The entry in which a request is counted, needed to take it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MinuteEntry(i64);

impl Rpm {
    /// Drops entries that no longer count.
    pub(super) fn refresh(&mut self, now: Timestamp) {
        let now = self.time(now);
        while let Some(first) = self.entries.front()
            && now - first.at >= WINDOW_MS
        {
            self.total -= first.count;
            self.entries.pop_front();
        }
    }

    /// Counts a request that is admitted now.
    pub(super) fn add(&mut self, now: Timestamp) -> MinuteEntry {
        let now = self.time(now);
        let coarse = self.entries.len() >= EXACT_ENTRIES;
        let at = if coarse { now.div_euclid(COARSE_MS) * COARSE_MS + COARSE_MS - 1 } else { now };
        self.total += 1;
        match self.entries.back_mut() {
            Some(last) if last.at >= at => {
                last.count += 1;
                MinuteEntry(last.at)
            }
            _ => {
                self.entries.push_back(RpmEntry { at, count: 1 });
                MinuteEntry(at)
            }
        }
    }

    /// Takes back a request, unless it no longer counts.
    pub(super) fn take_back(&mut self, entry: MinuteEntry) {
        if let Ok(place) = self.entries.binary_search_by_key(&entry.0, |entry| entry.at) {
            self.total -= 1;
            self.entries[place].count -= 1;
            if self.entries[place].count == 0 {
                self.entries.remove(place);
            }
        }
    }

    pub(super) const fn count(&self) -> u64 {
        self.total
    }

    /// When fewer than `limit` will count.
    pub(super) fn below_at(&self, limit: u64) -> Option<Timestamp> {
        let mut left = self.total;
        self.entries.iter().find_map(|entry| {
            left -= entry.count;
            (left < limit).then(|| Timestamp(entry.at - self.added_ms).plus_ms(WINDOW_MS))
        })
    }

    pub(super) fn shrink(&mut self) {
        if self.entries.capacity() > 2 * self.entries.len() + 8 {
            self.entries.shrink_to_fit();
        }
    }

    /// The monotonic time of the entries.
    fn time(&mut self, now: Timestamp) -> i64 {
        let time = now.0.saturating_add(self.added_ms);
        if time >= self.latest - JITTER_MS {
            self.latest = self.latest.max(time);
            return time;
        }
        self.added_ms += self.latest - time;
        self.latest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp(ms)
    }

    #[test]
    fn requests_count_for_sixty_seconds_exactly() {
        let mut rpm = Rpm::default();
        for ms in [0, 10, 10, 500] {
            rpm.add(at(ms));
        }
        assert_eq!(rpm.count(), 4);
        assert_eq!(rpm.below_at(4), Some(at(60_000)));
        assert_eq!(rpm.below_at(2), Some(at(60_010)));
        assert_eq!(rpm.below_at(1), Some(at(60_500)));
        for (now, count) in [(59_999, 4), (60_000, 3), (60_010, 1), (60_499, 1), (60_500, 0)] {
            rpm.refresh(at(now));
            assert_eq!(rpm.count(), count, "at {now}");
        }
    }

    #[test]
    fn what_is_taken_back_does_not_count_and_takes_nothing_else_with_it() {
        let mut rpm = Rpm::default();
        let added = [0, 10, 10, 20].map(|ms| rpm.add(at(ms)));
        rpm.take_back(added[1]);
        rpm.take_back(added[0]);
        assert_eq!((rpm.count(), rpm.below_at(1)), (2, Some(at(60_020))));
        rpm.refresh(at(60_015));
        rpm.take_back(added[2]);
        assert_eq!(rpm.count(), 1, "over already, and the next one is another");
        // Two requests that arrive in the reverse order of their clock readings: each has an entry.
        let mut rpm = Rpm::default();
        let (later, earlier) = (rpm.add(at(11)), rpm.add(at(10)));
        rpm.take_back(later);
        assert_eq!(rpm.count(), 1);
        rpm.take_back(earlier);
        assert_eq!((rpm.count(), rpm.below_at(1)), (0, None));
    }

    #[test]
    fn a_clock_that_steps_back_makes_no_request_count_shorter_or_longer() {
        let mut rpm = Rpm::default();
        let hour = 3_600_000;
        rpm.add(at(hour));
        rpm.add(at(hour + 1_000));
        // The clock steps back half an hour, and continues from there.
        let back = hour / 2;
        rpm.refresh(at(back));
        let third = rpm.add(at(back));
        assert_eq!((rpm.count(), rpm.below_at(3)), (3, Some(at(back + 59_000))));
        for (now, count) in
            [(back + 58_999, 3), (back + 59_000, 2), (back + 59_999, 2), (back + 60_000, 0)]
        {
            rpm.refresh(at(now));
            assert_eq!(rpm.count(), count, "at {now}");
        }
        rpm.take_back(third);
        assert_eq!(rpm.count(), 0);
    }

    #[test]
    fn entries_are_bounded_and_never_end_early() {
        let mut rpm = Rpm::default();
        for ms in 0..59_999 {
            rpm.add(at(ms));
            rpm.add(at(ms));
        }
        assert_eq!(rpm.count(), 2 * 59_999);
        assert!(rpm.entries.len() <= EXACT_ENTRIES + 600, "{}", rpm.entries.len());
        rpm.refresh(at(90_000));
        let exact = 2 * (59_999 - 30_001);
        assert!((exact..exact + 2 * 100).contains(&rpm.count()), "{} of {exact}", rpm.count());
    }
}
