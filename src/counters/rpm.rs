//! Requests of the past 60 seconds, as a sliding window.
//!
//! A request at time t counts until t + 60 s, to the millisecond. Beyond a thousand entries, requests of the same tenth of a
//! second share one, at the time of the last of them: it may count a tenth of a second too long, and memory stays bounded.

use std::collections::VecDeque;

use crate::domain::clock::Timestamp;

pub(super) const WINDOW_MS: i64 = 60_000;
const EXACT_ENTRIES: usize = 1_024;
const COARSE_MS: i64 = 100;

#[derive(Debug, Default)]
pub(super) struct Rpm {
    /// Ascending in time.
    entries: VecDeque<Entry>,
    total: u64,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    /// Of its first request; of its last one, by which it ages.
    from: Timestamp,
    at: Timestamp,
    count: u64,
}

impl Rpm {
    /// Forgets what is over.
    pub(super) fn refresh(&mut self, now: Timestamp) {
        while let Some(first) = self.entries.front()
            && now.since(first.at) >= WINDOW_MS
        {
            self.total -= first.count;
            self.entries.pop_front();
        }
    }

    pub(super) fn add(&mut self, now: Timestamp) {
        self.total += 1;
        let coarse = self.entries.len() >= EXACT_ENTRIES;
        if let Some(last) = self.entries.back_mut() {
            let same = if coarse { last.at.0 / COARSE_MS >= now.0 / COARSE_MS } else { last.at >= now };
            if same {
                last.at = last.at.max(now);
                last.count += 1;
                return;
            }
        }
        self.entries.push_back(Entry { from: now, at: now, count: 1 });
    }

    /// Takes back a request that was added at `at`, unless it counts no more.
    pub(super) fn take_back(&mut self, at: Timestamp) {
        let place = self.entries.partition_point(|entry| entry.at < at);
        if let Some(entry) = self.entries.get_mut(place).filter(|entry| entry.from <= at) {
            self.total -= 1;
            entry.count -= 1;
            if entry.count == 0 {
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
            (left < limit).then(|| entry.at.plus_ms(WINDOW_MS))
        })
    }

    pub(super) fn shrink(&mut self) {
        if self.entries.capacity() > 2 * self.entries.len() + 8 {
            self.entries.shrink_to_fit();
        }
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
    fn what_is_taken_back_does_not_count() {
        let mut rpm = Rpm::default();
        for ms in [0, 10, 10, 20] {
            rpm.add(at(ms));
        }
        rpm.take_back(at(10));
        rpm.take_back(at(0));
        assert_eq!((rpm.count(), rpm.below_at(1)), (2, Some(at(60_020))));
        rpm.refresh(at(60_015));
        rpm.take_back(at(10));
        assert_eq!(rpm.count(), 1, "over already, and the next one is another");
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
