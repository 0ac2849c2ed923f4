//! A map behind many locks, so that holders rarely wait for one another.

use std::hash::Hash;

use parking_lot::{Mutex, MutexGuard};

use crate::domain::fast_map::FastMap;

/// A power of two, well above the number of threads.
const SHARDS: usize = 64;

pub(super) struct Shards<K, V>(Vec<Mutex<FastMap<K, V>>>);

impl<K: Eq + Hash, V> Shards<K, V> {
    pub(super) fn new() -> Self {
        Self((0..SHARDS).map(|_| Mutex::new(FastMap::default())).collect())
    }

    /// The locked part of the map that holds the record with this number.
    pub(super) fn lock(&self, number: i64) -> MutexGuard<'_, FastMap<K, V>> {
        let shard = usize::try_from(number.rem_euclid(SHARDS as i64)).unwrap_or(0);
        self.0[shard].lock()
    }

    /// Every part in turn; only one is locked at a time.
    pub(super) fn each(&self) -> impl Iterator<Item = MutexGuard<'_, FastMap<K, V>>> {
        self.0.iter().map(Mutex::lock)
    }
}
