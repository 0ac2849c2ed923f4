//! Server-sent events: taking a byte stream apart, whatever its chunk boundaries, and writing events.
//!
//! Two levels. [`Splitter`] yields the pieces of `data:` payloads as they come and keeps none of them: for readers that
//! must stay small however large an event is. [`Assembler`] puts the pieces of one event together (borrowed from the
//! chunk when the event lies in it whole) and bounds its size: for conversion.
//!
//! Line ends may be LF, CRLF or CR; a byte order mark, comments, `id` and `retry` are skipped, several data lines are
//! joined by a newline, as the HTML standard has it. Beyond the standard, an event that the stream's end cuts short of its blank line is
//! still given out, since some upstreams forget that line. Reconnection is no business of a gateway.

use memchr::{memchr2, memchr2_iter};

/// Event names are kept up to this length; none in the four formats is half as long.
const MAX_NAME: usize = 96;
/// Room for the longest field name that matters (`event`), plus one to see that a name is longer.
const MAX_FIELD: usize = 6;

/// What the splitter finds next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// The next part of the event's data; parts of one event, put together, are its data.
    Data(&'a [u8]),
    /// The event is complete; [`Splitter::name`] tells its name until the next call.
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Data,
    Event,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// Nothing read yet: a byte order mark may come.
    Start,
    /// At a line's start or inside its field name, kept in `field`.
    Name,
    /// Behind the colon: one space may come.
    Colon(Field),
    Value(Field),
    /// In a line of no interest.
    Skip,
}

/// Splits a byte stream into pieces of event data without keeping any.
#[derive(Debug)]
pub struct Splitter {
    at: At,
    field: [u8; MAX_FIELD],
    field_len: usize,
    name: Vec<u8>,
    /// Bytes of a possible byte order mark seen so far.
    bom: usize,
    data_lines: bool,
    /// A line ended with CR: an LF right behind belongs to it.
    after_cr: bool,
    ended: bool,
}

impl Default for Splitter {
    fn default() -> Self {
        Self::new()
    }
}

impl Splitter {
    #[must_use]
    pub const fn new() -> Self {
        Self {
            at: At::Start,
            field: [0; MAX_FIELD],
            field_len: 0,
            name: Vec::new(),
            bom: 0,
            data_lines: false,
            after_cr: false,
            ended: false,
        }
    }

    /// The name of the event in progress, or of the one just ended; empty without an `event:` line.
    #[must_use]
    pub fn name(&self) -> &str {
        std::str::from_utf8(&self.name).unwrap_or("")
    }

    /// The next piece; `None` when `rest` is used up. Call it until then, once per chunk.
    pub fn next<'a>(&mut self, rest: &mut &'a [u8]) -> Option<Piece<'a>> {
        if self.ended {
            self.reset_event();
        }
        loop {
            let first = *rest.first()?;
            if self.after_cr {
                self.after_cr = false;
                if first == b'\n' {
                    *rest = &rest[1..];
                    continue;
                }
            }
            let piece = match self.at {
                At::Start => self.start(first, rest),
                At::Name => self.field_name(first, rest),
                At::Colon(field) => {
                    if first == b' ' {
                        *rest = &rest[1..];
                    }
                    self.at = At::Value(field);
                    self.begin_value(field)
                }
                At::Value(field) => self.value(field, rest),
                At::Skip => {
                    let (_, ended) = self.take_line(rest);
                    if ended {
                        self.at = At::Name;
                    }
                    None
                }
            };
            if piece.is_some() {
                return piece;
            }
        }
    }

    /// At the stream's end: `true` when an event was still open, which is then complete.
    pub fn finish(&mut self) -> bool {
        if self.ended {
            self.reset_event();
        }
        let open = self.data_lines;
        self.at = At::Name;
        self.field_len = 0;
        self.ended = true;
        open
    }

    fn reset_event(&mut self) {
        self.ended = false;
        self.data_lines = false;
        self.name.clear();
    }

    fn start(&mut self, first: u8, rest: &mut &[u8]) -> Option<Piece<'static>> {
        const BOM: [u8; 3] = [0xEF, 0xBB, 0xBF];
        if first == BOM[self.bom] {
            *rest = &rest[1..];
            self.bom += 1;
            if self.bom == BOM.len() {
                self.at = At::Name;
            }
        } else {
            self.at = if self.bom == 0 { At::Name } else { At::Skip };
        }
        None
    }

    fn field_name(&mut self, first: u8, rest: &mut &[u8]) -> Option<Piece<'static>> {
        if self.field_len == 0 && rest.starts_with(b"data: ") {
            *rest = &rest[6..];
            self.at = At::Value(Field::Data);
            return self.begin_value(Field::Data);
        }
        match first {
            b'\n' | b'\r' => return self.end_of_bare_line(rest),
            b':' => {
                *rest = &rest[1..];
                self.at = match &self.field[..self.field_len] {
                    b"data" => At::Colon(Field::Data),
                    b"event" => At::Colon(Field::Event),
                    _ => At::Skip,
                };
                self.field_len = 0;
            }
            _ if self.field_len == MAX_FIELD => {
                self.field_len = 0;
                self.at = At::Skip;
            }
            byte => {
                *rest = &rest[1..];
                self.field[self.field_len] = byte;
                self.field_len += 1;
            }
        }
        None
    }

    /// A line that ended before any colon: the blank line, or a field without a value.
    fn end_of_bare_line(&mut self, rest: &mut &[u8]) -> Option<Piece<'static>> {
        self.take_line(rest);
        let len = std::mem::take(&mut self.field_len);
        if len == 0 {
            if self.data_lines {
                self.ended = true;
                return Some(Piece::End);
            }
            self.name.clear();
            return None;
        }
        match &self.field[..len] {
            b"data" => self.begin_value(Field::Data),
            b"event" => self.begin_value(Field::Event),
            _ => None,
        }
    }

    /// A second data line is joined to the first by a newline.
    fn begin_value(&mut self, field: Field) -> Option<Piece<'static>> {
        match field {
            Field::Event => {
                self.name.clear();
                None
            }
            Field::Data => std::mem::replace(&mut self.data_lines, true).then_some(Piece::Data(b"\n")),
        }
    }

    fn value<'a>(&mut self, field: Field, rest: &mut &'a [u8]) -> Option<Piece<'a>> {
        let (part, ended) = self.take_line(rest);
        if ended {
            self.at = At::Name;
        }
        match field {
            Field::Data => (!part.is_empty()).then_some(Piece::Data(part)),
            Field::Event => {
                let room = MAX_NAME.saturating_sub(self.name.len());
                self.name.extend_from_slice(&part[..part.len().min(room)]);
                None
            }
        }
    }

    /// Takes what is left of the line, and its end when it is in the chunk.
    fn take_line<'a>(&mut self, rest: &mut &'a [u8]) -> (&'a [u8], bool) {
        let bytes = *rest;
        let Some(end) = memchr2(b'\n', b'\r', bytes) else {
            *rest = &[];
            return (bytes, false);
        };
        self.after_cr = bytes[end] == b'\r';
        *rest = &bytes[end + 1..];
        (&bytes[..end], true)
    }
}

/// One whole event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// The `event:` line's value; empty when there was none.
    pub name: &'a str,
    /// The data lines, joined by newlines. Not checked for being UTF-8 or JSON.
    pub data: &'a [u8],
}

/// An event was larger than the bound; what follows cannot be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a stream event is larger than {max} bytes")]
pub struct EventTooLarge {
    pub max: usize,
}

/// Puts whole events together, keeping at most one bounded event.
#[derive(Debug)]
pub struct Assembler {
    splitter: Splitter,
    buffer: Vec<u8>,
    max: usize,
}

impl Assembler {
    /// `max`: bytes of data that one event may have.
    #[must_use]
    pub const fn new(max: usize) -> Self {
        Self { splitter: Splitter::new(), buffer: Vec::new(), max }
    }

    /// Takes one chunk and gives every event that it completes to `each`, in order.
    ///
    /// # Errors
    /// [`EventTooLarge`]; events before the large one have been given out.
    pub fn feed(&mut self, chunk: &[u8], mut each: impl FnMut(Event<'_>)) -> Result<(), EventTooLarge> {
        let mut rest = chunk;
        // The event's only piece so far, as long as it needs no copy.
        let mut whole: Option<&[u8]> = None;
        while let Some(piece) = self.splitter.next(&mut rest) {
            match piece {
                Piece::Data(part) => {
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
                    let data = whole.take().unwrap_or(&self.buffer);
                    each(Event { name: self.splitter.name(), data });
                    self.release();
                }
            }
        }
        self.buffer.extend_from_slice(whole.unwrap_or_default());
        Ok(())
    }

    /// At the stream's end: gives out an event whose blank line never came.
    pub fn finish(&mut self, mut each: impl FnMut(Event<'_>)) {
        if self.splitter.finish() {
            each(Event { name: self.splitter.name(), data: &self.buffer });
        }
        self.release();
    }

    /// Forgets the event given out; one huge event shall not hold its memory for the stream's life.
    fn release(&mut self) {
        self.buffer.clear();
        self.buffer.shrink_to(16 * 1024);
    }
}

/// Appends one event: `event: <name>` (when there is a name) and a `data:` line for each line of `data`.
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
        let mut each = |e: super::Event<'_>| out.push((e.name.to_owned(), String::from_utf8(e.data.to_vec()).unwrap()));
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
