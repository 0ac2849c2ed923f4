//! Counts the frames of an HTTP/2 client: a budget for frames that carry neither requests nor data,
//! and whether a request's head is incomplete.
//!
//! The HTTP/2 library bounds memory: concurrent streams, decoded heads, CONTINUATION and small DATA
//! frames, streams that are reset before they are accepted. It bounds no rate and no head's time: a
//! client that opens and resets streams, or sends PING or SETTINGS, can keep a core busy without
//! limit. This module counts frames and does not validate them: the library reads the same bytes.
//!
//! See docs/decisions/08-frames-below-the-library.md.

use std::time::{Duration, Instant};

/// Bytes of the client's preface, which comes first.
const PREFACE: usize = 24;
const FRAME_HEAD: usize = 9;
/// Size of the budget: frames without requests or data that may come in one burst.
const BURST: u32 = 1_000;
/// Time after which the budget grows by one frame. Clients send a few: an occasional PING, a reset
/// for each request that is given up.
const ONE_PER: Duration = Duration::from_millis(10);

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;

/// The client has used up its budget.
#[derive(Debug, PartialEq, Eq)]
pub struct Spent;

/// Follows the frames of one connection.
pub struct FrameWatch {
    /// Bytes of the preface, or of the current frame's payload, that are still to come.
    payload_left: usize,
    head: [u8; FRAME_HEAD],
    head_len: usize,
    /// The preface is incomplete, or the current payload belongs to a request's head.
    is_part_of_head: bool,
    /// A HEADERS frame has arrived without END_HEADERS.
    is_block_open: bool,
    /// The client's first frame, which completes its preface, is still to come.
    awaits_settings: bool,
    budget: u32,
    filled_at: Instant,
}

impl Default for FrameWatch {
    fn default() -> Self {
        Self::new()
    }
}

impl FrameWatch {
    /// For a connection whose preface comes first.
    pub fn new() -> Self {
        Self {
            payload_left: PREFACE,
            head: [0; FRAME_HEAD],
            head_len: 0,
            is_part_of_head: true,
            is_block_open: false,
            awaits_settings: true,
            budget: BURST,
            filled_at: Instant::now(),
        }
    }

    /// Counts the frames in the bytes that were read.
    ///
    /// # Errors
    /// When the frames exceed the budget.
    pub fn take(&mut self, mut bytes: &[u8]) -> Result<(), Spent> {
        while !bytes.is_empty() {
            let wanted =
                if self.payload_left > 0 { self.payload_left } else { FRAME_HEAD - self.head_len };
            let (now, later) = bytes.split_at(wanted.min(bytes.len()));
            bytes = later;
            if self.payload_left > 0 {
                self.payload_left -= now.len();
                continue;
            }
            self.head[self.head_len..self.head_len + now.len()].copy_from_slice(now);
            self.head_len += now.len();
            if self.head_len == FRAME_HEAD {
                self.head_len = 0;
                self.frame()?;
            }
        }
        Ok(())
    }

    fn frame(&mut self) -> Result<(), Spent> {
        let [l0, l1, l2, kind, flags, ..] = self.head;
        self.payload_left = usize::from(l0) << 16 | usize::from(l1) << 8 | usize::from(l2);
        // The library refuses any other first frame.
        self.awaits_settings &= kind != SETTINGS;
        self.is_part_of_head = matches!(kind, HEADERS | CONTINUATION);
        match kind {
            HEADERS | CONTINUATION => self.is_block_open = flags & END_HEADERS == 0,
            DATA | WINDOW_UPDATE => {}
            _ => return self.spend(),
        }
        Ok(())
    }

    fn spend(&mut self) -> Result<(), Spent> {
        if self.budget == 0 {
            let more = self.filled_at.elapsed().as_millis() / ONE_PER.as_millis();
            self.budget = u32::try_from(more).unwrap_or(BURST).min(BURST);
            self.filled_at = Instant::now();
        }
        self.budget = self.budget.checked_sub(1).ok_or(Spent)?;
        Ok(())
    }

    /// Whether the rest of a request's head, or of the preface with its SETTINGS, is still to come.
    pub const fn is_in_head(&self) -> bool {
        self.awaits_settings
            || self.is_block_open
            || self.head_len > 0
            || (self.is_part_of_head && self.payload_left > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, payload: usize) -> Vec<u8> {
        let mut frame = u32::try_from(payload).unwrap().to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags, 0, 0, 0, 1]);
        frame.resize(FRAME_HEAD + payload, 0);
        frame
    }

    #[test]
    fn heads_are_followed_however_the_bytes_are_cut() {
        let begin = [vec![b'P'; PREFACE], frame(4, 0, 0), frame(HEADERS, 0, 30)].concat();
        for piece in [1, 7, 1000] {
            let mut watch = FrameWatch::new();
            assert!(watch.is_in_head(), "the preface is awaited");
            for bytes in [b'P'; PREFACE].chunks(piece) {
                watch.take(bytes).unwrap();
            }
            assert!(watch.is_in_head(), "its SETTINGS are awaited");
            watch.take(&frame(4, 0, 0)).unwrap();
            assert!(!watch.is_in_head());
            let mut watch = FrameWatch::new();
            for bytes in begin.chunks(piece) {
                watch.take(bytes).unwrap();
            }
            assert!(watch.is_in_head(), "its END_HEADERS is awaited");
            watch.take(&frame(CONTINUATION, END_HEADERS, 5)).unwrap();
            assert!(!watch.is_in_head());
            watch.take(&frame(DATA, 0, 100)[..50]).unwrap();
            assert!(!watch.is_in_head(), "a body has a bound of its own");
            watch.take(&[0; 59]).unwrap();
            watch.take(&frame(HEADERS, END_HEADERS, 20)[..15]).unwrap();
            assert!(watch.is_in_head());
        }
    }

    #[test]
    fn requests_and_data_are_free_and_everything_else_has_a_budget() {
        let mut watch = FrameWatch::new();
        watch.take(&[0; PREFACE]).unwrap();
        for _ in 0..10 * BURST {
            for (kind, flags) in [(HEADERS, END_HEADERS), (DATA, 0), (WINDOW_UPDATE, 0)] {
                watch.take(&frame(kind, flags, 4)).unwrap();
            }
        }
        for _ in 0..BURST {
            watch.take(&frame(3, 0, 4)).unwrap();
        }
        // A refill time in the future: the budget does not grow, however slow the machine is.
        let later = || Instant::now() + Duration::from_secs(3600);
        watch.filled_at = later();
        assert_eq!(watch.take(&frame(6, 0, 8)), Err(Spent));
        // A new watch: a connection that has spent its budget is closed, and not followed further.
        let filled_at = Instant::now().checked_sub(ONE_PER * 20).unwrap();
        let mut watch = FrameWatch { budget: 0, payload_left: 0, filled_at, ..FrameWatch::new() };
        let mut passed = 0;
        while watch.take(&frame(6, 0, 8)).is_ok() {
            passed += 1;
            watch.filled_at = later();
        }
        let most = filled_at.elapsed().as_millis() / ONE_PER.as_millis();
        assert!((20..=most).contains(&passed), "{passed} of {most}");
    }
}
