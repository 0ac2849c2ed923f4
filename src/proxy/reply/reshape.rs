//! The provider's reply as it passes through: decoded, read for usage, reshaped for the client.
//!
//! One pass over each piece. No memory grows with the reply, except if a reply is converted in one
//! piece: that one counts in the body budget.

use std::time::Instant;

use bytes::Bytes;
use serde_json::Value;

use crate::domain::format::WireFormat;
use crate::domain::usage::Usage;
use crate::formats::batch;
use crate::formats::bom;
use crate::formats::convert::{ReplyProblem, StreamConverter, StreamProblem};
use crate::formats::count;
use crate::formats::error::{self, ErrorReply, UpstreamError, words};
use crate::formats::event_stream;
use crate::formats::native::safeguards::reply::CheckedReply;
use crate::formats::usage::{Bill, HideUsageChunk, ReplyState, UsageReader};
use crate::proxy::body_budget::{BudgetExceeded, ELEMENT_WEIGHT};
use crate::proxy::coding::StreamDecoder;
use crate::proxy::reply::whole_reply::{WholeForm, WholeReply, beside_others};

/// Largest reply in one piece that can be converted, in bytes.
const CONVERT_MAX: usize = 32 * 1024 * 1024;
/// Largest description of a batch or a file, in bytes.
const OBJECT_MAX: usize = 256 * 1024;
/// Largest token count, in bytes.
const COUNT_MAX: usize = 64 * 1024;

/// The state of a reply that is forwarded piece by piece.
pub(in crate::proxy) struct ReshapedReply {
    decoder: Option<Box<StreamDecoder>>,
    bom: bom::Filter,
    /// `None` if a reply has no usage (token counting), or if a converter reads the usage.
    reader: Option<Box<UsageReader>>,
    shape: Shape,
    /// Reads a stored reply that is not billed yet, and decides nothing about it.
    pub observer: Option<Box<UsageReader>>,
    /// Holds the reply's end back until its tool calls are checked; `None` for most replies.
    pub check: Option<Box<CheckedReply>>,
    received: u64,
    /// Why the reply cannot continue.
    problem: Option<String>,
    /// The body budget has no place for it.
    over_budget: Option<BudgetExceeded>,
    /// The error that a converter found in the provider's stream.
    reported: Option<UpstreamError>,
    /// When the last part other than a heartbeat arrived.
    pub last_progress: Instant,
    progress: u64,
}

/// How pieces are changed for the client.
pub(in crate::proxy) enum Shape {
    /// They are not changed.
    AsIs,
    /// The usage chunk that only the gateway requested is left out.
    HideUsage(Box<HideUsageChunk>),
    /// Each event is converted as it arrives.
    Events(Box<StreamConverter>),
    /// The reply is converted once it is complete.
    Whole(Box<WholeReply>),
    /// The answer to a request for a token count, passed on once it is known to contain one.
    Count(CountReply),
    /// The description of a batch or a file, collected: its address is replaced by the gateway's.
    Described(Vec<u8>),
}

/// A token count, collected.
pub(in crate::proxy) struct CountReply {
    /// The format that it is converted to.
    pub to: Option<WireFormat>,
    pub collected: Vec<u8>,
}

impl ReshapedReply {
    pub(in crate::proxy) fn new(
        decoder: Option<Box<StreamDecoder>>,
        reader: Option<Box<UsageReader>>,
        shape: Shape,
    ) -> Self {
        let last_progress = Instant::now();
        Self {
            decoder,
            bom: bom::Filter::default(),
            reader,
            shape,
            observer: None,
            check: None,
            received: 0,
            problem: None,
            over_budget: None,
            reported: None,
            last_progress,
            progress: 0,
        }
    }

    /// Reads the reply as another kind than its head told, before any of it was taken.
    pub(in crate::proxy) fn read_as(&mut self, reader: UsageReader, shape: Shape) {
        (self.reader, self.shape) = (Some(Box::new(reader)), shape);
    }

    /// Decodes a piece from the provider, without a byte order mark. `None` if it is damaged: see
    /// [`ReshapedReply::problem`].
    pub(in crate::proxy) fn decode(&mut self, piece: Bytes) -> Option<Bytes> {
        let piece = match &mut self.decoder {
            None => piece,
            Some(decoder) => {
                decoder.push(&piece).map_err(|e| self.problem = Some(e.to_string())).ok()?
            }
        };
        Some(self.bom.pass(piece))
    }

    /// Whether the client gets less or more than the provider sent, although nothing was converted.
    pub(in crate::proxy) fn is_changed(&self) -> bool {
        let is_described = matches!(self.shape, Shape::Described(_));
        let is_framed = self.framed().is_some();
        self.bom.has_removed() || self.check.is_some() || is_described || is_framed
    }

    /// The decoder of AWS's frames, if the reply has them.
    fn framed(&self) -> Option<&event_stream::EventStreamDecoder> {
        match self.decoder.as_deref() {
            Some(StreamDecoder::EventStream(decoder)) => Some(decoder),
            _ => None,
        }
    }

    /// The status that an error within the reply stands for, if it says so.
    pub(in crate::proxy) fn error_status(&self) -> Option<u16> {
        self.framed()?.exception_status()
    }

    /// Takes a decoded piece and returns the bytes for the client. Check [`ReshapedReply::problem`]
    /// afterwards.
    pub(in crate::proxy) fn take(&mut self, plain: Bytes) -> Bytes {
        self.received += plain.len() as u64;
        if let Some(reader) = &mut self.reader {
            reader.feed(&plain);
        }
        if let Some(observer) = &mut self.observer {
            observer.feed(&plain);
        }
        let mut shaped = self.reshape(plain);
        if let Some(check) = &mut self.check {
            shaped = check.feed(&shaped).into();
        }
        let progress = self.meter().map_or(self.received, UsageReader::progress);
        if progress > self.progress {
            self.progress = progress;
            self.last_progress = Instant::now();
        }
        shaped
    }

    /// The reader of this reply's usage, if it has any.
    fn meter(&self) -> Option<&UsageReader> {
        match &self.shape {
            Shape::Events(converter) => Some(converter.usage()),
            _ => self.reader.as_deref(),
        }
    }

    fn reshape(&mut self, plain: Bytes) -> Bytes {
        match &mut self.shape {
            Shape::AsIs => plain,
            Shape::HideUsage(filter) => {
                let mut passed = Vec::new();
                filter.feed(&plain, &mut passed);
                joined(passed)
            }
            Shape::Events(converter) => {
                let mut out = Vec::with_capacity(plain.len());
                let size = converter.pending() + plain.len();
                if let Err(e) = beside_others(size, || converter.feed(&plain, &mut out)) {
                    self.problem = Some(e.to_string());
                    self.reported = complete(upstream_error(e), converter.usage());
                }
                out.into()
            }
            Shape::Whole(whole) => {
                if whole.collected.len() + plain.len() > CONVERT_MAX {
                    self.problem = Some("the reply is too large to be converted".to_owned());
                } else if let Err(full) = whole.hold(plain.len()) {
                    self.over_budget = Some(full);
                } else {
                    whole.collected.extend_from_slice(&plain);
                }
                Bytes::new()
            }
            Shape::Count(CountReply { collected, .. }) => {
                if collected.len() + plain.len() > COUNT_MAX {
                    self.problem = Some("the reply is too large for a token count".to_owned());
                } else {
                    collected.extend_from_slice(&plain);
                }
                Bytes::new()
            }
            Shape::Described(collected) => {
                if collected.len() + plain.len() > OBJECT_MAX {
                    self.problem = Some("the description is too long".to_owned());
                } else {
                    collected.extend_from_slice(&plain);
                }
                Bytes::new()
            }
        }
    }

    /// What is said of a batch or a file, once the reply is complete.
    pub(in crate::proxy) fn described(&self) -> Option<Value> {
        let Shape::Described(collected) = &self.shape else { return None };
        serde_json::from_slice(collected).ok()
    }

    /// Call it once, after the last piece: returns the remaining bytes for the client. Check
    /// [`ReshapedReply::problem`] afterwards.
    pub(in crate::proxy) fn finish(&mut self) -> Bytes {
        let rest = self.finish_shape();
        match &mut self.check {
            Some(check) => [check.feed(&rest), check.finish()].concat().into(),
            None => rest,
        }
    }

    /// Makes a reply of `Converse` one of the native format. `false` if that cannot be.
    fn is_native(&mut self) -> bool {
        let Shape::Whole(whole) = &mut self.shape else { return true };
        if !matches!(whole.form, WholeForm::Converse { .. }) {
            return true;
        }
        // It is held twice for a moment.
        if let Err(full) = whole.hold(whole.collected.len()) {
            self.over_budget = Some(full);
            return false;
        }
        match whole.take_converse() {
            Ok(reader) => self.reader = Some(Box::new(reader)),
            Err(e) => self.problem = Some(e.to_string()),
        }
        self.problem.is_none()
    }

    fn finish_shape(&mut self) -> Bytes {
        if !self.is_native() {
            return Bytes::new();
        }
        let readers = self.reader.as_deref_mut().into_iter().chain(self.observer.as_deref_mut());
        readers.for_each(UsageReader::finish);
        match &mut self.shape {
            Shape::AsIs => Bytes::new(),
            Shape::HideUsage(filter) => filter.finish().unwrap_or_default(),
            Shape::Count(CountReply { to, collected }) => match (count::of_reply(collected), to) {
                (Some(tokens), Some(format)) => count::reply(*format, tokens).into(),
                (Some(_), None) => std::mem::take(collected).into(),
                (None, _) => {
                    self.problem = Some("the reply contains no token count".to_owned());
                    Bytes::new()
                }
            },
            Shape::Described(collected) => {
                if let Some(edited) = batch::with_own_address(collected) {
                    *collected = edited;
                }
                collected.clone().into()
            }
            Shape::Events(converter) => {
                let mut out = Vec::new();
                if let Err(e) = converter.finish(&mut out) {
                    self.problem = Some(e.to_string());
                    self.reported = complete(upstream_error(e), converter.usage());
                }
                out.into()
            }
            Shape::Whole(whole) => {
                if self.reader.as_deref().is_some_and(UsageReader::has_too_many_elements) {
                    self.problem =
                        Some("the reply's lists are too long to be converted".to_owned());
                    return Bytes::new();
                }
                let elements = self.reader.as_deref().map_or(0, UsageReader::elements);
                if let Err(full) = whole.hold(elements * ELEMENT_WEIGHT) {
                    self.over_budget = Some(full);
                    return Bytes::new();
                }
                let input = whole.estimated_input;
                let usage = self.reader.as_ref().map(|reader| reader.estimate(input));
                let usage = usage.unwrap_or_default();
                match beside_others(whole.collected.len(), || whole.convert(usage)) {
                    Ok(converted) => converted.into(),
                    Err(e) => {
                        self.problem = Some(e.to_string());
                        if let ReplyProblem::Upstream { kind, message } = e {
                            let error = Some(UpstreamError { kind, code: None, message });
                            self.reported =
                                self.reader.as_deref().and_then(|reader| complete(error, reader));
                        }
                        Bytes::new()
                    }
                }
            }
        }
    }

    /// Whether the body budget has a place for what must be kept of the reply.
    pub(in crate::proxy) const fn budget(&self) -> Result<(), BudgetExceeded> {
        match self.over_budget {
            Some(full) => Err(full),
            None => Ok(()),
        }
    }

    /// Why the reply cannot continue, if it cannot.
    pub(in crate::proxy) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Whether something has arrived that is worth showing to the client.
    pub(in crate::proxy) fn has_content(&self) -> bool {
        match &self.shape {
            // Nothing of it can be shown before it is complete.
            Shape::Whole(_) | Shape::Count(_) | Shape::Described(_) => false,
            Shape::Events(converter) => converter.seen_content(),
            _ => self.reader.as_deref().map_or(self.received > 0, UsageReader::seen_content),
        }
    }

    /// Whether the format's own end marker has arrived.
    pub(in crate::proxy) fn has_end(&self) -> bool {
        match &self.shape {
            Shape::Events(converter) => converter.seen_end(),
            _ => self.reader.as_deref().is_none_or(UsageReader::seen_end),
        }
    }

    /// Whether a body that is not a stream has arrived to the end of its JSON.
    pub(in crate::proxy) fn is_whole(&self) -> bool {
        self.reader.as_deref().is_none_or(UsageReader::is_whole)
    }

    /// Whether only the end of the body is missing: how the provider ends it is then irrelevant.
    pub(in crate::proxy) fn lacks_only_the_end(&self) -> bool {
        match &self.shape {
            Shape::Events(converter) => converter.lacks_only_the_end(),
            _ => self.reader.as_deref().is_some_and(UsageReader::lacks_only_the_end),
        }
    }

    pub(in crate::proxy) fn error(&self) -> Option<UpstreamError> {
        self.reported.clone().or_else(|| self.reader.as_ref()?.seen_error().cloned())
    }

    /// The provider's id of the reply.
    pub(in crate::proxy) fn id(&self) -> Option<&str> {
        self.meter()?.reply_id()
    }

    /// The provider's figures so far.
    pub(in crate::proxy) fn usage(&self) -> Option<Usage> {
        self.meter()?.usage()
    }

    /// responses: whether the provider still makes the reply.
    pub(in crate::proxy) fn goes_on(&self) -> bool {
        self.meter().and_then(UsageReader::state).is_some_and(ReplyState::goes_on)
    }

    /// What is billed. If the provider reported no input tokens, `input` counts. `None` for replies
    /// that have no usage.
    pub(in crate::proxy) fn bill(&self, input: u64) -> Option<Bill> {
        if let Shape::Events(converter) = &self.shape {
            return Some(converter.bill(input));
        }
        self.reader.as_ref().map(|reader| reader.bill(input))
    }

    /// The client's error event, to end a stream that has begun. Empty if the provider's own error
    /// event was forwarded.
    pub(in crate::proxy) fn fail(&mut self, format: WireFormat, message: &str) -> Vec<u8> {
        let mut extra = Vec::new();
        // Of a stream that passes through, for the last events of a responses stream.
        if let Some(reader) = &self.reader {
            extra.push(("sequence_number", reader.event_count().into()));
            extra.extend(reader.reply_id().map(|id| ("response_id", id.into())));
        }
        let reply =
            ErrorReply { status: 502, kind: "api_error", message, code: None, extra: &extra };
        let reported = self.error();
        match &mut self.shape {
            Shape::Events(converter) => {
                let mut out = Vec::new();
                let cause = reported.as_ref().and_then(words::cause);
                match cause.map(|cause| cause.words(format, message)) {
                    Some(words) => converter.fail(&words.reply(&words.extra()), &mut out),
                    None => converter.fail(&reply, &mut out),
                }
                out
            }
            _ if reported.is_some() => Vec::new(),
            _ => error::stream_event(format, &reply),
        }
    }
}

/// The error that a provider reported within its stream, if that is the problem.
fn upstream_error(problem: StreamProblem) -> Option<UpstreamError> {
    match problem {
        StreamProblem::Upstream { kind, message } => {
            Some(UpstreamError { kind, code: None, message })
        }
        StreamProblem::Malformed { .. } | StreamProblem::TooLarge { .. } | StreamProblem::Cut => {
            None
        }
    }
}

/// The error that a conversion found, with its code, or the one that only the reader of the usage
/// found: a conversion reads neither codes nor errors that have another structure.
fn complete(error: Option<UpstreamError>, reader: &UsageReader) -> Option<UpstreamError> {
    let seen = reader.seen_error().cloned();
    match (error, seen) {
        (Some(error), Some(seen)) => Some(UpstreamError { code: seen.code, ..error }),
        (error, seen) => error.or(seen),
    }
}

/// Joins pieces into one; a single piece is not copied.
fn joined(mut pieces: Vec<Bytes>) -> Bytes {
    match pieces.len() {
        0 => Bytes::new(),
        1 => pieces.swap_remove(0),
        _ => pieces.concat().into(),
    }
}
