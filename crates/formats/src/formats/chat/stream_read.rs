//! Reads a chat-compatible stream, chunk by chunk.
//!
//! The fields of a delta are independent: content, reasoning, refusal and calls may come in any
//! order, and go on after a piece of another one. Once a call has come, each of them is announced
//! by its number ([`Event::Turn`]), and the converter puts them one after the other.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::reply_read::{self, WireError, WirePart};
use crate::domain::usage::Usage;
use crate::formats::conversation::{
    Arguments, Block, Content, Event, EventPieces, Finish, Origin, ReplyPart, Signature, Sink, Str,
    StreamProblem, Text, ToolName, is_empty_event, number,
};
use crate::formats::json_read::{self, Json, List, Unread};
use crate::formats::usage::names_an_end;

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: Option<List<'a, ChunkChoice<'a>>>,
    #[serde(borrow)]
    error: Option<Content<'a, WireError<'a>>>,
}

#[derive(Deserialize)]
struct ChunkChoice<'a> {
    #[serde(default, deserialize_with = "number::whole")]
    index: Option<u64>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    /// In place of the delta: a whole answer as one chunk.
    #[serde(borrow)]
    message: Option<Delta<'a>>,
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
    /// The only call, in the form before there were several.
    #[serde(borrow)]
    function_call: Option<FunctionDelta<'a>>,
}

#[derive(Deserialize)]
struct CallDelta<'a> {
    #[serde(default, deserialize_with = "number::whole")]
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
    arguments: Option<Arguments<'a>>,
}

fn malformed(unread: Unread<'_>) -> StreamProblem {
    StreamProblem::unreadable(unread.json.as_bytes(), &unread.error)
}

/// The highest number of a call.
const MAX_INDEX: u64 = u64::MAX >> 1;

/// The open block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenDelta {
    Text,
    Refusal,
    Thinking,
    /// By the provider's index.
    Call(u64),
}

impl OpenDelta {
    /// The number by which the block is announced. Calls have their own.
    const fn number(self) -> u64 {
        match self {
            Self::Text => u64::MAX,
            Self::Refusal => u64::MAX - 1,
            Self::Thinking => u64::MAX - 2,
            Self::Call(index) => index,
        }
    }
}

/// The call that came last.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Last {
    index: u64,
    /// Empty until it is known.
    id: String,
    has_arguments: bool,
}

/// State of one stream. Keeps nothing that grows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reader {
    started: bool,
    /// The index of the answer that is read: the first one with content.
    answer: Option<u64>,
    open: Option<OpenDelta>,
    /// A call has come: blocks are announced.
    mixed: bool,
    /// The lowest index above those of all calls so far, for services that send none.
    calls: u64,
    /// One bit for each index below 64 that a call has.
    begun: u64,
    last: Option<Last>,
    /// A call has a name or arguments.
    called: bool,
    refused: bool,
    finish: Option<Finish>,
    ended: bool,
}

impl Reader {
    /// Takes one event's data: a chunk, or `[DONE]`.
    ///
    /// # Errors
    /// An error that the provider reports, or data that is not a chunk.
    pub fn event(&mut self, data: &[u8], sink: &mut Sink<'_>) -> Result<(), StreamProblem> {
        if data.trim_ascii() == b"[DONE]" && self.has_answer() && !self.ended {
            self.end(sink);
        }
        if self.ended || is_empty_event(data) {
            return Ok(());
        }
        let chunk: Chunk<'_> =
            json_read::read(data).map_err(|error| StreamProblem::unreadable(data, &error))?;
        if let Some(reported) = chunk.error {
            let (kind, message) = reply_read::error(reported);
            return Err(StreamProblem::Upstream { kind, message });
        }
        let number = |choice: &ChunkChoice<'_>| choice.index.unwrap_or(0);
        let mut choices = chunk.choices.unwrap_or_default().into_iter();
        let first = match self.answer {
            Some(answer) => choices
                .find(|choice| !matches!(choice, Ok(choice) if number(choice) != answer))
                .transpose(),
            None => choices.try_fold(None, |least: Option<ChunkChoice<'_>>, choice| {
                let choice = choice?;
                Ok(Some(least.filter(|least| number(least) <= number(&choice)).unwrap_or(choice)))
            }),
        };
        let Some(choice) = first.map_err(malformed)? else { return Ok(()) };
        let answer = number(&choice);
        if !std::mem::replace(&mut self.started, true) {
            sink(Event::Start { usage: Usage::default() });
        }
        let whole = choice.message.filter(|_| self.open.is_none());
        if let Some(delta) = choice.delta.or(whole) {
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
        if self.has_answer() {
            self.answer = Some(answer);
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

    /// Whether some of the answer, or its end, has come: a terminator alone ends none.
    const fn has_answer(&self) -> bool {
        self.open.is_some() || self.finish.is_some()
    }

    fn delta(&mut self, delta: Delta<'_>, sink: &mut Sink<'_>) -> Result<(), StreamProblem> {
        let reasoning = match (delta.reasoning_content, delta.reasoning) {
            (Some(text), _) => Some(text),
            (None, Some(Content::Text(text))) => Some(text),
            _ => None,
        };
        self.text(reasoning.map(|text| (OpenDelta::Thinking, text)), sink);
        let content = delta.content.map(reply_read::content).transpose().map_err(malformed)?;
        let mut pieces = EventPieces::default();
        for part in content.into_iter().flatten() {
            let (kind, text) = match part {
                ReplyPart::Thinking(thinking) => (OpenDelta::Thinking, thinking.text),
                ReplyPart::Text(text) => (OpenDelta::Text, text),
                _ => continue,
            };
            self.text(pieces.push(kind, text), sink);
        }
        self.text(pieces.take(), sink);
        self.text(delta.refusal.map(|text| (OpenDelta::Refusal, text)), sink);
        for (position, call) in delta.tool_calls.into_iter().flatten().enumerate() {
            self.call(position, call.map_err(malformed)?, sink);
        }
        if let Some(function) = delta.function_call {
            self.call(0, CallDelta { index: Some(0), id: None, function: Some(function) }, sink);
        }
        Ok(())
    }

    fn text(&mut self, text: Option<(OpenDelta, Str<'_>)>, sink: &mut Sink<'_>) {
        let Some((kind, text)) = text.filter(|(_, text)| !text.is_empty()) else { return };
        if self.open != Some(kind) {
            self.go_to(kind, sink);
            self.refused |= kind == OpenDelta::Refusal;
            sink(Event::Open(match kind {
                OpenDelta::Thinking => Block::Thinking,
                OpenDelta::Refusal => Block::Refusal,
                _ => Block::Text,
            }));
            if self.mixed && kind == OpenDelta::Thinking {
                sink(unproven());
            }
        }
        sink(Event::Delta(text.into_text()));
    }

    fn call(&mut self, position: usize, call: CallDelta<'_>, sink: &mut Sink<'_>) {
        let (name, arguments) =
            call.function.map_or((None, None), |function| (function.name, function.arguments));
        let id = call.id.filter(|id| !id.is_empty());
        let name = name.filter(|name| !name.is_empty());
        let arguments = arguments.filter(|arguments| !arguments.is_empty());
        let guessed = || self.index_of(position, id.as_deref(), name.is_some());
        let index = call.index.unwrap_or_else(guessed).min(MAX_INDEX);
        // Some services give all parallel calls the index 0: another id and a name are another
        // call. Others give each piece of one call another id, but the name only once.
        let has_other_id = |id: &str| {
            self.last
                .as_ref()
                .is_some_and(|last| last.index == index && !last.id.is_empty() && last.id != *id)
        };
        let is_another = name.is_some() && id.as_deref().is_some_and(has_other_id);
        let is_known = !is_another && self.has_begun(index);
        if is_known && id.is_none() && name.is_none() && arguments.is_none() {
            return;
        }
        self.called |= name.is_some() || arguments.is_some();
        if is_another || self.open != Some(OpenDelta::Call(index)) {
            if !self.mixed {
                self.close(sink);
                self.mixed = true;
            }
            self.go_to(OpenDelta::Call(index), sink);
        }
        if is_known {
            self.go_on(index, id, name, sink);
        } else {
            self.begin(index, id, name, sink);
        }
        if let Some(arguments) = arguments {
            if let Some(last) = self.last.as_mut().filter(|last| last.index == index) {
                last.has_arguments = true;
            }
            sink(Event::Delta(arguments.into_text()));
        }
    }

    /// The index of a call without one. The first of a chunk may be more of the last call: anything
    /// without a name, with the same id, or with more of the name before the first argument.
    fn index_of(&self, position: usize, id: Option<&str>, is_named: bool) -> u64 {
        let goes_on = |last: &&Last| {
            let is_same = id.is_some_and(|id| id == last.id);
            let is_more_of_name = id.is_none() && !last.has_arguments;
            position == 0 && (!is_named || is_same || is_more_of_name)
        };
        self.last.as_ref().filter(goes_on).map_or(self.calls, |last| last.index)
    }

    fn begin(
        &mut self,
        index: u64,
        id: Option<Str<'_>>,
        name: Option<Str<'_>>,
        sink: &mut Sink<'_>,
    ) {
        self.calls = self.calls.max(index.saturating_add(1));
        if index < 64 {
            self.begun |= 1 << index;
        }
        let known = id.as_deref().unwrap_or_default().to_owned();
        self.last = Some(Last { index, id: known, has_arguments: false });
        let position = usize::try_from(index).unwrap_or(usize::MAX);
        let id = id.map_or_else(|| Text::Owned(reply_read::generated_id(position)), Str::into_text);
        sink(Event::Open(Block::Tool { id, name: ToolName::default() }));
        if name.is_some() {
            sink(Event::Head { id: None, name: name.map(Str::into_text) });
        }
    }

    fn go_on(
        &mut self,
        index: u64,
        id: Option<Str<'_>>,
        name: Option<Str<'_>>,
        sink: &mut Sink<'_>,
    ) {
        if id.is_none() && name.is_none() {
            return;
        }
        if let (Some(id), Some(last)) = (&id, &mut self.last)
            && last.index == index
            && last.id.is_empty()
        {
            last.id = id.to_string();
        }
        sink(Event::Head { id: id.map(Str::into_text), name: name.map(Str::into_text) });
    }

    fn has_begun(&self, index: u64) -> bool {
        if index < 64 { self.begun & 1 << index != 0 } else { index < self.calls }
    }

    /// Leaves the open block for another one.
    fn go_to(&mut self, to: OpenDelta, sink: &mut Sink<'_>) {
        if !self.mixed {
            self.close(sink);
        } else {
            if let Some(from) = self.open.filter(|open| !matches!(open, OpenDelta::Call(_))) {
                sink(Event::Done(from.number()));
            }
            sink(Event::Turn(to.number()));
        }
        self.open = Some(to);
    }

    fn close(&mut self, sink: &mut Sink<'_>) {
        match self.open.take() {
            None => return,
            Some(OpenDelta::Thinking) if !self.mixed => sink(unproven()),
            Some(_) => {}
        }
        sink(Event::Close);
    }

    fn end(&mut self, sink: &mut Sink<'_>) {
        self.close(sink);
        self.ended = true;
        let finish = self.finish.take().unwrap_or_default().with_calls(self.called);
        let refused = self.refused && finish == Finish::Stop;
        let finish = if refused { Finish::Refusal } else { finish };
        sink(Event::Finish { finish, usage: Usage::default() });
    }
}

/// Reasoning in this format has no proof: see [`reply_read::thinking`].
const fn unproven() -> Event<'static> {
    Event::Signature(Signature { origin: Origin::Chat, value: Text::Borrowed("") })
}
