//! Counters on several Redis servers, none of which knows of the others.
//!
//! A user with all keys is on one server, and a provider on one ([`Part`]); each server is a whole
//! [`Shared`], with its own connection, queue, epoch, clock and rebuild. So the loss of one
//! concerns its users and providers only. This node's own counters are one for all.
//!
//! A request whose provider is on another server than its user is counted in two halves, each of
//! which is settled, repeated, given back and recognised by the request's id for itself: the user's
//! half, for which the provider is only the one that serves the session, and the provider's half,
//! which has no user.

mod admit;
mod keeper;
mod read;

use std::sync::Arc;

pub use keeper::Keeper;

use super::super::charge::{Charge, Settlement};
use super::super::memory::Memory;
use super::super::settings::CounterSettings;
use super::outbox::Kind;
use super::part::Part;
use super::{Common, Shared, SharedSettings, list};
use crate::domain::clock::Timestamp;
use crate::domain::ids::{ProviderId, UserId};
use crate::domain::provider::Provider;
use crate::store::LateCosts;
use admit::Refusals;

/// Several servers; at least one. Each has its own clock: the operations take times of this node,
/// and each server's part of them converts these once.
pub(in super::super) struct Servers {
    /// This node's own counters, of all servers.
    pub(in super::super) memory: Arc<Memory>,
    all: Vec<Arc<Shared>>,
    refusals: Refusals,
}

impl Servers {
    /// # Errors
    /// When there is no address, or one is invalid or names a server that another one names.
    pub(in super::super) fn new(
        settings: CounterSettings,
        shared: SharedSettings,
    ) -> Result<Arc<Self>, String> {
        let (servers, notes) = (shared.servers.clone(), list::notes(&shared.servers)?);
        let common = Common::new(settings, shared);
        let memory = Arc::clone(&common.memory);
        let of = servers.len();
        let each = servers.iter().zip(notes).enumerate().map(|(place, (server, note))| {
            Shared::on(server, common.clone(), Part { place, of }, note).map(Arc::new)
        });
        let all = each.collect::<Result<Vec<_>, _>>()?;
        if all.is_empty() {
            return Err("no server is named".to_owned());
        }
        Ok(Arc::new(Self { memory, all, refusals: Refusals::new() }))
    }

    fn of_user(&self, user: UserId) -> &Shared {
        &self.all[Part::place_of_user(user, self.all.len())]
    }

    fn of_provider(&self, provider: ProviderId) -> &Shared {
        &self.all[Part::place_of_provider(provider, self.all.len())]
    }

    /// The server of a request's user; `None` for the admin token.
    fn home(&self, charge: &Charge) -> Option<&Shared> {
        charge.user.map(|user| self.of_user(user))
    }

    /// The server of a provider, if it is not that of the request's user.
    fn elsewhere(&self, charge: &Charge, provider: ProviderId) -> Option<&Shared> {
        let server = self.of_provider(provider);
        let is_home = self.home(charge).is_some_and(|home| std::ptr::eq(home, server));
        (!is_home).then_some(server)
    }

    /// A time of this node by the clock of the first server, which stands for all where no single
    /// one is concerned.
    pub(in super::super) fn time(&self, own: Timestamp) -> Timestamp {
        self.first().time(own)
    }

    /// The same by the clock of a user's server.
    pub(in super::super) fn time_of(&self, user: UserId, own: Timestamp) -> Timestamp {
        self.of_user(user).time(own)
    }

    /// The server that has the time zone for all.
    fn first(&self) -> &Shared {
        &self.all[0]
    }

    /// The provider's half of a request, by the clock of the provider's server. Once there, it
    /// stays as it is.
    fn half(&self, server: &Shared, charge: &Charge) -> Charge {
        if let Some(known) = server.running.take(charge.request) {
            return known;
        }
        let home = self.home(charge).unwrap_or(self.first());
        let by = server.agreement.added_ms() - home.agreement.added_ms();
        let on = |at: Timestamp| at.plus_ms(by);
        Charge {
            request: charge.request,
            user: None,
            slot: charge.slot.clone(),
            reserved: charge.reserved,
            admitted: on(charge.admitted),
            minute: None,
            asks: None,
        }
    }

    pub(in super::super) async fn enter(
        &self,
        charge: &Charge,
        provider: &Provider,
        now: Timestamp,
    ) -> bool {
        let Some(server) = self.elsewhere(charge, provider.id) else {
            let home = self.of_provider(provider.id);
            return home.enter(charge, provider, home.time(now)).await;
        };
        let half = self.half(server, charge);
        let mut place = Place { server, provider: provider.id, half: Some(&half) };
        let entered = server.enter(&half, provider, server.time(now)).await;
        place.half = None;
        if entered && let Some(home) = self.home(charge) {
            home.served_elsewhere(charge, provider.id, home.time(now));
        }
        entered
    }

    pub(in super::super) fn withdraw(&self, charge: &Charge, from: ProviderId, now: Timestamp) {
        let Some(server) = self.elsewhere(charge, from) else {
            let home = self.of_provider(from);
            return home.withdraw(charge, from, home.time(now));
        };
        server.withdraw(&self.half(server, charge), from, server.time(now));
        if let Some(home) = self.home(charge) {
            home.running.move_to(charge.request, None);
        }
    }

    pub(in super::super) fn settle(&self, charge: &Charge, end: &Settlement) {
        let at = |server: &Shared| Settlement { now: server.time(end.now), ..*end };
        if let Some(home) = self.home(charge) {
            home.settle(charge, &at(home));
        }
        let mut before: Option<&Shared> = None;
        for provider in [end.at, end.served].into_iter().flatten() {
            let Some(server) = self.elsewhere(charge, provider) else { continue };
            if !before.is_some_and(|before| std::ptr::eq(before, server)) {
                server.settle(&self.half(server, charge), &at(server));
            }
            before = Some(server);
        }
    }

    pub(in super::super) fn give_back(&self, charge: &Charge, at: Option<ProviderId>) {
        if let Some(home) = self.home(charge) {
            home.give_back(charge, at);
        }
        if let Some(provider) = at
            && let Some(server) = self.elsewhere(charge, provider)
        {
            server.give_back(&self.half(server, charge), at);
        }
    }

    /// Counts the later cost of settled requests, in this node's counters and, queued, on the
    /// servers of each user and provider.
    pub(in super::super) fn spent_late(&self, late: &LateCosts, now: Timestamp) {
        for server in &self.all {
            let rows = server.part.of_rows(&late.rows);
            let own = LateCosts { rows, number: late.number };
            server.spent_late(&own, server.time(now));
        }
    }
}

/// If a client closes its connection while the provider's server is called, the place there must
/// not stay taken.
struct Place<'a> {
    server: &'a Shared,
    provider: ProviderId,
    half: Option<&'a Charge>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some(half) = self.half {
            self.server.push(Kind::Withdrawn { from: self.provider }, half, half.admitted);
        }
    }
}

impl Shared {
    /// A request is at a provider of another server: here the provider only serves its session.
    fn served_elsewhere(&self, charge: &Charge, provider: ProviderId, now: Timestamp) {
        let is_another = self.memory.serve_by(charge, provider);
        self.running.move_to(charge.request, Some(provider));
        if is_another {
            self.push(Kind::Entered { at: provider }, charge, now);
        }
    }
}
