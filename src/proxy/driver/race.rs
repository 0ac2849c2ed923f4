//! Two attempts at once: the first one's wait, and the steps of the second (`hedge.rs`). The reply
//! that has content first is the client's; the other attempt is cancelled.
//!
//! All of it is boxed: a request without a second provider needs no memory for this.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Instant;

use pingora::proxy::Session;
use pingora::{ErrorSource, Result};

use super::client::Client;
use super::hedge::{Begun, Flight, Hedge, Landed, begins};
use super::waiter::{Wait, Waiter as _, before};
use super::wire::unbounded;
use crate::domain::ids::RequestId;
use crate::otlp::AttemptEnd;
use crate::proxy::connections::gone::unless_gone;
use crate::proxy::exchange::{Exchange, took_to_begin};
use crate::proxy::hedge_bill::LostAttempt;
use crate::proxy::record::AskedProvider;
use crate::proxy::service::Service;
use crate::proxy::upstream::attempt::Attempt;
use crate::proxy::upstream::{hedge, next_peer};

/// Which of two attempts went on.
enum Step<T> {
    First(T),
    Second(Landed),
}

impl Client<'_> {
    /// Runs `work`, the wait for the first provider, and the second attempt beside it, which begins
    /// now if it has not begun.
    ///
    /// # Errors
    /// When the client closes its connection, or the second provider's reply begins
    /// ([`super::hedge::is_outrun`]).
    pub(super) async fn race<T>(
        &mut self,
        wait: Wait,
        mut work: Pin<&mut (impl Future<Output = T> + Send)>,
    ) -> Result<Option<T>> {
        if self.hedge.is_none() {
            let beginning = pin!(begin(self.session, self.ctx));
            tokio::select! {
                biased;
                done = work.as_mut() => return Ok(Some(done)),
                begun = beginning => *self.hedge = begun?,
            }
        }
        loop {
            let now = Instant::now();
            let due = self.due().filter(|_| !wait.detached);
            let next = [wait.until, due].into_iter().flatten().min();
            let step = {
                let flight = self.hedge.as_mut().and_then(|hedge| hedge.flight.as_mut());
                let both = pin!(async {
                    tokio::select! {
                        biased;
                        done = work.as_mut() => Step::First(done),
                        landed = landing(flight) => Step::Second(landed),
                    }
                });
                unless_gone(self.session, wait.detached, before(now, next, both)).await?
            };
            match step {
                Some(Step::First(done)) => return Ok(Some(done)),
                Some(Step::Second(landed)) => {
                    self.landed(landed).await?;
                    if self.hedge.as_ref().is_some_and(|hedge| hedge.begun.is_some()) {
                        return Err(begins());
                    }
                }
                None if due.is_none() || next != due => return Ok(None),
                None => self.ping().await?,
            }
        }
    }

    /// Takes what a step of the second attempt brought. If the attempt failed, the first goes on
    /// alone.
    async fn landed(&mut self, landed: Landed) -> Result<()> {
        let Some(mut hedge) = self.hedge.take() else { return Ok(()) };
        let first = self.ctx.replace_attempt(hedge.attempt.take());
        let failed = hedge.advance(self.session, self.ctx, landed).err();
        let failed = failed.map(|e| {
            // The trace has the attempts one after another.
            let trace = self.ctx.request.trace.take();
            let error = self.ctx.attempt_failed(e);
            self.ctx.request.trace = trace;
            error
        });
        hedge.attempt = self.ctx.replace_attempt(first);
        let Some(error) = failed else {
            *self.hedge = Some(hedge);
            return Ok(());
        };
        if let Some(attempt) = hedge.attempt.as_mut().filter(|_| error.retry()) {
            let (request, forwarding) = self.ctx.parts()?;
            match next_peer::begin(self.session, request, forwarding, attempt).await {
                Ok(()) => {
                    self.ctx.request.tried();
                    hedge.restart(&self.ctx.request);
                    *self.hedge = Some(hedge);
                    return Ok(());
                }
                Err(e) if *e.esource() == ErrorSource::Downstream => return Err(e),
                Err(_) => {}
            }
        }
        self.ctx.parts()?.1.is_hedged = false;
        self.ctx.request.tried();
        self.ctx.request.gateway.node.metrics.hedges.ended("failed");
        Ok(())
    }
}

/// What a step of the second attempt brings; never, if there is none.
async fn landing(flight: Option<&mut Flight>) -> Landed {
    match flight {
        Some(flight) => flight.await,
        None => std::future::pending().await,
    }
}

/// Asks a second provider, if one can be asked.
async fn begin(session: &mut Session, ctx: &mut Exchange) -> Result<Option<Box<Hedge>>> {
    let second = hedge::choose(session, ctx.running()?).await?;
    Ok(second.map(|second| Hedge::new(second, &ctx.request)))
}

/// Cancels the second attempt: its connection is closed, and its cost is the gateway's own.
pub(super) fn cancel(ctx: &mut Exchange, hedge: Hedge, why: &str, outcome: &'static str) {
    let Hedge { id, permit, attempt, .. } = hedge;
    ctx.request.gateway.node.metrics.hedges.ended(outcome);
    ctx.request.tried();
    if let Some(attempt) = attempt {
        let lost = lost(ctx, &attempt, id, why);
        ctx.request.lost(lost, permit);
    }
}

fn lost(ctx: &Exchange, attempt: &Attempt, id: RequestId, why: &str) -> LostAttempt {
    let input = ctx.request.record.as_ref().map_or(0, |record| record.estimated_input());
    let model = ctx.forwarding().map(|now| Arc::clone(now.inbound.model_at(&attempt.provider)));
    LostAttempt {
        id,
        asked: AskedProvider {
            provider: Arc::clone(&attempt.provider),
            model: Arc::clone(&attempt.model),
            began: attempt.began,
            reply: None,
        },
        model: model.unwrap_or_else(|| Arc::clone(&attempt.model)),
        status: attempt.incoming.status(),
        bill: attempt.incoming.partial_usage(input, attempt.is_billable),
        why: why.to_owned(),
    }
}

impl Service {
    /// Makes the second attempt the only one, and awaits the begin of its reply: the first one
    /// failed, or was outrun.
    ///
    /// # Errors
    /// When the second one fails too, judged, or the client closes its connection.
    pub(super) async fn hedged(
        &self,
        session: &mut Session,
        ctx: &mut Box<Exchange>,
        mut hedge: Hedge,
    ) -> Result<Begun> {
        take_over(ctx, &mut hedge).await?;
        loop {
            if let Some(begun) = hedge.begun {
                self.gateway.node.metrics.hedges.ended("second");
                return Ok(*begun);
            }
            let waiting = Instant::now();
            let landed = {
                let flight = pin!(landing(hedge.flight.as_mut()));
                let mut client = Client { service: self, session, ctx, hedge: &mut None };
                unbounded(client.on(Wait::from(waiting), flight).await)
            };
            ctx.request.waited += waiting.elapsed();
            let landed = match landed {
                Ok(landed) => landed,
                Err(e) => {
                    self.gateway.node.metrics.hedges.ended("none");
                    ctx.aborted("cancelled");
                    return Err(ctx.attempt_failed(e));
                }
            };
            if let Err(e) = hedge.advance(session, ctx, landed) {
                self.gateway.node.metrics.hedges.ended("failed");
                return Err(ctx.attempt_failed(e));
            }
        }
    }
}

/// Puts the second attempt in the place of the first, and moves the request to its provider.
async fn take_over(ctx: &mut Exchange, hedge: &mut Hedge) -> Result<()> {
    let first = ctx.replace_attempt(hedge.attempt.take());
    let (mut permit, now) = (hedge.permit.take(), ctx.request.now());
    let running = ctx.running()?;
    running.forwarding.is_hedged = false;
    let provider = Arc::clone(&running.attempt.provider);
    // The request's own permit takes its place.
    if let Some(permit) = &mut permit {
        permit.leave(now);
    }
    if let Some(own) = ctx.request.record.as_mut().and_then(|record| record.permit.as_mut()) {
        // The provider was asked already: if its limits were reached meanwhile, the request is there
        // nevertheless.
        let _ = own.enter(&provider, now).await;
    }
    // One that failed is there only if its provider would be asked again, and cost nothing.
    if let Some(first) = first.filter(|_| hedge.begun.is_some()) {
        let end = AttemptEnd {
            at: ctx.request.started.elapsed(),
            status: first.incoming.status(),
            kind: "hedge_lost",
            usage: None,
        };
        ctx.request.trace_failure(|_| end);
        took_to_begin(&ctx.request, &first);
        let why = format!("cancelled: the reply of “{}” began first", provider.name);
        let lost = lost(ctx, &first, hedge.id, &why);
        ctx.request.lost(lost, permit);
    }
    let running = ctx.running()?;
    next_peer::asks(running.request, running.forwarding, running.attempt);
    Ok(())
}
