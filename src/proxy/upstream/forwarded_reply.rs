//! A reply on its way to the client: held back until there is content to show, then passed on.

use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use serde_json::Value;

use super::error_body;
use super::failure::Failure;
use crate::domain::format::WireFormat;
use crate::formats::usage::{Bill, UsageReader};
use crate::policy::failure::{NetworkFailure, UnusableReply};
use crate::proxy::context::InFlight;
use crate::proxy::reply::client_head::ReplyFacts;
use crate::proxy::reply::reshape::{ReshapedReply, Shape};
use crate::telemetry::IntGauge;

/// Bytes held back at most while no meaningful part has arrived.
const HOLD_MAX: usize = 256 * 1024;
/// A reply on its way to the client.
pub struct ForwardedReply {
    pub status: u16,
    /// The reply is a stream of events.
    pub streamed: bool,
    /// The provider's format is not the client's.
    pub converted: bool,
    /// Neither events nor JSON.
    is_opaque: bool,
    /// It answers a call of an upload.
    is_upload: bool,
    /// A reply without a body is one too.
    pub(super) may_be_empty: bool,
    pub(super) reply: ReshapedReply,
    /// Only the first bytes tell whether it is a stream.
    unsure: Option<Unsure>,
    /// It is none, and only a stream can be converted: nothing of it but an error is of use.
    is_unfit: bool,
    held: BytesMut,
    /// The provider's body has ended.
    pub is_over: bool,
    released: bool,
    /// The length of the client's body, if all of it had arrived when the head was made.
    length: Option<usize>,
    /// Counts the stream as live.
    in_flight: Option<InFlight>,
}

/// A reply to a request for a stream, of a JSON type: some relays call a stream so too.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unsure {
    pub format: WireFormat,
    /// The client did not ask for the usage chunk of a stream.
    pub hides_usage: bool,
}

/// What to do with a piece of a reply that is held back.
pub enum Hold {
    /// Nothing meaningful has arrived.
    Wait,
    /// The client's head is written, and these bytes with it.
    Release(Bytes),
}

impl ForwardedReply {
    /// `unsure`: a reply that is converted is taken for a stream, another one for JSON, until its
    /// first bytes come.
    pub(super) fn new(
        status: u16,
        facts: ReplyFacts,
        reply: ReshapedReply,
        unsure: Option<Unsure>,
    ) -> Self {
        let ReplyFacts { streamed, converted, is_opaque, is_upload, .. } = facts;
        Self {
            status,
            streamed,
            converted,
            is_opaque,
            is_upload,
            may_be_empty: false,
            reply,
            unsure,
            is_unfit: false,
            held: BytesMut::new(),
            is_over: false,
            released: false,
            length: None,
            in_flight: None,
        }
    }

    /// Decides by the first bytes, decoded, whether the reply is a stream, if its head left that
    /// open.
    pub(super) fn begins(&mut self, piece: &[u8]) {
        let Some(unsure) = self.unsure else { return };
        let Some(first) = piece.iter().find(|byte| !byte.is_ascii_whitespace()) else { return };
        self.unsure = None;
        let is_json = matches!(first, b'{' | b'[');
        match (is_json, self.converted) {
            (true, true) => {
                self.reply.read_as(UsageReader::new(unsure.format, false), Shape::AsIs);
                self.is_unfit = true;
            }
            (false, false) => {
                let shape = match unsure.hides_usage {
                    true => Shape::HideUsage(Box::default()),
                    false => Shape::AsIs,
                };
                self.reply.read_as(UsageReader::new(unsure.format, true), shape);
                self.streamed = true;
            }
            _ => {}
        }
    }

    /// Whether the client's head has been written, or is about to be.
    pub const fn is_released(&self) -> bool {
        self.released
    }

    /// What of it decides about the client's head.
    pub(in crate::proxy) fn for_head(&self) -> ReplyFacts {
        ReplyFacts {
            streamed: self.streamed,
            converted: self.converted,
            is_opaque: self.is_opaque,
            is_upload: self.is_upload,
            changed: self.converted || self.reply.is_changed(),
            length: self.length,
        }
    }

    /// When the last meaningful part arrived.
    pub const fn last_progress(&self) -> Instant {
        self.reply.last_progress
    }

    /// The client took nothing for this long: the provider's next part may come later by as much.
    pub fn was_held_up(&mut self, by: Duration) {
        self.reply.last_progress += by;
    }

    /// Holds a piece back until there is content to show, or a reason for another attempt.
    ///
    /// # Errors
    /// When the reply has ended without being a reply.
    pub fn hold(&mut self, piece: Bytes, end: bool) -> pingora::Result<Hold> {
        let whole = if self.held.is_empty() {
            piece
        } else {
            self.held.extend_from_slice(&piece);
            self.held.split().freeze()
        };
        if self.is_unfit && (end || whole.len() > HOLD_MAX) {
            return Err(self.unusable().into());
        }
        // A regular end without content is a reply too: an immediate stop, for example.
        let is_empty_reply =
            end && (self.may_be_empty || self.reply.has_end() && !whole.is_empty());
        let shows = self.reply.has_content() || whole.len() > HOLD_MAX || is_empty_reply;
        if shows && !self.is_unfit {
            return Ok(Hold::Release(whole));
        }
        if !end {
            self.held = BytesMut::from(whole);
            return Ok(Hold::Wait);
        }
        let what = match (whole.is_empty(), self.streamed) {
            (true, _) => UnusableReply::Empty,
            (false, true) => UnusableReply::StreamWithoutContent,
            (false, false) => UnusableReply::WrongFormat,
        };
        Err(Failure::Unusable { what, status: self.status, usage: self.reply.usage() }.into())
    }

    /// The client's head is written: no further attempt is possible.
    pub fn release(&mut self, streams: &IntGauge, whole: Option<usize>) {
        self.released = true;
        self.length = whole.filter(|_| !self.streamed || self.reply.has_end());
        self.in_flight = self.streamed.then(|| InFlight::enter(streams));
    }

    /// Whether the reply is complete, given whether the provider's body has ended. A stream marks
    /// its own end, which may come before its body ends; of other bodies the end may be a broken
    /// connection. An answer that ends in an error is not complete.
    pub fn is_complete(&self, end: bool) -> bool {
        match self.streamed {
            true => self.reply.has_end(),
            false => end && self.reply.is_whole() && self.reply.error().is_none(),
        }
    }

    /// The provider's id of the reply, if the client knows it by that.
    pub fn reply_id(&self) -> Option<&str> {
        self.reply.id().filter(|_| !self.converted)
    }

    /// The provider's id of the reply, if the provider still makes it.
    pub fn id_of_unfinished(&self) -> Option<&str> {
        self.reply_id().filter(|_| self.reply.goes_on())
    }

    /// What the client fetched of a reply in the background, if that is to be billed.
    pub fn fetched(&self) -> Option<&UsageReader> {
        self.reply.observer.as_deref()
    }

    /// What the provider says of a batch or a file, if it has said all.
    pub fn object(&self) -> Option<Value> {
        self.reply.described()
    }

    /// Whether it waits until its tool calls are checked.
    pub fn waits_for_check(&self) -> bool {
        self.reply.check.as_ref().is_some_and(|check| check.waits())
    }

    /// What is billed: the provider's final figures, else an estimate from the bytes that arrived.
    pub fn bill(&self, estimated_input: u64) -> Option<Bill> {
        self.reply.bill(estimated_input)
    }

    /// Whether nothing is missing but the end of the provider's body.
    pub fn lacks_only_the_end(&self) -> bool {
        self.reply.lacks_only_the_end()
    }

    /// The client's error event, to end a stream that has begun.
    pub fn error_event(&mut self, format: WireFormat, message: &str) -> Bytes {
        self.reply.fail(format, message).into()
    }

    /// Whether the reply can continue.
    pub(super) fn check(&self) -> pingora::Result<()> {
        let reply = &self.reply;
        if self.released {
            // An error of the provider in mid-stream is forwarded unchanged.
            return match reply.problem() {
                Some(problem) => Err(Failure::network(NetworkFailure::Broken, problem).into()),
                None => Ok(()),
            };
        }
        if let Some(error) = reply.error() {
            let status = reply.error_status().unwrap_or(200);
            return Err(error_body::in_place(status, error, reply.usage()).into());
        }
        if reply.problem().is_some() {
            return Err(self.unusable().into());
        }
        Ok(())
    }

    /// It is not a reply of the expected kind.
    pub(super) fn unusable(&self) -> Failure {
        let (what, usage) = (UnusableReply::WrongFormat, self.reply.usage());
        Failure::Unusable { what, status: self.status, usage }
    }
}
