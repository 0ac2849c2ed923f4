//! Complete server-sent events: assembled from pieces, bounded in size, and written.
//!
//! An event that is completely in its chunk is borrowed from it; only one that chunks cut is
//! copied. The data is not checked for UTF-8 or JSON here.

use std::ptr;

use memchr::memchr2_iter;

use super::frame::Frame;
use super::{Piece, Splitter};

/// One complete event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// The `event:` line's value; empty when there was none.
    pub name: &'a str,
    /// The data lines, joined by newlines. Not checked for being UTF-8 or JSON.
    pub data: &'a [u8],
}

/// An event was larger than the bound; the rest of the stream cannot be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a stream event is larger than {max} bytes")]
pub struct EventTooLarge {
    /// The bound, in bytes of data.
    pub max: usize,
}

/// Assembles complete events, keeping at most one bounded event.
#[derive(Debug)]
pub struct Assembler {
    splitter: Splitter,
    buffer: Vec<u8>,
    max: usize,
    frame: Frame,
}

impl Assembler {
    /// `max`: bytes of data that one event may have.
    pub const fn new(max: usize) -> Self {
        Self { splitter: Splitter::new(), buffer: Vec::new(), max, frame: Frame::NONE }
    }

    /// Takes one chunk and passes every event that it completes to `each`, in order.
    ///
    /// # Errors
    /// [`EventTooLarge`]; events before the large one have been passed on.
    pub fn feed(
        &mut self,
        chunk: &[u8],
        mut each: impl FnMut(Event<'_>),
    ) -> Result<(), EventTooLarge> {
        let mut rest = chunk;
        while !rest.is_empty() {
            rest = match self.framed(rest) {
                Some((data, next)) => {
                    each(Event { name: self.splitter.name(), data });
                    next
                }
                None => self.next_event(rest, &mut each)?,
            };
        }
        Ok(())
    }

    /// The data of the event at the start of `bytes`, if it has the frame of the one before it, and
    /// what follows. Its name is that one's, and so is the splitter's state after it.
    fn framed<'d>(&self, bytes: &'d [u8]) -> Option<(&'d [u8], &'d [u8])> {
        self.frame.strip(bytes).filter(|(data, _)| self.splitter.ended && data.len() <= self.max)
    }

    /// Takes bytes up to the end of an event. Returns what follows it.
    fn next_event<'d>(
        &mut self,
        chunk: &'d [u8],
        each: &mut impl FnMut(Event<'_>),
    ) -> Result<&'d [u8], EventTooLarge> {
        let began = self.splitter.ended.then_some(self.splitter.after_cr);
        let (mut rest, mut at) = (chunk, 0);
        // The event's only piece so far, as long as it needs no copy.
        let mut whole: Option<&[u8]> = None;
        while let Some(piece) = self.splitter.next(&mut rest) {
            match piece {
                Piece::Data(part) => {
                    // If the event ends in this chunk, the line's end is no longer in the rest.
                    at = (chunk.len() - rest.len()).saturating_sub(part.len() + 1);
                    let had = self.buffer.len() + whole.map_or(0, <[u8]>::len);
                    if had + part.len() > self.max {
                        return Err(EventTooLarge { max: self.max });
                    }
                    if had == 0 {
                        whole = Some(part);
                    } else {
                        self.buffer.extend_from_slice(whole.take().unwrap_or_default());
                        self.buffer.extend_from_slice(part);
                    }
                }
                Piece::End => {
                    let data = whole.unwrap_or(&self.buffer);
                    each(Event { name: self.splitter.name(), data });
                    let place = at..at + data.len();
                    let is_there =
                        |data| chunk.get(place.clone()).is_some_and(|d| ptr::eq(d, data));
                    match whole.filter(|data| is_there(*data)) {
                        Some(_) if began == Some(self.splitter.after_cr) => {
                            self.frame.set(&chunk[..chunk.len() - rest.len()], place);
                        }
                        _ => self.frame.clear(),
                    }
                    self.release();
                    return Ok(rest);
                }
            }
        }
        self.buffer.extend_from_slice(whole.unwrap_or_default());
        Ok(rest)
    }

    /// The data so far of an event that is not complete.
    pub fn pending(&self) -> &[u8] {
        &self.buffer
    }

    /// At the stream's end: passes on an event whose blank line is missing.
    pub fn finish(&mut self, mut each: impl FnMut(Event<'_>)) {
        if self.splitter.finish() {
            each(Event { name: self.splitter.name(), data: &self.buffer });
        }
        self.release();
    }

    /// Drops the event that was passed on; one huge event must not hold its memory for the stream's
    /// life.
    fn release(&mut self) {
        self.buffer.clear();
        self.buffer.shrink_to(16 * 1024);
    }
}

/// Appends one event: `event: <name>` (if there is a name) and a `data:` line for each line of
/// `data`.
pub fn write(out: &mut Vec<u8>, name: Option<&str>, data: &[u8]) {
    out.reserve(data.len() + name.map_or(0, str::len) + 24);
    if let Some(name) = name {
        out.extend_from_slice(b"event: ");
        out.extend_from_slice(name.as_bytes());
        out.push(b'\n');
    }
    let mut from = 0;
    for end in memchr2_iter(b'\n', b'\r', data) {
        if end < from {
            continue;
        }
        data_line(out, &data[from..end]);
        from = if data[end..].starts_with(b"\r\n") { end + 2 } else { end + 1 };
    }
    data_line(out, &data[from..]);
    out.push(b'\n');
}

fn data_line(out: &mut Vec<u8>, line: &[u8]) {
    out.extend_from_slice(b"data: ");
    out.extend_from_slice(line);
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::{Assembler, EventTooLarge, write};

    fn events(chunks: &[&[u8]]) -> Vec<(String, String)> {
        let mut assembler = Assembler::new(1 << 20);
        let mut out = Vec::new();
        let mut each = |e: super::Event<'_>| {
            out.push((e.name.to_owned(), String::from_utf8(e.data.to_vec()).unwrap()))
        };
        for chunk in chunks {
            assembler.feed(chunk, &mut each).unwrap();
        }
        assembler.finish(&mut each);
        out
    }

    fn pair(name: &str, data: &str) -> (String, String) {
        (name.to_owned(), data.to_owned())
    }

    #[test]
    fn reads_what_the_standard_allows() {
        let table: &[(&str, &[(&str, &str)])] = &[
            ("event: a\ndata: 1\n\ndata: 2\n\n", &[("a", "1"), ("", "2")]),
            ("event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n", &[("a", "1"), ("", "2")]),
            ("event: a\rdata: 1\r\rdata: 2\r\r", &[("a", "1"), ("", "2")]),
            ("\u{FEFF}data:1\n\n", &[("", "1")]),
            (": hello\n\ndata: x\n: again\ndata: y\n\n", &[("", "x\ny")]),
            ("data\ndata\n\n", &[("", "\n")]),
            ("data:  two spaces\n\n", &[("", " two spaces")]),
            ("id: 7\nretry: 10\nevent: b\ndata: z\n\n", &[("b", "z")]),
            ("event: lost\n\ndata: q\n\n", &[("", "q")]),
            ("database: 1\ndatas: 2\ndat: 3\ndata: 4\n\n", &[("", "4")]),
            ("event: first\nevent: second\ndata: 1\n\n", &[("second", "1")]),
            ("data: cut short", &[("", "cut short")]),
            ("data: [DONE]\n", &[("", "[DONE]")]),
            ("\n\n\n", &[]),
            ("", &[]),
        ];
        for (text, expected) in table {
            let expected: Vec<_> = expected.iter().map(|(n, d)| pair(n, d)).collect();
            assert_eq!(events(&[text.as_bytes()]), expected, "{text:?} whole");
            let single: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            assert_eq!(events(&single), expected, "{text:?} byte by byte");
            for at in 0..text.len() {
                let (a, b) = text.as_bytes().split_at(at);
                assert_eq!(events(&[a, b"", b]), expected, "{text:?} split at {at}");
            }
        }
    }

    /// The same bytes as of the event before around other data; and nearly the same.
    #[test]
    fn events_in_one_frame_are_read_as_alone() {
        for (stream, expected) in [
            (
                "event: a\ndata: 1\n\nevent: a\ndata: 2\n\nevent: a\ndata: 33\n\nevent: b\ndata: 4\n\n",
                "a1 a2 a33 b4",
            ),
            (
                "data:1\n\ndata:2\n\ndata: 3\n\ndata:  4\n\ndata:\n\ndata: \n\ndata:5\n\n",
                "1 2 3  4   5",
            ),
            (
                "data: 1\r\n\r\ndata: 2\r\n\r\ndata: 3\r\n\r\ndata: 4\n\ndata: 5\r\r\ndata: 6\n\n",
                "1 2 3 4 5 6",
            ),
            (
                "data: 1\n\ndata: 2\n\ndata: 3\ndata: 4\n\ndata: 5\n\ndata: 6\n: c\n\ndata: 7\n\n",
                "1 2 3|4 5 6 7",
            ),
            ("data\ndata\n\ndata\ndata\n\ndata: 1\n\n", "| | 1"),
        ] {
            let shown = |size: usize| {
                let chunks: Vec<&[u8]> = stream.as_bytes().chunks(size).collect();
                let events = events(&chunks).into_iter();
                let shown = events.map(|(name, data)| name + &data.replace('\n', "|"));
                shown.collect::<Vec<_>>().join(" ")
            };
            for size in [usize::MAX, 1, 2, 3, 7, 19] {
                assert_eq!(shown(size), expected, "{stream:?} in chunks of {size}");
            }
        }
        let mut assembler = Assembler::new(4);
        let whole = assembler.feed(b"data: 1\n\ndata: 2\n\ndata: 3456\n\n", |_| {});
        assert_eq!(whole, Ok(()));
        let large = assembler.feed(b"data: 34567\n\n", |_| {});
        assert_eq!(large, Err(EventTooLarge { max: 4 }));
    }

    #[test]
    fn an_event_beyond_the_bound_is_an_error_whole_or_in_parts() {
        for chunks in [vec!["data: 123456789\n\n"], vec!["data: 12345", "6789", "\n\n"]] {
            let mut assembler = Assembler::new(8);
            let result = chunks.iter().try_for_each(|c| assembler.feed(c.as_bytes(), |_| {}));
            assert_eq!(result, Err(EventTooLarge { max: 8 }));
        }
        let mut assembler = Assembler::new(8);
        assert_eq!(assembler.feed(b"data: 12345678\n\ndata: 12345678\n\n", |_| {}), Ok(()));
    }

    #[test]
    fn what_is_written_is_read_again() {
        for data in ["", "{}", "a\nb", "a\r\nb", "\n", "x\n\ny"] {
            let mut bytes = Vec::new();
            write(&mut bytes, Some("name"), data.as_bytes());
            write(&mut bytes, None, b"next");
            let expected = [pair("name", &data.replace("\r\n", "\n")), pair("", "next")];
            assert_eq!(events(&[&bytes]), expected, "{data:?}");
        }
    }
}
