//! A run: consecutive places, each with the bytes that may occur there. It represents a regular
//! expression such as `\d{3}-\d{2}-\d{4}`, which contains no word.
//!
//! It is searched from its last place backwards, so most of a text is not read: a byte that no
//! place accepts moves the whole run past it (Horspool's algorithm, with sets for letters).

/// The bytes that may occur in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Set([u64; 4]);

impl Set {
    pub(super) const fn add(&mut self, byte: u8) {
        self.0[byte as usize / 64] |= 1 << (byte % 64);
    }

    pub(super) const fn has(&self, byte: u8) -> bool {
        self.0[byte as usize / 64] >> (byte % 64) & 1 == 1
    }

    pub(super) const fn of(byte: u8) -> Self {
        let mut set = Self([0; 4]);
        set.add(byte);
        set
    }

    pub(super) fn len(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// Its byte, when it is one.
    pub(super) fn single(&self) -> Option<u8> {
        if self.len() == 1 { self.bytes().next() } else { None }
    }

    pub(super) fn bytes(&self) -> impl Iterator<Item = u8> {
        (0..=u8::MAX).filter(|byte| self.has(*byte))
    }
}

/// Ready for searching.
#[derive(Debug)]
pub(super) struct Run {
    places: Vec<Set>,
    /// For each byte at the last place: how far the run can move on. The high bit says that the
    /// last place accepts it.
    moves: Box<[u8; 256]>,
    /// A run of one byte.
    single: Option<u8>,
}

const TAKEN: u8 = 0x80;

impl Run {
    /// `None` for no places, or more than a byte can count.
    pub(super) fn new(places: &[Set]) -> Option<Self> {
        let (last, before) = places.split_last()?;
        let len = u8::try_from(places.len()).ok().filter(|len| *len < TAKEN)?;
        let mut moves = Box::new([len; 256]);
        for (place, left) in before.iter().zip((1..len).rev()) {
            place.bytes().for_each(|byte| moves[usize::from(byte)] = left);
        }
        last.bytes().for_each(|byte| moves[usize::from(byte)] |= TAKEN);
        let single = if before.is_empty() { last.single() } else { None };
        Some(Self { places: places.to_vec(), moves, single })
    }

    /// The bytes that occur anywhere in it.
    pub(super) fn bytes(&self) -> impl Iterator<Item = u8> {
        self.places.iter().flat_map(Set::bytes)
    }

    pub(super) fn is_in(&self, text: &[u8]) -> bool {
        if let Some(byte) = self.single {
            return memchr::memchr(byte, text).is_some();
        }
        let mut end = self.places.len() - 1;
        while let Some(byte) = text.get(end) {
            let step = self.moves[usize::from(*byte)];
            if step & TAKEN != 0 && self.ends_at(text, end) {
                return true;
            }
            end += usize::from(step & !TAKEN);
        }
        false
    }

    fn ends_at(&self, text: &[u8], end: usize) -> bool {
        let here = text.get(end + 1 - self.places.len()..=end).unwrap_or_default();
        here.len() == self.places.len()
            && here.iter().zip(&self.places).rev().all(|(byte, place)| place.has(*byte))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn set(bytes: &str) -> Set {
        let mut set = Set::default();
        bytes.bytes().for_each(|byte| set.add(byte));
        set
    }

    proptest! {
        #[test]
        fn a_run_is_found_where_a_plain_look_finds_it(
            places in prop::collection::vec("[abc]{1,3}", 1..6), text in "[abcd]{0,40}",
        ) {
            let places: Vec<Set> = places.iter().map(|bytes| set(bytes)).collect();
            let plain = text.as_bytes().windows(places.len()).any(|w| w.iter().zip(&places).all(|(b, p)| p.has(*b)));
            prop_assert_eq!(Run::new(&places).unwrap().is_in(text.as_bytes()), plain);
        }
    }

    #[test]
    fn runs_are_bounded() {
        assert!(Run::new(&[]).is_none());
        assert!(Run::new(&[set("a"); 128]).is_none());
        assert!(Run::new(&[set("a"); 127]).is_some());
        assert_eq!((set("a").single(), set("ab").single(), set("ab").len()), (Some(b'a'), None, 2));
    }
}
