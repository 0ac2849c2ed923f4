//! A response body that plays a list of steps: writes, pauses, a broken connection, a silence.
//!
//! Between two writes the body reports "not ready" once, so that each is sent as a separate write.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body::{Body, Frame, SizeHint};

use super::directive::Chunking;
use super::records::Exchange;

/// One step of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PlayStep {
    Write(Bytes),
    Pause(Duration),
    /// Wait for the operator.
    Hold,
    /// Send the written bytes before the next write.
    Flush,
    /// Break the connection.
    Cut,
    /// Send nothing until the peer closes.
    Stall,
}

/// The body. Dropping it before its last step counts as the peer closing.
pub(super) struct Playback {
    steps: VecDeque<PlayStep>,
    /// Remaining bytes, if the length is declared.
    left: Option<u64>,
    /// The pause before the next step.
    pause: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    stalled: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    exchange: Exchange,
}

impl Playback {
    /// `length`, if given, is declared to the peer; it may be more than the steps write.
    pub(super) fn new(steps: Vec<PlayStep>, length: Option<u64>, exchange: Exchange) -> Self {
        let mut playback =
            Self { steps: steps.into(), left: length, pause: None, stalled: None, exchange };
        playback.note_end();
        playback
    }

    fn note_end(&mut self) {
        if self.steps.iter().all(|step| *step == PlayStep::Flush) {
            self.exchange.finish();
        }
    }
}

impl Body for Playback {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        loop {
            if let Some(pause) = self.pause.as_mut() {
                if pause.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                self.pause = None;
            }
            if let Some(stalled) = self.stalled.as_mut() {
                if stalled.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                return Poll::Ready(Some(Err(io::Error::other("the mock is closing"))));
            }
            match self.steps.pop_front() {
                None => return Poll::Ready(None),
                Some(PlayStep::Write(bytes)) => {
                    self.left = self.left.map(|left| left.saturating_sub(bytes.len() as u64));
                    self.note_end();
                    return Poll::Ready(Some(Ok(Frame::data(bytes))));
                }
                Some(PlayStep::Pause(time)) => {
                    self.pause = Some(Box::pin(tokio::time::sleep(time)))
                }
                Some(PlayStep::Hold) => self.pause = Some(Box::pin(self.exchange.told_to_go_on())),
                Some(PlayStep::Flush) => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Some(PlayStep::Cut) => {
                    self.exchange.finish();
                    return Poll::Ready(Some(Err(io::Error::other(
                        "the mock was asked to cut the connection",
                    ))));
                }
                Some(PlayStep::Stall) => self.stalled = Some(Box::pin(self.exchange.closing())),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.steps.is_empty() && self.pause.is_none() && self.stalled.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// Cuts `bytes` into the writes for `chunking`.
pub(super) fn writes(bytes: &Bytes, chunking: Chunking) -> Vec<Bytes> {
    match chunking {
        Chunking::Event | Chunking::Whole => vec![bytes.clone()],
        Chunking::Bytes(count) => {
            let count = count.max(1);
            (0..bytes.len())
                .step_by(count)
                .map(|at| bytes.slice(at..bytes.len().min(at + count)))
                .collect()
        }
        Chunking::Split => {
            let mut pieces = Vec::new();
            let mut start = 0;
            for at in 1..bytes.len() {
                let inside_letter = bytes[at] & 0b1100_0000 == 0b1000_0000;
                let between_line_ends = bytes[at - 1] == b'\n' && bytes[at] == b'\n';
                if inside_letter || between_line_ends {
                    pieces.push(bytes.slice(start..at));
                    start = at;
                }
            }
            pieces.push(bytes.slice(start..));
            pieces
        }
    }
}

/// Encodes each piece so that it can be decoded as soon as it arrives; the last one also ends the
/// encoding.
///
/// # Errors
/// Never in practice: the encoder writes to memory.
pub(super) fn gzip(pieces: Vec<Bytes>) -> io::Result<Vec<Bytes>> {
    use std::io::Write;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let mut encoded = Vec::with_capacity(pieces.len() + 1);
    for piece in pieces {
        encoder.write_all(&piece)?;
        encoder.flush()?;
        encoded.push(Bytes::from(std::mem::take(encoder.get_mut())));
    }
    encoded.push(Bytes::from(encoder.finish()?));
    Ok(encoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_keep_the_bytes() {
        let text = Bytes::from("data: naïve 🚀\n\n");
        for chunking in [
            Chunking::Whole,
            Chunking::Event,
            Chunking::Bytes(1),
            Chunking::Bytes(5),
            Chunking::Split,
        ] {
            let pieces = writes(&text, chunking);
            assert_eq!(pieces.concat(), text, "{chunking:?}");
        }
        let split = writes(&text, Chunking::Split);
        assert!(
            split.iter().any(|piece| std::str::from_utf8(piece).is_err()),
            "letters are broken"
        );
        assert_eq!(split.last().unwrap().as_ref(), b"\n");
    }

    #[test]
    fn gzip_round_trip() {
        use std::io::Read;
        let encoded = gzip(vec![Bytes::from("one "), Bytes::from("two")]).unwrap();
        let all = encoded.concat();
        let mut text = String::new();
        flate2::read::GzDecoder::new(all.as_slice()).read_to_string(&mut text).unwrap();
        assert_eq!(text, "one two");
    }
}
