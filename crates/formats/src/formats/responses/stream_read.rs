//! Reads a responses stream, event by event.
//!
//! Items may come mixed, told apart by their index. A call whose id or name is not known when it
//! begins, or that was not announced, waits for its item.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::reply_read::{self, Incomplete, OutputItem, WireError};
use crate::domain::usage::Usage;
use crate::formats::conversation::open_blocks::{OpenBlocks, bit, block_number};
use crate::formats::conversation::{
    Block, Content, Event, GENERATED, ReplyPart, Sink, Str, StreamProblem, Text, Thinking,
    ToolCall, ToolName, is_empty_event, number,
};
use crate::formats::json_read::{self, Json, List, Unread};

#[derive(Deserialize)]
struct ResponsesData<'a> {
    #[serde(borrow, rename = "type")]
    kind: Str<'a>,
    /// A text, unless the event is of a kind that is not read; `message` too.
    #[serde(borrow)]
    delta: Option<Content<'a, IgnoredAny>>,
    #[serde(borrow)]
    item: Option<OutputItem<'a>>,
    #[serde(default, deserialize_with = "number::whole")]
    summary_index: Option<u64>,
    /// Of a call whose arguments are complete.
    #[serde(borrow)]
    name: Option<Content<'a, IgnoredAny>>,
    #[serde(borrow)]
    arguments: Option<Content<'a, IgnoredAny>>,
    /// A number, or of no use.
    #[serde(borrow)]
    output_index: Option<Json<'a>>,
    #[serde(borrow)]
    response: Option<Response<'a>>,
    #[serde(borrow)]
    error: Option<WireError<'a>>,
    #[serde(borrow)]
    message: Option<Content<'a, IgnoredAny>>,
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow)]
    incomplete_details: Option<Incomplete<'a>>,
    #[serde(borrow)]
    error: Option<WireError<'a>>,
    /// Read only if no event contained the items.
    #[serde(borrow)]
    output: Option<Json<'a>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenOutput {
    Text,
    Refusal,
    Thinking,
    Call,
}

impl OpenOutput {
    const fn block(self) -> Block<'static> {
        match self {
            Self::Thinking => Block::Thinking,
            Self::Refusal => Block::Refusal,
            Self::Text | Self::Call => Block::Text,
        }
    }
}

/// State of one stream. Keeps nothing that grows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reader {
    started: bool,
    /// The open block; the last one if they are mixed.
    open: Option<OpenOutput>,
    blocks: OpenBlocks,
    /// The open block's item has an index.
    is_numbered: bool,
    /// The item that was added last.
    item: u64,
    /// One bit for each item of which a part was emitted.
    reported: u64,
    /// A part of any item was emitted.
    any: bool,
    /// Text or a refusal was.
    any_text: bool,
    /// How many calls have begun, and whether one of them was not announced.
    calls: usize,
    unannounced: bool,
    refused: bool,
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
        let data: ResponsesData<'_> =
            json_read::read(data).map_err(|error| StreamProblem::unreadable(data, &error))?;
        let kind = data.kind.strip_prefix("response.").unwrap_or(&data.kind);
        let index = block_number(data.output_index);
        match kind {
            "created" | "in_progress" | "queued" => self.start(sink),
            "output_text.delta" => self.delta(OpenOutput::Text, index, text_of(data.delta), sink),
            "refusal.delta" => self.delta(OpenOutput::Refusal, index, text_of(data.delta), sink),
            "reasoning_summary_text.delta" | "reasoning_text.delta" => {
                self.delta(OpenOutput::Thinking, index, text_of(data.delta), sink)
            }
            "reasoning_summary_part.added"
                if data.summary_index.is_some_and(|index| index > 0)
                    && self.is_at(OpenOutput::Thinking, index) =>
            {
                sink(Event::Delta("\n\n".into()));
            }
            "content_part.done" if !self.blocks.are_mixed() => self.close(sink),
            "output_item.added" => self.item_added(data.item, index, sink),
            "function_call_arguments.delta" => {
                self.delta(OpenOutput::Call, index, text_of(data.delta), sink)
            }
            "function_call_arguments.done" => {
                self.arguments_done(index, data.name, data.arguments, sink)
            }
            "output_item.done" => self.item_done(data.item, index, sink)?,
            "completed" | "incomplete" => self.end(kind == "incomplete", data.response, sink)?,
            "failed" | "cancelled" => {
                return Err(failed(data.response.and_then(|response| response.error)));
            }
            "error" => {
                let error = data.error.unwrap_or_default();
                let (kind, reported) = error.kind_and_message();
                let message = match data.message {
                    Some(Content::Text(message)) => message.into_text().into_owned(),
                    _ => reported,
                };
                return Err(StreamProblem::Upstream { kind, message });
            }
            _ => {}
        }
        Ok(())
    }

    /// The stream has ended.
    ///
    /// # Errors
    /// [`StreamProblem::Cut`] if the response was not complete.
    pub fn finish(&mut self, _sink: &mut Sink<'_>) -> Result<(), StreamProblem> {
        if self.ended { Ok(()) } else { Err(StreamProblem::Cut) }
    }

    fn start(&mut self, sink: &mut Sink<'_>) {
        if !std::mem::replace(&mut self.started, true) {
            sink(Event::Start { usage: Usage::default() });
        }
    }

    /// Begins a block of this item.
    fn open(
        &mut self,
        kind: OpenOutput,
        block: Block<'_>,
        index: Option<u64>,
        sink: &mut Sink<'_>,
    ) {
        self.start(sink);
        if !(self.open.is_some() && self.blocks.join(index, sink)) {
            self.close(sink);
            // What is not known yet may come with the item.
            match &block {
                Block::Tool { id, name } if id.starts_with(GENERATED) || name.name.is_empty() => {
                    self.blocks.start_mixed(index, sink);
                }
                _ => self.blocks.start(index),
            }
        }
        self.is_numbered = index.is_some();
        self.open = Some(kind);
        self.any = true;
        self.any_text |= matches!(kind, OpenOutput::Text | OpenOutput::Refusal);
        self.calls += usize::from(kind == OpenOutput::Call);
        self.refused |= kind == OpenOutput::Refusal;
        sink(Event::Open(block));
    }

    fn open_call(
        &mut self,
        id: Text<'_>,
        name: ToolName<'_>,
        index: Option<u64>,
        sink: &mut Sink<'_>,
    ) {
        let id = match id.is_empty() {
            true => format!("{GENERATED}{}", self.calls).into(),
            false => id,
        };
        self.open(OpenOutput::Call, Block::Tool { id, name }, index, sink);
    }

    /// Whether the block whose pieces come is of this kind, and of this item.
    fn is_at(&self, kind: OpenOutput, index: Option<u64>) -> bool {
        let is_its = |index| index == self.blocks.current() || !self.is_numbered;
        self.open == Some(kind) && index.is_none_or(is_its)
    }

    /// Goes on with a block that is open. Whether there is one.
    fn go_on(&mut self, kind: OpenOutput, index: Option<u64>, sink: &mut Sink<'_>) -> bool {
        if self.is_at(kind, index) {
            return true;
        }
        if !self.blocks.are_mixed() || !self.blocks.is_open(index) {
            return false;
        }
        self.blocks.turn(index, sink);
        self.open = Some(kind);
        if kind != OpenOutput::Call {
            sink(Event::Open(kind.block()));
        }
        true
    }

    fn delta(&mut self, kind: OpenOutput, index: Option<u64>, text: Str<'_>, sink: &mut Sink<'_>) {
        if text.is_empty() {
            return;
        }
        if !self.go_on(kind, index, sink) {
            if kind == OpenOutput::Call {
                self.unannounced = true;
                self.open_call(Text::default(), ToolName::default(), index, sink);
            } else {
                self.open(kind, kind.block(), index, sink);
            }
        }
        self.reported |= bit(index.unwrap_or(self.item));
        sink(Event::Delta(text.into_text()));
    }

    fn arguments_done(
        &mut self,
        index: Option<u64>,
        name: Option<Content<'_, IgnoredAny>>,
        arguments: Option<Content<'_, IgnoredAny>>,
        sink: &mut Sink<'_>,
    ) {
        if self.reported & bit(index.unwrap_or(self.item)) == 0 {
            self.delta(OpenOutput::Call, index, text_of(arguments), sink);
        }
        let name = text_of(name);
        if !name.is_empty() && self.go_on(OpenOutput::Call, index, sink) {
            sink(Event::Head { id: None, name: Some(name.into_text()) });
        }
    }

    fn item_added(
        &mut self,
        item: Option<OutputItem<'_>>,
        index: Option<u64>,
        sink: &mut Sink<'_>,
    ) {
        self.start(sink);
        self.item = index.unwrap_or_default();
        self.reported &= !bit(self.item);
        if index.is_none() {
            self.close(sink);
        }
        let call = item.filter(|item| item.kind.as_deref() == Some("function_call"));
        let Some(call) = call else { return };
        let name = ToolName::plain(call.name.unwrap_or_default().into_text());
        self.open_call(call.call_id.unwrap_or_default().into_text(), name, index, sink);
    }

    /// The complete item: only parts that no delta contained are emitted.
    ///
    /// # Errors
    /// A list of the item has an element that is not a part.
    fn item_done(
        &mut self,
        item: Option<OutputItem<'_>>,
        index: Option<u64>,
        sink: &mut Sink<'_>,
    ) -> Result<(), StreamProblem> {
        let its = bit(index.unwrap_or(self.item));
        let reported = self.reported & its != 0;
        self.reported &= !its;
        let parts = item.map(OutputItem::into_parts).transpose().map_err(malformed)?;
        for part in parts.into_iter().flatten() {
            match part {
                ReplyPart::Thinking(thinking) => self.thinking(thinking, reported, index, sink),
                ReplyPart::ToolCall(call) => self.call(call, reported, index, sink),
                ReplyPart::Text(text) if !reported => {
                    self.whole(OpenOutput::Text, text, index, sink)
                }
                ReplyPart::Refusal(text) if !reported => {
                    self.whole(OpenOutput::Refusal, text, index, sink)
                }
                ReplyPart::Text(_) | ReplyPart::Refusal(_) => {}
            }
        }
        let is_its = !self.is_numbered || self.blocks.is_open(index);
        if is_its && !self.blocks.go_on_after(index, sink) {
            self.close(sink);
        }
        Ok(())
    }

    fn whole(&mut self, kind: OpenOutput, text: Str<'_>, index: Option<u64>, sink: &mut Sink<'_>) {
        self.open(kind, kind.block(), index, sink);
        if !text.is_empty() {
            sink(Event::Delta(text.into_text()));
        }
    }

    fn thinking(
        &mut self,
        thinking: Thinking<'_>,
        reported: bool,
        index: Option<u64>,
        sink: &mut Sink<'_>,
    ) {
        let proven =
            thinking.signature.as_ref().is_some_and(|signature| !signature.value.is_empty());
        if !self.go_on(OpenOutput::Thinking, index, sink) {
            if thinking.text.is_empty() && !proven {
                return;
            }
            self.open(OpenOutput::Thinking, Block::Thinking, index, sink);
        }
        if !reported && !thinking.text.is_empty() {
            sink(Event::Delta(thinking.text.into_text()));
        }
        if let Some(signature) = thinking.signature {
            sink(Event::Signature(signature));
        }
    }

    fn call(
        &mut self,
        call: ToolCall<'_>,
        reported: bool,
        index: Option<u64>,
        sink: &mut Sink<'_>,
    ) {
        if self.go_on(OpenOutput::Call, index, sink) {
            if self.blocks.are_mixed() {
                sink(Event::Head { id: Some(call.id), name: Some(call.name.name) });
            }
        } else {
            self.open_call(call.id, call.name, index, sink);
        }
        if !reported && !call.arguments.is_empty() {
            sink(Event::Delta(call.arguments));
        }
    }

    fn close(&mut self, sink: &mut Sink<'_>) {
        self.blocks = OpenBlocks::default();
        if self.open.take().is_some() {
            sink(Event::Close);
        }
    }

    fn end(
        &mut self,
        incomplete: bool,
        response: Option<Response<'_>>,
        sink: &mut Sink<'_>,
    ) -> Result<(), StreamProblem> {
        self.start(sink);
        let Some(response) = response else {
            return Err(StreamProblem::malformed("the last event has no `response`"));
        };
        if let Some(output) = response.output.map(Json::get) {
            self.missing_items(output, sink)?;
        }
        if !self.any && !incomplete {
            return Err(StreamProblem::malformed(reply_read::NOTHING));
        }
        self.close(sink);
        let reason =
            response.incomplete_details.as_ref().and_then(|details| details.reason.as_deref());
        let finish =
            reply_read::finish(incomplete, reason, self.refused).with_calls(self.calls > 0);
        self.ended = true;
        sink(Event::Finish { finish, usage: Usage::default() });
        Ok(())
    }

    /// Emits what the last event has and no event before it had: everything, a call, or the name of
    /// a call. Usually there is nothing, and the items are not read.
    fn missing_items(&mut self, output: &str, sink: &mut Sink<'_>) -> Result<(), StreamProblem> {
        let lacks_calls = self.calls == 0
            && memchr::memmem::find(output.as_bytes(), b"\"function_call\"").is_some();
        if self.any && !self.unannounced && !lacks_calls {
            return Ok(());
        }
        let items: List<'_, OutputItem<'_>> = List::of(output).unwrap_or_default();
        let (any, any_text) = (self.any, self.any_text);
        for (position, item) in items.into_iter().map_while(Result::ok).enumerate() {
            let index = u64::try_from(position).ok();
            let is_open = self.blocks.are_mixed() && self.blocks.is_open(index);
            let is_missing = match item.kind.as_deref() {
                Some("function_call") => lacks_calls || !any || is_open,
                Some("message") => !any_text,
                _ => !any,
            };
            if is_missing {
                self.item_done(Some(item), index, sink)?;
            }
        }
        Ok(())
    }
}

fn text_of<'a>(content: Option<Content<'a, IgnoredAny>>) -> Str<'a> {
    match content {
        Some(Content::Text(text)) => text,
        _ => Str::default(),
    }
}

/// Whether a reader takes anything from events of this type.
pub fn reads(kind: &str) -> bool {
    const KINDS: [&str; 18] = [
        "created",
        "in_progress",
        "queued",
        "output_text.delta",
        "refusal.delta",
        "reasoning_summary_text.delta",
        "reasoning_text.delta",
        "reasoning_summary_part.added",
        "content_part.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
        "incomplete",
        "failed",
        "cancelled",
        "error",
    ];
    KINDS.contains(&kind.strip_prefix("response.").unwrap_or(kind))
}

fn malformed(unread: Unread<'_>) -> StreamProblem {
    StreamProblem::unreadable(unread.json.as_bytes(), &unread.error)
}

fn failed(error: Option<WireError<'_>>) -> StreamProblem {
    let (kind, message) = error.unwrap_or_default().kind_and_message();
    StreamProblem::Upstream { kind, message }
}
