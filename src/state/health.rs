//! Each provider's present health: its circuit, and the rest it asked for.
//!
//! The circuit itself is a pure machine (`policy::breaker`); this keeps one per provider, in process.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use super::events::{CircuitChange, Event, Events};
use crate::domain::clock::Timestamp;
use crate::domain::ids::ProviderId;
use crate::domain::provider::Provider;
use crate::policy::breaker::{Breaker, BreakerSnapshot, Change, Outlook, Ticket};
use crate::policy::select::Availability;

/// The health of all providers.
#[derive(Default)]
pub struct Health {
    entries: RwLock<HashMap<ProviderId, Arc<Mutex<Entry>>>>,
    events: Events,
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
pub struct Setback<'a> {
    /// Counts towards opening the circuit.
    pub counts: bool,
    pub rest_until: Option<Timestamp>,
    /// For people: told when the circuit opens.
    pub error: Option<&'a str>,
}

impl Health {
    /// Changes of circuits are told through `events`.
    #[must_use]
    pub fn new(events: Events) -> Self {
        Self { entries: RwLock::default(), events }
    }

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
        self.report(provider, change, Happened { now, failures: 0, error: None });
    }

    /// An attempt failed, or a reply broke off.
    pub fn failed(&self, provider: &Provider, ticket: Ticket, now: Timestamp, setback: Setback<'_>) {
        let entry = self.entry(provider.id);
        let mut entry = entry.lock();
        entry.rest_until = entry.rest_until.max(setback.rest_until);
        let change = if setback.counts {
            entry.breaker.failed(ticket, now, &provider.breaker)
        } else {
            entry.breaker.gave_up(ticket);
            Change::None
        };
        let failures = entry.breaker.snapshot(now).failure_count;
        drop(entry);
        self.report(provider, change, Happened { now, failures, error: setback.error });
    }

    /// The attempt says nothing about the provider: the client left, or nothing was asked.
    pub fn gave_up(&self, provider: &Provider, ticket: Ticket) {
        self.entry(provider.id).lock().breaker.gave_up(ticket);
    }

    /// Closes the circuit by hand and ends a rest. Told even if it was closed: its counts are gone.
    pub fn reset(&self, provider: &Provider, now: Timestamp) {
        let entry = self.entry(provider.id);
        let mut entry = entry.lock();
        entry.breaker.reset();
        entry.rest_until = None;
        drop(entry);
        self.report(provider, Change::Closed, Happened { now, failures: 0, error: None });
    }

    /// Until when the provider asked to be left alone, if that is still to come.
    #[must_use]
    pub fn rest_until(&self, provider: ProviderId, now: Timestamp) -> Option<Timestamp> {
        self.entries.read().get(&provider)?.lock().resting(now)
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

    fn report(&self, provider: &Provider, change: Change, happened: Happened<'_>) {
        let open_until = match change {
            Change::None => return,
            Change::Opened { until } => {
                tracing::warn!(provider = provider.name, until = until.to_iso(), "the circuit of a provider opened");
                Some(until)
            }
            Change::Closed => {
                tracing::info!(provider = provider.name, "the circuit of a provider closed");
                None
            }
        };
        self.events.tell(|| {
            Event::Circuit(CircuitChange {
                provider_id: provider.id,
                provider_name: provider.name.as_str().into(),
                open_until,
                failure_count: happened.failures,
                last_error: happened.error.map(Arc::from),
                at: happened.now,
            })
        });
    }
}

/// The circumstances of a change.
struct Happened<'a> {
    now: Timestamp,
    failures: u32,
    error: Option<&'a str>,
}
