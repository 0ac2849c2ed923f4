//! One attempt at one provider, from the choice of the provider to the end of its reply.
//!
//! The hooks of `service.rs` use it; `driver.rs` runs them in order. A repeated attempt at the same
//! provider keeps its breaker ticket and its place in the provider's limits.
//!
//! See docs/decisions/04-errors-request-retries.md.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use pingora::http::RequestHeader;
use pingora::proxy::Session;
use pingora::upstreams::peer::HttpPeer;

use super::failure::Failure;
use super::incoming::Incoming;
use super::render::{self, ReplyForm};
use super::timing::{self, TimeLeft, Timing};
use super::verdict;
use super::wire::Bound;
use super::{forwarding, health_ticket::HealthTicket};
use crate::domain::provider::Provider;
use crate::domain::record::DecisionStep;
use crate::formats::route::Operation;
use crate::policy::classify::Counts;
use crate::policy::failure::NetworkFailure;
use crate::proxy::context::RequestContext;
use crate::proxy::record::Asked;
use crate::upstream::headers::{self, HeadParts};
use crate::upstream::{Link, LinkError};

/// An attempt at a provider.
pub struct Attempt {
    pub provider: Arc<Provider>,
    pub model: Arc<str>,
    pub ticket: HealthTicket,
    /// Attempts at this provider that its retry limit counts.
    pub tries: u32,
    /// Whether one of them failed in a way that its circuit counts.
    pub counts: Counts,
    /// The next connection must be a new one, not one from the pool.
    pub fresh: bool,
    pub began: Instant,
    link: Option<Arc<Link>>,
    timing: Timing,
    /// The complete request was sent and no error has come: the provider may be working on it, and
    /// may bill for it.
    pub is_billable: bool,
    /// Bytes of the rendered body.
    length: usize,
    /// The query of the call, without `?`.
    query: Option<String>,
    /// The part of the rendered body that is still to be sent.
    pieces: std::vec::IntoIter<Bytes>,
    pub form: ReplyForm,
    pub incoming: Incoming,
}

impl Attempt {
    fn new(provider: Arc<Provider>, requested: &Arc<str>, ticket: HealthTicket) -> Self {
        let model = match provider.upstream_model(requested) {
            same if same == &**requested => Arc::clone(requested),
            other => Arc::from(other),
        };
        Self {
            provider,
            model,
            ticket,
            tries: 0,
            counts: Counts::No,
            fresh: false,
            began: Instant::now(),
            link: None,
            timing: Timing::default(),
            is_billable: false,
            length: 0,
            query: None,
            pieces: Vec::new().into_iter(),
            form: ReplyForm::AsIs,
            incoming: Incoming::Awaited,
        }
    }

    /// The link that `upstream_peer` chose.
    ///
    /// # Errors
    /// When no peer was chosen yet.
    pub fn link(&self) -> pingora::Result<Arc<Link>> {
        self.link
            .clone()
            .ok_or_else(|| Failure::network(NetworkFailure::Connect, "no peer was chosen").into())
    }

    /// How long to wait for the next part.
    #[must_use]
    pub fn bound(&self) -> Bound {
        match &self.incoming {
            Incoming::Awaited => self.timing.until_first_byte(),
            Incoming::Error(error) => error.bound(),
            Incoming::Reply(relay) => self.timing.until_next(relay.last_progress()),
        }
    }

    /// The request was sent, and sending took so long.
    pub fn was_sent(&mut self, took: Duration) {
        self.timing.sent(took);
    }

    /// A piece of the provider's answer arrived.
    pub fn byte_came(&mut self, now: Instant) {
        if matches!(self.incoming, Incoming::Reply(_)) {
            self.timing.byte_came(now);
        }
    }

    /// How long the provider has sent bytes of a reply.
    #[must_use]
    pub fn alive(&self) -> Duration {
        self.timing.alive()
    }

    /// Whether the deadline left the provider too little time for the first byte of its reply to
    /// say anything about it.
    #[must_use]
    pub const fn was_cut_short(&self) -> bool {
        self.timing.is_cut_short
    }

    /// Whether the rest of the deadline is for the other providers.
    #[must_use]
    pub const fn had_a_share(&self) -> bool {
        self.timing.is_share
    }

    /// The client took nothing of the reply for this long. That is not the provider's time.
    pub fn was_held_up(&mut self, by: Duration) {
        self.timing.extend(by);
        if let Incoming::Reply(relay) = &mut self.incoming {
            relay.was_held_up(by);
        }
    }

    /// The next piece of the rendered body.
    pub fn next_piece(&mut self) -> Option<Bytes> {
        self.pieces.next()
    }
}

/// The peer of the next attempt: the same provider's if it may be retried, else that of the next
/// provider that admits the request.
///
/// # Errors
/// With a [`GiveUp`](super::failure::GiveUp) as its cause when no provider is left.
pub(in crate::proxy) async fn next_peer(
    session: &mut Session,
    ctx: &mut RequestContext,
) -> pingora::Result<Box<HttpPeer>> {
    loop {
        if ctx.forwarding()?.attempt.is_none() {
            let attempt = next_provider(ctx).await?;
            ctx.forwarding()?.attempt = Some(attempt);
        }
        // Before the attempt begins: a request that this provider's format cannot express is none,
        // and no failure of the provider.
        if let Err(unfit) = render_body(session, ctx).await {
            let error = verdict::failed(ctx, unfit);
            if error.retry() {
                continue;
            }
            return Err(error);
        }
        begin(ctx)?;
        let (gateway, times) = (Arc::clone(&ctx.gateway), timing::link_times(&ctx.live));
        let attempt = ctx.attempt()?;
        let failure = match gateway.upstreams.link(&attempt.provider, times).await {
            Ok(link) => {
                let peer = gateway.upstreams.peer(&link, attempt.fresh);
                attempt.link = Some(link);
                return Ok(Box::new(peer));
            }
            Err(LinkError::Resolve(e)) => Failure::network(NetworkFailure::Resolve, e.to_string()),
            Err(e) => Failure::network(NetworkFailure::Connect, e.to_string()),
        };
        let error = verdict::failed(ctx, failure.into());
        if !error.retry() {
            return Err(error);
        }
    }
}

/// The next provider whose circuit and limits admit the request.
async fn next_provider(ctx: &mut RequestContext) -> pingora::Result<Box<Attempt>> {
    loop {
        let attempts = ctx.record.as_ref().map_or(0, |record| record.attempts);
        let forwarding = ctx.forwarding()?;
        if attempts > 0 && !forwarding.has_time() {
            forwarding.tally.left_out = forwarding.remaining();
            return Err(no_provider_left(ctx));
        }
        let requested = Arc::clone(&forwarding.inbound.model);
        let Some(provider) = forwarding.next_provider() else { return Err(no_provider_left(ctx)) };
        let counts = forwarding.route.operation == Operation::CountTokens;
        let now = ctx.now();
        let health = &ctx.gateway.health;
        let ticket = match counts {
            true => HealthTicket::without_effect(health, &provider, now),
            false => HealthTicket::enter(health, &provider, now),
        };
        let Some(ticket) = ticket else {
            skip(ctx, &provider, DecisionStep::CircuitOpen, "its circuit lets nobody through now")?;
            continue;
        };
        let entered = match ctx.record.as_mut().and_then(|record| record.permit.as_mut()) {
            Some(permit) => permit.enter(&provider, now).await,
            None => true,
        };
        if entered {
            return Ok(Box::new(Attempt::new(provider, &requested, ticket)));
        }
        drop(ticket);
        skip(
            ctx,
            &provider,
            DecisionStep::LimitReached,
            "what runs there already reaches one of its limits",
        )?;
    }
}

fn skip(
    ctx: &mut RequestContext,
    provider: &Provider,
    step: DecisionStep,
    why: &str,
) -> pingora::Result<()> {
    ctx.decide(provider, step, why);
    let is_own = provider.kind.format() == ctx.format;
    let now = ctx.now();
    ctx.forwarding()?.tally.skip(is_own, now);
    Ok(())
}

fn no_provider_left(ctx: &mut RequestContext) -> Box<pingora::Error> {
    forwarding::exhausted(ctx).into()
}

/// Begins an attempt, the first or a repeated one.
fn begin(ctx: &mut RequestContext) -> pingora::Result<()> {
    let live = Arc::clone(&ctx.live);
    let forwarding = ctx.forwarding()?;
    let left = TimeLeft { deadline: forwarding.deadline, others: forwarding.remaining() > 0 };
    let stream = forwarding.inbound.stream;
    let attempt = ctx.attempt()?;
    attempt.began = Instant::now();
    attempt.timing = Timing::start(&attempt.provider, &live, stream, left);
    attempt.is_billable = false;
    attempt.incoming = Incoming::Awaited;
    let asked = Asked {
        provider: Arc::clone(&attempt.provider),
        model: Arc::clone(&attempt.model),
        began: attempt.began,
    };
    ctx.trace_attempt(&asked.provider, &asked.model);
    if let Some(record) = &mut ctx.record {
        record.attempts += 1;
        record.note_bill(None);
        record.asked = Some(asked);
    }
    Ok(())
}

/// Renders the request's body in the provider's format.
async fn render_body(session: &mut Session, ctx: &mut RequestContext) -> pingora::Result<()> {
    let rendered = render::render(session, ctx).await?;
    let attempt = ctx.attempt()?;
    attempt.length = rendered.len();
    attempt.query = rendered.query;
    attempt.pieces = rendered.body.into_iter();
    attempt.form = rendered.reply;
    Ok(())
}

/// Builds the head of the rendered request. `head` gives the protocol version of the connection;
/// everything else in it is replaced.
///
/// # Errors
/// When the path or a credential is not valid in a head.
pub(in crate::proxy) fn build_head(
    session: &Session,
    head: &mut RequestHeader,
    ctx: &mut RequestContext,
) -> pingora::Result<()> {
    let attempt = ctx.attempt()?;
    let (length, converted) = (attempt.length, matches!(attempt.form, ReplyForm::Convert(_)));
    let query = attempt.query.take();
    let (link, provider, model) =
        (attempt.link()?, Arc::clone(&attempt.provider), Arc::clone(&attempt.model));
    let endpoint = link.endpoint();
    let mut path = endpoint.path(provider.kind.format(), render::call(ctx.forwarding()?, &model));
    if let Some(query) = &query {
        path.push('?');
        path.push_str(query);
    }
    let parts = HeadParts {
        client: &session.req_header().headers,
        provider: &provider,
        endpoint,
        target: &path,
        body_len: Some(length),
        converted,
        http2: head.version == http::Version::HTTP_2,
        client_ip: ctx.head.client_ip,
        credentials: &ctx.gateway.fixed.alt_key_headers,
        pass: &ctx.live.forward_headers.pass_request,
        drop: &ctx.live.forward_headers.drop_request,
    };
    *head = headers::build(http::Method::POST, &parts)
        .map_err(|e| Failure::network(NetworkFailure::Connect, e.to_string()))?;
    ctx.propagate(head)
}

/// Milliseconds of a duration, for decisions.
#[must_use]
pub(in crate::proxy) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
