//! Reads a native stream, event by event.
//!
//! Blocks may come mixed, told apart by their index. Text and reasoning that no
//! `content_block_start` announced begin a block of their own.

use serde::Deserialize;

use super::reply_read::{self, WireError};
use crate::domain::usage::Usage;
use crate::formats::conversation::open_blocks::{OpenBlocks, bit, block_number};
use crate::formats::conversation::{
    Block, Event, Finish, Origin, Signature, Sink, Str, StreamProblem, ToolName, is_empty_event,
};
use crate::formats::json_read::{self, Json};

/// Arguments of a call that was not announced: its name is not known.
const NO_CALL: &str = "the arguments of a tool call that has not begun";

#[derive(Deserialize)]
struct EventData<'a> {
    #[serde(borrow, rename = "type")]
    kind: Str<'a>,
    /// A number, or of no use.
    #[serde(borrow)]
    index: Option<Json<'a>>,
    #[serde(borrow)]
    content_block: Option<WireBlock<'a>>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(borrow)]
    error: Option<WireError<'a>>,
}

#[derive(Deserialize)]
struct WireBlock<'a> {
    #[serde(borrow, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow)]
    id: Option<Str<'a>>,
    #[serde(borrow)]
    name: Option<Str<'a>>,
    #[serde(borrow)]
    text: Option<Str<'a>>,
    #[serde(borrow)]
    thinking: Option<Str<'a>>,
    #[serde(borrow)]
    data: Option<Str<'a>>,
    #[serde(borrow)]
    input: Option<Json<'a>>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    text: Option<Str<'a>>,
    #[serde(borrow)]
    thinking: Option<Str<'a>>,
    #[serde(borrow)]
    partial_json: Option<Str<'a>>,
    #[serde(borrow)]
    signature: Option<Str<'a>>,
    #[serde(borrow)]
    stop_reason: Option<Str<'a>>,
    #[serde(borrow)]
    stop_sequence: Option<Str<'a>>,
}

/// The kind of an open block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenKind {
    Text,
    Thinking,
    Call,
}

/// State of one stream. Keeps nothing that grows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reader {
    started: bool,
    /// The block that the neutral stream has open too; the last one if they are mixed.
    open: Option<OpenKind>,
    blocks: OpenBlocks,
    /// One bit for each block of a kind that is not shown, such as the steps of the vendor's tools.
    hidden: u64,
    /// A block that is shown has begun.
    any: bool,
    /// A block of another kind has.
    any_hidden: bool,
    finish: Option<Finish>,
    ended: bool,
}

impl Reader {
    /// Takes one event's data.
    ///
    /// # Errors
    /// An error that the provider reports, or data that is not an event of this format.
    pub fn event(&mut self, data: &[u8], sink: &mut Sink<'_>) -> Result<(), StreamProblem> {
        if self.ended || is_empty_event(data) {
            return Ok(());
        }
        let data: EventData<'_> =
            json_read::read(data).map_err(|error| StreamProblem::unreadable(data, &error))?;
        let index = block_number(data.index);
        match &*data.kind {
            "message_start" => self.start(sink),
            "content_block_start" => {
                self.start(sink);
                if let Some(block) = data.content_block {
                    self.block(index, block, sink);
                }
            }
            "content_block_delta" => {
                if let Some(delta) = data.delta {
                    self.delta(index, delta, sink)?;
                }
            }
            "content_block_stop" => self.stop(index, sink),
            "message_delta" => {
                if let Some(delta) = data.delta.filter(|delta| delta.stop_reason.is_some()) {
                    self.finish = Some(reply_read::finish(
                        delta.stop_reason.as_deref(),
                        delta.stop_sequence.as_deref(),
                    ));
                }
            }
            "message_stop" => self.end(sink)?,
            "error" => return Err(upstream_error(data.error)),
            // `ping`, and kinds that may be added.
            _ => {}
        }
        Ok(())
    }

    /// The stream has ended.
    ///
    /// # Errors
    /// [`StreamProblem::Cut`] if it had not reached `message_stop`.
    pub fn finish(&mut self, _sink: &mut Sink<'_>) -> Result<(), StreamProblem> {
        if self.ended { Ok(()) } else { Err(StreamProblem::Cut) }
    }

    fn start(&mut self, sink: &mut Sink<'_>) {
        if !std::mem::replace(&mut self.started, true) {
            sink(Event::Start { usage: Usage::default() });
        }
    }

    fn block(&mut self, index: Option<u64>, block: WireBlock<'_>, sink: &mut Sink<'_>) {
        let first = match &*block.kind {
            "text" => {
                self.begin(index, OpenKind::Text, Block::Text, sink);
                block.text
            }
            "thinking" => {
                self.begin(index, OpenKind::Thinking, Block::Thinking, sink);
                block.thinking
            }
            "redacted_thinking" => {
                let data = block.data.unwrap_or_default().into_text();
                self.begin(index, OpenKind::Thinking, Block::Thinking, sink);
                sink(Event::Signature(Signature::new(Origin::NativeRedacted, data)));
                None
            }
            "tool_use" => {
                let call = Block::Tool {
                    id: block.id.unwrap_or_default().into_text(),
                    name: ToolName::plain(block.name.unwrap_or_default().into_text()),
                };
                self.begin(index, OpenKind::Call, call, sink);
                // Usually empty here, and sent in deltas.
                block.input.filter(|input| input.get() != "{}").map(|input| Str::from(input.get()))
            }
            _ => {
                self.hidden |= index.map_or(0, bit);
                self.any_hidden = true;
                return;
            }
        };
        if let Some(first) = first.filter(|first| !first.is_empty()) {
            sink(Event::Delta(first.into_text()));
        }
    }

    fn begin(&mut self, index: Option<u64>, kind: OpenKind, block: Block<'_>, sink: &mut Sink<'_>) {
        self.start(sink);
        self.any = true;
        self.hidden &= !index.map_or(0, bit);
        if !(self.open.is_some() && self.blocks.join(index, sink)) {
            self.close(sink);
            self.blocks.start(index);
        }
        self.open = Some(kind);
        sink(Event::Open(block));
    }

    fn delta(
        &mut self,
        index: Option<u64>,
        delta: Delta<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<(), StreamProblem> {
        let (kind, text) = match (delta.text, delta.thinking, delta.partial_json) {
            (Some(text), _, _) => (OpenKind::Text, text),
            (None, Some(thinking), _) => (OpenKind::Thinking, thinking),
            (None, None, Some(arguments)) => (OpenKind::Call, arguments),
            (None, None, None) => (OpenKind::Thinking, Str::default()),
        };
        if text.is_empty() && delta.signature.is_none() {
            return Ok(());
        }
        let is_open = self.open.is_some() && self.blocks.is_open(index);
        let is_misnumbered = self.open == Some(kind) && !self.blocks.are_mixed();
        if is_open {
            self.blocks.turn(index, sink);
        } else if !is_misnumbered {
            let is_hidden = index.is_some_and(|index| self.hidden & bit(index) != 0);
            match kind {
                OpenKind::Call if is_hidden => return Ok(()),
                OpenKind::Thinking if is_hidden && text.is_empty() => return Ok(()),
                OpenKind::Call => return Err(StreamProblem::malformed(NO_CALL)),
                OpenKind::Text => self.begin(index, kind, Block::Text, sink),
                OpenKind::Thinking => self.begin(index, kind, Block::Thinking, sink),
            }
        }
        if !text.is_empty() {
            sink(Event::Delta(text.into_text()));
        }
        if let Some(signature) = delta.signature {
            sink(Event::Signature(Signature::new(Origin::Native, signature.into_text())));
        }
        Ok(())
    }

    fn stop(&mut self, index: Option<u64>, sink: &mut Sink<'_>) {
        let hidden = index.map_or(0, bit) & self.hidden;
        self.hidden &= !hidden;
        if hidden == 0 && !self.blocks.go_on_after(index, sink) {
            self.close(sink);
        }
    }

    fn close(&mut self, sink: &mut Sink<'_>) {
        self.blocks = OpenBlocks::default();
        if self.open.take().is_some() {
            sink(Event::Close);
        }
    }

    /// As for a whole reply: a message without content is one if it has a stop reason.
    fn end(&mut self, sink: &mut Sink<'_>) -> Result<(), StreamProblem> {
        let is_end = match self.finish {
            None => false,
            Some(Finish::Stop) => !self.any_hidden,
            Some(_) => true,
        };
        if !self.any && !is_end {
            return Err(StreamProblem::malformed(reply_read::NOTHING));
        }
        self.start(sink);
        self.close(sink);
        self.ended = true;
        let finish = self.finish.take().unwrap_or_default();
        sink(Event::Finish { finish, usage: Usage::default() });
        Ok(())
    }
}

/// Whether a reader takes anything from events of this type.
pub fn reads(kind: &str) -> bool {
    let kinds = ["message_start", "message_delta", "message_stop", "error"];
    kinds.contains(&kind) || kind.starts_with("content_block_")
}

fn upstream_error(error: Option<WireError<'_>>) -> StreamProblem {
    let error = error.unwrap_or(WireError { kind: None, message: None });
    StreamProblem::Upstream {
        kind: error.kind.map(|kind| kind.to_string()),
        message: error
            .message
            .map_or_else(|| "no message".to_owned(), |message| message.to_string()),
    }
}
