//! Fingerprints of pieces of request bodies: equal for equal bytes, and different for different
//! ones, even against an attacking client.
//!
//! A piece with the fingerprint of another would bypass the search, so the hash has a provable
//! collision bound. Blocks of 1024 bytes become sums of products of keyed words (NH, as in UMAC and
//! VMAC), and these the coefficients of a polynomial over the field of 2^61 - 1 at a secret point.
//! Two pieces of up to `n` blocks that were chosen without knowledge of the key collide with a
//! probability below `(3n + 1) / 2^61 + n / 2^64`. No fingerprint leaves the process.
//!
//! It costs 0.8 instructions per byte. Keyed BLAKE3 (the crate `blake3`, AVX2) costs 2.6 to 7.9,
//! depending on the size of the piece (bench/RESULTS.md).

use std::hash::{BuildHasher, RandomState};

const WORDS: usize = 128;
const BLOCK: usize = 8 * WORDS;
const PRIME: u64 = (1 << 61) - 1;

/// A secret of this process.
#[derive(Debug)]
pub(super) struct Fingerprints {
    key: Box<[u64; WORDS]>,
    point: u64,
}

impl Default for Fingerprints {
    /// The standard library's key comes from the system; its hash of numbers is as good as random.
    fn default() -> Self {
        let random = RandomState::new();
        let mut key = Box::new([0; WORDS]);
        for (number, word) in (1_u64..).zip(key.iter_mut()) {
            *word = random.hash_one(number);
        }
        Self { key, point: random.hash_one(0_u64) & PRIME }
    }
}

impl Fingerprints {
    /// The fingerprint of a piece, given in any number of parts: below 2^61.
    pub(super) fn of<'b>(&self, mut parts: impl Iterator<Item = &'b [u8]>) -> u64 {
        let first = parts.next().unwrap_or_default();
        match parts.next() {
            None => self.whole(first),
            Some(second) => self.joined([first, second].into_iter().chain(parts)),
        }
    }

    fn whole(&self, text: &[u8]) -> u64 {
        let (blocks, tail) = text.as_chunks::<BLOCK>();
        let sum = blocks.iter().fold(0, |sum, block| self.add(sum, block));
        self.end(self.add(sum, tail), text.len())
    }

    fn joined<'b>(&self, parts: impl Iterator<Item = &'b [u8]>) -> u64 {
        let (mut sum, mut len) = (0, 0);
        let (mut block, mut filled) = ([0; BLOCK], 0);
        for part in parts {
            len += part.len();
            let mut rest = part;
            while !rest.is_empty() {
                let (head, tail) = rest.split_at(rest.len().min(BLOCK - filled));
                block[filled..filled + head.len()].copy_from_slice(head);
                filled += head.len();
                rest = tail;
                if filled == BLOCK {
                    sum = self.add(sum, &block);
                    filled = 0;
                }
            }
        }
        self.end(self.add(sum, &block[..filled]), len)
    }

    /// The length distinguishes padding from data.
    const fn end(&self, sum: u64, len: usize) -> u64 {
        let whole = self.next(sum, len as u64);
        if whole >= PRIME { whole - PRIME } else { whole }
    }

    /// `block`: at most [`BLOCK`]; its last pair is padded with zeros.
    #[inline(never)]
    fn add(&self, sum: u64, block: &[u8]) -> u64 {
        // Four pairs at a time, so that the loop itself costs little.
        let (fours, rest) = block.as_chunks::<64>();
        let (keys, _) = self.key.as_chunks::<8>();
        let mut total = 0_u128;
        for (four, keys) in fours.iter().zip(keys) {
            let (pairs, keys) = (four.as_chunks::<16>().0, keys.as_chunks::<2>().0);
            total =
                (0..4).fold(total, |total, at| total.wrapping_add(product(&pairs[at], &keys[at])));
        }
        if !rest.is_empty() {
            let keys = self.key.get(fours.len() * 8..).unwrap_or_default().as_chunks::<2>().0;
            for (part, key) in rest.chunks(16).zip(keys) {
                let mut pair = [0; 16];
                pair[..part.len()].copy_from_slice(part);
                total = total.wrapping_add(product(&pair, key));
            }
        }
        let [low, high] = halves(total);
        let sum = self.next(sum, low >> 32);
        let sum = self.next(sum, low & 0xffff_ffff | high << 32 & PRIME);
        self.next(sum, high >> 29)
    }

    /// The polynomial's next coefficient, below 2^62; the sum stays below 2^61 + 8.
    #[inline]
    const fn next(&self, sum: u64, value: u64) -> u64 {
        let [low, high] = halves(sum as u128 * self.point as u128);
        let once = (low & PRIME) + (high << 3 | low >> 61) + value;
        (once & PRIME) + (once >> 61)
    }
}

#[inline]
fn product(pair: &[u8; 16], [first, second]: &[u64; 2]) -> u128 {
    let [low, high] = halves(u128::from_le_bytes(*pair));
    u128::from(low.wrapping_add(*first)) * u128::from(high.wrapping_add(*second))
}

#[expect(clippy::cast_possible_truncation, reason = "the two halves")]
const fn halves(whole: u128) -> [u64; 2] {
    [whole as u64, (whole >> 64) as u64]
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    /// The same polynomial in plain arithmetic.
    fn plainly(prints: &Fingerprints, text: &[u8]) -> u64 {
        let prime = u128::from(PRIME);
        let mut sum = 0_u128;
        let mut next = |value: u128| sum = (sum * u128::from(prints.point) + value) % prime;
        let (whole, tail) = text.split_at(text.len() / BLOCK * BLOCK);
        for block in whole.chunks(BLOCK).chain([tail]) {
            let words: Vec<u64> = block
                .chunks(16)
                .flat_map(|pair| [pair.get(..8).unwrap_or(pair), pair.get(8..).unwrap_or_default()])
                .map(|word| word.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)))
                .collect();
            let total =
                words.chunks(2).zip(prints.key.chunks(2)).fold(0_u128, |total, (word, key)| {
                    let [a, b] = [0, 1].map(|at| u128::from(word[at].wrapping_add(key[at])));
                    total.wrapping_add(a * b)
                });
            next(total >> 32 & 0xffff_ffff);
            next((total & 0xffff_ffff) | (total >> 64 << 32 & prime));
            next(total >> 93);
        }
        next(text.len() as u128);
        u64::try_from(sum).unwrap()
    }

    proptest! {
        #[test]
        fn it_is_the_polynomial_however_the_text_is_cut(
            text in prop::collection::vec(any::<u8>(), 0..3000), cuts in prop::collection::vec(1_usize..700, 1..8),
        ) {
            let prints = Fingerprints::default();
            let whole = prints.of(std::iter::once(text.as_slice()));
            prop_assert_eq!(whole, plainly(&prints, &text));
            let mut rest = text.as_slice();
            let mut parts = Vec::new();
            for cut in cuts {
                let (part, tail) = rest.split_at(cut.min(rest.len()));
                parts.push(part);
                rest = tail;
            }
            prop_assert_eq!(prints.of(parts.into_iter().chain([rest])), whole);
        }
    }

    #[test]
    fn small_changes_and_other_keys_make_other_fingerprints() {
        let prints = Fingerprints::default();
        let mut seen = HashSet::new();
        let text = vec![0_u8; 1200];
        for len in 0..text.len() {
            assert!(seen.insert(prints.of(std::iter::once(&text[..len]))), "{len} zeros");
        }
        for at in 0..text.len() {
            let mut other = text.clone();
            other[at] = 1;
            assert!(seen.insert(prints.of(std::iter::once(other.as_slice()))), "a one at {at}");
        }
        // Blocks and pairs that are swapped.
        let numbered: Vec<u8> =
            (0..2048_u32).flat_map(|n| [(n / 16) as u8, (n / 512) as u8]).collect();
        for (a, b) in [(0, 512), (0, 16), (1024, 2048), (16, 2064)] {
            let mut other = numbered.clone();
            (0..16).for_each(|at| other.swap(a + at, b + at));
            assert!(seen.insert(prints.of(std::iter::once(other.as_slice()))), "{a} and {b}");
        }
        let of = |prints: &Fingerprints| prints.of(std::iter::once(b"text".as_slice()));
        assert_ne!(of(&prints), of(&Fingerprints::default()));
    }
}
