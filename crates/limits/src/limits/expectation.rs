//! The usual number of output tokens in a key's replies from a model: the basis of a reservation's
//! estimate.
//!
//! The 90th percentile of the last [`RECENT`] replies, once [`ENOUGH`] are known. Before that there
//! is not a figure, and the reservation uses the most that a reply may have
//! (`policy::reservation`).

use std::collections::VecDeque;

use crate::domain::ids::KeyId;

use super::shards::Shards;

/// Replies of a key and model that are needed for an expectation.
const ENOUGH: usize = 20;
/// Recent replies that are kept.
const RECENT: usize = 50;
/// Models kept for one key; the one that is unused for longest is dropped first.
const MODELS_PER_KEY: usize = 16;

pub(super) struct Expectations(Shards<KeyId, Vec<Expected>>);

struct Expected {
    model: Box<str>,
    /// Oldest first.
    recent: VecDeque<u32>,
    /// The same, ascending. To keep them sorted takes 230 instructions for each reply; to select
    /// from them took 1 400.
    sorted: Vec<u32>,
}

impl Expectations {
    pub(super) fn new() -> Self {
        Self(Shards::new())
    }

    pub(super) fn get(&self, key: KeyId, model: &str) -> Option<u64> {
        let models = self.0.lock(key.0);
        models
            .get(&key)?
            .iter()
            .find(|expected| &*expected.model == model)?
            .ninetieth()
            .map(u64::from)
    }

    pub(super) fn learn(&self, key: KeyId, model: &str, output: u64) {
        let output = u32::try_from(output).unwrap_or(u32::MAX);
        let mut keys = self.0.lock(key.0);
        let models = keys.entry(key).or_default();
        match models.iter().position(|expected| &*expected.model == model) {
            Some(place) => {
                models[place].add(output);
                models[..=place].rotate_right(1);
            }
            None => {
                models.truncate(MODELS_PER_KEY - 1);
                let mut expected =
                    Expected { model: model.into(), recent: VecDeque::new(), sorted: Vec::new() };
                expected.add(output);
                models.insert(0, expected);
            }
        }
    }

    pub(super) fn retain(&self, keep: impl Fn(KeyId) -> bool) {
        self.0.each().for_each(|mut keys| keys.retain(|key, _| keep(*key)));
    }
}

impl Expected {
    fn add(&mut self, output: u32) {
        if self.recent.len() == RECENT
            && let Some(oldest) = self.recent.pop_front()
            && let Ok(place) = self.sorted.binary_search(&oldest)
        {
            self.sorted.remove(place);
        }
        self.recent.push_back(output);
        let place = self.sorted.partition_point(|other| *other < output);
        self.sorted.insert(place, output);
    }

    /// The 90th percentile; `None` while there are too few replies.
    fn ninetieth(&self) -> Option<u32> {
        let count = self.sorted.len();
        let place = (count * 9).div_ceil(10).checked_sub(1)?;
        self.sorted.get(place).copied().filter(|_| count >= ENOUGH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: KeyId = KeyId(1);

    fn learn(expectations: &Expectations, outputs: impl IntoIterator<Item = u64>) -> Option<u64> {
        outputs.into_iter().for_each(|output| expectations.learn(KEY, "m", output));
        expectations.get(KEY, "m")
    }

    #[test]
    fn nothing_is_expected_before_twenty_replies_then_the_ninetieth_percentile_of_the_last_fifty() {
        let expectations = Expectations::new();
        assert_eq!(learn(&expectations, []), None);
        assert_eq!(learn(&expectations, 1..=19), None);
        assert_eq!(learn(&expectations, [20]), Some(18), "two of twenty are longer");
        assert_eq!(learn(&expectations, 21..=50), Some(45));
        assert_eq!(learn(&expectations, 51..=150), Some(145), "of 101 to 150");
        assert_eq!(learn(&expectations, [9_000; 5]), Some(150), "five of fifty are longer");
        assert_eq!(learn(&expectations, [9_000]), Some(9_000));
        assert_eq!(learn(&expectations, [7; 50]), Some(7), "all others are forgotten");
        assert_eq!(learn(&expectations, [u64::MAX; 6]), Some(u64::from(u32::MAX)));
        assert_eq!(expectations.get(KEY, "other"), None);
        assert_eq!(expectations.get(KeyId(2), "m"), None);
    }

    #[test]
    fn a_key_that_asks_for_many_models_keeps_the_latest() {
        let expectations = Expectations::new();
        let learn = |model: &str| (0..ENOUGH).for_each(|_| expectations.learn(KEY, model, 7));
        learn("often");
        for n in 0..50 {
            learn(&format!("m{n}"));
            expectations.learn(KEY, "often", 7);
        }
        assert_eq!(expectations.get(KEY, "often"), Some(7));
        assert_eq!((expectations.get(KEY, "m49"), expectations.get(KEY, "m30")), (Some(7), None));
        expectations.retain(|key| key != KEY);
        assert_eq!(expectations.get(KEY, "often"), None);
    }
}
