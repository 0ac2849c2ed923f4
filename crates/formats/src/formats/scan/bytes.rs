//! What both scanners of strings know of bytes: lead bytes, and escapes.

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

/// The bytes of a block that a backslash makes part of an escape, one bit each, and whether one at
/// its end (0 or 1) does that to the next block's first byte, as `cut` says of this one. A run of
/// backslashes is paired from its start.
#[inline(always)]
pub(super) const fn behind_slashes(slashes: u64, cut: u64) -> (u64, u64) {
    const EVEN: u64 = 0x5555_5555_5555_5555;
    let slashes = slashes & !cut;
    let follows = slashes << 1 | cut;
    // Adding carries each run that begins at an odd place to its end: there the sense of even and
    // odd is inverted.
    let odd_starts = slashes & !EVEN & !follows;
    let (turned, over) = odd_starts.overflowing_add(slashes);
    ((EVEN ^ turned << 1) & follows, over as u64)
}
