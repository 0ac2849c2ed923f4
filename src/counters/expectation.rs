//! How many tokens a key's next reply from a model may have: what a reservation is estimated from.
//!
//! A peak that decays: a longer reply raises the expectation to itself at once, shorter ones lower it by an eighth of the
//! difference each. It errs on the long side, so that requests running together overshoot a limit seldom and little.

use crate::domain::ids::KeyId;

use super::shards::Shards;

/// Models remembered for one key; the one longest unused makes room.
const MODELS_PER_KEY: usize = 16;

pub(super) struct Expectations(Shards<KeyId, Vec<Expected>>);

struct Expected {
    model: Box<str>,
    tokens: u64,
}

impl Expectations {
    pub(super) fn new() -> Self {
        Self(Shards::new())
    }

    pub(super) fn get(&self, key: KeyId, model: &str) -> Option<u64> {
        let models = self.0.lock(key.0);
        models.get(&key)?.iter().find(|expected| &*expected.model == model).map(|expected| expected.tokens)
    }

    pub(super) fn learn(&self, key: KeyId, model: &str, output: u64) {
        let mut keys = self.0.lock(key.0);
        let models = keys.entry(key).or_default();
        match models.iter().position(|expected| &*expected.model == model) {
            Some(place) => {
                let expected = &mut models[place];
                let fall = expected.tokens.saturating_sub(output).div_ceil(8);
                expected.tokens = (expected.tokens - fall).max(output);
                models[..=place].rotate_right(1);
            }
            None => {
                models.truncate(MODELS_PER_KEY - 1);
                models.insert(0, Expected { model: model.into(), tokens: output });
            }
        }
    }

    pub(super) fn retain(&self, keep: impl Fn(KeyId) -> bool) {
        self.0.each().for_each(|mut keys| keys.retain(|key, _| keep(*key)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: KeyId = KeyId(1);

    #[test]
    fn a_long_reply_is_expected_at_once_and_forgotten_slowly() {
        let expectations = Expectations::new();
        assert_eq!(expectations.get(KEY, "m"), None);
        let learnt = [100, 900, 100, 100].map(|output| {
            expectations.learn(KEY, "m", output);
            expectations.get(KEY, "m")
        });
        assert_eq!(learnt, [Some(100), Some(900), Some(800), Some(712)]);
        (0..200).for_each(|_| expectations.learn(KEY, "m", 100));
        assert_eq!(expectations.get(KEY, "m"), Some(100), "all of it, in the end");
        assert_eq!(expectations.get(KEY, "other"), None);
        assert_eq!(expectations.get(KeyId(2), "m"), None);
    }

    #[test]
    fn a_key_that_asks_for_many_models_keeps_the_latest() {
        let expectations = Expectations::new();
        expectations.learn(KEY, "often", 7);
        for n in 0..50 {
            expectations.learn(KEY, &format!("m{n}"), 1);
            expectations.learn(KEY, "often", 7);
        }
        assert_eq!(expectations.get(KEY, "often"), Some(7));
        assert_eq!((expectations.get(KEY, "m49"), expectations.get(KEY, "m30")), (Some(1), None));
        expectations.retain(|key| key != KEY);
        assert_eq!(expectations.get(KEY, "often"), None);
    }
}
