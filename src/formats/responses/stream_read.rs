//! Reads a responses stream, event by event.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::reply_read::{self, Incomplete, OutputItem, WireError};
use crate::domain::usage::Usage;
use crate::formats::conversation::open_calls::{OpenCalls, block_number};
use crate::formats::conversation::{
    Block, Content, Event, ReplyPart, Sink, Str, StreamProblem, Thinking, ToolCall, ToolName,
    is_empty_event,
};
use crate::formats::json_read::{self, Json, List, Unread};

#[derive(Deserialize)]
struct Data<'a> {
    #[serde(borrow, rename = "type")]
    kind: Str<'a>,
    /// A text, unless the event is of a kind that is not read; `message` too.
    #[serde(borrow)]
    delta: Option<Content<'a, IgnoredAny>>,
    #[serde(borrow)]
    item: Option<OutputItem<'a>>,
    summary_index: Option<u64>,
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
enum Open {
    Text,
    Refusal,
    Thinking,
    Call,
}

/// State of one stream. Keeps nothing that grows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reader {
    started: bool,
    open: Option<Open>,
    /// Those whose items have not ended.
    open_calls: OpenCalls,
    /// A part of the current item was emitted.
    reported: bool,
    /// A part of any item was emitted.
    any: bool,
    calls: bool,
    refused: bool,
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
        let data: Data<'_> = json_read::read(data)
            .map_err(|error| StreamProblem::Malformed { message: error.to_string() })?;
        let kind = data.kind.strip_prefix("response.").unwrap_or(&data.kind);
        let index = block_number(data.output_index);
        match kind {
            "created" | "in_progress" | "queued" => self.start(sink),
            "output_text.delta" => self.delta(Open::Text, data.delta, sink),
            "refusal.delta" => self.delta(Open::Refusal, data.delta, sink),
            "reasoning_summary_text.delta" | "reasoning_text.delta" => {
                self.delta(Open::Thinking, data.delta, sink)
            }
            "reasoning_summary_part.added"
                if data.summary_index.is_some_and(|index| index > 0)
                    && self.open == Some(Open::Thinking) =>
            {
                sink(Event::Delta("\n\n".into()));
            }
            "content_part.done" => self.close(sink),
            "output_item.added" => self.item_added(data.item, index, sink),
            "function_call_arguments.delta" if self.open == Some(Open::Call) => {
                self.open_calls.turn(index, sink);
                self.open_calls.begin();
                self.delta(Open::Call, data.delta, sink);
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

    fn open(&mut self, kind: Open, block: Block<'_>, sink: &mut Sink<'_>) {
        self.start(sink);
        self.close(sink);
        self.open = Some(kind);
        self.any = true;
        self.calls |= kind == Open::Call;
        self.refused |= kind == Open::Refusal;
        sink(Event::Open(block));
    }

    fn delta(&mut self, kind: Open, delta: Option<Content<'_, IgnoredAny>>, sink: &mut Sink<'_>) {
        let Some(Content::Text(text)) = delta else { return };
        if text.is_empty() {
            return;
        }
        if self.open != Some(kind) {
            self.open(
                kind,
                match kind {
                    Open::Thinking => Block::Thinking,
                    Open::Refusal => Block::Refusal,
                    _ => Block::Text,
                },
                sink,
            );
        }
        self.reported = true;
        sink(Event::Delta(text.into_text()));
    }

    fn item_added(
        &mut self,
        item: Option<OutputItem<'_>>,
        index: Option<u64>,
        sink: &mut Sink<'_>,
    ) {
        self.start(sink);
        let call = item.filter(|item| item.kind.as_deref() == Some("function_call"));
        let joins = call.is_some() && self.open_calls.join(index, sink);
        if !joins {
            self.close(sink);
        }
        self.reported = false;
        let Some(call) = call else { return };
        let id = call.call_id.unwrap_or_default().into_text();
        let block =
            Block::Tool { id, name: ToolName::plain(call.name.unwrap_or_default().into_text()) };
        if joins {
            sink(Event::Open(block));
        } else {
            self.open(Open::Call, block, sink);
            self.open_calls.start(index);
        }
    }

    /// The complete item: only parts that no delta contained are emitted.
    ///
    /// # Errors
    /// A list of the item has an element that is no part.
    fn item_done(
        &mut self,
        item: Option<OutputItem<'_>>,
        index: Option<u64>,
        sink: &mut Sink<'_>,
    ) -> Result<(), StreamProblem> {
        self.open_calls.turn(index, sink);
        let reported = std::mem::take(&mut self.reported);
        let call_reported = self.open_calls.has_begun().unwrap_or(reported);
        let parts = item.map(OutputItem::into_parts).transpose().map_err(malformed)?;
        for part in parts.into_iter().flatten() {
            match part {
                ReplyPart::Thinking(thinking) => self.thinking(thinking, reported, sink),
                ReplyPart::ToolCall(call) => self.call(call, call_reported, sink),
                ReplyPart::Text(text) if !reported => {
                    self.whole(Open::Text, Block::Text, text, sink)
                }
                ReplyPart::Refusal(text) if !reported => {
                    self.whole(Open::Refusal, Block::Refusal, text, sink)
                }
                ReplyPart::Text(_) | ReplyPart::Refusal(_) => {}
            }
        }
        if !self.open_calls.go_on_after(index, sink) {
            self.close(sink);
        }
        Ok(())
    }

    fn whole(&mut self, kind: Open, block: Block<'_>, text: Str<'_>, sink: &mut Sink<'_>) {
        self.open(kind, block, sink);
        if !text.is_empty() {
            sink(Event::Delta(text.into_text()));
        }
        self.close(sink);
    }

    fn thinking(&mut self, thinking: Thinking<'_>, reported: bool, sink: &mut Sink<'_>) {
        let proven =
            thinking.signature.as_ref().is_some_and(|signature| !signature.value.is_empty());
        if self.open != Some(Open::Thinking) {
            if thinking.text.is_empty() && !proven {
                return;
            }
            self.open(Open::Thinking, Block::Thinking, sink);
        }
        if !reported && !thinking.text.is_empty() {
            sink(Event::Delta(thinking.text.into_text()));
        }
        if let Some(signature) = thinking.signature {
            sink(Event::Signature(signature));
        }
        self.close(sink);
    }

    fn call(&mut self, call: ToolCall<'_>, reported: bool, sink: &mut Sink<'_>) {
        if self.open != Some(Open::Call) {
            self.open(Open::Call, Block::Tool { id: call.id, name: call.name }, sink);
        }
        if !reported && !call.arguments.is_empty() {
            sink(Event::Delta(call.arguments));
        }
    }

    fn close(&mut self, sink: &mut Sink<'_>) {
        self.open_calls = OpenCalls::default();
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
        self.close(sink);
        let Some(response) = response else {
            return Err(StreamProblem::Malformed {
                message: "the last event has no `response`".to_owned(),
            });
        };
        if !self.any
            && let Some(output) = response.output
        {
            let items: List<'_, OutputItem<'_>> = List::of(output.get()).unwrap_or_default();
            for item in items.into_iter().map_while(Result::ok) {
                self.item_done(Some(item), None, sink)?;
            }
        }
        let reason =
            response.incomplete_details.as_ref().and_then(|details| details.reason.as_deref());
        let finish = reply_read::finish(incomplete, reason, self.refused).with_calls(self.calls);
        self.ended = true;
        sink(Event::Finish { finish, usage: Usage::default() });
        Ok(())
    }
}

/// Whether a reader takes anything from events of this type.
#[must_use]
pub fn reads(kind: &str) -> bool {
    const KINDS: [&str; 17] = [
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
    StreamProblem::Malformed { message: unread.to_string() }
}

fn failed(error: Option<WireError<'_>>) -> StreamProblem {
    let (kind, message) = error.unwrap_or_default().kind_and_message();
    StreamProblem::Upstream { kind, message }
}
