//! A map behind many locks, so that holders rarely wait for one another.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use parking_lot::{Mutex, MutexGuard};

/// A power of two, well above the number of threads.
const SHARDS: usize = 64;

/// A map by record ids: serial numbers that no client chooses, so a multiplication spreads them
/// well enough.
pub(super) type IdMap<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;

#[derive(Debug, Default)]
pub(super) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_i64(i64::from(*byte));
        }
    }

    fn write_i64(&mut self, number: i64) {
        // Fibonacci hashing: the high bits, which the map uses first, depend on every bit of the
        // number.
        self.0 =
            (self.0 ^ number.cast_unsigned()).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }
}

pub(super) struct Shards<K, V>(Vec<Mutex<IdMap<K, V>>>);

impl<K: Eq + Hash, V> Shards<K, V> {
    pub(super) fn new() -> Self {
        Self((0..SHARDS).map(|_| Mutex::new(IdMap::default())).collect())
    }

    /// The locked part of the map that holds the record with this number.
    pub(super) fn lock(&self, number: i64) -> MutexGuard<'_, IdMap<K, V>> {
        let shard = usize::try_from(number.rem_euclid(SHARDS as i64)).unwrap_or(0);
        self.0[shard].lock()
    }

    /// Every part in turn; only one is locked at a time.
    pub(super) fn each(&self) -> impl Iterator<Item = MutexGuard<'_, IdMap<K, V>>> {
        self.0.iter().map(Mutex::lock)
    }
}
