//! The inside of JSON strings: finding their end fast, while checking every byte.
//!
//! This is where most of a prompt's bytes are, so no byte is looked at alone unless it is special (a quote, a backslash,
//! a control character, not ASCII): eight bytes at once are tested in a machine word, sixty-four in a loop that the compiler
//! turns into vector code. Runs of non-ASCII bytes are handed to the standard library's UTF-8 check.

use wide::i8x16;

use super::scan::Problem;

/// What may follow a backslash, `u` apart.
const SIMPLE: [bool; 256] = {
    let mut table = [false; 256];
    let letters = b"\"\\/bfnrt";
    let mut i = 0;
    while i < letters.len() {
        table[letters[i] as usize] = true;
        i += 1;
    }
    table
};

/// Where in a string a chunk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Plain,
    /// Behind a backslash.
    Escape,
    /// Inside a `\u` escape: so many digits are still to come.
    Hex(u8),
    /// Inside a multi-byte character: the bytes so far, and how many.
    Utf8([u8; 4], u8),
}

/// How a run through a string's bytes ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The closing quote is at this index.
    Quote(usize),
    /// The chunk ended first.
    Chunk(Phase),
    Bad(Problem, usize),
}

/// Goes on in a string from `from`, in the phase where the last chunk left it. Sets `escaped` when it meets an escape.
pub fn resume(bytes: &[u8], from: usize, phase: Phase, escaped: &mut bool) -> Stop {
    let mut at = from;
    let mut phase = phase;
    loop {
        let next = match phase {
            Phase::Plain => return run(bytes, at, escaped),
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

/// Runs through a string from `from`, which is neither inside an escape nor inside a character.
#[inline]
pub fn run(bytes: &[u8], from: usize, escaped: &mut bool) -> Stop {
    let mut at = from;
    // Keys and short values end within the first few bytes.
    if let Some(lane) = bytes[at..].first_chunk::<16>() {
        let special = special_16(lane);
        if special == 0 {
            at += 16;
        } else {
            at += special.trailing_zeros() as usize;
            if bytes[at] == b'"' {
                return Stop::Quote(at);
            }
        }
    }
    long_run(bytes, at, escaped)
}

fn long_run(bytes: &[u8], from: usize, escaped: &mut bool) -> Stop {
    let mut at = from;
    'blocks: while let Some(block) = bytes[at..].first_chunk::<64>() {
        let mut special = special_64(block);
        while special != 0 {
            let here = at + special.trailing_zeros() as usize;
            let byte = bytes[here];
            if byte == b'\\' && bytes.get(here + 1).is_some_and(|next| SIMPLE[usize::from(*next)]) {
                *escaped = true;
                if here + 2 > at + 64 {
                    at = here + 2;
                    continue 'blocks;
                }
                // The escape's second byte may have its bit set, too.
                special &= special - 1;
                special &= !(1 << (here + 1 - at));
                continue;
            }
            if byte == b'"' {
                return Stop::Quote(here);
            }
            let next = match special_byte(bytes, here, escaped) {
                Ok(next) => next,
                Err(stop) => return stop,
            };
            if next >= at + 64 {
                at = next;
                continue 'blocks;
            }
            // What lies behind it in this block was tested already.
            special &= u64::MAX << (next - at);
        }
        at += 64;
    }
    tail(bytes, at, escaped)
}

/// Deals with a byte that ends the string, begins an escape or a character, or must not be; gives the index behind it.
fn special_byte(bytes: &[u8], at: usize, escaped: &mut bool) -> Result<usize, Stop> {
    match bytes[at] {
        b'\\' => {
            *escaped = true;
            escape(bytes, at + 1)
        }
        b'"' => Err(Stop::Quote(at)),
        0x80.. => characters(bytes, at),
        _ => Err(Stop::Bad(Problem::Control, at)),
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

/// Checks what follows a backslash; gives the index behind it.
#[inline]
fn escape(bytes: &[u8], at: usize) -> Result<usize, Stop> {
    match bytes.get(at) {
        Some(b'u') => hex(bytes, at + 1, 4),
        Some(letter) if SIMPLE[usize::from(*letter)] => Ok(at + 1),
        Some(_) => Err(Stop::Bad(Problem::Escape, at)),
        None => Err(Stop::Chunk(Phase::Escape)),
    }
}

fn hex(bytes: &[u8], from: usize, digits: u8) -> Result<usize, Stop> {
    for done in 0..digits {
        let at = from + usize::from(done);
        match bytes.get(at) {
            Some(digit) if digit.is_ascii_hexdigit() => {}
            Some(_) => return Err(Stop::Bad(Problem::Escape, at)),
            None => return Err(Stop::Chunk(Phase::Hex(digits - done))),
        }
    }
    Ok(from + usize::from(digits))
}

/// Checks a run of non-ASCII bytes; gives the index behind it.
fn characters(bytes: &[u8], from: usize) -> Result<usize, Stop> {
    let mut at = from;
    while let Some(&next) = bytes[at..].first_chunk::<4>() {
        match character_len(u32::from_le_bytes(next)) {
            0 if next[0].is_ascii() => return Ok(at),
            0 => return Err(Stop::Bad(Problem::Utf8, at)),
            len => at += len,
        }
    }
    last_characters(bytes, at)
}

/// The length of the multi-byte character at the low end of `word`; 0 when there is no valid one.
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
        let bad =
            (word & 0xff == 0xf0 && second < 0x90) || (word & 0xff == 0xf4 && second > 0x8f) || word & 0xff > 0xf4;
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
        return Err(Stop::Bad(Problem::Utf8, good));
    }
    let mut had = [0; 4];
    let cut = &bytes[good..];
    had[..cut.len()].copy_from_slice(cut);
    #[expect(clippy::cast_possible_truncation, reason = "an unfinished character has at most three bytes")]
    Err(Stop::Chunk(Phase::Utf8(had, cut.len() as u8)))
}

/// Goes on with a character that the last chunk cut.
fn complete_character(bytes: &[u8], from: usize, had: [u8; 4], len: u8) -> Result<usize, Stop> {
    let mut character = had;
    let mut len = usize::from(len);
    let mut at = from;
    loop {
        let Some(&byte) = bytes.get(at) else {
            #[expect(clippy::cast_possible_truncation, reason = "an unfinished character has at most three bytes")]
            return Err(Stop::Chunk(Phase::Utf8(character, len as u8)));
        };
        character[len] = byte;
        len += 1;
        at += 1;
        match std::str::from_utf8(&character[..len]) {
            Ok(_) => return Ok(at),
            Err(error) if error.error_len().is_none() => {}
            Err(_) => return Err(Stop::Bad(Problem::Utf8, at - 1)),
        }
    }
}

/// The high bit of each byte of a word that is a quote, a backslash, a control character or not ASCII.
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
fn special_16(lane: &[u8; 16]) -> u32 {
    mask_16(lane).to_bitmask()
}

#[inline]
fn special_64(block: &[u8; 64]) -> u64 {
    let (lanes, _) = block.as_chunks::<16>();
    let [a, b, c, d] = [mask_16(&lanes[0]), mask_16(&lanes[1]), mask_16(&lanes[2]), mask_16(&lanes[3])];
    if (a | b | c | d).to_bitmask() == 0 {
        return 0;
    }
    let wide = |lane: i8x16, by: u32| u64::from(lane.to_bitmask()) << by;
    wide(a, 0) | wide(b, 16) | wide(c, 32) | wide(d, 48)
}

#[inline]
fn mask_16(lane: &[u8; 16]) -> i8x16 {
    let v = i8x16::new(lane.map(u8::cast_signed));
    // Signed: control characters and bytes from 0x80 on are both less than a space.
    v.simd_lt(i8x16::splat(0x20)) | v.simd_eq(i8x16::splat(0x22)) | v.simd_eq(i8x16::splat(0x5c))
}
