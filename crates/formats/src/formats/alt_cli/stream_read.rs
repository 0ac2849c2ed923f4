//! Reads an alt-cli stream, chunk by chunk. It has no terminator: a finish reason makes it
//! complete.

use super::reply_read::{self, Body, Candidate};
use super::request_contents::{FunctionCall, WirePart};
use super::steps;
use crate::domain::usage::Usage;
use crate::formats::conversation::{
    Block, Event, EventPieces, Finish, Origin, Signature, Sink, Str, StreamProblem, Text, ToolName,
    is_empty_event,
};
use crate::formats::json_read::Unread;
use crate::formats::usage::names_an_end;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenBlock {
    Text,
    Thinking,
}

/// State of one stream. Keeps nothing that grows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reader {
    started: bool,
    open: Option<OpenBlock>,
    calls: usize,
    /// Text or a call has come.
    answered: bool,
    /// A part that is read has come.
    any: bool,
    /// One of a kind that is not read has.
    foreign: bool,
    /// The client knows the format's own finish reasons, and kinds of parts.
    own: bool,
    finish: Option<Finish>,
    ended: bool,
}

impl Reader {
    /// A reader for a client of the same format: a call that the service dropped is not a problem.
    pub fn own() -> Self {
        Self { own: true, ..Self::default() }
    }

    /// Takes one event's data.
    ///
    /// # Errors
    /// An error that the provider reports, or data that is not a chunk of this format.
    pub fn event(&mut self, data: &[u8], sink: &mut Sink<'_>) -> Result<(), StreamProblem> {
        if self.ended || is_empty_event(data) {
            return Ok(());
        }
        let body = Body::parse(data).map_err(StreamProblem::malformed)?;
        if let Some(error) = &body.error {
            let (kind, message) = error.kind_and_message();
            return Err(StreamProblem::Upstream { kind, message });
        }
        if body.is_blocked() {
            self.finish = Some(Finish::Refusal);
        }
        self.start(sink);
        let malformed =
            |unread: Unread<'_>| StreamProblem::unreadable(unread.json.as_bytes(), &unread.error);
        let mut candidates = body.candidates.unwrap_or_default().into_iter();
        let is_first = |candidate: &Result<Candidate<'_>, _>| !matches!(candidate, Ok(candidate) if candidate.index.unwrap_or(0) != 0);
        let Some(candidate) = candidates.find(is_first).transpose().map_err(malformed)? else {
            return Ok(());
        };
        let broken = reply_read::broken_call(&candidate);
        let mut pieces = EventPieces::default();
        for part in candidate.content.and_then(|content| content.parts).into_iter().flatten() {
            self.part(part.map_err(malformed)?, &mut pieces, sink);
        }
        self.text(pieces.take(), sink);
        if let Some((kind, message)) = broken.filter(|_| !self.own && !self.answered) {
            return Err(StreamProblem::Upstream { kind, message });
        }
        if let Some(reason) = candidate.reason.as_deref().filter(|reason| names_an_end(reason)) {
            self.finish = Some(reply_read::finish(Some(reason)));
        }
        Ok(())
    }

    /// The stream has ended.
    ///
    /// # Errors
    /// [`StreamProblem::Cut`] if there was no finish reason.
    pub fn finish(&mut self, sink: &mut Sink<'_>) -> Result<(), StreamProblem> {
        if self.ended {
            return Ok(());
        }
        if self.foreign && !self.any && !self.own {
            return Err(StreamProblem::malformed(reply_read::NOTHING));
        }
        let Some(finish) = self.finish.take() else { return Err(StreamProblem::Cut) };
        self.start(sink);
        self.close(sink);
        self.ended = true;
        sink(Event::Finish { finish: finish.with_calls(self.calls > 0), usage: Usage::default() });
        Ok(())
    }

    fn start(&mut self, sink: &mut Sink<'_>) {
        if !std::mem::replace(&mut self.started, true) {
            sink(Event::Start { usage: Usage::default() });
        }
    }

    fn part<'a>(
        &mut self,
        part: WirePart<'a>,
        pieces: &mut EventPieces<'a, OpenBlock>,
        sink: &mut Sink<'_>,
    ) {
        let is_foreign = part.is_foreign();
        self.foreign |= is_foreign;
        self.any |= !is_foreign;
        if let Some(call) = part.call {
            self.text(pieces.take(), sink);
            self.answered = true;
            self.prove(part.signature.map(Str::into_text), sink);
            self.call(call, sink);
            return;
        }
        if let Some(step) = steps::seal(&part) {
            self.text(pieces.take(), sink);
            self.close(sink);
            sink(Event::Open(Block::Thinking));
            sink(Event::Signature(step));
            sink(Event::Close);
            return;
        }
        let kind = if part.thought == Some(true) { OpenBlock::Thinking } else { OpenBlock::Text };
        if let Some(text) = part.text.filter(|text| !text.is_empty()) {
            self.text(pieces.push(kind, text), sink);
        }
    }

    fn text(&mut self, text: Option<(OpenBlock, Str<'_>)>, sink: &mut Sink<'_>) {
        let Some((kind, text)) = text else { return };
        self.answered |= kind == OpenBlock::Text;
        if self.open != Some(kind) {
            self.close(sink);
            self.open = Some(kind);
            sink(Event::Open(match kind {
                OpenBlock::Text => Block::Text,
                OpenBlock::Thinking => Block::Thinking,
            }));
        }
        sink(Event::Delta(text.into_text()));
    }

    /// The proof of a call is attached to the thought before it, which is its place in other
    /// formats.
    fn prove(&mut self, proof: Option<Text<'_>>, sink: &mut Sink<'_>) {
        let Some(proof) = proof else { return };
        if self.open != Some(OpenBlock::Thinking) {
            self.close(sink);
            sink(Event::Open(Block::Thinking));
        }
        sink(Event::Signature(Signature::new(Origin::AltCli, proof)));
        sink(Event::Close);
        self.open = None;
    }

    fn call(&mut self, call: FunctionCall<'_>, sink: &mut Sink<'_>) {
        self.close(sink);
        let arguments = call.arguments();
        let id = call.id.filter(|id| !id.is_empty());
        let id = id.map_or_else(|| reply_read::generated_id(self.calls), Str::into_text);
        self.calls += 1;
        let name = ToolName::plain(call.name.unwrap_or_default().into_text());
        sink(Event::Open(Block::Tool { id, name }));
        sink(Event::Delta(arguments.into()));
        sink(Event::Close);
    }

    fn close(&mut self, sink: &mut Sink<'_>) {
        match self.open.take() {
            None => return,
            Some(OpenBlock::Thinking) => sink(Event::Signature(Signature::new(Origin::AltCli, ""))),
            Some(OpenBlock::Text) => {}
        }
        sink(Event::Close);
    }
}
