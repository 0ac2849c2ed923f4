//! The beginning of an answer that arrives while its request is still being written.
//!
//! A provider may refuse a request before it has read the body, and then read no further. The rest
//! of a body that is larger than the sockets' buffers could never be written. RFC 9112, section
//! 9.5: a client watches for an error status while it sends, and stops when one comes.
//!
//! See docs/decisions/03-early-answer.md.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, BytesMut};
use pingora::protocols::Stream;
use tokio::io::{AsyncRead as _, ReadBuf};

/// Bytes that are read ahead at most. What follows is read when the request is written.
const AHEAD_MAX: usize = 16 * 1024;
/// Bytes per read ahead.
const PIECE: usize = 1024;

/// What the bytes tell of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begun {
    /// Nothing yet, or interim answers (1xx).
    No,
    /// An answer that may need the rest of the request.
    Success,
    /// An error, or no HTTP.
    Error,
}

impl Begun {
    fn of(mut bytes: &[u8]) -> Self {
        // `HTTP/1.1 4`
        while let Some(start) = bytes.first_chunk::<10>() {
            match (start.starts_with(b"HTTP/1."), start[9]) {
                (true, b'1') => match bytes.windows(4).position(|end| end == b"\r\n\r\n") {
                    Some(end) => bytes = &bytes[end + 4..],
                    None => return Self::No,
                },
                (true, b'2') => return Self::Success,
                _ => return Self::Error,
            }
        }
        Self::No
    }
}

/// Bytes of an answer that were read while its request was written.
#[derive(Default)]
pub(super) struct EarlyAnswer(BytesMut);

impl EarlyAnswer {
    /// Whether the answer itself has begun, not only interim ones.
    pub(super) fn has_begun(&self) -> bool {
        Begun::of(&self.0) != Begun::No
    }

    /// Gives out what was read ahead. Returns whether there was anything.
    pub(super) fn take(&mut self, into: &mut ReadBuf<'_>) -> bool {
        let most = self.0.len().min(into.remaining());
        into.put_slice(&self.0[..most]);
        self.0.advance(most);
        if self.0.is_empty() {
            self.0 = BytesMut::new();
        }
        most > 0
    }

    /// For a write that is blocked: the reason to give it up, if there is one.
    pub(super) fn poll_stop(
        &mut self,
        stream: &mut Stream,
        cx: &mut Context<'_>,
    ) -> Poll<io::Error> {
        let mut piece = [0; PIECE];
        while self.0.len() < AHEAD_MAX && !self.has_begun() {
            let mut read = ReadBuf::new(&mut piece);
            if let Err(error) = ready!(Pin::new(&mut *stream).poll_read(cx, &mut read)) {
                return Poll::Ready(error);
            }
            if read.filled().is_empty() {
                return Poll::Ready(io::ErrorKind::UnexpectedEof.into());
            }
            self.0.extend_from_slice(read.filled());
        }
        match Begun::of(&self.0) {
            Begun::Error => Poll::Ready(io::Error::other("the answer is an error")),
            // The write's own waker is registered.
            Begun::No | Begun::Success => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_final_status_tells_what_has_begun() {
        for (bytes, begun) in [
            ("", Begun::No),
            ("HTTP/1.1 ", Begun::No),
            ("HTTP/1.1 4", Begun::Error),
            ("HTTP/1.0 503 Away\r\n", Begun::Error),
            ("HTTP/1.1 302 Found\r\n", Begun::Error),
            ("HTTP/1.1 200 OK\r\n\r\n", Begun::Success),
            ("HTTP/1.1 100 Continue\r\n", Begun::No),
            ("HTTP/1.1 100 Continue\r\n\r\n", Begun::No),
            ("HTTP/1.1 103 Early\r\nlink: </a>\r\n\r\nHTTP/1.1 429 Wait", Begun::Error),
            ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK", Begun::Success),
            ("220 mail.example ESMTP", Begun::Error),
        ] {
            assert_eq!(Begun::of(bytes.as_bytes()), begun, "{bytes:?}");
        }
    }
}
