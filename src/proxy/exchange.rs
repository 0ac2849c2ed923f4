//! One request and its reply (`CTX` in Pingora's terms), and how it ends.
//!
//! The record is opened once the caller is known and closed exactly once, here. Dropping an
//! exchange with an open record closes the record: a panic in a filter, or a task that the runtime
//! cancels at shutdown, loses neither the record nor the request's concurrency permit.
//!
//! See docs/decisions/10-boxed-values.md.

use std::sync::Arc;

use pingora::proxy::Session;
use pingora::upstreams::peer::HttpPeer;
use pingora::{Error, ErrorType, Result};

use super::context::RequestContext;
use super::gateway::Gateway;
use super::held::Said;
use super::late_bill::{self, SeenBy};
use super::record::Ending;
use super::upstream::attempt::Attempt;
use super::upstream::forwarded_reply::ForwardedReply;
use super::upstream::forwarding::Forwarding;
use super::upstream::incoming::Incoming;
use super::upstream::running::Running;
use super::upstream::{credential, next_peer, verdict};
use crate::domain::record::RequestOutcome;
use crate::domain::strategy::Strategy;
use crate::formats::batch;
use crate::formats::peek::Peek;
use crate::formats::route::{self, Operation};

/// The error of a request that ended without an answer.
const CUT_OFF: &str = "the request was cut off inside the gateway";

/// A request, and what exists once it goes to a provider.
pub struct Exchange {
    pub request: RequestContext,
    /// Set by `request_filter`.
    forwarding: Option<Box<Forwarding>>,
    /// The current attempt, or the one that is to be repeated.
    attempt: Option<Box<Attempt>>,
}

impl Exchange {
    /// A request that begins now, with a new id and the settings in effect.
    pub fn new(gateway: Arc<Gateway>) -> Self {
        Self { request: RequestContext::new(gateway), forwarding: None, attempt: None }
    }

    /// The request goes to a provider.
    pub fn forward(&mut self, forwarding: Box<Forwarding>) {
        self.forwarding = Some(forwarding);
    }

    /// What `request_filter` planned; `None` if it refused or answered the request.
    pub fn forwarding(&self) -> Option<&Forwarding> {
        self.forwarding.as_deref()
    }

    /// The request with its attempt, for the hooks of one: Pingora's signatures have only this
    /// type.
    ///
    /// # Errors
    /// When there is no attempt: Pingora or the driver called the hooks in another order.
    pub fn running(&mut self) -> Result<Running<'_>> {
        match (&mut self.forwarding, &mut self.attempt) {
            (Some(forwarding), Some(attempt)) => {
                Ok(Running { request: &mut self.request, forwarding, attempt })
            }
            _ => Err(out_of_order()),
        }
    }

    /// The request and its place in the plan.
    ///
    /// # Errors
    /// When the request is not planned.
    pub fn parts(&mut self) -> Result<(&mut RequestContext, &mut Forwarding)> {
        let forwarding = self.forwarding.as_deref_mut().ok_or_else(out_of_order)?;
        Ok((&mut self.request, forwarding))
    }

    /// Puts another attempt in the place of the current one, which is returned.
    pub fn replace_attempt(&mut self, attempt: Option<Box<Attempt>>) -> Option<Box<Attempt>> {
        std::mem::replace(&mut self.attempt, attempt)
    }

    /// The peer of the next attempt (`upstream_peer`).
    ///
    /// # Errors
    /// Why there is none (see [`next_peer::next_peer`]), judged.
    pub async fn next_peer(&mut self, session: &mut Session) -> Result<Box<HttpPeer>> {
        let forwarding = self.forwarding.as_deref_mut().ok_or_else(out_of_order)?;
        let (request, attempt) = (&mut self.request, &mut self.attempt);
        let peer = next_peer::next_peer(session, request, forwarding, attempt).await;
        peer.map_err(|e| self.attempt_failed(e))
    }

    /// Judges the failure of the current attempt (see [`verdict::failed`]).
    #[must_use]
    pub fn attempt_failed(&mut self, mut error: Box<Error>) -> Box<Error> {
        let (Some(forwarding), Some(attempt)) = (&mut self.forwarding, self.attempt.take()) else {
            error.set_retry(false);
            return error;
        };
        let (attempt, error) = verdict::failed(&mut self.request, forwarding, attempt, error);
        self.attempt = attempt;
        error
    }

    /// The forwarded reply, once its head is about to be written.
    pub fn released_reply(&self) -> Option<&ForwardedReply> {
        self.attempt.as_ref()?.incoming.released()
    }

    /// Whether the client's reply is complete, given whether the provider's body has ended.
    pub fn is_complete(&self, end: bool) -> bool {
        self.attempt.as_ref().map_or(end, |attempt| attempt.incoming.is_complete(end))
    }

    /// Whether the reply waits until its tool calls are checked.
    pub fn waits_for_check(&self) -> bool {
        let incoming = self.attempt.as_ref().map(|attempt| &attempt.incoming);
        matches!(incoming, Some(Incoming::Reply(forwarded)) if forwarded.waits_for_check())
    }

    /// The reply of the current attempt, to end it.
    pub fn forwarded_reply(&mut self) -> Option<&mut ForwardedReply> {
        match &mut self.attempt.as_mut()?.incoming {
            Incoming::Reply(forwarded) => Some(forwarded),
            Incoming::Awaited | Incoming::Error(_) => None,
        }
    }

    /// The reply is forwarded from now on: no further attempt is possible. `whole`: the length of
    /// the body, if all of it has arrived.
    pub fn release(&mut self, whole: Option<usize>) {
        let request = &mut self.request;
        let first_byte = request.started.elapsed();
        if let Some(record) = &mut request.record {
            record.first_byte = Some(first_byte);
            if let Some(attempt) = &self.attempt {
                took_to_begin(request, attempt);
            }
        }
        if let Some(trace) = &mut request.trace {
            trace.first_chunk(first_byte);
        }
        if let Some(forwarding) = &mut self.forwarding {
            forwarding.release_body();
        }
        if let Some(Incoming::Reply(forwarded)) = self.attempt.as_mut().map(|a| &mut a.incoming) {
            forwarded.release(&request.gateway.node.metrics.streams_live, whole);
            let (outcome, status) = (RequestOutcome::Completed, forwarded.status);
            request.ending = Ending { outcome, status, error: None };
        }
        self.note_background();
    }

    /// Notes who makes a reply in the background whose stream begins: the client may come back for
    /// it before the gateway knows that it left.
    fn note_background(&self) {
        let Some((reply, _)) = self.in_background() else { return };
        let key = self.request.record.as_ref().and_then(|record| record.caller.key_id());
        if let (Some(key), Some(attempt)) = (key, &self.attempt) {
            let holder = (attempt.provider.id, attempt.provider.credential_id());
            self.request.gateway.stored_history.note(key, reply, holder);
        }
    }

    /// What the provider says of a batch or a file, to be noted before the client knows its id.
    pub(super) fn said_of_held(&self) -> Option<Box<Said>> {
        let (attempt, record) = (self.attempt.as_ref()?, self.request.record.as_ref()?);
        let object = attempt.incoming.released()?.object()?;
        let ask = record.body.as_ref().and_then(|body| body.ask.as_ref());
        Some(Box::new(Said {
            operation: record.operation.clone(),
            key: record.caller.key_id()?,
            account: (attempt.provider.id, attempt.provider.credential_id()),
            at: self.request.started_at,
            object,
            requests: ask.and_then(|ask| ask.batch.clone()),
        }))
    }

    /// The next bytes complete the reply that is being written.
    pub fn complete(&mut self) {
        let request = &mut self.request;
        let Some(record) = &mut request.record else { return };
        let is_reply = request.ending.outcome == RequestOutcome::Completed;
        if let Some(attempt) = self.attempt.as_mut().filter(|_| is_reply)
            && let Some(forwarded) = attempt.incoming.released()
        {
            let peek = self.forwarding.as_ref().map(|forwarding| &forwarding.inbound.peek);
            record.note_bill(forwarded.bill(record.estimated_input()));
            if let Operation::Stored(call) = &record.operation
                && (forwarded.streamed || *call.collection == route::GOOGLE_BATCHES)
            {
                // The client may have seen its end.
                request.gateway.pending_replies.hurry(attempt.provider.id, &call.id);
            }
            if let Operation::Stored(call) = &record.operation
                && let Some(fetched) = forwarded.fetched()
            {
                let reply = (attempt.provider.id, &*call.id);
                late_bill::fetched(&request.gateway, reply, fetched, SeenBy::Client);
            }
            if !request.live.cache_diagnosis.is_zero()
                && let Some(asked) = &mut record.asked
            {
                asked.reply = forwarded.reply_id().map(Arc::from);
            }
            if let (Some(key), Some(reply)) = (record.caller.key_id(), forwarded.reply_id())
                && peek.is_some_and(|peek| peek.leaves_history(request.format))
            {
                let provider = &attempt.provider;
                let holder = (provider.id, provider.credential_id());
                request.gateway.stored_history.note(key, reply, holder);
            }
            if let Some(forwarding) = &self.forwarding {
                credential::served(request, forwarding, attempt);
            }
            attempt.ticket.succeeded(request.gateway.node.clock.now());
            request.gateway.node.metrics.attempt(&attempt.provider.name, "ok");
        }
        let ending = request.ending.clone();
        self.close(&ending);
    }

    /// The client closed the connection during an attempt; `result` says what became of the
    /// provider's reply.
    pub fn aborted(&mut self, result: &'static str) {
        self.request.gateway.node.metrics.connections.aborted(result);
        if self.in_background().is_some() {
            // The provider goes on with it, whoever reads its stream.
            let outcome = RequestOutcome::Completed;
            return self.close(&Ending { outcome, status: 200, error: None });
        }
        let request = &mut self.request;
        let what = match result {
            "drained" => "the client left; the provider's reply was read to its end",
            "incomplete" => "the client left; the provider's reply could not be read to its end",
            _ => return,
        };
        request.ending = Ending { error: Some(what.to_owned()), ..Ending::client_aborted() };
    }

    /// The request is over without a complete reply: because the client `left`, or for the reason
    /// in [`RequestContext::ending`].
    pub fn abandon(&mut self, left: bool) {
        if !self.request.is_open() {
            return;
        }
        let ending = match self.request.ending.outcome {
            RequestOutcome::ClientAborted => self.request.ending.clone(),
            _ if left => Ending::client_aborted(),
            // The reply should have been completed, and was not.
            RequestOutcome::Completed => Ending::internal("no answer was made"),
            RequestOutcome::Internal if self.request.ending.error.is_none() => {
                Ending::internal(CUT_OFF)
            }
            _ => self.request.ending.clone(),
        };
        self.cut_off(&ending);
    }

    /// Closes the record with the usage of an attempt that did not complete.
    fn cut_off(&mut self, ending: &Ending) {
        if let Some(attempt) = &self.attempt {
            attempt.note_partial_usage(&mut self.request);
        }
        self.close(ending);
    }

    /// Ends the request: prices and journals its record and releases its permit. Only the first
    /// call has an effect, and only if the caller is known.
    ///
    /// Call it before the bytes that complete the reply are sent.
    #[cfg_attr(feature = "stages", inline(never))]
    fn close(&mut self, ending: &Ending) {
        if let Some(mut record) = self.request.record.take() {
            let trace = self.request.trace.take();
            if record.batch().is_some() {
                let sent = self.attempt.as_ref().filter(|attempt| attempt.may_have_made);
                match (sent.and_then(|_| self.id_of_object()), sent) {
                    (Some(id), _) => {
                        late_bill::keep_open(*record, &self.request, trace, ending, id);
                    }
                    (None, Some(_)) => late_bill::unseen(*record, &self.request, trace, ending),
                    (None, None) => record.settle(&self.request, trace, ending),
                }
            } else if let Some((reply, peek)) = self.in_background() {
                record.note_bill(Some(late_bill::expected(&self.request, &record, peek)));
                late_bill::keep_open(*record, &self.request, trace, ending, reply.to_owned());
            } else {
                record.settle(&self.request, trace, ending);
            }
        }
    }

    /// The id of the batch or the file that the provider describes.
    fn id_of_object(&self) -> Option<String> {
        let Incoming::Reply(forwarded) = &self.attempt.as_ref()?.incoming else { return None };
        batch::id_of(&forwarded.object()?).map(str::to_owned)
    }

    /// The id of a reply that its provider makes in the background, and what was asked for.
    fn in_background(&self) -> Option<(&str, &Peek)> {
        let peek = &self.forwarding.as_ref()?.inbound.peek;
        if !peek.is_in_background(self.request.format) {
            return None;
        }
        let Incoming::Reply(forwarded) = &self.attempt.as_ref()?.incoming else { return None };
        Some((forwarded.id_of_unfinished()?, peek))
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if self.request.is_open() {
            self.cut_off(&Ending::internal(CUT_OFF));
        }
    }
}

/// Notes how long a provider took until its reply began, or until it was cancelled.
pub(super) fn took_to_begin(request: &RequestContext, attempt: &Attempt) {
    let Some(record) = &request.record else { return };
    if let Some(body) = &record.body
        && record.caller.strategy(&record.snapshot.settings) == Strategy::Fastest
    {
        let (took, first_bytes) = (attempt.began.elapsed(), &request.gateway.first_bytes);
        first_bytes.note(attempt.provider.id, &body.model, body.stream, took);
    }
}

/// A hook ran for a request that no earlier phase prepared.
fn out_of_order() -> Box<Error> {
    Error::explain(ErrorType::InternalError, "a hook ran before the phase that it needs").into_in()
}
