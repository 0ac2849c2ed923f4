//! Admission where the first provider is on another server than the user: both are asked at once.
//!
//! If only the provider's server says yes, its place is given back with the next batch. Until then
//! it is taken, for a few milliseconds. So that callers who are refused again and again hold no
//! places, the user's server is asked alone after a refusal, until it admits that user.

use std::sync::atomic::{AtomicBool, Ordering};

use super::super::operations::RedisReply;
use super::super::{Shared, outbox::Kind};
use super::{Place, Servers};
use crate::domain::ids::{ProviderId, UserId};
use crate::domain::provider::Provider;
use crate::limits::admission::{Admission, Refused};
use crate::limits::charge::{Charge, Counted};
use crate::limits::provider::is_limited;
use crate::limits::sessions::Slot;

/// How many users are distinguished; the others share an entry, which costs a round trip at most.
const USERS: usize = 4_096;

/// Whether a user's last request was refused.
pub(super) struct Refusals(Vec<AtomicBool>);

impl Refusals {
    pub(super) fn new() -> Self {
        Self((0..USERS).map(|_| AtomicBool::new(false)).collect())
    }

    fn of(&self, user: UserId) -> &AtomicBool {
        let place = user.0.rem_euclid(USERS as i64);
        &self.0[usize::try_from(place).unwrap_or(0)]
    }
}

impl Servers {
    /// `own`, `first`: as of [`Shared::admit`].
    pub(in super::super::super) async fn admit(
        &self,
        own: &Admission<'_>,
        first: Option<&Provider>,
    ) -> Result<Counted, Refused> {
        let home = self.of_user(own.user.id);
        let elsewhere = first.filter(|provider| !home.part.has_provider(provider.id));
        let refused = self.refusals.of(own.user.id);
        let counted = match elsewhere {
            None => home.admit(own, first).await,
            Some(provider) if !is_limited(&provider.limits) || refused.load(Ordering::Relaxed) => {
                home.admit(own, None).await
            }
            Some(provider) => self.admit_on_both(home, own, provider).await,
        };
        if refused.load(Ordering::Relaxed) != counted.is_err() {
            refused.store(counted.is_err(), Ordering::Relaxed);
        }
        counted
    }

    async fn admit_on_both(
        &self,
        home: &Shared,
        own: &Admission<'_>,
        provider: &Provider,
    ) -> Result<Counted, Refused> {
        let server = self.of_provider(provider.id);
        let (now, name) = (server.time(own.now), server.link.name());
        let slot = Slot { key: Some(own.key.id), session: own.session.clone() };
        let charge = self.memory.charge(own.request, own.session, own.estimate, now);
        let half = Charge { slot, ..charge };
        let mut place = Place { server, provider: provider.id, half: Some(&half) };
        let admitted = async {
            let counted = home.admit(own, None).await?;
            Ok::<_, Refused>(Admitted { home, counted: Some(counted) })
        };
        let (admitted, placed) = tokio::join!(admitted, server.entered(&half, provider, now));
        let admitted = admitted.and_then(Admitted::keep);
        let is_free = match placed {
            RedisReply::Said(is_free) => is_free,
            // It may be taken: it is given back.
            RedisReply::InVain => return admitted,
            RedisReply::NotAsked | RedisReply::ClockSet(_) => false,
        };
        if !is_free {
            place.half = None;
            return admitted;
        }
        let mut counted = admitted?;
        if counted.served_before.is_none_or(|before| before == provider.id) {
            place.half = None;
            server.place(&half, provider.id, name);
            home.served_elsewhere(&counted.charge, provider.id, home.time(own.now));
            counted.at = Some(provider.id);
        }
        Ok(counted)
    }
}

/// If a client closes its connection while only the provider's server has not answered yet, its
/// request must not stay counted.
struct Admitted<'a> {
    home: &'a Shared,
    counted: Option<Counted>,
}

impl Admitted<'_> {
    fn keep(mut self) -> Result<Counted, Refused> {
        self.counted.take().ok_or(Refused::Unreachable)
    }
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        if let Some(counted) = &self.counted {
            self.home.give_back(&counted.charge, None);
        }
    }
}

impl Shared {
    /// Redis has given a request a place at a provider, under this name of the node.
    fn place(&self, half: &Charge, provider: ProviderId, name: u64) {
        self.memory.enter_unchecked(half, provider, half.admitted);
        self.running.put(half, provider);
        // Counters that are now in use under another name may not know of it.
        if self.link.name() != name {
            self.push(Kind::Entered { at: provider }, half, half.admitted);
        }
    }
}
