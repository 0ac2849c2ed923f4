//! How long each provider takes to the first byte of a model's replies, smoothed, of streams and of
//! whole replies apart: the latter begin when they are complete. It orders providers for groups with
//! the strategy `fastest`; other requests are not measured.
//!
//! Each node measures its own replies, in memory.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::domain::fast_map::FastMap;
use crate::domain::ids::ProviderId;

/// Maximum entries: a provider, a model, streamed or not. Beyond that all are forgotten, and measured again.
const MAX: usize = 8_192;
/// A new time counts for one part in so many.
const PARTS: u64 = 8;
/// Times that share their first bits count as equal: up to 12 % apart.
const BITS: u32 = 4;

/// The provider, the client's name for the model, and whether the reply is streamed.
type Measured = (ProviderId, Arc<str>, bool);

/// The smoothed times, in microseconds.
#[derive(Debug, Default)]
pub struct FirstBytes {
    times: Mutex<FastMap<Measured, u64>>,
}

impl FirstBytes {
    /// A reply's first byte came after this time. `model`: the client's name for it.
    pub fn note(&self, provider: ProviderId, model: &Arc<str>, stream: bool, took: Duration) {
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(1);
        let mut times = self.times.lock();
        if times.len() >= MAX {
            times.clear();
        }
        let time = times.entry((provider, Arc::clone(model), stream)).or_insert(took);
        *time = (*time - *time / PARTS).saturating_add(took / PARTS).max(1);
    }

    /// The time, rounded so that about equal ones are equal. The most if none is known: such a
    /// provider may never answer, and requests that go by the draw measure it.
    pub fn rank(&self, provider: ProviderId, model: &Arc<str>, stream: bool) -> u64 {
        let known = self.times.lock().get(&(provider, Arc::clone(model), stream)).copied();
        let Some(time) = known else { return u64::MAX };
        let low = (u64::BITS - time.leading_zeros()).saturating_sub(BITS);
        time >> low << low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_smoothed_and_about_equal_ones_are_equal() {
        let (bytes, model) = (FirstBytes::default(), Arc::from("m"));
        let rank = |of| bytes.rank(ProviderId(of), &model, true);
        assert_eq!(rank(1), u64::MAX, "unknown");
        bytes.note(ProviderId(1), &model, true, Duration::from_millis(1_000));
        bytes.note(ProviderId(2), &model, true, Duration::from_millis(1_010));
        bytes.note(ProviderId(3), &model, true, Duration::from_millis(1_200));
        assert_eq!(rank(1), rank(2));
        assert!(rank(3) > rank(1));
        for _ in 0..40 {
            bytes.note(ProviderId(1), &model, true, Duration::from_millis(2_000));
        }
        assert!(rank(1) > rank(3), "{} {}", rank(1), rank(3));
    }
}
