//! How many tokens a key's replies from a model usually have: what a reservation is made from.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use parking_lot::Mutex;

use crate::domain::ids::KeyId;

/// Assumed before the first reply is known.
const FIRST_GUESS: u64 = 512;
/// A new reply's share in the average is one part in this many.
const SMOOTHING: u64 = 8;
const SHARDS: usize = 64;
/// Pairs kept per shard; beyond it the shard starts anew, which costs a few rough guesses.
const SHARD_CAPACITY: usize = 1024;

type Pair = (Option<KeyId>, u64);

/// A moving average of output tokens per key and model. Bounded in memory.
pub struct ExpectedOutput {
    hasher: RandomState,
    shards: Vec<Mutex<HashMap<Pair, u64>>>,
}

impl Default for ExpectedOutput {
    fn default() -> Self {
        Self { hasher: RandomState::new(), shards: (0..SHARDS).map(|_| Mutex::default()).collect() }
    }
}

impl ExpectedOutput {
    /// Tokens to expect, never more than the request allows.
    #[must_use]
    pub fn tokens(&self, key: Option<KeyId>, model: &str, max_tokens: Option<u64>) -> u64 {
        let pair = (key, self.hasher.hash_one(model));
        let usual = self.shard(&pair).lock().get(&pair).copied().unwrap_or(FIRST_GUESS);
        max_tokens.map_or(usual, |max| usual.min(max))
    }

    /// Takes a reply into the average.
    pub fn learn(&self, key: Option<KeyId>, model: &str, output: u64) {
        let pair = (key, self.hasher.hash_one(model));
        let mut shard = self.shard(&pair).lock();
        if shard.len() >= SHARD_CAPACITY && !shard.contains_key(&pair) {
            shard.clear();
        }
        let usual = shard.entry(pair).or_insert(output);
        *usual = (*usual * (SMOOTHING - 1) + output).div_ceil(SMOOTHING);
    }

    fn shard(&self, pair: &Pair) -> &Mutex<HashMap<Pair, u64>> {
        let at = usize::try_from(self.hasher.hash_one(pair)).unwrap_or(0) % SHARDS;
        &self.shards[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_average_follows_the_replies() {
        let (expected, key) = (ExpectedOutput::default(), Some(KeyId(1)));
        assert_eq!(expected.tokens(key, "m", None), FIRST_GUESS);
        expected.learn(key, "m", 80);
        assert_eq!(expected.tokens(key, "m", None), 80);
        for _ in 0..64 {
            expected.learn(key, "m", 1_000);
        }
        assert!(expected.tokens(key, "m", None) > 950);
        assert_eq!(expected.tokens(key, "m", Some(100)), 100);
        assert_eq!(expected.tokens(Some(KeyId(2)), "m", None), FIRST_GUESS);
    }
}
