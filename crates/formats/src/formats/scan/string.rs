//! The content of JSON strings: finds their end fast, while checking every byte.
//!
//! Most of a prompt's bytes are in strings, so only special bytes (a quote, a backslash, a control
//! character) are examined one by one. The characters of a large chunk are checked first, all
//! together; `scan::blocks` reads the strings in the valid part of it. Everything else is read
//! here: small chunks, ends of chunks, damaged text. Eight bytes at once are tested in a machine
//! word, 64 in a vector; non-ASCII characters are checked one by one.

use fearless_simd::{Level, Simd, dispatch, prelude::*, u8x16, u8x64};

use super::ScanProblem;
use super::blocks;
use super::bytes::{SIMPLE, behind_slashes, character_len_of};

/// A string up to this length is read in small steps: ids and long names end within them. Without,
/// a stream of 50 events takes 4 % more instructions.
const SHORT: usize = 48;

/// The position in a string where a chunk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Plain,
    /// After a backslash.
    Escape,
    /// Inside a `\u` escape: this many digits are missing.
    Hex(u8),
    /// Inside a multi-byte character: the bytes so far, and how many.
    Utf8([u8; 4], u8),
}

/// How a scan of a string's bytes ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The closing quote is at this index.
    Quote(usize),
    /// The chunk ended first.
    Chunk(Phase),
    Bad(ScanProblem, usize),
}

impl Phase {
    /// How many bytes are missing of the character that the last chunk cut.
    pub(super) const fn missing(self) -> usize {
        match self {
            Self::Utf8([lead, ..], len) => character_len_of(lead).saturating_sub(len as usize),
            _ => 0,
        }
    }
}

/// Continues in a string at `from`, in the phase where the last chunk left it. Sets `escaped` on an
/// escape.
pub(super) fn resume(
    bytes: &[u8],
    from: usize,
    valid: usize,
    phase: Phase,
    escaped: &mut bool,
) -> Stop {
    let mut at = from;
    let mut phase = phase;
    loop {
        let next = match phase {
            Phase::Plain => return run(bytes, at, valid, escaped),
            Phase::Escape => escape(bytes, at),
            Phase::Hex(left) => hex(bytes, at, left),
            Phase::Utf8(had, len) => complete_character(bytes, at, had, len),
        };
        match next {
            Ok(end) => at = end,
            Err(stop) => return stop,
        }
        phase = Phase::Plain;
    }
}

/// The index of the closing quote of the string whose content begins at `from`, and whether it has
/// escapes. `None` if it is invalid, or does not end in `bytes`.
pub fn string_end(bytes: &[u8], from: usize) -> Option<(usize, bool)> {
    let mut escaped = false;
    match run(bytes, from, 0, &mut escaped) {
        Stop::Quote(end) => Some((end, escaped)),
        Stop::Chunk(_) | Stop::Bad(..) => None,
    }
}

/// As [`string_end`], of a text: its characters are known to be valid.
#[inline]
pub fn text_end(text: &str, from: usize) -> Option<(usize, bool)> {
    let mut escaped = false;
    match run(text.as_bytes(), from, text.len(), &mut escaped) {
        Stop::Quote(end) => Some((end, escaped)),
        Stop::Chunk(_) | Stop::Bad(..) => None,
    }
}

/// Scans a string from `from`, which is neither inside an escape nor inside a character.
#[inline]
pub(super) fn run(bytes: &[u8], from: usize, valid: usize, escaped: &mut bool) -> Stop {
    let mut at = from;
    // Keys, ids and short values end within the first few bytes.
    while at < from + SHORT
        && let Some(lane) = bytes.get(at..).and_then(<[u8]>::first_chunk::<16>)
    {
        let special = special_16(lane);
        if special == 0 {
            at += 16;
            continue;
        }
        at += special.trailing_zeros() as usize;
        if bytes[at] == b'"' {
            return Stop::Quote(at);
        }
        break;
    }
    if at < valid {
        match blocks::run(&bytes[..valid], at, escaped) {
            Ok(end) => return Stop::Quote(end),
            Err(left) => at = left,
        }
        // The rest of a character that is known to be valid.
        while at < valid && bytes[at] & 0xc0 == 0x80 {
            at += 1;
        }
    }
    long_run(bytes, at, escaped)
}

fn long_run(bytes: &[u8], from: usize, escaped: &mut bool) -> Stop {
    let mut at = from;
    'blocks: while let Some(block) = bytes[at..].first_chunk::<64>() {
        let mut bits = Bits::of(block);
        loop {
            if (bits.quotes | bits.slashes | bits.others) == 0 {
                at += 64;
                continue 'blocks;
            }
            let (behind, _) = behind_slashes(bits.slashes, 0);
            let quotes = bits.quotes & !behind;
            // The string's own part of the block.
            let own = quotes.wrapping_sub(1) & !quotes;
            let escapes = bits.slashes & !behind & own;
            let mut unread = escapes;
            while unread != 0 {
                let second = bytes.get(at + unread.trailing_zeros() as usize + 1);
                if second.is_none_or(|second| !SIMPLE[usize::from(*second)]) {
                    break;
                }
                unread &= unread - 1;
            }
            let first = (unread | bits.others & own).trailing_zeros();
            *escaped |= escapes != 0;
            if first == 64 {
                if quotes != 0 {
                    return Stop::Quote(at + quotes.trailing_zeros() as usize);
                }
                at += 64 + usize::from(escapes >> 63 != 0);
                continue 'blocks;
            }
            let next = match special_byte(bytes, at + first as usize, escaped) {
                Ok(next) => next,
                Err(stop) => return stop,
            };
            if next >= at + 64 {
                at = next;
                continue 'blocks;
            }
            bits.drop_before(next - at);
        }
    }
    tail(bytes, at, escaped)
}

/// The special bytes among 64, one bit for each, the first byte lowest.
struct Bits {
    quotes: u64,
    slashes: u64,
    /// Control characters and non-ASCII bytes.
    others: u64,
}

impl Bits {
    #[inline]
    fn of(block: &[u8; 64]) -> Self {
        dispatch!(Level::baseline(), simd => Self::read(simd, *block))
    }

    #[inline(always)]
    fn read<S: Simd>(simd: S, block: [u8; 64]) -> Self {
        let block = u8x64::simd_from(simd, block);
        let equal = |byte| block.simd_eq(u8x64::splat(simd, byte)).to_bitmask();
        let others =
            block.simd_lt(u8x64::splat(simd, b' ')) | block.simd_ge(u8x64::splat(simd, 0x80));
        Self { quotes: equal(b'"'), slashes: equal(b'\\'), others: others.to_bitmask() }
    }

    const fn drop_before(&mut self, at: usize) {
        let keep = u64::MAX << at;
        self.quotes &= keep;
        self.slashes &= keep;
        self.others &= keep;
    }
}

/// Handles a byte that ends the string, begins an escape or a character, or is invalid; returns the
/// index after it.
fn special_byte(bytes: &[u8], at: usize, escaped: &mut bool) -> Result<usize, Stop> {
    match bytes[at] {
        b'\\' => {
            *escaped = true;
            escape(bytes, at + 1)
        }
        b'"' => Err(Stop::Quote(at)),
        0x80.. => characters(bytes, at),
        _ => Err(Stop::Bad(ScanProblem::Control, at)),
    }
}

/// The last few bytes of a chunk, one by one.
fn tail(bytes: &[u8], from: usize, escaped: &mut bool) -> Stop {
    let mut at = from;
    while let Some(&byte) = bytes.get(at) {
        if let Some(word) = bytes[at..].first_chunk::<8>() {
            let special = special_in(u64::from_le_bytes(*word));
            at += special.trailing_zeros() as usize / 8;
            if special == 0 {
                continue;
            }
        } else if byte.is_ascii() && byte >= 0x20 && byte != b'"' && byte != b'\\' {
            at += 1;
            continue;
        }
        at = match special_byte(bytes, at, escaped) {
            Ok(next) => next,
            Err(stop) => return stop,
        };
    }
    Stop::Chunk(Phase::Plain)
}

/// Checks the bytes after a backslash; returns the index after them.
#[inline]
fn escape(bytes: &[u8], at: usize) -> Result<usize, Stop> {
    match bytes.get(at) {
        Some(b'u') => hex(bytes, at + 1, 4),
        Some(letter) if SIMPLE[usize::from(*letter)] => Ok(at + 1),
        Some(_) => Err(Stop::Bad(ScanProblem::Escape, at)),
        None => Err(Stop::Chunk(Phase::Escape)),
    }
}

fn hex(bytes: &[u8], from: usize, digits: u8) -> Result<usize, Stop> {
    for done in 0..digits {
        let at = from + usize::from(done);
        match bytes.get(at) {
            Some(digit) if digit.is_ascii_hexdigit() => {}
            Some(_) => return Err(Stop::Bad(ScanProblem::Escape, at)),
            None => return Err(Stop::Chunk(Phase::Hex(digits - done))),
        }
    }
    Ok(from + usize::from(digits))
}

/// Checks a run of non-ASCII bytes; returns the index after it.
fn characters(bytes: &[u8], from: usize) -> Result<usize, Stop> {
    let mut at = from;
    while let Some(&next) = bytes[at..].first_chunk::<4>() {
        match character_len(u32::from_le_bytes(next)) {
            0 if next[0].is_ascii() => return Ok(at),
            0 => return Err(Stop::Bad(ScanProblem::Utf8, at)),
            len => at += len,
        }
    }
    last_characters(bytes, at)
}

/// The length of the multi-byte character at the low end of `word`; 0 if there is no valid one.
#[inline]
const fn character_len(word: u32) -> usize {
    let second = word >> 8 & 0xff;
    if word & 0x00c0_c0f0 == 0x0080_80e0 {
        // Three bytes: neither overlong nor a surrogate.
        let bad = (word & 0xff == 0xe0 && second < 0xa0) || (word & 0xff == 0xed && second > 0x9f);
        return if bad { 0 } else { 3 };
    }
    if word & 0xc0e0 == 0x80c0 {
        return if word & 0x1e == 0 { 0 } else { 2 };
    }
    if word & 0xc0c0_c0f8 == 0x8080_80f0 {
        let bad = (word & 0xff == 0xf0 && second < 0x90)
            || (word & 0xff == 0xf4 && second > 0x8f)
            || word & 0xff > 0xf4;
        return if bad { 0 } else { 4 };
    }
    0
}

/// The same with fewer than four bytes to the chunk's end.
fn last_characters(bytes: &[u8], from: usize) -> Result<usize, Stop> {
    let len = bytes[from..].iter().position(u8::is_ascii).unwrap_or(bytes.len() - from);
    let text = &bytes[from..from + len];
    let Err(error) = std::str::from_utf8(text) else { return Ok(from + len) };
    let good = from + error.valid_up_to();
    if error.error_len().is_some() || from + len < bytes.len() {
        return Err(Stop::Bad(ScanProblem::Utf8, good));
    }
    let mut had = [0; 4];
    let cut = &bytes[good..];
    had[..cut.len()].copy_from_slice(cut);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "an unfinished character has at most three bytes"
    )]
    Err(Stop::Chunk(Phase::Utf8(had, cut.len() as u8)))
}

/// Continues with a character that the last chunk cut.
fn complete_character(bytes: &[u8], from: usize, had: [u8; 4], len: u8) -> Result<usize, Stop> {
    let mut character = had;
    let mut len = usize::from(len);
    let mut at = from;
    loop {
        let Some(&byte) = bytes.get(at) else {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "an unfinished character has at most three bytes"
            )]
            return Err(Stop::Chunk(Phase::Utf8(character, len as u8)));
        };
        character[len] = byte;
        len += 1;
        at += 1;
        match std::str::from_utf8(&character[..len]) {
            Ok(_) => return Ok(at),
            Err(error) if error.error_len().is_none() => {}
            Err(_) => return Err(Stop::Bad(ScanProblem::Utf8, at - 1)),
        }
    }
}

/// The high bit of each byte of a word that is a quote, a backslash, a control character or not
/// ASCII.
///
/// Exact for every byte: no addition can carry from one byte into the next.
#[inline]
const fn special_in(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * ONES;
    let low = word & !HIGH;
    let printable = low + 0x60 * ONES;
    let no_quote = (low ^ (0x22 * ONES)) + 0x7f * ONES;
    let no_backslash = (low ^ (0x5c * ONES)) + 0x7f * ONES;
    !(printable & no_quote & no_backslash & !word) & HIGH
}

/// One bit per byte that is special, the first byte lowest.
#[inline]
fn special_16(lane: &[u8; 16]) -> u64 {
    dispatch!(Level::baseline(), simd => special_in_lane(simd, *lane))
}

#[inline(always)]
fn special_in_lane<S: Simd>(simd: S, lane: [u8; 16]) -> u64 {
    let lane = u8x16::simd_from(simd, lane);
    let equal = |byte| lane.simd_eq(u8x16::splat(simd, byte));
    let others = lane.simd_lt(u8x16::splat(simd, b' ')) | lane.simd_ge(u8x16::splat(simd, 0x80));
    (others | equal(b'"') | equal(b'\\')).to_bitmask()
}
