//! The parts into which the counters of a cluster are divided. Each has its own hash tag, so all
//! names of a part are in one slot, and the slots are spread over the primaries.
//!
//! A cluster divides its 16 384 slots between its primaries, as a rule into equal ranges. With as
//! many ranges as parts, each part is in another range, at about the same distance from the range's
//! first slot. So with as many primaries as parts, each primary has one part.

use crc::{CRC_16_XMODEM, Crc};

/// How many slots a cluster has.
const SLOTS: usize = 16_384;
/// How far a part's slot may be from the one that divides the slots exactly: half a percent.
const NEAR: usize = SLOTS / 200;
/// The numbers that are tried in a hash tag. Those of five digits alone reach each 32 adjacent
/// slots, whatever the prefix.
const NUMBERS: std::ops::RangeInclusive<u32> = 1..=99_999;
const CRC: Crc<u16> = Crc::<u16>::new(&CRC_16_XMODEM);

/// One part of a cluster's counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterPart {
    /// From 0.
    place: usize,
    /// How many parts there are; at least one.
    of: usize,
}

impl Default for ClusterPart {
    fn default() -> Self {
        Self::WHOLE
    }
}

impl ClusterPart {
    /// All counters.
    const WHOLE: Self = Self { place: 0, of: 1 };

    /// Each of so many parts.
    pub(super) fn all(of: usize) -> impl Iterator<Item = Self> {
        let of = of.max(1);
        (0..of).map(move |place| Self { place, of })
    }

    /// How many parts there are.
    #[must_use]
    pub fn of(self) -> usize {
        self.of
    }

    /// Distinguishes it from the other parts; `None` if it is the only one.
    #[must_use]
    pub fn label(self) -> Option<String> {
        (self.of > 1).then(|| format!("{}/{}", self.place + 1, self.of))
    }

    /// Its hash tag, without the braces: the prefix for the first part; for each other one the
    /// prefix and the lowest number that is in the part's slots.
    pub(super) fn tag(self, prefix: &str) -> String {
        if self.place == 0 {
            return prefix.to_owned();
        }
        let first = slot(prefix);
        let range = range_of(first, self.of);
        let own = (range + self.place) % self.of;
        let (begin, end) = (begin_of(own, self.of), begin_of(own + 1, self.of));
        let wanted = begin + (first - begin_of(range, self.of));
        let tagged = |number: u32| format!("{prefix}.{number}");
        let fits = |tag: &String| {
            let slot = slot(tag);
            (begin..end).contains(&slot) && slot.abs_diff(wanted) <= NEAR
        };
        let found = NUMBERS.map(tagged).find(fits);
        found.unwrap_or_else(|| format!("{prefix}.{}", self.place))
    }
}

/// The slot of a hash tag.
fn slot(tag: &str) -> usize {
    usize::from(CRC.checksum(tag.as_bytes())) % SLOTS
}

/// The first slot of one of so many equal ranges, rounded as `redis-cli --cluster create` does.
fn begin_of(range: usize, of: usize) -> usize {
    (2 * range * SLOTS + of) / (2 * of)
}

/// The range that a slot is in, of so many.
fn range_of(slot: usize, of: usize) -> usize {
    (0..of).rev().find(|range| begin_of(*range, of) <= slot).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn tags(prefix: &str, of: usize) -> Vec<String> {
        ClusterPart::all(of).map(|part| part.tag(prefix)).collect()
    }

    /// The vectors of the cluster specification, and slots that a server named
    /// (`CLUSTER KEYSLOT`).
    #[test]
    fn slots_are_those_of_the_cluster_specification() {
        assert_eq!(CRC.checksum(b"123456789"), 0x31C3);
        for (tag, expected) in [("123456789", 12_739), ("foo", 12_182), ("tollgate", 7_332)] {
            assert_eq!(slot(tag), expected, "{tag}");
        }
    }

    #[test]
    fn ranges_are_those_of_redis_cli() {
        let three: Vec<_> = (0..=3).map(|range| begin_of(range, 3)).collect();
        assert_eq!(three, [0, 5_461, 10_923, 16_384]);
        assert_eq!([5_460, 5_461, 10_922, 10_923].map(|slot| range_of(slot, 3)), [0, 1, 1, 2]);
        assert_eq!((begin_of(31, 32), range_of(16_383, 32)), (15_872, 31));
    }

    #[test]
    fn the_names_of_the_default_prefix_stay_as_they_are() {
        assert_eq!(tags("tollgate", 1), ["tollgate"]);
        assert_eq!(tags("tollgate", 2), ["tollgate", "tollgate.32"]);
        assert_eq!(tags("tollgate", 3), ["tollgate", "tollgate.9", "tollgate.124"]);
    }

    #[test]
    fn the_parts_of_every_prefix_are_spread_evenly() {
        let prefixes = ["tollgate", "t", "gate.2", "a-rather-long_prefix.of-a-test-environment"];
        let more = (0..60).map(|n| format!("prefix-{n}"));
        for prefix in prefixes.map(str::to_owned).into_iter().chain(more) {
            for of in 1..=32 {
                let tags = tags(&prefix, of);
                assert_eq!(tags[0], prefix);
                let slots: Vec<_> = tags.iter().map(|tag| slot(tag)).collect();
                let ranges: BTreeSet<_> = slots.iter().map(|slot| range_of(*slot, of)).collect();
                assert_eq!(ranges.len(), of, "{prefix}: {tags:?}");
                for (place, found) in slots.iter().enumerate() {
                    let wanted = (slots[0] + place * SLOTS / of) % SLOTS;
                    let off = found.abs_diff(wanted);
                    assert!(off.min(SLOTS - off) <= NEAR + 2, "{prefix}: {tags:?}");
                }
            }
        }
    }

    /// The slots that a number gives with two prefixes differ by a mask (exclusive or) that is the
    /// same for all numbers of one length. A mask maps aligned blocks to aligned blocks. So what is
    /// true of one prefix is true of all.
    #[test]
    fn numbers_of_five_digits_reach_each_block_of_slots() {
        let of = |prefix: &str, number: u32| slot(&format!("{prefix}.{number}"));
        let blocks: BTreeSet<_> = (10_000..=99_999).map(|number| of("p", number) / 32).collect();
        assert_eq!(blocks.len(), SLOTS / 32);
        let mask = of("p", 10_000) ^ of("another", 10_000);
        assert!((10_000..10_100).all(|number| of("p", number) ^ of("another", number) == mask));
    }
}
