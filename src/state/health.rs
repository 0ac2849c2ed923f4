//! Each provider's present health: its circuit, and the rest it asked for.
//!
//! The circuit itself is a pure machine (`policy::breaker`); this keeps one per provider, in process.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use crate::domain::clock::Timestamp;
use crate::domain::ids::ProviderId;
use crate::domain::provider::Provider;
use crate::policy::breaker::{Breaker, BreakerSnapshot, Change, Outlook, Ticket};
use crate::policy::select::Availability;

/// The health of all providers.
#[derive(Default)]
pub struct Health {
    entries: RwLock<HashMap<ProviderId, Arc<Mutex<Entry>>>>,
}

#[derive(Default)]
struct Entry {
    breaker: Breaker,
    /// Not to be asked before (`Retry-After`).
    rest_until: Option<Timestamp>,
}

impl Entry {
    fn resting(&self, now: Timestamp) -> Option<Timestamp> {
        self.rest_until.filter(|until| *until > now)
    }
}

/// How an attempt failed, as far as health goes.
#[derive(Debug, Clone, Copy)]
pub struct Setback {
    /// Counts towards opening the circuit.
    pub counts: bool,
    pub rest_until: Option<Timestamp>,
}

impl Health {
    /// Whether the provider may be asked; changes nothing.
    #[must_use]
    pub fn availability(&self, provider: ProviderId, now: Timestamp) -> Availability {
        let Some(entry) = self.entries.read().get(&provider).cloned() else { return Availability::Ready };
        let entry = entry.lock();
        match (entry.breaker.look(now), entry.resting(now)) {
            (Outlook::Refuse { until }, _) => Availability::CircuitOpen { until },
            (_, Some(until)) => Availability::Resting { until },
            _ => Availability::Ready,
        }
    }

    /// Takes a place at the provider; `None` when its circuit lets nobody through now, or it rests.
    #[must_use]
    pub fn enter(&self, provider: &Provider, now: Timestamp) -> Option<Ticket> {
        let entry = self.entry(provider.id);
        let mut entry = entry.lock();
        if entry.resting(now).is_some() {
            return None;
        }
        entry.breaker.admit(now).ok()
    }

    /// A reply came to its proper end.
    pub fn succeeded(&self, provider: &Provider, ticket: Ticket, now: Timestamp) {
        let change = self.entry(provider.id).lock().breaker.succeeded(ticket, now, &provider.breaker);
        report(provider, change);
    }

    /// An attempt failed, or a reply broke off.
    pub fn failed(&self, provider: &Provider, ticket: Ticket, now: Timestamp, setback: Setback) {
        let entry = self.entry(provider.id);
        let mut entry = entry.lock();
        entry.rest_until = entry.rest_until.max(setback.rest_until);
        let change = if setback.counts {
            entry.breaker.failed(ticket, now, &provider.breaker)
        } else {
            entry.breaker.gave_up(ticket);
            Change::None
        };
        drop(entry);
        report(provider, change);
    }

    /// The attempt says nothing about the provider: the client left, or nothing was asked.
    pub fn gave_up(&self, provider: &Provider, ticket: Ticket) {
        self.entry(provider.id).lock().breaker.gave_up(ticket);
    }

    /// Closes the circuit by hand and ends a rest.
    pub fn reset(&self, provider: ProviderId) {
        let entry = self.entry(provider);
        let mut entry = entry.lock();
        entry.breaker.reset();
        entry.rest_until = None;
    }

    /// The circuit as administrators see it; closed for a provider that was never asked.
    #[must_use]
    pub fn snapshot(&self, provider: ProviderId, now: Timestamp) -> BreakerSnapshot {
        self.entry(provider).lock().breaker.snapshot(now)
    }

    /// Forgets providers that are no more.
    pub fn keep_only(&self, exists: impl Fn(ProviderId) -> bool) {
        self.entries.write().retain(|id, _| exists(*id));
    }

    fn entry(&self, provider: ProviderId) -> Arc<Mutex<Entry>> {
        if let Some(entry) = self.entries.read().get(&provider) {
            return Arc::clone(entry);
        }
        Arc::clone(self.entries.write().entry(provider).or_default())
    }
}

fn report(provider: &Provider, change: Change) {
    match change {
        Change::None => {}
        Change::Opened { until } => {
            tracing::warn!(provider = provider.name, until = until.to_iso(), "the circuit of a provider opened");
        }
        Change::Closed => tracing::info!(provider = provider.name, "the circuit of a provider closed"),
    }
}
