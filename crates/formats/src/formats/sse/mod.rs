//! Server-sent events: splits a byte stream at any chunk boundaries, and writes events.
//!
//! Two levels. [`Splitter`] yields the pieces of `data:` payloads as they arrive and keeps none of
//! them: for readers with little memory, however large an event is. [`Assembler`] joins the pieces
//! of one event (borrowed from the chunk if the event is completely in it) and bounds its size: for
//! conversion.
//!
//! Line ends may be LF, CRLF or CR; a byte order mark, comments, `id` and `retry` are skipped,
//! several data lines are joined by a newline, as in the HTML standard. Beyond the standard, an
//! event whose blank line is missing at the stream's end is still passed on, since some upstreams
//! omit that line. Reconnection is not handled: a gateway does not need it.

mod event;
mod frame;
mod pattern;

use memchr::memchr2;

pub use self::event::{Assembler, Event, EventTooLarge, write};
pub use self::pattern::{Pattern, RawText};

/// Event names are kept up to this length; none in the four formats is half as long.
const MAX_NAME: usize = 96;
/// Size of the longest relevant field name (`event`), plus one to detect a longer name.
const MAX_FIELD: usize = 6;

/// The splitter's next finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// The next part of the event's data; parts of one event, put together, are its data.
    Data(&'a [u8]),
    /// The event is complete; [`Splitter::name`] returns its name until the next call.
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
    /// After the colon: one space may come.
    Colon(Field),
    Value(Field),
    /// In an irrelevant line.
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
    /// A line ended with CR: an LF directly after it belongs to it.
    after_cr: bool,
    ended: bool,
}

impl Default for Splitter {
    fn default() -> Self {
        Self::new()
    }
}

impl Splitter {
    /// A splitter at the start of a stream.
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

    /// The name of the current event, or of the one that just ended; empty without an `event:`
    /// line.
    pub fn name(&self) -> &str {
        std::str::from_utf8(&self.name).unwrap_or("")
    }

    /// True between events: the bytes so far end with a complete event, or with comments and blank
    /// lines after one.
    pub const fn is_between_events(&self) -> bool {
        let at_line = matches!(self.at, At::Start | At::Name) && self.field_len == 0;
        self.ended || (at_line && !self.data_lines && self.name.is_empty())
    }

    /// True directly after the end of an event.
    pub const fn is_after_event(&self) -> bool {
        self.ended
    }

    /// The next piece; `None` if `rest` is used up. Call it until then, once per chunk.
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
            b'\n' | b'\r' => return self.end_of_bare_line(first, rest),
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
    fn end_of_bare_line(&mut self, first: u8, rest: &mut &[u8]) -> Option<Piece<'static>> {
        *rest = &rest[1..];
        self.after_cr = first == b'\r';
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
            Field::Data => {
                std::mem::replace(&mut self.data_lines, true).then_some(Piece::Data(b"\n"))
            }
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

    /// Takes the rest of the line, and its end if it is in the chunk.
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
