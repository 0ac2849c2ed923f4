//! The hash map of the request path.

use std::collections::HashMap;

use foldhash::fast::RandomState;

/// A map that hashes fast: some 20 instructions for an id in place of the 150 to 300 of the standard
/// library's hash, which a request of 2 KB computed 17 times.
///
/// Its seed is random, so keys that clients choose cannot be made to collide in advance. It does not
/// resist somebody who can observe the map's timing for long: use it for maps of bounded size.
pub type FastMap<K, V> = HashMap<K, V, RandomState>;
