//! Reads a chat-compatible stream, chunk by chunk.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::reply_read::{self, WireError, WirePart};
use crate::domain::usage::Usage;
use crate::formats::conversation::open_calls::bit;
use crate::formats::conversation::{
    Block, Content, Event, Finish, Origin, ReplyPart, Signature, Sink, Str, StreamProblem, Text,
    ToolName, is_empty_event,
};
use crate::formats::json_read::{self, Json, List, Unread};
use crate::formats::usage::names_an_end;

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: Option<List<'a, Choice<'a>>>,
    #[serde(borrow)]
    error: Option<Content<'a, WireError<'a>>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    index: Option<u64>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Str<'a>>,
    #[serde(borrow)]
    error: Option<Json<'a>>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Option<Content<'a, WirePart<'a>>>,
    #[serde(borrow)]
    refusal: Option<Str<'a>>,
    #[serde(borrow)]
    reasoning_content: Option<Str<'a>>,
    #[serde(borrow)]
    reasoning: Option<Content<'a, IgnoredAny>>,
    #[serde(borrow)]
    tool_calls: Option<List<'a, CallDelta<'a>>>,
}

#[derive(Deserialize)]
struct CallDelta<'a> {
    index: Option<u64>,
    #[serde(borrow)]
    id: Option<Str<'a>>,
    #[serde(borrow)]
    function: Option<FunctionDelta<'a>>,
}

#[derive(Deserialize)]
struct FunctionDelta<'a> {
    #[serde(borrow)]
    name: Option<Str<'a>>,
    #[serde(borrow)]
    arguments: Option<Str<'a>>,
}

fn malformed(unread: Unread<'_>) -> StreamProblem {
    StreamProblem::Malformed { message: unread.to_string() }
}

/// The open block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Text,
    Refusal,
    Thinking,
    /// By the provider's index.
    Call(u64),
}

/// State of one stream. Keeps nothing that grows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reader {
    started: bool,
    open: Option<Open>,
    /// The lowest index above those of all calls so far, for services that send none.
    calls: u64,
    /// One bit for each index below 64 that a call has.
    begun: u64,
    /// The last call's index and id.
    last: Option<(u64, String)>,
    finish: Option<Finish>,
    ended: bool,
}

impl Reader {
    /// Takes one event's data: a chunk, or `[DONE]`.
    ///
    /// # Errors
    /// An error that the provider reports, data that is no chunk, or more of a call that has ended.
    pub fn event(&mut self, data: &[u8], sink: &mut Sink<'_>) -> Result<(), StreamProblem> {
        if data.trim_ascii() == b"[DONE]" && self.started && !self.ended {
            self.end(sink);
        }
        if self.ended || is_empty_event(data) {
            return Ok(());
        }
        let chunk: Chunk<'_> = json_read::read(data)
            .map_err(|error| StreamProblem::Malformed { message: error.to_string() })?;
        if let Some(reported) = chunk.error {
            let (kind, message) = reply_read::error(reported);
            return Err(StreamProblem::Upstream { kind, message });
        }
        let mut choices = chunk.choices.unwrap_or_default().into_iter();
        let is_first = |choice: &Result<Choice<'_>, _>| !matches!(choice, Ok(choice) if choice.index.unwrap_or(0) != 0);
        let Some(choice) = choices.find(is_first).transpose().map_err(malformed)? else {
            return Ok(());
        };
        if !std::mem::replace(&mut self.started, true) {
            sink(Event::Start { usage: Usage::default() });
        }
        if let Some(delta) = choice.delta {
            self.delta(delta, sink)?;
        }
        if let Some((kind, message)) =
            reply_read::failed(choice.error, choice.finish_reason.as_deref())
        {
            return Err(StreamProblem::Upstream { kind, message });
        }
        if let Some(reason) = choice.finish_reason.as_deref().filter(|reason| names_an_end(reason))
        {
            self.finish = Some(reply_read::finish(Some(reason)));
        }
        Ok(())
    }

    /// The stream has ended. A finish reason makes it complete even without `[DONE]`, which some
    /// services leave out.
    ///
    /// # Errors
    /// [`StreamProblem::Cut`] if there was neither.
    pub fn finish(&mut self, sink: &mut Sink<'_>) -> Result<(), StreamProblem> {
        if !self.ended && self.finish.is_some() {
            self.end(sink);
        }
        if self.ended { Ok(()) } else { Err(StreamProblem::Cut) }
    }

    fn delta(&mut self, delta: Delta<'_>, sink: &mut Sink<'_>) -> Result<(), StreamProblem> {
        let reasoning = match (delta.reasoning_content, delta.reasoning) {
            (Some(text), _) => Some(text),
            (None, Some(Content::Text(text))) => Some(text),
            _ => None,
        };
        self.text(Open::Thinking, reasoning, sink);
        let content = delta.content.map(reply_read::content).transpose().map_err(malformed)?;
        for part in content.into_iter().flatten() {
            match part {
                ReplyPart::Thinking(thinking) => {
                    self.text(Open::Thinking, Some(thinking.text), sink)
                }
                ReplyPart::Text(text) => self.text(Open::Text, Some(text), sink),
                _ => {}
            }
        }
        self.text(Open::Refusal, delta.refusal, sink);
        for call in delta.tool_calls.into_iter().flatten() {
            self.call(call.map_err(malformed)?, sink)?;
        }
        Ok(())
    }

    fn text(&mut self, kind: Open, text: Option<Str<'_>>, sink: &mut Sink<'_>) {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return };
        if self.open != Some(kind) {
            // Some services send a line break while they write a call.
            if matches!(self.open, Some(Open::Call(_))) && text.is_blank() {
                return;
            }
            self.close(sink);
            self.open = Some(kind);
            sink(Event::Open(match kind {
                Open::Thinking => Block::Thinking,
                Open::Refusal => Block::Refusal,
                _ => Block::Text,
            }));
        }
        sink(Event::Delta(text.into_text()));
    }

    fn call(&mut self, call: CallDelta<'_>, sink: &mut Sink<'_>) -> Result<(), StreamProblem> {
        let (name, arguments) =
            call.function.map_or((None, None), |function| (function.name, function.arguments));
        let id = call.id.filter(|id| !id.is_empty());
        let index = call.index.unwrap_or(match self.open {
            Some(Open::Call(open)) if id.is_none() && name.is_none() => open,
            _ => self.calls,
        });
        let arguments = arguments.filter(|arguments| !arguments.is_empty());
        // Some services give all parallel calls the index 0: another id and a name are another
        // call. Others give each piece of one call another id, but the name only once.
        let is_named = name.as_deref().is_some_and(|name| !name.is_empty());
        let has_other_id =
            |id: &str| self.last.as_ref().is_some_and(|(last, its)| *last == index && *its != *id);
        let is_another = is_named && id.as_deref().is_some_and(has_other_id);
        if is_another || self.open != Some(Open::Call(index)) {
            let is_known = !is_another && self.has_begun(index);
            if is_known && arguments.is_none() {
                return Ok(());
            }
            if !matches!(self.open, Some(Open::Call(_))) {
                if is_known {
                    return Err(StreamProblem::mixed_calls());
                }
                self.close(sink);
            }
            self.open = Some(Open::Call(index));
            sink(Event::Turn(index));
            if is_known {
                sink(Event::Delta(arguments.unwrap_or_default().into_text()));
                return Ok(());
            }
            self.calls = self.calls.max(index.saturating_add(1));
            self.begun |= bit(index);
            self.last = id.as_deref().map(|id| (index, id.to_owned()));
            let position = usize::try_from(index).unwrap_or(usize::MAX);
            let id =
                id.map_or_else(|| Text::Owned(reply_read::generated_id(position)), Str::into_text);
            sink(Event::Open(Block::Tool {
                id,
                name: ToolName::plain(name.unwrap_or_default().into_text()),
            }));
        }
        if let Some(arguments) = arguments {
            sink(Event::Delta(arguments.into_text()));
        }
        Ok(())
    }

    fn has_begun(&self, index: u64) -> bool {
        if index < 64 { self.begun & bit(index) != 0 } else { index < self.calls }
    }

    fn close(&mut self, sink: &mut Sink<'_>) {
        match self.open.take() {
            None => return,
            Some(Open::Thinking) => sink(Event::Signature(Signature::new(Origin::Chat, ""))),
            Some(Open::Refusal) if self.finish.is_none() => self.finish = Some(Finish::Refusal),
            Some(_) => {}
        }
        sink(Event::Close);
    }

    fn end(&mut self, sink: &mut Sink<'_>) {
        let refused = self.open == Some(Open::Refusal);
        self.close(sink);
        self.ended = true;
        let finish = self.finish.take().unwrap_or_default().with_calls(self.calls > 0);
        let finish = if refused && finish == Finish::Stop { Finish::Refusal } else { finish };
        sink(Event::Finish { finish, usage: Usage::default() });
    }
}
