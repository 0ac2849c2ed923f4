//! Durations in buckets of under one percent, in bounded memory.

use std::time::Duration;

/// Buckets per power of two.
const STEPS: u32 = 128;
const STEP_BITS: u32 = STEPS.trailing_zeros();
/// Enough powers of two for an hour in nanoseconds.
const POWERS: u32 = 42;

/// Counts of durations.
#[derive(Debug, Clone)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; (POWERS * STEPS) as usize], total: 0 }
    }
}

impl Histogram {
    pub fn record(&mut self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let at = bucket(nanos).min(self.counts.len() - 1);
        self.counts[at] += 1;
        self.total += 1;
    }

    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.total += other.total;
    }

    pub const fn count(&self) -> u64 {
        self.total
    }

    /// The duration below which `percent` of all are; zero if there are none.
    pub fn percentile(&self, percent: u64) -> Duration {
        let rank = (self.total * percent).div_ceil(100).max(1);
        let mut seen = 0;
        for (at, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Duration::from_nanos(value(at));
            }
        }
        Duration::ZERO
    }
}

/// Below `STEPS` every value has its own bucket; above, each power of two is cut into `STEPS` of
/// them.
fn bucket(nanos: u64) -> usize {
    let power = (u64::BITS - nanos.leading_zeros()).saturating_sub(STEP_BITS + 1);
    (u64::from(power * STEPS) + (nanos >> power)) as usize
}

/// The middle of a bucket.
fn value(at: usize) -> u64 {
    let at = at as u64;
    let steps = u64::from(STEPS);
    if at < 2 * steps {
        return at;
    }
    let power = at / steps - 1;
    ((at - power * steps) << power) + (1 << power) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_fine_and_in_order() {
        let mut last = 0;
        for nanos in (0..60)
            .flat_map(|shift| [1u64 << shift, (1u64 << shift) + (1 << shift) / 3])
            .filter(|n| *n < 1 << 40)
        {
            let at = bucket(nanos);
            assert!(at >= last, "{nanos}");
            last = at;
            assert!(value(at).abs_diff(nanos) <= nanos / 100, "{nanos} became {}", value(at));
        }
    }

    #[test]
    fn percentiles() {
        let mut histogram = Histogram::default();
        (1..=100).for_each(|ms| histogram.record(Duration::from_millis(ms)));
        let mut twice = histogram.clone();
        twice.merge(&histogram);
        for (percent, ms) in [(50u64, 50u64), (99, 99), (100, 100)] {
            let got = twice.percentile(percent).as_micros().abs_diff(u128::from(ms) * 1000);
            assert!(got <= u128::from(ms) * 10, "{percent}: off by {got} µs");
        }
        assert_eq!(twice.count(), 200);
        assert_eq!(Histogram::default().percentile(50), Duration::ZERO);
    }
}
