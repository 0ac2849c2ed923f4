//! Converts a stream as it arrives: bytes in, bytes out, any chunk boundary, one pass.
//!
//! Memory is bounded by one event, and by what the client's format requires the writer to keep
//! (responses: the reply, for its last event; alt-cli: one call's arguments), or blocks that
//! come mixed. All of that is bounded too.

mod blocks;
#[cfg(test)]
mod cut_tests;
mod gate;
mod reader;
#[cfg(test)]
mod tests;

use serde_json::Value;

use self::blocks::Blocks;
use self::gate::Gate;
use self::reader::{KEEP_ALIVE, StreamReader};
use super::rewrap;
use crate::domain::format::WireFormat;
use crate::formats::conversation::{Event, ReplyContext, Sink, StreamProblem, Text};
use crate::formats::error::{self, ErrorReply};
use crate::formats::json_read;
use crate::formats::sse::{Assembler, Event as SseEvent, RawText};
use crate::formats::usage::{Bill, UsageReader};
use crate::formats::{alt_cli, chat, native, responses};

/// Maximum bytes of a provider's event; the last one of a responses stream repeats the complete
/// reply.
const MAX_EVENT: usize = 32 << 20;

/// What may be too large of an event with few bytes.
const LISTS: &str = "the number of elements in the lists of one event";

#[derive(Debug)]
enum StreamWriter {
    Native(native::stream_write::Writer),
    Responses(responses::stream_write::Writer),
    Chat(chat::stream_write::Writer),
    AltCli(alt_cli::stream_write::Writer),
    /// The provider's own chunks, in another wrapper.
    Rewrap(rewrap::Stream),
}

impl StreamWriter {
    /// For the format whose streams may be one JSON array: whether it has begun.
    const fn array_began(&self) -> Option<bool> {
        match self {
            Self::AltCli(writer) => Some(writer.began()),
            Self::Rewrap(stream) => Some(stream.began()),
            _ => None,
        }
    }

    fn event(
        &mut self,
        event: &Event<'_>,
        context: &ReplyContext,
        out: &mut Vec<u8>,
    ) -> Result<(), StreamProblem> {
        match self {
            Self::Native(writer) => writer.event(event, context, out),
            Self::Responses(writer) => writer.event(event, context, out),
            Self::Chat(writer) => writer.event(event, context, out),
            Self::AltCli(writer) => writer.event(event, context, out),
            // The chunk itself is passed on once it has been read.
            Self::Rewrap(_) => Ok(()),
        }
    }
}

/// The state of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamState {
    Running,
    Finished,
    Broken,
}

/// Converts one stream.
#[derive(Debug)]
pub struct StreamConverter {
    assembler: Assembler,
    path: EventPath,
    to: WireFormat,
    state: StreamState,
}

/// What an event passes through, from the provider's form to the client's.
#[derive(Debug)]
struct EventPath {
    reader: StreamReader,
    /// The reader gave only the last event's text, and would do the same again.
    repeats: bool,
    gate: Gate,
    writer: StreamWriter,
    context: ReplyContext,
}

impl StreamConverter {
    /// `from` is the provider's format, `to` the client's.
    pub fn new(from: WireFormat, to: WireFormat, context: ReplyContext) -> Self {
        let mut reader = StreamReader::new(from);
        let writer = match to {
            WireFormat::Native => StreamWriter::Native(native::stream_write::Writer::default()),
            WireFormat::Responses => {
                StreamWriter::Responses(responses::stream_write::Writer::default())
            }
            WireFormat::Chat => StreamWriter::Chat(chat::stream_write::Writer::default()),
            WireFormat::AltCli if from == to && context.wrapped => {
                reader = StreamReader::AltCli(alt_cli::stream_read::Reader::own());
                StreamWriter::Rewrap(rewrap::Stream::default())
            }
            WireFormat::AltCli => StreamWriter::AltCli(alt_cli::stream_write::Writer::default()),
        };
        let assembler = Assembler::new(MAX_EVENT);
        let path = EventPath { reader, repeats: false, gate: Gate::new(from), writer, context };
        Self { assembler, path, to, state: StreamState::Running }
    }

    /// Takes a chunk of the provider's stream and appends the client's bytes to `out`, complete
    /// events only. Usage is read to the stream's end, also if nothing more can be converted.
    ///
    /// # Errors
    /// When the stream cannot continue: send the client [`StreamConverter::fail`]. Later calls
    /// convert nothing.
    pub fn feed(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Result<(), StreamProblem> {
        let running = self.state == StreamState::Running;
        let Self { assembler, path, .. } = self;
        let mut problem = None;
        let fed = assembler.feed(chunk, |event| {
            let only = path.gate.usage.event(event.data);
            if running && path.gate.usage.has_too_many_elements() {
                problem = problem.take().or(Some(StreamProblem::TooLarge { what: LISTS }));
            }
            if running && problem.is_none() {
                problem = path.take(event, only, out).err();
            }
        });
        if !running {
            return Ok(());
        }
        let result = match problem {
            Some(problem) => Err(problem),
            None => fed.map_err(|_| StreamProblem::TooLarge { what: "one event" }),
        };
        if result.is_err() {
            self.state = StreamState::Broken;
        }
        result
    }

    /// How many bytes of an event that is not complete are kept.
    pub fn pending(&self) -> usize {
        self.assembler.pending().len()
    }

    /// The provider's stream has ended. A complete reply gets its format's end; a cut one does not.
    ///
    /// # Errors
    /// [`StreamProblem::Cut`]: send the client [`StreamConverter::fail`]. `Ok` if that was done
    /// before.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), StreamProblem> {
        let running = self.state == StreamState::Running;
        let Self { assembler, path, .. } = self;
        let mut problem = None;
        assembler.finish(|event| {
            // As the reader of the usage ignores an event that the stream's end has cut.
            let is_complete = path.gate.usage.last_event(event.data);
            if running && path.gate.usage.has_too_many_elements() {
                problem = Some(StreamProblem::TooLarge { what: LISTS });
            } else if is_complete && running {
                problem = path.take(event, None, out).err();
            }
        });
        path.gate.usage.finish();
        if !running {
            return Ok(());
        }
        let result = match problem {
            Some(problem) => Err(problem),
            None => path.drive(out, &mut |reader, sink| reader.finish(sink)),
        };
        match result {
            Ok(()) => {
                if let Some(began) =
                    self.path.writer.array_began().filter(|_| self.path.context.json_array)
                {
                    out.extend_from_slice(if began { b"]" } else { b"[]" });
                }
                self.state = StreamState::Finished;
                Ok(())
            }
            Err(problem) => {
                self.state = StreamState::Broken;
                Err(problem)
            }
        }
    }

    /// Ends the client's stream with its format's error event. Nothing follows it.
    pub fn fail(&mut self, reply: &ErrorReply<'_>, out: &mut Vec<u8>) {
        self.state = StreamState::Broken;
        if let Some(began) = self.path.writer.array_began().filter(|_| self.path.context.json_array)
        {
            out.extend_from_slice(if began { b",\r\n" } else { b"[" });
            out.extend_from_slice(&error::body(self.to, reply));
            out.push(b']');
            return;
        }
        let mut extra: Vec<(&str, Value)> = reply.extra.to_vec();
        if let StreamWriter::Responses(writer) = &self.path.writer {
            extra.push(("response_id", self.path.context.id("resp_").into()));
            extra.push(("model", self.path.context.model.clone().into()));
            extra.push(("created_at", self.path.context.created.into()));
            extra.push(("sequence_number", writer.sequence().into()));
        }
        out.extend_from_slice(&error::stream_event(
            self.to,
            &ErrorReply { extra: &extra, ..*reply },
        ));
    }

    /// Whether some of the reply itself was sent to the client.
    pub const fn has_content(&self) -> bool {
        self.path.gate.content
    }

    /// The usage that the provider's stream has reported.
    pub const fn usage(&self) -> &UsageReader {
        &self.path.gate.usage
    }

    /// What is billed: see [`UsageReader::bill`]. An event that is still incomplete counts too.
    pub fn bill(&self, input: u64) -> Bill {
        self.with_pending(|reader| reader.bill(input))
    }

    /// Whether only the end of the body is missing, or of the last event.
    pub fn lacks_only_the_end(&self) -> bool {
        self.with_pending(|reader| reader.seen_end() || reader.lacks_only_the_end())
    }

    /// Calls `with` with the reader of the usage, after the first bytes of an incomplete event.
    fn with_pending<R>(&self, with: impl FnOnce(&UsageReader) -> R) -> R {
        match self.assembler.pending() {
            [] => with(&self.path.gate.usage),
            data => with(&self.path.gate.usage.within_event(data)),
        }
    }

    /// Whether the provider has sent some of the reply itself, shown to the client or not.
    pub const fn seen_content(&self) -> bool {
        self.path.gate.seen
    }

    /// Whether the provider's stream has reached its format's end.
    pub const fn seen_end(&self) -> bool {
        self.path.gate.end
    }

    /// Whether the reply is complete.
    pub fn is_complete(&self) -> bool {
        self.state == StreamState::Finished
    }
}

impl EventPath {
    /// Takes one event. `only`: the text that alone distinguishes it from the event before it.
    fn take(
        &mut self,
        event: SseEvent<'_>,
        only: Option<RawText<'_>>,
        out: &mut Vec<u8>,
    ) -> Result<(), StreamProblem> {
        if let Some(text) = only.filter(|_| self.repeats).and_then(unescaped) {
            let Self { gate, writer, context, .. } = self;
            gate.pass(Event::Delta(text), context, &mut |event| writer.event(event, context, out))?;
        } else {
            let like_this = self.gate.usage.text_of(event.data);
            let like_this = like_this.map(|text| (text, self.reader.clone()));
            // Whether the reader gave that text and nothing else.
            let mut only_text = None;
            self.drive(out, &mut |reader, sink| {
                reader.event(event, &mut |event| {
                    let text = like_this.as_ref().map(|(text, _)| *text);
                    only_text = Some(only_text.is_none() && is(&event, text));
                    sink(event);
                })
            })?;
            self.repeats = only_text == Some(true)
                && like_this.is_some_and(|(_, before)| before == self.reader);
        }
        if let StreamWriter::Rewrap(stream) = &mut self.writer
            && !KEEP_ALIVE.contains(&event.name)
        {
            stream.chunk(event.data, &self.context, out);
        }
        Ok(())
    }

    /// Runs one step of the reader, through the gate into the writer.
    fn drive(
        &mut self,
        out: &mut Vec<u8>,
        step: &mut dyn FnMut(&mut StreamReader, &mut Sink<'_>) -> Result<(), StreamProblem>,
    ) -> Result<(), StreamProblem> {
        let Self { reader, gate, writer, context, .. } = self;
        let mut problem = None;
        let read = step(reader, &mut |event| {
            if problem.is_none() {
                problem =
                    gate.pass(event, context, &mut |event| writer.event(event, context, out)).err();
            }
        });
        match problem {
            Some(problem) => Err(problem),
            None => read,
        }
    }
}

/// Reads a stream of events that has arrived as a whole, in its own format.
///
/// # Errors
/// When an event is not an event of the format, or the stream was cut off. `each` has received the
/// events before it.
pub fn read_events(
    format: WireFormat,
    body: &[u8],
    each: &mut Sink<'_>,
) -> Result<(), StreamProblem> {
    let (mut assembler, mut reader) = (Assembler::new(MAX_EVENT), StreamReader::new(format));
    let (mut blocks, mut problem, mut mixed) = (Blocks::default(), None, None);
    let mut in_order = |event: Event<'_>| {
        let mut pass = |event: Event<'_>| {
            each(event);
            Ok(())
        };
        if mixed.is_none() {
            mixed = blocks.pass(event, &mut pass).err();
        }
    };
    let mut take = |event: SseEvent<'_>| {
        if problem.is_none() {
            problem = reader.event(event, &mut in_order).err();
        }
    };
    let fed = assembler.feed(body, &mut take);
    assembler.finish(&mut take);
    let read = match (problem, fed) {
        (Some(problem), _) => Err(problem),
        (None, Err(_)) => Err(StreamProblem::TooLarge { what: "one event" }),
        (None, Ok(())) => reader.finish(&mut in_order),
    };
    mixed.map_or(read, Err)
}

/// Whether the reader gave this text, at its place.
fn is(event: &Event<'_>, text: Option<RawText<'_>>) -> bool {
    match (event, text) {
        (Event::Delta(Text::Borrowed(given)), Some(text)) => {
            std::ptr::eq(given.as_bytes(), text.bytes())
        }
        _ => false,
    }
}

/// The text as a reader would give it. `None` if it would refuse the event.
fn unescaped(text: RawText<'_>) -> Option<Text<'_>> {
    if text.escaped {
        return json_read::read(text.quoted).ok().map(Text::Owned);
    }
    std::str::from_utf8(text.bytes()).ok().map(Text::Borrowed)
}
