//! Reads the usage of a reply as it passes by, in bounded memory: all four formats, streaming or
//! not.
//!
//! It is the only reader of usage. Replies that pass through unchanged are fed to it as bytes, a
//! converted stream event by event; the client's figures in a converted reply come from it too. So
//! the cost of a reply does not depend on the client's format.
//!
//! The bytes may be cut anywhere. Each event's JSON is scanned as its pieces arrive, and only
//! figures and short words are kept, so an event of many megabytes costs no more memory than a
//! small one. Figures are taken only from their places, so generated text about usage has no
//! effect. The reader also reports what the relay needs: whether anything meaningful has arrived,
//! whether the reply is complete, and whether the upstream reported an error within it.

mod alt_cli;
mod bill;
#[cfg(test)]
mod bill_tests;
mod changes;
mod chat;
mod diagnosis;
mod endpoint;
#[cfg(test)]
mod fault_tests;
mod figures;
mod hide;
mod layout;
mod model;
mod native;
mod output;
mod passes;
mod repeat;
mod responses;
mod searches;
mod state;
mod tag;
mod tally;
#[cfg(test)]
mod tests;
mod tools;

use std::ops::Range;

pub use self::bill::Bill;
pub use self::changes::{InputChange, describe as describe_changes};
pub use self::diagnosis::CacheDiagnosis;
pub use self::hide::HideUsageChunk;
pub use self::layout::BodyKind;
pub use self::model::ModelName;
pub use self::state::ReplyState;
pub use self::tally::{ENDED_IN_ERROR, names_an_end};

use self::layout::{Layout, Reading};
use self::output::Output;
use self::repeat::Repeated;
use self::tag::UsageTag;
use self::tally::UsageTally;
use super::error::UpstreamError;
use super::scan::{Found, Kind, Scanner};
use super::sse::Splitter;
use super::{MOST_ELEMENTS, count};
use crate::domain::endpoint::ReplyFigures;
use crate::domain::format::WireFormat;
use crate::domain::usage::Usage;

/// Figures nest less than this; anything deeper is skipped.
const MAX_DEPTH: usize = 256;
/// The chat-compatible stream's last data line.
const DONE: &[u8] = b"[DONE]";
/// A body of this size without an error is treated as a reply before its end confirms it.
const LARGE_BODY: usize = 32 * 1024;

/// Follows one reply. Feed it everything, then call [`UsageReader::finish`].
#[derive(Debug)]
pub struct UsageReader {
    reading: Reading,
    layout: Layout,
    splitter: Splitter,
    scanner: Scanner<UsageTag>,
    tally: UsageTally,
    /// The last event, if the next one may only bring another text.
    repeated: Option<Box<Repeated>>,
    /// The place of the current event's last text, with its quotes.
    text: Range<usize>,
    /// The current event has other output than texts.
    other_output: bool,
    /// Complete events so far.
    events: u64,
    /// Elements of all lists of the last event.
    elements: usize,
    /// The current event's (or the body's) JSON is invalid: its rest is ignored.
    broken: bool,
    /// The body ended within its JSON.
    cut: bool,
    /// The first bytes of the current event, enough to recognise the terminator.
    head: [u8; DONE.len()],
    head_len: usize,
    body_len: usize,
    finished: bool,
}

impl UsageReader {
    /// `streaming`: a stream was requested. If the upstream answers with one JSON value instead,
    /// that is detected.
    pub fn new(format: WireFormat, streaming: bool) -> Self {
        let layout = if streaming { Layout::Unknown } else { Layout::Json };
        Self::reading(format.into(), layout)
    }

    /// A reader for a reply of an endpoint.
    pub fn of_endpoint(figures: ReplyFigures, kind: BodyKind) -> Self {
        let layout = match kind {
            BodyKind::Events => Layout::Unknown,
            BodyKind::Json => Layout::Json,
            BodyKind::Other => Layout::Opaque,
        };
        let reading = match figures {
            ReplyFigures::OfFormat(format) => format.into(),
            ReplyFigures::Own => Reading::Endpoint,
        };
        Self::reading(reading, layout)
    }

    fn reading(reading: Reading, layout: Layout) -> Self {
        let root = match (reading, layout) {
            (Reading::Native, _) => &native::ROOT,
            (Reading::Chat, _) => &chat::ROOT,
            (Reading::Responses, Layout::Json) => &responses::BODY,
            (Reading::Responses, _) => &responses::EVENT,
            (Reading::AltCli, _) => &alt_cli::ROOT,
            (Reading::Endpoint, _) => &endpoint::ROOT,
        };
        Self {
            reading,
            layout,
            splitter: Splitter::new(),
            scanner: Scanner::new(root, MAX_DEPTH).skipping_deep(),
            tally: UsageTally::default(),
            repeated: None,
            text: 0..0,
            other_output: false,
            events: 0,
            elements: 0,
            broken: false,
            cut: false,
            head: [0; DONE.len()],
            head_len: 0,
            body_len: 0,
            finished: false,
        }
    }

    /// A reader for a stream that is fed event by event.
    pub fn of_events(format: WireFormat) -> Self {
        Self { layout: Layout::Events, ..Self::new(format, true) }
    }

    /// Takes the next bytes of the reply's (decoded) body.
    pub fn feed(&mut self, chunk: &[u8]) {
        if self.layout == Layout::Unknown {
            // JSON's own white space: a form feed is none, and no JSON begins after it.
            match chunk.iter().find(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
                // If these are events, it belongs to their first line.
                None => return self.events(chunk),
                Some(b'{' | b'[') => self.become_json(),
                Some(_) => self.layout = Layout::Events,
            }
        }
        match self.layout {
            Layout::Json => {
                self.body_len += chunk.len();
                self.scan(chunk);
            }
            Layout::Opaque => self.tally.content |= !chunk.is_empty(),
            Layout::Unknown | Layout::Events => self.events(chunk),
        }
    }

    fn events(&mut self, mut chunk: &[u8]) {
        while !chunk.is_empty() {
            chunk = self.repeated_event(chunk).unwrap_or_else(|| self.next_event(chunk));
        }
    }

    /// The reply's body has ended.
    pub fn finish(&mut self) {
        if self.finished {
            return;
        }
        self.finished = true;
        match self.layout {
            Layout::Events if self.splitter.finish() => self.end_of_last_event(),
            Layout::Opaque => self.tally.end = self.tally.content,
            Layout::Json => {
                if !self.broken {
                    let tally = &mut self.tally;
                    let reading = self.reading;
                    let mut sink = |found: Found<'_, UsageTag>| take(reading, tally, &found);
                    self.cut = self.scanner.finish(&mut sink).is_err();
                    self.broken = self.cut;
                }
                let is_reply = !self.broken && self.tally.content && self.tally.error.is_none();
                // The complete bodies of these formats have no end marker other than being
                // complete.
                if is_reply && matches!(self.reading, Reading::Chat | Reading::AltCli) {
                    self.tally.end = true;
                }
            }
            _ => {}
        }
    }

    /// The figures so far; `None` until the upstream has reported any.
    pub fn usage(&self) -> Option<Usage> {
        self.tally.figures.any().then(|| self.figures())
    }

    fn figures(&self) -> Usage {
        match self.reading {
            Reading::Native => native::usage(&self.tally),
            Reading::Chat => chat::usage(&self.tally),
            Reading::Responses => responses::usage(&self.tally),
            Reading::AltCli => alt_cli::usage(&self.tally),
            Reading::Endpoint => endpoint::usage(&self.tally),
        }
    }

    /// Whether the figures are the reply's final ones, not those known when it was cut off. Zeros
    /// alone, or an output whose input is missing, are not: no prompt is empty.
    pub fn final_figures(&self) -> bool {
        let tally = &self.tally;
        let native = matches!(self.reading, Reading::Native);
        let ended = self.seen_end() && (!native || tally.later_figures);
        let usage = self.figures();
        let input = usage.total_input() > 0 || (usage.output > 0 && tally.figures.promptless());
        input && tally.figures.tell_output() && (tally.settled || ended)
    }

    /// The billed usage: the final figures, else an estimate that is never less than the reported
    /// figures. `input` is the estimate of the request's input tokens, used if the upstream has
    /// reported none.
    ///
    /// Generated text and reasoning are estimated as in `usage::output`.
    pub fn estimate(&self, input: u64) -> Usage {
        let mut usage = self.figures();
        if self.final_figures() {
            return usage;
        }
        if [usage.input, usage.cache_read, usage.cache_write_5m, usage.cache_write_1h] == [0; 4] {
            usage.input = input;
        }
        let output = self.output_so_far();
        // Running totals report the reasoning exactly; then only its text may be ahead of them.
        let reported = usage.reasoning > 0;
        let reasoning =
            if reported { count::from_len(output.thinking) } else { output.reasoning() };
        usage.reasoning = usage.reasoning.max(reasoning);
        usage.output = usage.output.max(output.visible().saturating_add(usage.reasoning));
        usage
    }

    /// What the reply is billed by: [`UsageReader::estimate`], and its parts.
    pub fn bill(&self, input: u64) -> Bill {
        let usage = self.estimate(input);
        let tally = &self.tally;
        let mut parts = match self.reading {
            Reading::Native => native::parts(tally, usage),
            Reading::Endpoint => endpoint::parts(tally),
            _ => Vec::new(),
        };
        tools::add(tally, &mut parts);
        let changes = tally.changes.as_ref().map(|changes| changes.known.clone());
        Bill {
            usage,
            estimated: !self.final_figures(),
            model: tally.model,
            parts,
            changes: changes.unwrap_or_default(),
            diagnosis: tally.diagnosis.clone(),
        }
    }

    /// What was generated, also that part of a body or an event that is still incomplete.
    fn output_so_far(&self) -> Output {
        if !self.is_within_a_value() {
            return self.tally.output;
        }
        let mut tally = self.tally.clone();
        let mut found = |tag, kind, len: usize| {
            let span = 0..len.saturating_add(2);
            let found = Found {
                tag,
                kind,
                span,
                text: &[],
                whole: true,
                escaped: false,
                len: 1,
                exact: true,
            };
            tally.found(&found);
        };
        match self.scanner.unfinished() {
            Some((tag, Kind::String, len)) if tag.is_text() || tag.is_other_output() => {
                found(tag, Kind::String, len);
            }
            Some((UsageTag::Part, kind, len)) => found(UsageTag::Part, kind, len),
            _ => {}
        }
        match self.reading {
            Reading::AltCli => found(UsageTag::PartEnd, Kind::Object, 0),
            Reading::Responses => {
                found(UsageTag::Item, Kind::Object, 0);
                responses::output(&mut tally);
            }
            Reading::Native | Reading::Chat | Reading::Endpoint => {}
        }
        tally.output
    }

    /// Whether the JSON of a body that is not a stream is complete, or was found to be none.
    pub const fn is_whole(&self) -> bool {
        let is_json = matches!(self.layout, Layout::Json);
        !is_json || (!self.cut && (self.broken || self.scanner.is_complete()))
    }

    /// Whether the JSON of the body, or of the current event, is incomplete.
    const fn is_within_a_value(&self) -> bool {
        match self.layout {
            Layout::Json => !self.is_whole(),
            Layout::Unknown | Layout::Events | Layout::Opaque => {
                !self.broken && !self.scanner.is_untouched() && !self.scanner.is_complete()
            }
        }
    }

    /// Something meaningful has arrived: content, or the reply's end. Pings, a message's start and
    /// errors do not count.
    pub const fn seen_content(&self) -> bool {
        let large =
            matches!(self.layout, Layout::Json) && self.body_len >= LARGE_BODY && !self.broken;
        self.tally.content || (large && self.tally.error.is_none())
    }

    /// The reply reached its format's end for success.
    ///
    /// A chat-compatible stream that stops without its terminator, and any alt-cli stream, is
    /// complete if all its answers have a finish reason: call this after [`UsageReader::finish`].
    /// Until then more may come: another answer, or the usage.
    pub const fn seen_end(&self) -> bool {
        let by_reason = matches!(self.reading, Reading::Chat | Reading::AltCli | Reading::Endpoint);
        self.tally.end
            || (by_reason && self.finished && self.tally.finish && self.tally.error.is_none())
    }

    /// Only the end of the body is missing of an alt-cli stream: all reasons and the final figures
    /// have arrived. If the upstream now breaks the connection, or leaves it open, the reply is
    /// complete nevertheless.
    pub fn lacks_only_the_end(&self) -> bool {
        let alt = matches!(self.reading, Reading::AltCli) && matches!(self.layout, Layout::Events);
        alt && self.tally.finish && self.tally.error.is_none() && self.final_figures()
    }

    /// The error that the upstream reported within the reply.
    pub const fn seen_error(&self) -> Option<&UpstreamError> {
        self.tally.error.as_ref()
    }

    /// Whether the lists of the body, or of the last event, have more elements than a reply that is
    /// converted may have.
    pub const fn has_too_many_elements(&self) -> bool {
        self.elements() > MOST_ELEMENTS
    }

    /// How many elements the lists of the body, or of the last event, have.
    pub const fn elements(&self) -> usize {
        match self.layout {
            Layout::Json => self.scanner.elements(),
            Layout::Unknown | Layout::Events | Layout::Opaque => self.elements,
        }
    }

    /// Complete events so far, of a stream.
    pub const fn event_count(&self) -> u64 {
        self.events
    }

    /// native and responses: the reply's id, if it is known.
    pub fn reply_id(&self) -> Option<&str> {
        Some(self.tally.id.as_str()).filter(|id| !id.is_empty())
    }

    /// responses: where the reply stands; `None` if it does not say.
    pub const fn state(&self) -> Option<ReplyState> {
        self.tally.state
    }

    /// The bill of a reply that was fetched: of one that was cancelled or failed only what it
    /// reports. `None` while the provider still makes it. `input`: see [`UsageReader::bill`].
    pub fn bill_of_fetched(&self, input: u64) -> Option<(ReplyState, Bill)> {
        let state = self.tally.state.filter(|state| !state.goes_on())?;
        let mut bill = self.bill(input);
        if matches!(state, ReplyState::Cancelled | ReplyState::Failed) {
            bill.usage = self.usage().unwrap_or_default();
            bill.estimated = false;
        }
        Some((state, bill))
    }

    /// Bytes of generated text, reasoning and call arguments so far, as JSON has them.
    pub const fn output_chars(&self) -> usize {
        self.tally.output.all
    }

    /// The progress of the reply: grows with everything that is generated, also with what cannot be
    /// read.
    pub fn progress(&self) -> u64 {
        let generated = self.tally.output.all.saturating_add(self.tally.output.sealed);
        generated as u64 + u64::from(self.seen_content()) + u64::from(self.seen_end())
    }

    fn become_json(&mut self) {
        self.layout = Layout::Json;
        if self.reading == Reading::Responses {
            self.scanner = Scanner::new(&responses::BODY, MAX_DEPTH).skipping_deep();
        }
    }

    fn data(&mut self, part: &[u8]) {
        let room = self.head.len() - self.head_len;
        if room > 0 {
            let few = &part[..part.len().min(room)];
            self.head[self.head_len..self.head_len + few.len()].copy_from_slice(few);
            self.head_len += few.len();
        }
        self.scan(part);
    }

    fn scan(&mut self, part: &[u8]) {
        if self.broken {
            return;
        }
        let tally = &mut self.tally;
        let reading = self.reading;
        let (text, other_output) = (&mut self.text, &mut self.other_output);
        let mut sink = |found: Found<'_, UsageTag>| {
            *other_output |= found.tag.is_other_output() && found.kind != Kind::Null;
            if found.kind == Kind::String && found.tag.is_text() {
                *text = found.span.clone();
            }
            take(reading, tally, &found);
        };
        self.broken = self.scanner.feed(part, &mut sink).is_err();
    }

    /// The stream ends, possibly within its last event: its output counts.
    fn end_of_last_event(&mut self) {
        self.tally.output = self.output_so_far();
        self.end_of_event();
    }

    fn end_of_event(&mut self) {
        if self.reading == Reading::Chat && self.head == DONE {
            // A terminator alone ends no reply.
            self.tally.end |= self.tally.content && self.tally.error.is_none();
        }
        self.events += 1;
        self.elements = self.scanner.elements();
        // An event that was not JSON, or incomplete, reports nothing as a whole.
        self.tally.next_event();
        self.scanner.reset();
        self.broken = false;
        self.head = [0; DONE.len()];
        self.head_len = 0;
    }
}

fn take(reading: Reading, tally: &mut UsageTally, found: &Found<'_, UsageTag>) {
    if found.tag != UsageTag::Event {
        tally.found(found);
        return;
    }
    match reading {
        Reading::Native => native::event_end(tally),
        Reading::Chat => chat::event_end(tally),
        Reading::Responses => responses::event_end(tally),
        Reading::AltCli => alt_cli::event_end(tally),
        Reading::Endpoint => endpoint::event_end(tally),
    }
    tally.settle();
    tally.next_event();
}
