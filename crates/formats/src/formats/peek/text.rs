//! The first texts of a conversation: their position in the body, and a hash of them.
//!
//! A conversation's later turns repeat the same system text and the same first messages, so the
//! hash names the conversation. Only texts count: around them clients move cache marks from turn to
//! turn, or write a text as a block. The hash does not prevent deliberate collisions; session ids
//! are separated by key.

use std::ops::Range;

/// Texts that are hashed: more would not distinguish conversations better.
const MAX_TEXTS: usize = 24;
/// Maximum bytes hashed; the length of every text counts as well.
const MAX_BYTES: usize = 32 * 1024;

/// Spans of the system texts and of the messages up to the first one of the user.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct FirstTexts {
    system: Vec<Range<usize>>,
    messages: Vec<Range<usize>>,
    /// How many of `messages` belong to messages that are complete.
    settled: usize,
    is_user: bool,
    has_role: bool,
    done: bool,
}

impl FirstTexts {
    pub(super) fn add_system(&mut self, span: Range<usize>) {
        if self.system.len() < MAX_TEXTS {
            self.system.push(span);
        }
    }

    pub(super) fn text(&mut self, span: Range<usize>) {
        if !self.done && self.messages.len() < MAX_TEXTS {
            self.messages.push(span);
        }
    }

    pub(super) fn role(&mut self, role: &[u8]) {
        self.has_role = true;
        self.is_user = role == b"user";
    }

    /// The complete input is one text of the user.
    pub(super) fn whole_input(&mut self, span: Range<usize>) {
        self.text(span);
        self.done = true;
    }

    /// A message is complete; `user_if_unsaid`: one without a role is the user's.
    pub(super) fn end_of_message(&mut self, user_if_unsaid: bool) {
        let user = if self.has_role { self.is_user } else { user_if_unsaid };
        let has_text = self.messages.len() > self.settled;
        self.done |= user && has_text;
        self.settled = self.messages.len();
        self.has_role = false;
        self.is_user = false;
    }

    pub(super) fn system(&self) -> &[Range<usize>] {
        &self.system
    }

    pub(super) fn spans(&self) -> impl Iterator<Item = &Range<usize>> {
        self.system.iter().chain(&self.messages)
    }
}

/// A fast hash of texts in any pieces: two multiplications per 16 bytes, the same on every machine.
#[derive(Debug)]
pub(super) struct TextHash {
    state: u64,
    block: [u8; 16],
    filled: usize,
    room: usize,
}

/// Odd constants with well mixed bits (digits of pi).
const MULTIPLY: u64 = 0x243f_6a88_85a3_08d3;
const STIR: u64 = 0x1319_8a2e_0370_7345;

impl TextHash {
    pub(super) const fn new() -> Self {
        Self { state: STIR, block: [0; 16], filled: 0, room: MAX_BYTES }
    }

    /// The part of a text that is still to be hashed.
    pub(super) fn bounded(&self, span: &Range<usize>) -> Range<usize> {
        span.start..span.end.min(span.start + self.room)
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.room = self.room.saturating_sub(bytes.len());
        let mut rest = bytes;
        if self.filled > 0 {
            let (head, tail) = rest.split_at(rest.len().min(16 - self.filled));
            self.block[self.filled..self.filled + head.len()].copy_from_slice(head);
            self.filled += head.len();
            rest = tail;
            if self.filled < 16 {
                return;
            }
            self.mix(self.block);
        }
        let (blocks, tail) = rest.as_chunks::<16>();
        for block in blocks {
            self.mix(*block);
        }
        self.block[..tail.len()].copy_from_slice(tail);
        self.filled = tail.len();
    }

    pub(super) fn end_of_text(&mut self, len: usize) {
        self.block[self.filled..].fill(0);
        self.mix(self.block);
        self.filled = 0;
        self.state = folded(self.state ^ len as u64, MULTIPLY);
    }

    pub(super) fn finish(self) -> u64 {
        folded(self.state ^ STIR, MULTIPLY)
    }

    fn mix(&mut self, block: [u8; 16]) {
        let whole = u128::from_le_bytes(block);
        #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
        let (low, high) = (whole as u64, (whole >> 64) as u64);
        self.state = folded(self.state ^ low, MULTIPLY ^ high) ^ self.state.rotate_left(23);
    }
}

const fn folded(a: u64, b: u64) -> u64 {
    let product = (a as u128) * (b as u128);
    #[expect(clippy::cast_possible_truncation, reason = "the two halves are folded into one")]
    let halves = (product as u64, (product >> 64) as u64);
    halves.0 ^ halves.1
}
