//! Pieces of a body that were searched without a match are not searched again.
//!
//! A coding agent sends its whole history with every turn, so nearly all of a long request was
//! searched a moment ago. The [fingerprint](super::fingerprint) of each piece without a match is
//! kept in a table of fixed size; a new one replaces an older one in the same slot. The table
//! belongs to one set of words: with another set everything is searched again.
//!
//! A piece begins and ends outside of strings. Its result must hold at any position in a body: none
//! of its strings, whatever its role, contains a word.
//!
//! See docs/decisions/21-cleared-text.md.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::fingerprint::Fingerprints;

/// Slots of the table: one MiB, allocated with the first piece.
const PLACES: usize = 1 << 17;

/// The pieces that contain no word of one set.
#[derive(Debug, Default)]
pub(super) struct Cleared {
    prints: Fingerprints,
    places: OnceLock<Box<[AtomicU64]>>,
}

/// The fingerprint of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint(u64);

impl Cleared {
    pub(super) fn fingerprint<'b>(&self, parts: impl Iterator<Item = &'b [u8]>) -> Fingerprint {
        // Never zero, which marks a free slot.
        Fingerprint(self.prints.of(parts) | 1 << 63)
    }

    pub(super) fn holds(&self, piece: Fingerprint) -> bool {
        // A slot is one independent number: no memory order between slots is needed.
        self.places
            .get()
            .is_some_and(|places| places[piece.place()].load(Ordering::Relaxed) == piece.0)
    }

    pub(super) fn note(&self, piece: Fingerprint) {
        let places = self.places.get_or_init(|| (0..PLACES).map(|_| AtomicU64::new(0)).collect());
        places[piece.place()].store(piece.0, Ordering::Relaxed);
    }
}

impl Fingerprint {
    const fn place(self) -> usize {
        #[expect(clippy::cast_possible_truncation, reason = "fewer bits are wanted")]
        let low = self.0 as usize;
        low % PLACES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_noted_is_known_until_another_takes_its_place() {
        let cleared = Cleared::default();
        let piece = |text: &'static str| cleared.fingerprint(std::iter::once(text.as_bytes()));
        assert!(!cleared.holds(piece("a")) && !cleared.holds(piece("")));
        cleared.note(piece("a"));
        assert!(
            cleared.holds(piece("a")) && !cleared.holds(piece("b")) && !cleared.holds(piece(""))
        );
        let rival = Fingerprint(piece("a").0 ^ 1 << 40);
        cleared.note(rival);
        assert!(cleared.holds(rival) && !cleared.holds(piece("a")));
    }
}
