//! One attempt at one provider, from the choice of the provider to the end of its reply.
//!
//! A repeated attempt at the same provider keeps its breaker ticket and its place in the provider's
//! limits.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pingora::upstreams::peer::HttpPeer;

use super::failure::Failure;
use super::health_ticket::HealthTicket;
use super::incoming::Incoming;
use super::reach::Reached;
use super::rendered::Rendered;
use super::timing::{Bound, TimeLeft, Timing};
use crate::config::Live;
use crate::domain::provider::Provider;
use crate::domain::secret::Secret;
use crate::policy::classify::Counts;
use crate::policy::failure::NetworkFailure;
use crate::proxy::context::RequestContext;
use crate::proxy::own_credential::OwnCredential;
use crate::upstream::Link;
use crate::upstream::tokens::AccessToken;

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
    /// The provider refused the reasoning of earlier turns: it is left out.
    pub without_reasoning: bool,
    pub began: Instant,
    /// The link of the connection; `None` before `upstream_peer` has chosen one.
    pub link: Option<Arc<Link>>,
    /// The access token, or what signs requests, where the provider's credential is exchanged for
    /// one.
    pub token: Option<AccessToken>,
    /// The client's own credential, where the provider takes it: no other attempt has it.
    pub own: Option<Arc<OwnCredential>>,
    timing: Timing,
    /// The complete request was sent and no error has come: the provider may be working on it, and
    /// may bill for it.
    pub is_billable: bool,
    /// The complete request was sent, and the provider has not answered with an error: a batch may
    /// exist there.
    pub may_have_made: bool,
    /// The rendered request, until it is sent.
    pub(in crate::proxy) rendered: Rendered,
    pub incoming: Incoming,
}

impl Attempt {
    /// An attempt that has not begun.
    pub fn new(provider: Arc<Provider>, requested: &Arc<str>, ticket: HealthTicket) -> Self {
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
            without_reasoning: false,
            began: Instant::now(),
            link: None,
            token: None,
            own: None,
            timing: Timing::default(),
            is_billable: false,
            may_have_made: false,
            rendered: Rendered::default(),
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

    /// Its provider's address is known. Returns the peer to connect to.
    pub(in crate::proxy) fn reaches(&mut self, reached: Reached) -> Box<HttpPeer> {
        let Reached { link, token, peer } = reached;
        self.link = Some(link);
        if token.is_some() {
            self.token = token;
        }
        peer
    }

    /// What no message and no error may have: the provider's secrets, its access token, and the
    /// client's own credential.
    pub fn secrets(&self) -> Vec<Secret> {
        let token = self.token.iter().flat_map(AccessToken::secrets);
        let own = self.own.as_ref().map(|own| own.token.clone());
        self.provider.secrets().cloned().chain(token).chain(own).collect()
    }

    /// How long to wait for the next part.
    pub fn bound(&self) -> Bound {
        match &self.incoming {
            Incoming::Awaited => self.timing.until_first_byte(),
            Incoming::Error(error) => error.bound(),
            Incoming::Reply(forwarded) => self.timing.until_next(forwarded.last_progress()),
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
    pub fn alive(&self) -> Duration {
        self.timing.alive()
    }

    /// Whether the deadline left the provider too little time for the first byte of its reply to
    /// say anything about it.
    pub const fn was_cut_short(&self) -> bool {
        self.timing.is_cut_short
    }

    /// Whether the rest of the deadline is for the other providers.
    pub const fn had_a_share(&self) -> bool {
        self.timing.is_share
    }

    /// The client took nothing of the reply for this long. That is not the provider's time.
    pub fn was_held_up(&mut self, by: Duration) {
        self.timing.extend(by);
        if let Incoming::Reply(forwarded) = &mut self.incoming {
            forwarded.was_held_up(by);
        }
    }

    /// Begins the attempt, the first or a repeated one.
    pub(super) fn begin(&mut self, live: &Live, stream: bool, left: TimeLeft) {
        self.began = Instant::now();
        self.timing = Timing::start(self.began, &self.provider, live, stream, left);
        (self.is_billable, self.may_have_made) = (false, false);
        self.incoming = Incoming::Awaited;
    }

    /// Notes the usage of an attempt that does not complete.
    pub fn note_partial_usage(&self, request: &mut RequestContext) {
        if let Some(record) = request.record.as_mut().filter(|record| record.is_metered()) {
            let estimated_input = record.estimated_input();
            record.note_bill(self.incoming.partial_usage(estimated_input, self.is_billable));
        }
    }
}
