//! Just enough HTTP/1.1 to see where a response ends: a status, a length or chunks.

use std::io;

/// Most headers read of a response.
const MAX_HEADERS: usize = 64;

/// Parses one response that arrives in any number of pieces.
#[derive(Debug)]
pub struct Follower {
    head: Vec<u8>,
    body: Option<Body>,
    status: u16,
    keep: bool,
}

#[derive(Debug)]
enum Body {
    Length(u64),
    /// Remaining bytes of the current chunk, its end included; then the received part of a size
    /// line.
    Chunk {
        left: u64,
        line: Vec<u8>,
    },
    /// After the last chunk: the line so far.
    Trailer(Vec<u8>),
    Done,
}

impl Default for Follower {
    fn default() -> Self {
        Self { head: Vec::with_capacity(512), body: None, status: 0, keep: true }
    }
}

impl Follower {
    /// Starts over for the next response on the same connection.
    pub fn reset(&mut self) {
        self.head.clear();
        self.body = None;
        self.status = 0;
        self.keep = true;
    }

    pub const fn status(&self) -> u16 {
        self.status
    }

    /// Whether the connection may be used again.
    pub const fn keep(&self) -> bool {
        self.keep
    }

    pub const fn done(&self) -> bool {
        matches!(self.body, Some(Body::Done))
    }

    /// Takes the next bytes; returns whether any of them belong to the body.
    ///
    /// # Errors
    /// When they are not a valid response.
    pub fn feed(&mut self, bytes: &[u8]) -> io::Result<bool> {
        let mut rest = bytes;
        if self.body.is_none() {
            let before = self.head.len();
            self.head.extend_from_slice(bytes);
            let Some(length) = self.parse_head()? else { return Ok(false) };
            rest = &bytes[length - before..];
        }
        let had_body = !rest.is_empty();
        if let Some(body) = self.body.as_mut() {
            body.feed(rest)?;
        }
        Ok(had_body)
    }

    /// The head's length, once it is complete.
    fn parse_head(&mut self) -> io::Result<Option<usize>> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        let httparse::Status::Complete(length) =
            response.parse(&self.head).map_err(io::Error::other)?
        else {
            return Ok(None);
        };
        self.status = response.code.unwrap_or(0);
        let mut body = Body::Length(0);
        for header in response.headers.iter() {
            let value = std::str::from_utf8(header.value).unwrap_or_default().trim();
            if header.name.eq_ignore_ascii_case("content-length") {
                let size = value.parse().map_err(io::Error::other)?;
                body = if size == 0 { Body::Done } else { Body::Length(size) };
            } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
                body = Body::Chunk { left: 0, line: Vec::with_capacity(16) };
            } else if header.name.eq_ignore_ascii_case("connection")
                && value.eq_ignore_ascii_case("close")
            {
                self.keep = false;
            }
        }
        self.body = Some(body);
        Ok(Some(length))
    }
}

impl Body {
    fn feed(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self {
                Self::Length(left) => {
                    *left = left
                        .checked_sub(bytes.len() as u64)
                        .ok_or_else(|| io::Error::other("more than was announced"))?;
                    if *left == 0 {
                        *self = Self::Done;
                    }
                    return Ok(());
                }
                Self::Chunk { left, line } if *left == 0 => {
                    let (whole, rest) = line_end(line, bytes);
                    bytes = rest;
                    if whole {
                        let text = std::str::from_utf8(line).unwrap_or_default().trim();
                        let size = text.split(';').next().unwrap_or_default();
                        let size = u64::from_str_radix(size, 16).map_err(io::Error::other)?;
                        line.clear();
                        if size == 0 {
                            *self = Self::Trailer(Vec::new());
                        } else {
                            *left = size + 2;
                        }
                    }
                }
                Self::Chunk { left, .. } => {
                    let take = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= take as u64;
                    bytes = &bytes[take..];
                }
                Self::Trailer(line) => {
                    let (whole, rest) = line_end(line, bytes);
                    bytes = rest;
                    if whole && line.len() <= 2 {
                        *self = Self::Done;
                    } else if whole {
                        line.clear();
                    }
                }
                Self::Done => return Err(io::Error::other("bytes after the response")),
            }
        }
        Ok(())
    }
}

/// Moves bytes into `line` up to its line feed; returns whether the line feed was found, and the
/// remaining bytes.
fn line_end<'b>(line: &mut Vec<u8>, bytes: &'b [u8]) -> (bool, &'b [u8]) {
    match memchr::memchr(b'\n', bytes) {
        Some(at) => {
            line.extend_from_slice(&bytes[..=at]);
            (true, &bytes[at + 1..])
        }
        None => {
            line.extend_from_slice(bytes);
            (false, &[])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_responses_in_any_pieces() {
        let cases = [
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n1a;x=y\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\nx: y\r\n\r\n",
            "HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n",
        ];
        for text in cases {
            for size in [1, 2, 3, 7, text.len()] {
                let mut follower = Follower::default();
                for piece in text.as_bytes().chunks(size) {
                    assert!(!follower.done(), "{text} done early");
                    follower.feed(piece).unwrap();
                }
                assert!(follower.done(), "{text} in pieces of {size}");
                assert!(follower.status() >= 200 && follower.keep());
            }
        }
    }

    #[test]
    fn refuses_what_is_no_response() {
        assert!(Follower::default().feed(b"nonsense\r\n\r\n").is_err());
        assert!(
            Follower::default().feed(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nab").is_err()
        );
        assert!(
            Follower::default()
                .feed(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n")
                .is_err()
        );
    }
}
