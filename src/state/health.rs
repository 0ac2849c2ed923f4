//! Each provider's present health: its circuit, the rest it asked for, and how its attempts end.
//!
//! The circuit itself is a pure machine (`policy::breaker`); this keeps one per provider, in process. Nobody waits for other
//! nodes here: what changed is marked, for [`super::peers`] or [`super::kept`] to tell, and what they tell is taken over when it is
//! newer.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;

use super::attempts::{AttemptError, AttemptLog, Failed, Noted, Seen};
use super::events::{CircuitChange, Event, Events, ProviderChange};
use super::told::Told;
use crate::domain::clock::Timestamp;
use crate::domain::ids::ProviderId;
use crate::domain::provider::Provider;
use crate::policy::breaker::{Breaker, BreakerSnapshot, Change, Outlook, Standing, Ticket};
use crate::policy::select::Availability;

/// The health of all providers.
#[derive(Default)]
pub struct Health {
    entries: RwLock<HashMap<ProviderId, Arc<Mutex<Entry>>>>,
    events: Events,
    /// What other nodes do not know yet.
    news: Mutex<HashSet<ProviderId>>,
    marked: Notify,
}

#[derive(Default)]
struct Entry {
    breaker: Breaker,
    /// Not to be asked before (`Retry-After`).
    rest_until: Option<Timestamp>,
    /// When circuit or rest last changed, here or elsewhere.
    changed: Option<Timestamp>,
    /// How attempts of this process ended.
    log: AttemptLog,
}

impl Entry {
    fn standing(&self) -> (Standing, Option<Timestamp>) {
        (self.breaker.standing(), self.rest_until)
    }

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
    /// Changes of circuits are told through `events`.
    #[must_use]
    pub fn new(events: Events) -> Self {
        Self { events, ..Self::default() }
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
        let before = entry.standing();
        let ticket = entry.breaker.admit(now).ok();
        self.mark(provider.id, &mut entry, before, now);
        ticket
    }

    /// A reply came to its proper end.
    pub fn succeeded(&self, provider: &Provider, ticket: Ticket, now: Timestamp) {
        let entry = self.entry(provider.id);
        let mut entry = entry.lock();
        let before = entry.standing();
        let change = entry.breaker.succeeded(ticket, now, &provider.breaker);
        self.mark(provider.id, &mut entry, before, now);
        let noted = entry.log.succeeded(now);
        if change == Change::Closed {
            entry.log.forget_reason();
        }
        drop(entry);
        self.tell_attempts(provider, &noted, None, now);
        self.report(provider, change, Happened { now, failures: 0, error: None });
    }

    /// One attempt failed, whether or not it counts for the circuit or is followed by another at the same provider.
    /// The first failure has a line in the log, the next ones at most one a minute.
    pub fn attempt_failed(&self, provider: &Provider, now: Timestamp, failed: Failed<'_>) {
        let error = Arc::new(AttemptError::new(provider, failed, now));
        let noted = self.entry(provider.id).lock().log.failed(now, Arc::clone(&error));
        if let Some(failures) = noted.line {
            tracing::warn!(
                provider = provider.name,
                kind = error.kind.as_str(),
                status = error.status,
                error = &*error.message,
                failures,
                in_a_row = noted.in_a_row,
                "attempts at a provider fail"
            );
        }
        self.tell_attempts(provider, &noted, Some(&error), now);
    }

    fn tell_attempts(&self, provider: &Provider, noted: &Noted, error: Option<&AttemptError>, now: Timestamp) {
        if noted.turned {
            if error.is_none() {
                tracing::info!(provider = provider.name, "a provider that failed answers again");
            }
            self.events.tell(|| Event::Provider(provider.id));
        }
        if noted.told {
            self.events.provider(ProviderChange {
                provider_id: provider.id,
                provider_name: provider.name.as_str().into(),
                failures: noted.in_a_row,
                last_error: error.map(|error| Arc::from(&*error.message)),
                at: now,
            });
        }
    }

    /// How the provider does, as far as this process has seen.
    #[must_use]
    pub fn seen(&self, provider: ProviderId, now: Timestamp) -> Seen {
        let entry = self.entry(provider);
        let entry = entry.lock();
        entry.log.seen(entry.breaker.snapshot(now).open_until, entry.resting(now), now)
    }

    /// An attempt failed, or a reply broke off.
    pub fn failed(&self, provider: &Provider, ticket: Ticket, now: Timestamp, setback: Setback) {
        let entry = self.entry(provider.id);
        let mut entry = entry.lock();
        let before = entry.standing();
        entry.rest_until = entry.rest_until.max(setback.rest_until);
        let change = if setback.counts {
            entry.breaker.failed(ticket, now, &provider.breaker)
        } else {
            entry.breaker.gave_up(ticket);
            Change::None
        };
        self.mark(provider.id, &mut entry, before, now);
        let failures = entry.breaker.snapshot(now).failure_count;
        if matches!(change, Change::Opened { .. }) {
            entry.log.opened();
        }
        let error = entry.log.last_message();
        drop(entry);
        self.report(provider, change, Happened { now, failures, error });
    }

    /// The attempt says nothing about the provider: the client left, or nothing was asked.
    pub fn gave_up(&self, provider: &Provider, ticket: Ticket) {
        let entry = self.entry(provider.id);
        let mut entry = entry.lock();
        let (before, now) = (entry.standing(), entry.changed);
        entry.breaker.gave_up(ticket);
        // As late as the probe that it takes back: told after it, and so believed.
        self.mark(provider.id, &mut entry, before, now.unwrap_or(Timestamp(0)).plus_ms(1));
    }

    /// Closes the circuit by hand and ends a rest. Told even if it was closed: its counts are gone.
    pub fn reset(&self, provider: &Provider, now: Timestamp) {
        let entry = self.entry(provider.id);
        let mut entry = entry.lock();
        entry.breaker.reset();
        entry.log.reset();
        entry.rest_until = None;
        entry.changed = Some(now);
        self.tell_of(provider.id);
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

    /// Resolves when there is something that other nodes do not know.
    pub async fn marked(&self) {
        loop {
            let marked = self.marked.notified();
            if !self.news.lock().is_empty() {
                return;
            }
            marked.await;
        }
    }

    /// What other nodes do not know yet; it counts as told then.
    #[must_use]
    pub fn take_news(&self) -> Vec<Told> {
        let news = std::mem::take(&mut *self.news.lock());
        news.into_iter().filter_map(|provider| self.told(provider)).collect()
    }

    /// Every circuit and rest that ever changed.
    #[must_use]
    pub fn all(&self) -> Vec<Told> {
        let known: Vec<ProviderId> = self.entries.read().keys().copied().collect();
        known.into_iter().filter_map(|provider| self.told(provider)).collect()
    }

    /// Marks what could not be told after all.
    pub fn tell_of(&self, provider: ProviderId) {
        self.news.lock().insert(provider);
        self.marked.notify_one();
    }

    /// Takes over what another node tells, if it is newer than what is known here; else it is the other that should know.
    pub fn hear(&self, told: &Told, provider: &Provider) {
        let entry = self.entry(provider.id);
        let mut entry = entry.lock();
        match entry.changed {
            Some(changed) if changed > told.at => return self.tell_of(provider.id),
            Some(changed) if changed == told.at => return,
            _ => {}
        }
        let change = entry.breaker.adopt(told.standing);
        if change != Change::None {
            entry.log.forget_reason();
        }
        (entry.rest_until, entry.changed) = (told.rest_until, Some(told.at));
        drop(entry);
        self.report(provider, change, Happened { now: told.at, failures: told.standing.failures, error: None });
    }

    fn told(&self, provider: ProviderId) -> Option<Told> {
        let entry = self.entries.read().get(&provider).cloned()?;
        let entry = entry.lock();
        Some(Told { provider, at: entry.changed?, standing: entry.breaker.standing(), rest_until: entry.rest_until })
    }

    /// Notes that circuit or rest changed, if they did. Counts alone are each node's own.
    fn mark(&self, provider: ProviderId, entry: &mut Entry, before: (Standing, Option<Timestamp>), now: Timestamp) {
        let after = entry.standing();
        if after.0.same_state(&before.0) && after.1 == before.1 {
            return;
        }
        // Two changes within one millisecond are two.
        entry.changed = entry.changed.map(|changed| changed.plus_ms(1)).max(Some(now));
        self.tell_of(provider);
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

    fn report(&self, provider: &Provider, change: Change, happened: Happened) {
        let open_until = match change {
            Change::None => return,
            Change::Opened { until } => {
                tracing::warn!(
                    provider = provider.name,
                    until = until.to_iso(),
                    error = happened.error.as_deref(),
                    "the circuit of a provider opened"
                );
                Some(until)
            }
            Change::Closed => {
                tracing::info!(provider = provider.name, "the circuit of a provider closed");
                None
            }
        };
        self.events.circuit(CircuitChange {
            provider_id: provider.id,
            provider_name: provider.name.as_str().into(),
            open_until,
            failure_count: happened.failures,
            last_error: happened.error,
            at: happened.now,
        });
    }
}

/// The circumstances of a change.
struct Happened {
    now: Timestamp,
    failures: u32,
    error: Option<Arc<str>>,
}
