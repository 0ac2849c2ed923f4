//! Checks a chunk of JSON as a whole, and scans strings fast if it is calm: valid UTF-8 and no
//! control characters, not even between strings, as clients' bodies nearly always are.
//!
//! Then only quotes and backslashes are searched, 64 bytes at once; long stretches without either
//! are skipped by memchr.

use wide::i8x16;

use super::bytes::{SIMPLE, behind_slashes, character_len_of, joined, lanes};

/// For a smaller chunk a separate check costs more than it saves.
const WORTH: usize = 128;
/// If there are control characters, there is one within this many bytes.
const PART: usize = 4096;
/// After this many blocks without any special byte, more are expected.
const QUIET: u32 = 2;

/// The byte after a backslash: 1 for a complete escape, 2 for `u`.
const SIMPLE_OR_U: [u8; 256] = {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        table[i] = SIMPLE[i] as u8;
        i += 1;
    }
    table[b'u' as usize] = 2;
    table
};

/// Facts about a chunk's bytes, found before its strings are read.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Known {
    /// Up to here its characters are valid.
    valid: usize,
    /// It has no control characters, not even between strings.
    calm: bool,
}

impl Known {
    /// The part of the chunk in which characters are valid, when there are no control characters in
    /// it.
    #[inline]
    pub(super) fn calm<'c>(&self, chunk: &'c [u8]) -> Option<&'c [u8]> {
        if self.calm { chunk.get(..self.valid) } else { None }
    }

    pub(super) const fn valid(&self) -> usize {
        self.valid
    }

    /// Checks a chunk whose first `missing` bytes belong to a character of the one before it.
    pub(super) fn of(chunk: &[u8], missing: usize) -> Self {
        if chunk.len() < WORTH {
            return Self::default();
        }
        Self { valid: valid(chunk, missing), calm: chunk.chunks(PART).all(is_calm) }
    }
}

fn is_calm(part: &[u8]) -> bool {
    let (blocks, rest) = part.as_chunks::<64>();
    let mut least = [u8::MAX; 64];
    for block in blocks {
        for (least, byte) in least.iter_mut().zip(block) {
            *least = (*least).min(*byte);
        }
    }
    least.iter().chain(rest).all(|byte| *byte >= b' ')
}

fn valid(chunk: &[u8], missing: usize) -> usize {
    let last = chunk.iter().rev().take(3).position(|byte| *byte >= 0xc0).map_or(0, |at| at + 1);
    let is_cut = chunk
        .len()
        .checked_sub(last)
        .and_then(|at| chunk.get(at))
        .is_some_and(|lead| character_len_of(*lead) > last);
    let end = chunk.len() - if is_cut { last } else { 0 };
    let whole = chunk.get(missing..end).unwrap_or_default();
    if simdutf8::basic::from_utf8(whole).is_ok() { end } else { 0 }
}

/// Scans a stretch that is valid and has no control characters: up to the closing quote, or to a
/// place that needs a closer check. That place is not inside an escape, but may be inside a
/// character.
pub(super) fn calm_run(bytes: &[u8], from: usize, escaped: &mut bool) -> Result<usize, usize> {
    let mut at = from;
    let mut quiet = 0;
    while let Some(block) = bytes.get(at..).and_then(<[u8]>::first_chunk::<64>) {
        let lanes = lanes(block);
        let quotes = lanes.map(|lane| lane.simd_eq(i8x16::splat(0x22)));
        let slashes = lanes.map(|lane| lane.simd_eq(i8x16::splat(0x5c)));
        let special = joined([0, 1, 2, 3].map(|at| quotes[at] | slashes[at]));
        if special == 0 {
            at += 64;
            quiet += 1;
            if quiet == QUIET {
                quiet = 0;
                let rest = bytes.get(at..).unwrap_or_default();
                at += memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
            }
            continue;
        }
        quiet = 0;
        let slashes = joined(slashes);
        let behind = behind_slashes(slashes);
        let quotes = (special ^ slashes) & !behind;
        // The string's own part of the block.
        let own = quotes.wrapping_sub(1) & !quotes;
        let escapes = slashes & !behind & own;
        *escaped |= escapes != 0;
        let mut unread = escapes;
        if unread & unread.wrapping_sub(1) != 0 {
            // Of several, most are line ends, quotes and backslashes.
            let usual = special | joined(lanes.map(|lane| lane.simd_eq(i8x16::splat(0x6e))));
            unread &= !(usual >> 1);
        }
        while unread != 0 {
            let slash = at + unread.trailing_zeros() as usize;
            let second = bytes.get(slash + 1).map_or(0, |second| SIMPLE_OR_U[usize::from(*second)]);
            if second != 1 && (second == 0 || !is_hex(bytes.get(slash + 2..))) {
                return Err(slash);
            }
            unread &= unread - 1;
        }
        if quotes != 0 {
            return Ok(at + quotes.trailing_zeros() as usize);
        }
        at += 64 + usize::from(escapes >> 63 != 0);
    }
    Err(at.min(bytes.len().max(from)))
}

/// Four hexadecimal digits are there.
#[inline]
fn is_hex(bytes: Option<&[u8]>) -> bool {
    bytes
        .and_then(<[u8]>::first_chunk::<4>)
        .is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
}
