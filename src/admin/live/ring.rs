//! The frames of a feed: a ring that is bounded in number and in bytes. A client that is too slow
//! loses the oldest ones and gets their number.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::watch;

/// How many frames a slow client may lag behind before it loses some, and their bytes. The last
/// frame stays, whatever its size.
const FRAMES: usize = 256;
const BYTES: usize = 512 << 10;

/// The sending end. Its receivers end when it is dropped.
pub(super) struct Ring {
    kept: Arc<Mutex<KeptFrame>>,
    /// The number of the next frame.
    next: watch::Sender<u64>,
}

#[derive(Default)]
struct KeptFrame {
    frames: VecDeque<Bytes>,
    bytes: usize,
    /// The number of the first of them.
    first: u64,
}

/// A client's end.
pub struct Frames {
    kept: Arc<Mutex<KeptFrame>>,
    /// The number of the frame that it gets next.
    at: u64,
    next: watch::Receiver<u64>,
}

/// What a client gets.
#[derive(Debug, PartialEq, Eq)]
pub enum NextFrame {
    /// A frame.
    Frame(Bytes),
    /// It was too slow for this many.
    Missed(u64),
    /// There will be no more.
    Closed,
}

impl Default for Ring {
    fn default() -> Self {
        Self { kept: Arc::default(), next: watch::Sender::new(0) }
    }
}

impl Ring {
    pub(super) fn clients(&self) -> usize {
        self.next.receiver_count()
    }

    /// The frames from now on.
    pub(super) fn join(&self) -> Frames {
        let next = self.next.subscribe();
        Frames { kept: Arc::clone(&self.kept), at: *self.next.borrow(), next }
    }

    pub(super) fn send(&self, frame: Bytes) {
        let mut kept = self.kept.lock();
        kept.bytes += frame.len();
        kept.frames.push_back(frame);
        while kept.frames.len() > FRAMES || (kept.bytes > BYTES && kept.frames.len() > 1) {
            let gone = kept.frames.pop_front().unwrap_or_default();
            kept.bytes -= gone.len();
            kept.first += 1;
        }
        let next = kept.first + kept.frames.len() as u64;
        drop(kept);
        self.next.send_replace(next);
    }
}

impl Frames {
    /// The next frame. Dropping the future loses nothing.
    pub async fn recv(&mut self) -> NextFrame {
        loop {
            self.next.mark_unchanged();
            if let Some(next) = self.present() {
                return next;
            }
            if self.next.changed().await.is_err() {
                // Sent just before the end.
                return self.present().unwrap_or(NextFrame::Closed);
            }
        }
    }

    /// What there is at once.
    fn present(&mut self) -> Option<NextFrame> {
        let kept = self.kept.lock();
        let missed = kept.first.saturating_sub(self.at);
        if missed > 0 {
            self.at = kept.first;
            return Some(NextFrame::Missed(missed));
        }
        let place = usize::try_from(self.at - kept.first).ok()?;
        let frame = kept.frames.get(place)?.clone();
        self.at += 1;
        Some(NextFrame::Frame(frame))
    }
}

#[cfg(test)]
impl Frames {
    /// The frames that there are, as texts.
    pub(super) fn texts(&mut self) -> Vec<String> {
        std::iter::from_fn(|| match self.present()? {
            NextFrame::Frame(frame) => Some(String::from_utf8(frame.to_vec()).unwrap()),
            other => Some(format!("{other:?}")),
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_client_costs_a_bounded_number_of_frames_and_bytes() {
        let ring = Ring::default();
        let (mut slow, mut large) = (ring.join(), ring.join());
        for n in 0..FRAMES + 7 {
            ring.send(n.to_string().into());
        }
        let seen = slow.texts();
        assert_eq!(
            (seen.len(), seen[0].as_str(), seen[1].as_str()),
            (FRAMES + 1, "Missed(7)", "7")
        );
        for _ in 0..100 {
            ring.send(vec![b'x'; BYTES / 4].into());
            assert!(ring.kept.lock().bytes <= BYTES);
        }
        assert_eq!(slow.texts().len(), 5, "what was missed, and four frames");
        ring.send(vec![b'x'; 2 * BYTES].into());
        assert_eq!(ring.kept.lock().frames.len(), 1, "the last one stays");
        assert_eq!(large.texts()[0], format!("Missed({})", FRAMES + 7 + 100));
    }

    #[tokio::test]
    async fn a_client_waits_for_frames_and_gets_the_last_one_before_the_end() {
        let ring = Ring::default();
        let mut client = ring.join();
        let waiting = async move { (client.recv().await, client.recv().await) };
        let sending = async move { ring.send(Bytes::from_static(b"last")) };
        // In this order, the client waits before the frame comes.
        let ((first, second), ()) = tokio::join!(biased; waiting, sending);
        assert_eq!(
            (first, second),
            (NextFrame::Frame(Bytes::from_static(b"last")), NextFrame::Closed)
        );
    }
}
