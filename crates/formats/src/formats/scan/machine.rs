//! The scanner's state machine: the grammar outside strings, token by token.
//!
//! Between two chunks it keeps the bounded text of a token of interest that the chunk's end cut.
//! `scan::stack` tracks the position in the document and the places of interest; the grammar of
//! numbers is in `scan::number`, that of strings in `scan::string`.

mod bounds;

use super::blocks;
use super::number::{self, Digits};
use super::stack::Stack;
use super::string::{self, Phase, Stop};
use super::{Found, Kind, Node, ScanError, ScanProblem};

/// Room for the longest key of interest with each letter written as an escape.
const KEY_ROOM: usize = 256;

/// What may come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    Value,
    /// After `[`: a value or the end.
    FirstItem,
    Key,
    /// After `{`: a key or the end.
    FirstKey,
    Colon,
    /// After a value in a container: a comma or the end.
    Comma,
    /// Within a value that is deeper than the limit, and skipped.
    Deep,
    /// The document is complete.
    Nothing,
}

/// The token that the last chunk's end cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    None,
    Value(Phase),
    Key(Phase),
    /// A string of a value that is skipped.
    Deep(Phase),
    Number(Digits),
    /// A literal of which this many bytes are read.
    Literal(&'static [u8], usize),
}

/// Scans one document, fed in chunks. See the module `scan` for what it accepts and reports.
#[derive(Debug)]
pub struct Scanner<T: 'static> {
    expect: Expect,
    cut: Cut,
    stack: Stack<T>,
    /// Bytes of the chunks before this one.
    offset: usize,
    /// Up to here the chunk's characters are known to be valid.
    valid: usize,
    /// The current token: its start, its text as far as it is needed, and whether it is cut or has
    /// escapes.
    start: usize,
    text: Vec<u8>,
    dropped: bool,
    escaped: bool,
    /// Elements of all lists so far, and how many there may be.
    elements: usize,
    most_elements: usize,
    /// What is deeper than the limit is skipped, not refused.
    skips_deep: bool,
    /// Brackets that are open in a value that is skipped.
    deep: usize,
}

type Scanned<R> = Result<R, ScanError>;

impl<T: Copy> Scanner<T> {
    /// A scanner for one document. `max_depth`: how many containers may be open at once (at most
    /// 1024).
    pub fn new(root: &'static Node<T>, max_depth: usize) -> Self {
        Self {
            expect: Expect::Value,
            cut: Cut::None,
            stack: Stack::new(root, max_depth),
            offset: 0,
            valid: 0,
            start: 0,
            text: Vec::new(),
            dropped: false,
            escaped: false,
            elements: 0,
            most_elements: usize::MAX,
            skips_deep: false,
            deep: 0,
        }
    }

    /// Makes it ready for the next document, keeping its memory.
    pub fn reset(&mut self) {
        self.expect = Expect::Value;
        self.cut = Cut::None;
        self.stack.reset();
        self.offset = 0;
        self.text.clear();
        self.elements = 0;
        self.deep = 0;
    }

    /// True once the document is complete (a number at the top is complete only after
    /// [`Scanner::finish`]).
    pub const fn is_complete(&self) -> bool {
        matches!(self.expect, Expect::Nothing)
    }

    /// True while only white space has arrived.
    pub const fn is_untouched(&self) -> bool {
        self.stack.depth() == 0
            && matches!(self.expect, Expect::Value)
            && matches!(self.cut, Cut::None)
    }

    /// The value of interest that the last chunk's end cut: its name, and the bytes of it so far,
    /// without quotes. A string, or else the innermost container.
    pub fn unfinished(&self) -> Option<(T, Kind, usize)> {
        match (self.cut, self.stack.place_tag()) {
            (Cut::Value(_), Some(tag)) => {
                Some((tag, Kind::String, self.offset.saturating_sub(self.start + 1)))
            }
            _ => {
                let (tag, start) = self.stack.innermost()?;
                Some((tag, Kind::Object, self.offset.saturating_sub(start)))
            }
        }
    }

    /// Takes the next chunk and reports the values of interest that end in it.
    ///
    /// # Errors
    /// When the document is not JSON; the scanner is then unusable until [`Scanner::reset`].
    pub fn feed(&mut self, chunk: &[u8], sink: &mut impl FnMut(Found<'_, T>)) -> Scanned<()> {
        let missing = match self.cut {
            Cut::Value(phase) | Cut::Key(phase) | Cut::Deep(phase) => phase.missing(),
            _ => 0,
        };
        self.valid = blocks::valid_part(chunk, missing);
        let mut at = self.resume(chunk, sink)?;
        while let Some(&byte) = chunk.get(at) {
            at = match byte {
                b' ' | b'\n' | b'\r' | b'\t' => at + 1,
                _ => self.token(chunk, at, byte, sink)?,
            };
        }
        self.offset += chunk.len();
        Ok(())
    }

    /// Ends the document.
    ///
    /// # Errors
    /// It is empty or incomplete.
    pub fn finish(&mut self, sink: &mut impl FnMut(Found<'_, T>)) -> Scanned<()> {
        if let Cut::Number(digits) = self.cut {
            if !digits.may_end() {
                return self.fail(ScanProblem::Number, 0);
            }
            self.cut = Cut::None;
            self.scalar(Kind::Number, &[], 0..0, sink);
        }
        if self.is_complete() {
            return Ok(());
        }
        self.fail(if self.is_untouched() { ScanProblem::Empty } else { ScanProblem::Incomplete }, 0)
    }

    #[inline]
    fn token(
        &mut self,
        chunk: &[u8],
        at: usize,
        byte: u8,
        sink: &mut impl FnMut(Found<'_, T>),
    ) -> Scanned<usize> {
        match (self.expect, byte) {
            (Expect::Comma, b',') => {
                if self.stack.comma() {
                    self.expect = Expect::Key;
                } else {
                    self.expect = Expect::Value;
                    self.element(at)?;
                }
                Ok(at + 1)
            }
            (Expect::Key | Expect::FirstKey, b'"') => {
                self.begin(at);
                let stop = string::run(chunk, at + 1, self.valid, &mut self.escaped);
                self.key_end(chunk, at + 1, stop, sink)
            }
            (Expect::Colon, b':') => {
                self.expect = Expect::Value;
                Ok(at + 1)
            }
            (Expect::Comma | Expect::FirstItem, b']') if !self.stack.in_object() => {
                if self.expect == Expect::Comma {
                    self.element(at)?;
                }
                self.close(at, Kind::Array, sink)
            }
            (Expect::Comma | Expect::FirstKey, b'}') if self.stack.in_object() => {
                self.close(at, Kind::Object, sink)
            }
            (Expect::Value | Expect::FirstItem, _) => self.value(chunk, at, byte, sink),
            (Expect::Deep, _) => self.skip(chunk, at, byte),
            (Expect::Nothing, _) => self.fail(ScanProblem::Trailing, at),
            _ => self.fail(ScanProblem::Unexpected, at),
        }
    }

    #[inline]
    fn value(
        &mut self,
        chunk: &[u8],
        at: usize,
        byte: u8,
        sink: &mut impl FnMut(Found<'_, T>),
    ) -> Scanned<usize> {
        match byte {
            b'"' => {
                self.begin(at);
                let stop = string::run(chunk, at + 1, self.valid, &mut self.escaped);
                self.string_end(chunk, at + 1, stop, sink)
            }
            b'{' => self.open(at, true),
            b'[' => self.open(at, false),
            b'-' | b'0'..=b'9' => {
                self.begin(at);
                self.digits(chunk, at, Digits::Start, sink)
            }
            b't' | b'f' | b'n' => {
                self.begin(at);
                let word: &[u8] = match byte {
                    b't' => b"true",
                    b'f' => b"false",
                    _ => b"null",
                };
                self.literal(chunk, at, word, 0, sink)
            }
            _ => self.fail(ScanProblem::Unexpected, at),
        }
    }

    /// Continues with the token that the last chunk's end cut; returns the index after it.
    fn resume(&mut self, chunk: &[u8], sink: &mut impl FnMut(Found<'_, T>)) -> Scanned<usize> {
        if chunk.is_empty() {
            return Ok(0);
        }
        match std::mem::replace(&mut self.cut, Cut::None) {
            Cut::None => Ok(0),
            Cut::Value(phase) => {
                let stop = string::resume(chunk, 0, self.valid, phase, &mut self.escaped);
                self.string_end(chunk, 0, stop, sink)
            }
            Cut::Key(phase) => {
                let stop = string::resume(chunk, 0, self.valid, phase, &mut self.escaped);
                self.key_end(chunk, 0, stop, sink)
            }
            Cut::Deep(phase) => {
                let stop = string::resume(chunk, 0, self.valid, phase, &mut self.escaped);
                self.skipped_string(chunk, stop)
            }
            Cut::Number(digits) => self.digits(chunk, 0, digits, sink),
            Cut::Literal(word, seen) => self.literal(chunk, 0, word, seen, sink),
        }
    }

    #[inline]
    fn begin(&mut self, at: usize) {
        self.start = self.offset + at;
        self.escaped = false;
        self.dropped = false;
        self.text.clear();
    }

    #[inline]
    fn string_end(
        &mut self,
        chunk: &[u8],
        from: usize,
        stop: Stop,
        sink: &mut impl FnMut(Found<'_, T>),
    ) -> Scanned<usize> {
        match stop {
            Stop::Quote(end) => {
                self.scalar(
                    Kind::String,
                    &chunk[from..end],
                    self.start..self.offset + end + 1,
                    sink,
                );
                Ok(end + 1)
            }
            Stop::Chunk(phase) => {
                self.cut = Cut::Value(phase);
                self.keep(&chunk[from..], self.stack.wanted());
                Ok(chunk.len())
            }
            Stop::Bad(problem, at) => self.fail(problem, at),
        }
    }

    #[inline]
    fn key_end(
        &mut self,
        chunk: &[u8],
        from: usize,
        stop: Stop,
        sink: &mut impl FnMut(Found<'_, T>),
    ) -> Scanned<usize> {
        match stop {
            Stop::Quote(end) => {
                if self.stack.inside() {
                    if let Some(tag) = self.stack.names_tag() {
                        self.name(tag, self.offset + end + 1, sink);
                    }
                    self.enter_member(&chunk[from..end]);
                }
                if chunk.get(end + 1) == Some(&b':') {
                    self.expect = Expect::Value;
                    return Ok(end + 2);
                }
                self.expect = Expect::Colon;
                Ok(end + 1)
            }
            Stop::Chunk(phase) => {
                self.cut = Cut::Key(phase);
                if self.stack.inside() {
                    self.keep(&chunk[from..], KEY_ROOM);
                }
                Ok(chunk.len())
            }
            Stop::Bad(problem, at) => self.fail(problem, at),
        }
    }

    /// Reports a member's name, of which only the place is of interest.
    fn name(&self, tag: T, end: usize, sink: &mut impl FnMut(Found<'_, T>)) {
        sink(Found {
            tag,
            kind: Kind::String,
            span: self.start..end,
            text: &[],
            whole: true,
            escaped: self.escaped,
            len: 0,
            exact: true,
        });
    }

    /// Looks up a key of an object of interest, whose last part is `part`.
    fn enter_member(&mut self, part: &[u8]) {
        if self.dropped {
            self.stack.member(None);
        } else if self.text.is_empty() && !self.escaped {
            self.stack.member(Some(part));
        } else {
            let name = [&self.text, part].concat();
            let name = if self.escaped { super::unescape(&name).into_bytes() } else { name };
            self.stack.member(Some(&name));
        }
    }

    fn digits(
        &mut self,
        chunk: &[u8],
        from: usize,
        digits: Digits,
        sink: &mut impl FnMut(Found<'_, T>),
    ) -> Scanned<usize> {
        match number::run(chunk, from, digits) {
            Ok((end, digits)) if end == chunk.len() => {
                self.cut = Cut::Number(digits);
                self.keep(&chunk[from..], self.stack.wanted());
                Ok(end)
            }
            Ok((end, digits)) if digits.may_end() => {
                self.scalar(Kind::Number, &chunk[from..end], self.start..self.offset + end, sink);
                Ok(end)
            }
            Ok((at, _)) | Err(at) => self.fail(ScanProblem::Number, at),
        }
    }

    fn literal(
        &mut self,
        chunk: &[u8],
        from: usize,
        word: &'static [u8],
        seen: usize,
        sink: &mut impl FnMut(Found<'_, T>),
    ) -> Scanned<usize> {
        let left = &word[seen..];
        let here = &chunk[from..chunk.len().min(from + left.len())];
        if let Some(wrong) = here.iter().zip(left).position(|(a, b)| a != b) {
            return self.fail(ScanProblem::Unexpected, from + wrong);
        }
        let end = from + here.len();
        if here.len() < left.len() {
            self.cut = Cut::Literal(word, seen + here.len());
            return Ok(end);
        }
        self.text.clear();
        self.dropped = false;
        let kind = if word == b"null" { Kind::Null } else { Kind::Bool };
        self.scalar(kind, word, self.start..self.offset + end, sink);
        Ok(end)
    }

    /// A scalar is complete; `part` is its text, or the rest of it if `self.text` has the
    /// beginning.
    #[inline]
    fn scalar(
        &mut self,
        kind: Kind,
        part: &[u8],
        span: std::ops::Range<usize>,
        sink: &mut impl FnMut(Found<'_, T>),
    ) {
        self.expect = if self.stack.depth() == 0 { Expect::Nothing } else { Expect::Comma };
        let Some(place) = self.stack.take_place() else { return };
        let Some(tag) = place.node.tag else { return };
        let take = if kind == Kind::Bool { part.len() } else { place.node.take };
        let span = if span.end == 0 { self.start..self.offset } else { span };
        let joined = !self.text.is_empty() || self.dropped;
        if joined {
            self.keep(part, take);
        }
        let all: &[u8] = if joined { &self.text } else { part };
        let text = &all[..all.len().min(take)];
        let whole = !self.dropped && text.len() == all.len();
        sink(Found {
            tag,
            kind,
            span,
            text,
            whole,
            escaped: self.escaped,
            len: 0,
            exact: place.exact,
        });
    }

    /// Keeps the beginning of a token of interest, up to `room` bytes in all.
    fn keep(&mut self, part: &[u8], room: usize) {
        let free = room.saturating_sub(self.text.len());
        self.dropped |= part.len() > free;
        self.text.extend_from_slice(&part[..part.len().min(free)]);
    }

    #[inline]
    fn open(&mut self, at: usize, object: bool) -> Scanned<usize> {
        if !self.stack.open(self.offset + at, object) {
            if !self.skips_deep {
                return self.fail(ScanProblem::TooDeep, at);
            }
            self.stack.take_place();
            self.deep = 1;
            self.expect = Expect::Deep;
            return Ok(at + 1);
        }
        self.expect = if object { Expect::FirstKey } else { Expect::FirstItem };
        Ok(at + 1)
    }

    #[inline]
    fn close(
        &mut self,
        at: usize,
        kind: Kind,
        sink: &mut impl FnMut(Found<'_, T>),
    ) -> Scanned<usize> {
        let empty = matches!(self.expect, Expect::FirstItem | Expect::FirstKey);
        if let Some(found) = self.stack.close(self.offset + at + 1, kind, empty) {
            sink(found);
        }
        self.expect = if self.stack.depth() == 0 { Expect::Nothing } else { Expect::Comma };
        Ok(at + 1)
    }

    #[cold]
    fn fail<R>(&self, problem: ScanProblem, at: usize) -> Scanned<R> {
        Err(ScanError { problem, offset: self.offset + at })
    }
}
