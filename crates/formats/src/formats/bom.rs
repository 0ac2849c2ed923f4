//! The byte order mark that some services and clients write before their JSON. RFC 8259 lets a
//! reader ignore it; nothing behind the readers of this crate expects it.

use bytes::{Buf as _, Bytes};

const BOM: &[u8] = &[0xEF, 0xBB, 0xBF];

/// Removes a mark from the start of a body that is given as its pieces.
pub fn strip(pieces: &mut [Bytes]) {
    let starts = pieces.iter().flat_map(|piece| piece.iter()).take(BOM.len()).eq(BOM);
    let mut left = if starts { BOM.len() } else { 0 };
    for piece in pieces {
        let own = left.min(piece.len());
        piece.advance(own);
        left -= own;
        if left == 0 {
            return;
        }
    }
}

/// Removes a mark from the start of a body that arrives piece by piece.
#[derive(Debug, Default)]
pub struct Filter {
    /// Bytes of the mark so far.
    seen: usize,
    is_past: bool,
}

impl Filter {
    /// The piece without the mark, or what of it is known to be none.
    pub fn pass(&mut self, mut piece: Bytes) -> Bytes {
        if self.is_past || piece.is_empty() {
            return piece;
        }
        let wanted = &BOM[self.seen..];
        let equal = piece.iter().zip(wanted).take_while(|(one, other)| one == other).count();
        self.is_past = equal == wanted.len() || equal < piece.len();
        if self.is_past && equal < wanted.len() {
            // It only began like one.
            let before = std::mem::take(&mut self.seen);
            return if before == 0 { piece } else { [&BOM[..before], &piece].concat().into() };
        }
        self.seen += equal;
        piece.advance(equal);
        piece
    }

    /// Whether a mark was removed.
    pub const fn has_removed(&self) -> bool {
        self.seen == BOM.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_removed_however_the_body_is_cut() {
        for (body, rest) in [
            (&b"\xEF\xBB\xBF{}"[..], &b"{}"[..]),
            (b"{}", b"{}"),
            (b"\xEF\xBB{}", b"\xEF\xBB{}"),
            (b"\xEF\xBB\xBF\xEF\xBB\xBF1", b"\xEF\xBB\xBF1"),
            (b"1\xEF\xBB\xBF", b"1\xEF\xBB\xBF"),
            (b"", b""),
        ] {
            for size in 1..=body.len().max(1) {
                let mut pieces: Vec<Bytes> =
                    body.chunks(size).map(Bytes::copy_from_slice).collect();
                let mut filter = Filter::default();
                let passed: Vec<u8> =
                    pieces.iter().flat_map(|piece| filter.pass(piece.clone())).collect();
                assert_eq!(passed, rest, "{size}");
                assert_eq!(filter.has_removed(), rest.len() < body.len(), "{size}");
                strip(&mut pieces);
                assert_eq!(pieces.concat(), rest, "{size}");
            }
        }
    }
}
