//! The attempt at a second provider, which goes on beside the first until one of them has content:
//! its exchange, step by step. Each step owns the connection, so that the steps of both providers
//! can be awaited at once. See docs/providers.md, "Hedged streams".

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Version;
use pingora::http::{RequestHeader, ResponseHeader};
use pingora::proxy::Session;
use pingora::upstreams::peer::HttpPeer;
use pingora::{Error, ErrorSource, ErrorType, Result};

use super::waiter::Alone;
use super::wire::{ReplyPiece, Wire};
use crate::domain::ids::RequestId;
use crate::limits::Permit;
use crate::proxy::context::RequestContext;
use crate::proxy::exchange::Exchange;
use crate::proxy::upstream::attempt::Attempt;
use crate::proxy::upstream::hedge::Second;
use crate::proxy::upstream::reach::{Reached, reach};
use crate::proxy::upstream::timing::Bound;
use crate::proxy::upstream::{head, receiving};

/// A step that runs.
pub(super) type Flight = Pin<Box<dyn Future<Output = Landed> + Send>>;

/// A step that ended.
pub(super) struct Landed {
    /// `None`: there is no connection.
    wire: Option<Box<Wire>>,
    came: Result<Came>,
}

impl Landed {
    fn new(wire: Box<Wire>, came: Result<Came>) -> Self {
        Self { wire: Some(wire), came }
    }
}

/// What a step brought.
enum Came {
    Connected(Reached),
    /// Sending took so long.
    Sent(Duration),
    Head(Box<ResponseHeader>),
    Piece(Option<Bytes>),
}

/// A reply that begins.
pub(super) struct Begun {
    pub wire: Box<Wire>,
    pub peer: Box<HttpPeer>,
    pub head: Box<ResponseHeader>,
    /// All that came so far.
    pub first: ReplyPiece,
}

/// The attempt at a second provider.
pub(super) struct Hedge {
    /// By which the ledger knows what it costs if it loses.
    pub id: RequestId,
    /// Its place at the provider.
    pub permit: Option<Permit>,
    /// `None` while the exchange has it.
    pub attempt: Option<Box<Attempt>>,
    /// The current step; `None` once its reply begins.
    pub flight: Option<Flight>,
    peer: Option<Box<HttpPeer>>,
    head: Option<Box<ResponseHeader>>,
    /// Its reply, once it begins.
    pub begun: Option<Box<Begun>>,
}

impl Hedge {
    /// An attempt that begins.
    pub(super) fn new(second: Second, request: &RequestContext) -> Box<Self> {
        let Second { attempt, permit, id } = second;
        let flight = Some(connect(request, &attempt));
        let attempt = Some(attempt);
        Box::new(Self { id, permit, attempt, flight, peer: None, head: None, begun: None })
    }

    /// Begins again, with another connection.
    pub(super) fn restart(&mut self, request: &RequestContext) {
        self.flight = self.attempt.as_ref().map(|attempt| connect(request, attempt));
    }

    /// Takes what a step brought, and begins the next one. The exchange has the attempt.
    ///
    /// # Errors
    /// When the attempt has failed.
    pub(super) fn advance(
        &mut self,
        session: &Session,
        ctx: &mut Exchange,
        landed: Landed,
    ) -> Result<()> {
        self.flight = None;
        let Landed { wire, came } = landed;
        let came = match came {
            Err(_) if wire.is_some() && ctx.running()?.has_enough() => Came::Piece(None),
            Err(mut e) => {
                if let Some(wire) = &wire {
                    e.retry.decide_reuse(wire.is_reused());
                }
                return Err(e);
            }
            Ok(came) => came,
        };
        let Some(mut wire) = wire else { return Err(out_of_order()) };
        let running = ctx.running()?;
        let next = match came {
            Came::Connected(reached) => {
                running.request.gateway.node.metrics.connections.upstream(wire.is_reused());
                self.peer = Some(running.attempt.reaches(reached));
                let (mut blank, ()) = http::Request::new(()).into_parts();
                blank.version = if wire.is_http2() { Version::HTTP_2 } else { Version::HTTP_11 };
                let mut head = RequestHeader::from(blank);
                head::build(session, &mut head, running)?;
                let rendered = &mut ctx.running()?.attempt.rendered;
                send(wire, head, std::iter::from_fn(|| rendered.next_piece()).collect())
            }
            Came::Sent(took) => {
                running.attempt.is_billable = wire.is_sent();
                running.attempt.may_have_made = wire.is_sent();
                if wire.is_sent() {
                    running.attempt.was_sent(took);
                }
                read_head(wire, running.attempt.bound())
            }
            Came::Head(head) => {
                receiving::begin(running, &head)?;
                self.head = Some(head);
                read_piece(wire, ctx.running()?.attempt.bound())
            }
            Came::Piece(mut body) => {
                running.attempt.byte_came(Instant::now());
                let end = body.is_none() || wire.is_done();
                let received = body.as_ref().map_or(0, Bytes::len);
                receiving::take(running, &mut body, end)?;
                if !ctx.waits_for_check() {
                    body = ctx.running()?.hold(body, end)?;
                    if body.is_none() {
                        self.flight = Some(read_piece(wire, ctx.running()?.attempt.bound()));
                        return Ok(());
                    }
                }
                let (Some(peer), Some(head)) = (self.peer.take(), self.head.take()) else {
                    return Err(out_of_order());
                };
                let first = ReplyPiece { body, end, received };
                self.begun = Some(Box::new(Begun { wire, peer, head, first }));
                return Ok(());
            }
        };
        self.flight = Some(next);
        Ok(())
    }
}

fn out_of_order() -> Box<Error> {
    Error::explain(ErrorType::InternalError, "a step of an exchange came out of order").into_in()
}

const BEGINS: ErrorType = ErrorType::new("the second provider's reply begins");

/// Ends the steps of the first attempt. The next attempt is the second provider's.
pub(super) fn begins() -> Box<Error> {
    let mut error = Error::new(BEGINS).into_in();
    error.set_retry(true);
    error
}

/// Whether an attempt ended because the second provider's reply begins.
pub(super) fn is_outrun(error: &Error) -> bool {
    *error.esource() == ErrorSource::Internal && *error.etype() == BEGINS
}

fn connect(request: &RequestContext, attempt: &Attempt) -> Flight {
    let (gateway, live) = (Arc::clone(&request.gateway), Arc::clone(&request.live));
    let (provider, fresh, now) = (Arc::clone(&attempt.provider), attempt.fresh, request.now());
    Box::pin(async move {
        let opened = async {
            let reached = reach(&gateway, &live, &provider, now, fresh).await?;
            let (upstreams, began) = (&gateway.upstreams, Instant::now());
            let wire = Wire::over_http(&mut Alone, upstreams, &reached.peer, began).await?;
            Ok((wire, reached))
        };
        match Box::pin(opened).await {
            Ok((wire, reached)) => Landed::new(Box::new(wire), Ok(Came::Connected(reached))),
            Err(e) => Landed { wire: None, came: Err(e) },
        }
    })
}

fn send(mut wire: Box<Wire>, head: RequestHeader, body: Vec<Bytes>) -> Flight {
    Box::pin(async move {
        let began = Instant::now();
        let sent = wire.send(&mut Alone, head, &body, began).await;
        Landed::new(wire, sent.map(|()| Came::Sent(began.elapsed())))
    })
}

fn read_head(mut wire: Box<Wire>, bound: Bound) -> Flight {
    Box::pin(async move {
        let head = wire.head(&mut Alone, bound, Instant::now()).await;
        Landed::new(wire, head.map(Came::Head))
    })
}

fn read_piece(mut wire: Box<Wire>, bound: Bound) -> Flight {
    Box::pin(async move {
        let piece = wire.piece(&mut Alone, bound, Instant::now()).await;
        Landed::new(wire, piece.map(Came::Piece))
    })
}
