//! Reads a native stream, event by event.

use serde::Deserialize;

use super::reply_read::{self, WireError};
use crate::domain::usage::Usage;
use crate::formats::conversation::open_calls::{OpenCalls, block_number};
use crate::formats::conversation::{
    Block, Event, Finish, Origin, Signature, Sink, Str, StreamProblem, ToolName, is_empty_event,
};
use crate::formats::json_read::{self, Json};

#[derive(Deserialize)]
struct Data<'a> {
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

/// State of one stream. Keeps nothing that grows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reader {
    started: bool,
    /// A block is open that the neutral stream has too.
    open: bool,
    calls: OpenCalls,
    finish: Finish,
    ended: bool,
}

impl Reader {
    /// Takes one event's data.
    ///
    /// # Errors
    /// An error that the provider reports, or data that is no event of this format.
    pub fn event(&mut self, data: &[u8], sink: &mut Sink<'_>) -> Result<(), StreamProblem> {
        if self.ended || is_empty_event(data) {
            return Ok(());
        }
        let data: Data<'_> =
            json_read::read(data).map_err(|error| StreamProblem::unreadable(data, &error))?;
        let index = block_number(data.index);
        match &*data.kind {
            "message_start" => self.start(sink),
            "content_block_start" => {
                self.start(sink);
                let is_call =
                    data.content_block.as_ref().is_some_and(|block| &*block.kind == "tool_use");
                if !(is_call && self.calls.join(index, sink)) {
                    self.close(sink);
                    if is_call {
                        self.calls.start(index);
                    }
                }
                if let Some(block) = data.content_block {
                    self.open(block, sink);
                }
            }
            "content_block_delta" => {
                self.calls.turn(index, sink);
                if let Some(delta) = data.delta {
                    self.delta(delta, sink);
                }
            }
            "content_block_stop" if self.calls.go_on_after(index, sink) => {}
            "content_block_stop" => self.close(sink),
            "message_delta" => {
                if let Some(delta) = data.delta.filter(|delta| delta.stop_reason.is_some()) {
                    self.finish = reply_read::finish(
                        delta.stop_reason.as_deref(),
                        delta.stop_sequence.as_deref(),
                    );
                }
            }
            "message_stop" => self.end(sink),
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

    fn open(&mut self, block: WireBlock<'_>, sink: &mut Sink<'_>) {
        let first = match &*block.kind {
            "text" => {
                sink(Event::Open(Block::Text));
                block.text
            }
            "thinking" => {
                sink(Event::Open(Block::Thinking));
                block.thinking
            }
            "redacted_thinking" => {
                let data = block.data.unwrap_or_default().into_text();
                sink(Event::Open(Block::Thinking));
                sink(Event::Signature(Signature::new(Origin::NativeRedacted, data)));
                None
            }
            "tool_use" => {
                sink(Event::Open(Block::Tool {
                    id: block.id.unwrap_or_default().into_text(),
                    name: ToolName::plain(block.name.unwrap_or_default().into_text()),
                }));
                // Usually empty here, and sent in deltas.
                block.input.filter(|input| input.get() != "{}").map(|input| Str::from(input.get()))
            }
            _ => return,
        };
        self.open = true;
        if let Some(first) = first.filter(|first| !first.is_empty()) {
            sink(Event::Delta(first.into_text()));
        }
    }

    fn delta(&self, delta: Delta<'_>, sink: &mut Sink<'_>) {
        if !self.open {
            return;
        }
        if let Some(text) =
            delta.text.or(delta.thinking).or(delta.partial_json).filter(|text| !text.is_empty())
        {
            sink(Event::Delta(text.into_text()));
        }
        if let Some(signature) = delta.signature {
            sink(Event::Signature(Signature::new(Origin::Native, signature.into_text())));
        }
    }

    fn close(&mut self, sink: &mut Sink<'_>) {
        self.calls = OpenCalls::default();
        if std::mem::take(&mut self.open) {
            sink(Event::Close);
        }
    }

    fn end(&mut self, sink: &mut Sink<'_>) {
        self.start(sink);
        self.close(sink);
        self.ended = true;
        sink(Event::Finish { finish: self.finish.clone(), usage: Usage::default() });
    }
}

/// Whether a reader takes anything from events of this type.
#[must_use]
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
