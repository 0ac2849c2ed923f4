//! Scans strings of valid UTF-8, 64 bytes at once, with the widest vectors that the processor has.
//!
//! A large chunk's characters are checked all at once (`valid_part`). Then only quotes, backslashes
//! and control characters matter in its strings. The loop has few branches that depend on the text,
//! because a wrong guess of the processor costs more than the work. A body of 190 KB of prose takes
//! 28 µs, of which 12 check UTF-8; with 128-bit vectors and such branches it took 48. The libraries
//! for JSON take 100 and more (bench/RESULTS.md).

use fearless_simd::{Level, Simd, dispatch, prelude::*, u8x64};

use super::bytes::{SIMPLE, behind_slashes, character_len_of};

/// For a smaller chunk a separate check costs more than it saves.
const WORTH: usize = 128;
/// After this many blocks without any special byte, more are expected.
const QUIET: u32 = 4;

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

/// The length of the part of a chunk in which all characters are valid, as far as it is worth
/// knowing: 0 if the chunk is small. The chunk's first `missing` bytes belong to a character of the
/// chunk before it.
pub(super) fn valid_part(chunk: &[u8], missing: usize) -> usize {
    if chunk.len() < WORTH {
        return 0;
    }
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

/// Scans a string in `bytes`, whose characters are valid: up to the closing quote, or to a place
/// that needs a closer check. That place may be inside a character, but not inside an escape,
/// unless among the digits of one that was checked.
pub(super) fn run(bytes: &[u8], from: usize, escaped: &mut bool) -> Result<usize, usize> {
    dispatch!(Level::new(), simd => scan(simd, bytes, from, escaped))
}

#[inline(always)]
fn scan<S: Simd>(simd: S, bytes: &[u8], from: usize, escaped: &mut bool) -> Result<usize, usize> {
    let mut at = from;
    // 1: the block's first byte belongs to an escape that the block before began. So no block's
    // place depends on what is in another, and the processor can read ahead.
    let mut cut = 0;
    let mut quiet = 0;
    while let Some(block) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let block = u8x64::simd_from(simd, *block);
        let equal = |byte| block.simd_eq(u8x64::splat(simd, byte));
        let (quotes, slashes) = (equal(b'"').to_bitmask(), equal(b'\\').to_bitmask());
        let controls = block.simd_lt(u8x64::splat(simd, b' ')).to_bitmask();
        let (behind, next) = behind_slashes(slashes, cut);
        let closing = quotes & !behind;
        // The string's own part of the block.
        let own = closing.wrapping_sub(1) & !closing;
        *escaped |= behind & own != 0;
        // Most escapes are line ends, tabs, quotes and backslashes.
        let usual = (equal(b'n') | equal(b't') | equal(b'r')).to_bitmask();
        let mut rare = (behind & !(quotes | slashes | usual) | controls) & own;
        while rare != 0 {
            let place = at + rare.trailing_zeros() as usize;
            match SIMPLE_OR_U[usize::from(bytes[place])] {
                1 => {}
                2 if is_hex(bytes.get(place + 1..)) => {}
                // Damaged, or cut by the end. Also each control character.
                _ => return Err(at - cut as usize),
            }
            rare &= rare - 1;
        }
        if closing != 0 {
            return Ok(at + closing.trailing_zeros() as usize);
        }
        (at, cut) = (at + 64, next);
        quiet = if quotes | slashes == 0 { quiet + 1 } else { 0 };
        if quiet == QUIET {
            quiet = 0;
            at += quiet_part(simd, bytes.get(at..).unwrap_or_default());
        }
    }
    Err((at - cut as usize).min(bytes.len().max(from)))
}

/// The bytes of the blocks before the first one with a special byte.
#[inline(always)]
fn quiet_part<S: Simd>(simd: S, bytes: &[u8]) -> usize {
    let (blocks, _) = bytes.as_chunks();
    let quiet = blocks.iter().take_while(|block| {
        let block = u8x64::simd_from(simd, **block);
        let equal = |byte| block.simd_eq(u8x64::splat(simd, byte));
        let controls = block.simd_lt(u8x64::splat(simd, b' '));
        !(equal(b'"') | equal(b'\\') | controls).any_true()
    });
    64 * quiet.count()
}

/// Four hexadecimal digits are there.
#[inline]
fn is_hex(bytes: Option<&[u8]>) -> bool {
    bytes
        .and_then(<[u8]>::first_chunk::<4>)
        .is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use proptest::prelude::{any, prop, proptest};

    use super::{Level, run, scan};

    proptest! {
        #[test]
        fn all_vectors_find_the_same(
            pieces in prop::collection::vec(prop::sample::select(&["ab", "é", "密码", "\\n", "\\\"", "\\\\", "\\u4e2D", "\\ud8", "\\x", "\"", "\n", "a line of plain text that is longer than one whole block of bytes is"][..]), 1..60),
            from in any::<prop::sample::Index>(),
        ) {
            let text = pieces.concat();
            let from = from.index(text.len());
            let level = Level::new();
            let at = |scan: &dyn Fn(&mut bool) -> Result<usize, usize>| {
                let mut escaped = false;
                (scan(&mut escaped), escaped)
            };
            let found = at(&|escaped| run(text.as_bytes(), from, escaped));
            let others = [
                level.as_sse2().map(|simd| at(&|escaped| scan(simd, text.as_bytes(), from, escaped))),
                level.as_sse4_2().map(|simd| at(&|escaped| scan(simd, text.as_bytes(), from, escaped))),
                level.as_avx2().map(|simd| at(&|escaped| scan(simd, text.as_bytes(), from, escaped))),
            ];
            for other in others.into_iter().flatten() {
                proptest::prop_assert_eq!(other, found);
            }
        }
    }
}
