//! The findings of a reply so far: token figures, and whether content, an end or an error was read.
//! Common to all formats.
//!
//! Each format's own file names the places in its replies by [`UsageTag`]s, evaluates events, and
//! converts the raw figures into disjoint [`Usage`]. Figures take
//! effect when their usage object ends (`usage::figures`); generated output is measured in case the
//! final figures never come (`usage::output`).

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::changes::Changes;
use super::diagnosis::CacheDiagnosis;
use super::figures::UsageFigures;
pub(super) use super::figures::{Figure, Modality};
use super::model::ModelName;
use super::output::{ItemSoFar, Items, Output};
use super::searches::Queries;
use super::state::ReplyState;
use super::tag::UsageTag;
use super::tools::Tools;
use crate::domain::part::PartKind;
use crate::domain::usage::{ServiceTier, Usage};
use crate::formats::error::UpstreamError;
use crate::formats::scan::{Found, Kind, Node, key};

/// A token figure above this is not one: the request is then estimated, as if the provider had not
/// reported it. No model reads or writes a thousandth of it in one request, and the sums of many
/// such figures stay within those of the ledger.
const MAX_FIGURE: u64 = 1_000_000_000;

/// An `error` member with the members of all formats.
pub(super) const ERROR: Node<UsageTag> = Node {
    tag: Some(UsageTag::Error),
    take: 1000,
    keys: &[
        key("type", Node::value(UsageTag::ErrorKind, 100)),
        key("status", Node::value(UsageTag::ErrorKind, 100)),
        key("code", Node::value(UsageTag::ErrorCode, 100)),
        key("message", Node::value(UsageTag::ErrorMessage, 2000)),
    ],
    items: None,
    rest: None,
    names: None,
};

/// A token figure.
pub(super) const fn count(figure: Figure) -> Node<UsageTag> {
    Node::value(UsageTag::Count(figure), 24)
}

/// The message of an answer that ended in an error without one.
pub const ENDED_IN_ERROR: &str = "the answer has the finish reason `error`";
/// An answer's finish reason.
pub(super) const FINISH: Node<UsageTag> = Node::value(UsageTag::Finish, 64);
/// The model that the reply says made it.
pub(super) const MODEL: Node<UsageTag> = Node::value(UsageTag::Model, ModelName::MOST);
/// The provider's service tier for the request.
pub(super) const TIER: Node<UsageTag> = Node::value(UsageTag::Tier, 32);

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct UsageTally {
    pub(super) figures: UsageFigures,
    pub(super) output: Output,
    pub(super) tier: ServiceTier,
    /// native: in its fast mode, whatever the tier.
    pub(super) is_fast: bool,
    /// native: the model ran in the United States only.
    pub(super) is_us: bool,
    /// native: the prompt or what followed was refused.
    pub(super) refused: bool,
    /// native: cache writes are charged as reads.
    pub(super) redeemed: bool,
    /// The model that the reply says made it.
    pub(super) model: ModelName,
    /// Searches that the reply shows but does not count itself.
    pub(super) searches: u64,
    /// What is known of tools that the provider ran.
    pub(super) tools: Option<Box<Tools>>,
    /// What became of the reasoning of earlier turns.
    pub(super) changes: Option<Box<Changes>>,
    /// native: why the provider's prompt cache did not have all.
    pub(super) diagnosis: Option<Box<CacheDiagnosis>>,
    /// alt-cli: the queries so far.
    queries: Queries,
    pub(super) content: bool,
    pub(super) end: bool,
    /// Every answer that has begun has a finish reason; whether that is the end depends on the
    /// format.
    pub(super) finish: bool,
    /// The prompt was refused.
    blocked: bool,
    /// Figures came with the finish or after it.
    pub(super) settled: bool,
    /// native: figures came in an event other than the first.
    pub(super) later_figures: bool,
    /// A complete body is a reply, judged by its shape; and how many items its list has.
    pub(super) shape: bool,
    pub(super) items: usize,
    /// Images that events of an endpoint's stream completed.
    pub(super) images: u64,
    /// The tokens of all of them, if each has its own.
    pub(super) drawn: Option<Usage>,
    pub(super) error: Option<UpstreamError>,
    /// responses: where the reply stands.
    pub(super) state: Option<ReplyState>,
    /// native and responses: the reply's id; empty until it is known.
    pub(super) id: String,
    /// One bit for each answer: begun, and ended.
    begun: u64,
    ended: u64,
    pub(super) event: EventSoFar,
}

/// The findings of the current event; dropped at its end.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct EventSoFar {
    pub(super) name: String,
    pub(super) status: String,
    pub(super) has_error: bool,
    /// An answer has the finish reason `error`.
    pub(super) ended_in_error: bool,
    /// Generated text or parts.
    pub(super) generated: bool,
    /// An answer's end, or a refused prompt.
    pub(super) finish: bool,
    /// A usage object.
    pub(super) figures: bool,
    pub(super) blocked: bool,
    /// Bytes of the event's `delta`, or of the part in progress.
    pub(super) delta: usize,
    pub(super) thought: bool,
    pub(super) item: ItemSoFar,
    pub(super) items: Items,
    answer: EventAnswer,
    loose: UpstreamError,
    reported: UpstreamError,
}

/// One of an event's answers.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct EventAnswer {
    /// The number of answers before it.
    position: u64,
    index: Option<u64>,
    finish: bool,
}

impl UsageTally {
    pub(super) fn found(&mut self, found: &Found<'_, UsageTag>) {
        match found.tag {
            UsageTag::Count(figure) => self.figures.tell(figure, figure_of(found)),
            UsageTag::Seconds => self.figures.tell(Figure::Seconds, seconds_of(found)),
            UsageTag::Usage => {
                self.event.figures |= found.kind == Kind::Object && self.figures.take_over()
            }
            UsageTag::ToolUsage => {
                self.figures.take_over();
            }
            UsageTag::Tier => self.tier = tier(found).unwrap_or(self.tier),
            UsageTag::Speed if found.kind == Kind::String => self.is_fast = found.text == b"fast",
            UsageTag::Place if found.kind == Kind::String => self.is_us = found.text == b"us",
            UsageTag::Speed | UsageTag::Place => {}
            UsageTag::PassEnd => self.figures.passes_mut().ends(),
            UsageTag::Model if found.kind == Kind::String => self.model = ModelName::of(found),
            UsageTag::Credit => self.redeemed = found.text == b"redeemed",
            UsageTag::Modality => self.figures.modality(found.text),
            UsageTag::ModalityCount => self.figures.modality_count(figure_of(found)),
            UsageTag::ModalityItem => self.figures.modality_item(),
            UsageTag::Modalities(of) => self.figures.modalities(of),
            UsageTag::Shape => {
                self.shape |= matches!(found.kind, Kind::Array | Kind::Object);
                self.items = self.items.max(found.len);
            }
            UsageTag::Name => text(found, &mut self.event.name),
            UsageTag::Status => text(found, &mut self.event.status),
            UsageTag::Id if self.id.is_empty() => text(found, &mut self.id),
            UsageTag::Index => self.event.answer.index = found.as_u64(),
            UsageTag::Finish => {
                self.event.answer.finish |= is_reason(found);
                self.event.ended_in_error |= found.text == b"error";
                self.refused |= found.text == b"refusal";
            }
            UsageTag::Blocked => self.event.blocked |= is_reason(found),
            UsageTag::Choice => self.answer_ends(),
            UsageTag::Query
            | UsageTag::ImageQuery
            | UsageTag::StepType
            | UsageTag::StepQuery
            | UsageTag::StepEnd => self.query(found),
            UsageTag::Event => {}
            _ => self.output_part(found),
        }
    }

    fn query(&mut self, found: &Found<'_, UsageTag>) {
        let [pages, images] = self.queries.found(found);
        self.searches += pages;
        if images > 0 {
            self.tools.get_or_insert_default().image_searches += images;
        }
    }

    fn output_part(&mut self, found: &Found<'_, UsageTag>) {
        let string =
            if found.kind == Kind::String { found.span.len().saturating_sub(2) } else { 0 };
        let event = &mut self.event;
        match found.tag {
            UsageTag::Text => self.generated(string, 0),
            UsageTag::Thinking => self.generated(string, string),
            UsageTag::Sealed => self.output.sealed += string,
            UsageTag::ThinkingTokens => {
                let more = figure_of(found).unwrap_or_default();
                self.output.hinted = self.output.hinted.saturating_add(more);
            }
            UsageTag::Part if found.len > 0 => self.generated(found.span.len(), 0),
            UsageTag::Media => event.generated |= found.kind == Kind::Object,
            UsageTag::Block if matches!(found.text, b"thinking" | b"redacted_thinking") => {
                self.output.announced += 1
            }
            UsageTag::Block if found.text.ends_with(b"code_execution_tool_result") => {
                self.tools.get_or_insert_default().executions += 1
            }
            UsageTag::Delta => event.delta = string,
            UsageTag::Thought => event.thought = found.as_bool() == Some(true),
            UsageTag::PartEnd => {
                let len = std::mem::take(&mut event.delta);
                let thought = std::mem::take(&mut event.thought);
                self.generated(len, if thought { len } else { 0 });
            }
            UsageTag::ItemType | UsageTag::ItemStatus | UsageTag::ItemAction => {
                event.item.word(found)
            }
            UsageTag::ItemContainer => event.item.container = hash(found.text),
            UsageTag::ItemText => event.item.text += string,
            UsageTag::ItemSummary => event.item.summary += string,
            UsageTag::ItemSealed => event.item.sealed += string,
            UsageTag::Item => {
                let item = std::mem::take(&mut event.item);
                if let Some(container) = item.used() {
                    self.tools.get_or_insert_default().container(container);
                }
                event.items.add(&item);
            }
            _ => self.error_part(found),
        }
    }

    fn error_part(&mut self, found: &Found<'_, UsageTag>) {
        let event = &mut self.event;
        match found.tag {
            UsageTag::Error => {
                event.has_error |= match found.kind {
                    Kind::Object => found.len > 0,
                    Kind::String => found.span.len() > 2,
                    _ => false,
                };
                if found.kind == Kind::String {
                    text(found, &mut event.reported.message);
                }
            }
            UsageTag::ErrorKind if found.kind == Kind::String => event.reported.kind = word(found),
            UsageTag::ErrorCode if event.reported.code.is_none() => {
                event.reported.code = word(found)
            }
            UsageTag::ErrorMessage => text(found, &mut event.reported.message),
            UsageTag::LooseCode => event.loose.code = word(found),
            UsageTag::LooseMessage => text(found, &mut event.loose.message),
            UsageTag::ToolType
            | UsageTag::ToolModel
            | UsageTag::ToolEnd
            | UsageTag::Fetches
            | UsageTag::Map => self.tool_part(found),
            UsageTag::MissReason | UsageTag::MissTokens => {
                self.diagnosis.get_or_insert_default().found(found);
            }
            UsageTag::Changes
            | UsageTag::ChangeType
            | UsageTag::ChangeReason
            | UsageTag::ChangeEnd => self.changes.get_or_insert_default().found(found),
            _ => self.pass_part(found),
        }
    }

    /// What a reply says about the tools that the provider ran or may run.
    fn tool_part(&mut self, found: &Found<'_, UsageTag>) {
        match found.tag {
            UsageTag::ToolType if found.text == b"image_generation" => {
                self.tools.get_or_insert_default().is_image = true
            }
            UsageTag::ToolModel => {
                self.tools.get_or_insert_default().named = found.as_str().map(Into::into)
            }
            UsageTag::ToolEnd => {
                if let Some(tools) = &mut self.tools {
                    tools.tool_ends();
                }
            }
            UsageTag::Fetches => {
                if let Some(fetches) = figure_of(found)
                    && (fetches > 0 || self.tools.is_some())
                {
                    self.tools.get_or_insert_default().fetches = fetches;
                }
            }
            UsageTag::Map if found.kind == Kind::Object => {
                self.tools.get_or_insert_default().has_map = true
            }
            _ => {}
        }
    }

    /// native: a part of one of the passes over models.
    fn pass_part(&mut self, found: &Found<'_, UsageTag>) {
        let word = (found.kind == Kind::String).then_some(found.text);
        let is = |name: &[u8]| word.map(|word| word == name);
        let passes = self.figures.passes_mut();
        match found.tag {
            UsageTag::PassKind => {
                let is_named = |kind: &PartKind| word == Some(kind.as_str().as_bytes());
                let mut kinds = PartKind::ALL.iter().copied().filter(|kind| kind.is_pass());
                passes.open().kind = kinds.find(is_named);
            }
            UsageTag::PassModel => passes.open().model = found.as_str().map(Into::into),
            UsageTag::PassCount(figure) => passes.open().put(figure, figure_of(found)),
            UsageTag::PassTier => passes.open().tier = tier(found),
            UsageTag::PassSpeed => passes.open().is_fast = is(b"fast"),
            UsageTag::PassPlace => passes.open().is_us = is(b"us"),
            _ => {}
        }
    }

    /// Counts bytes of output, of which `thinking` are reasoning.
    pub(super) fn generated(&mut self, len: usize, thinking: usize) {
        self.output.all += len;
        self.output.thinking += thinking;
        self.event.generated |= len > 0;
    }

    fn answer_ends(&mut self) {
        let answer = &mut self.event.answer;
        let bit = 1 << answer.index.take().unwrap_or(answer.position).min(63);
        answer.position += 1;
        self.begun |= bit;
        if std::mem::take(&mut answer.finish) {
            self.ended |= bit;
            self.event.finish = true;
        }
    }

    /// For a format with several answers: evaluates their ends in the event, which is now complete.
    pub(super) fn answers(&mut self) {
        self.event.finish |= self.event.blocked;
        self.blocked |= self.event.blocked;
        self.finish = (self.begun != 0 && self.begun == self.ended) || self.blocked;
    }

    /// For a format with one answer: whether the event had a finish reason.
    pub(super) fn only_answer(&mut self) {
        self.event.finish |= std::mem::take(&mut self.event.answer.finish);
        self.finish |= self.event.finish;
    }

    /// For a format whose answers may end in an error that nothing else reports.
    pub(super) fn report_end_in_error(&mut self) {
        if self.event.ended_in_error && !self.event.has_error {
            self.event.has_error = true;
            self.event.reported.message = ENDED_IN_ERROR.to_owned();
        }
    }

    /// Makes the event's error the reply's error: its `error` member, or else its own code and
    /// message.
    pub(super) fn fail(&mut self) {
        let event = &mut self.event;
        let reported =
            std::mem::take(if event.has_error { &mut event.reported } else { &mut event.loose });
        if self.error.is_none() {
            self.error = Some(reported.cleaned());
        }
    }

    /// Notes whether the figures are the last expected ones.
    pub(super) const fn settle(&mut self) {
        if self.event.finish || self.event.figures {
            self.settled =
                self.finish && (self.event.figures || (self.settled && !self.event.finish));
        }
    }

    /// Takes over what an event sets and no later one unsets: that there is content, and which
    /// answers have begun.
    pub(super) const fn begin(&mut self, later: &Self) {
        self.content |= later.content;
        self.begun |= later.begun;
    }

    /// Drops the event; called at its end, whether it was readable or not.
    pub(super) fn next_event(&mut self) {
        self.figures.forget();
        let event = &mut self.event;
        event.name.clear();
        event.status.clear();
        event.has_error = false;
        event.ended_in_error = false;
        event.generated = false;
        event.finish = false;
        event.figures = false;
        event.blocked = false;
        event.delta = 0;
        event.thought = false;
        event.item = ItemSoFar::default();
        event.items = Items::default();
        event.answer = EventAnswer::default();
        for error in [&mut event.reported, &mut event.loose] {
            error.kind = None;
            error.code = None;
            error.message.clear();
        }
    }
}

pub(super) fn hash(text: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

fn figure_of(found: &Found<'_, UsageTag>) -> Option<u64> {
    found.as_u64().filter(|figure| *figure <= MAX_FIGURE)
}

/// A number of seconds, a begun one as a full one.
fn seconds_of(found: &Found<'_, UsageTag>) -> Option<u64> {
    let text = std::str::from_utf8(found.text).ok().filter(|_| found.kind == Kind::Number)?;
    let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
    let begun = rest.bytes().any(|digit| matches!(digit, b'1'..=b'9'));
    let seconds = whole.parse::<u64>().ok()? + u64::from(begun);
    Some(seconds).filter(|seconds| *seconds <= MAX_FIGURE)
}

/// A meaningful reason: services also send empty and unspecified ones while a reply continues.
fn is_reason(found: &Found<'_, UsageTag>) -> bool {
    found.kind == Kind::String && names_an_end(&String::from_utf8_lossy(found.text))
}

/// Whether a text is a finish reason.
pub fn names_an_end(reason: &str) -> bool {
    let reason = reason.trim();
    const NONE: &[u8] = b"UNSPECIFIED";
    let end = reason.as_bytes().last_chunk::<{ NONE.len() }>();
    !reason.is_empty() && !end.is_some_and(|end| end.eq_ignore_ascii_case(NONE))
}

/// The tier by each vendor's name for it; `None` for any other name.
fn tier(found: &Found<'_, UsageTag>) -> Option<ServiceTier> {
    let name = found.as_str()?.to_ascii_lowercase();
    Some(match name.strip_prefix("on_demand_").unwrap_or(&name) {
        "flex" => ServiceTier::Flex,
        "priority" | "fast" => ServiceTier::Priority,
        "ultrafast" => ServiceTier::Ultrafast,
        "offpeak" | "off_peak" => ServiceTier::OffPeak,
        "batch" => ServiceTier::Batch,
        _ => ServiceTier::Standard,
    })
}

fn text(found: &Found<'_, UsageTag>, into: &mut String) {
    into.clear();
    match found.as_str() {
        Some(text) => into.push_str(&text),
        // A text that was cut is sufficient for a message.
        None if found.kind == Kind::String => into.push_str(&String::from_utf8_lossy(found.text)),
        None => {}
    }
}

fn word(found: &Found<'_, UsageTag>) -> Option<String> {
    match found.kind {
        Kind::String => found.as_str().filter(|t| !t.is_empty()).map(std::borrow::Cow::into_owned),
        Kind::Number => std::str::from_utf8(found.text).ok().map(str::to_owned),
        _ => None,
    }
}
