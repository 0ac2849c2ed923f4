//! What both scanners of strings know of bytes: lead bytes, escapes, and blocks of 64 as bit masks.

use wide::i8x16;

/// The bytes allowed after a backslash, except `u`.
pub(super) const SIMPLE: [bool; 256] = {
    let mut table = [false; 256];
    let letters = b"\"\\/bfnrt";
    let mut i = 0;
    while i < letters.len() {
        table[letters[i] as usize] = true;
        i += 1;
    }
    table
};

/// The length of a character with this first byte, if it is valid.
pub(super) const fn character_len_of(lead: u8) -> usize {
    match lead {
        0xf0.. => 4,
        0xe0.. => 3,
        0xc0.. => 2,
        _ => 1,
    }
}

/// The bytes that a backslash makes part of an escape. A run of backslashes is paired from its
/// start.
#[inline]
pub(super) const fn behind_slashes(slashes: u64) -> u64 {
    const EVEN: u64 = 0x5555_5555_5555_5555;
    let follows = slashes << 1;
    if slashes & follows == 0 {
        return follows;
    }
    // Adding carries each run that begins at an odd place to its end: there the sense of even and
    // odd is inverted.
    let odd_starts = slashes & !EVEN & !follows;
    let turned = odd_starts.wrapping_add(slashes) << 1;
    (EVEN ^ turned) & follows
}

#[inline]
pub(super) fn lanes(block: &[u8; 64]) -> [i8x16; 4] {
    let (lanes, _) = block.as_chunks::<16>();
    [0, 1, 2, 3].map(|at| i8x16::new(lanes[at].map(u8::cast_signed)))
}

#[inline]
pub(super) fn joined(lanes: [i8x16; 4]) -> u64 {
    let [a, b, c, d] = lanes.map(|lane| u64::from(lane.to_bitmask()));
    a | b << 16 | c << 32 | d << 48
}
