//! Each provider's present health: its circuit, the rest it asked for, and how its attempts end.
//!
//! The circuit itself is a pure machine (`policy::breaker`); this keeps one per provider, in
//! process. Nobody waits for other nodes here: what changed is marked, for [`super::peers`] or
//! [`super::kept`] to tell, and what they tell is taken over when it is newer.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;

use super::attempts::{AttemptError, AttemptLog, Failed, Noted, Seen};
use super::events::{CircuitChange, Event, Events, ProviderChange, ProviderNews};
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
    /// [`Provider::health_since`] of the newest version of the provider that was seen: the entry
    /// knows nothing older.
    since: Timestamp,
    /// How attempts of this process ended.
    log: AttemptLog,
}

impl Entry {
    fn standing(&self) -> (Standing, Option<Timestamp>) {
        (self.breaker.standing(), self.rest_until)
    }

    /// Whether the version of the provider is one from before its address or credential was
    /// changed: a request that began then still works with it.
    fn outdates(&self, provider: &Provider) -> bool {
        provider.health_since < self.since
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
    pub fn availability(&self, provider: &Provider, now: Timestamp) -> Availability {
        let Some(entry) = self.entries.read().get(&provider.id).cloned() else { return Availability::Ready };
        let mut entry = entry.lock();
        self.renew(provider, &mut entry);
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
        self.renew(provider, &mut entry);
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
        self.renew(provider, &mut entry);
        if entry.outdates(provider) {
            return self.take_back(provider.id, &mut entry, ticket);
        }
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

    /// One attempt failed, whether or not it counts for the circuit or is followed by another at
    /// the same provider. The first failure has a line in the log, the next ones at most one a
    /// minute.
    pub fn attempt_failed(&self, provider: &Provider, now: Timestamp, failed: Failed<'_>) {
        let error = Arc::new(AttemptError::new(provider, failed, now));
        let noted = {
            let entry = self.entry(provider.id);
            let mut entry = entry.lock();
            self.renew(provider, &mut entry);
            if entry.outdates(provider) {
                return;
            }
            entry.log.failed(now, Arc::clone(&error))
        };
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
                news: match noted.in_a_row {
                    0 => ProviderNews::Recovered,
                    in_a_row => ProviderNews::Failing { in_a_row },
                },
                last_error: error.map(|error| Arc::from(&*error.message)),
                at: now,
            });
        }
    }

    /// How the provider does, as far as this process has seen.
    #[must_use]
    pub fn seen(&self, provider: &Provider, now: Timestamp) -> Seen {
        let entry = self.entry(provider.id);
        let mut entry = entry.lock();
        self.renew(provider, &mut entry);
        entry.log.seen(entry.breaker.snapshot(now).open_until, entry.resting(now), now)
    }

    /// An attempt failed, or a reply broke off.
    pub fn failed(&self, provider: &Provider, ticket: Ticket, now: Timestamp, setback: Setback) {
        let entry = self.entry(provider.id);
        let mut entry = entry.lock();
        self.renew(provider, &mut entry);
        if entry.outdates(provider) {
            return self.take_back(provider.id, &mut entry, ticket);
        }
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
        self.take_back(provider.id, &mut entry.lock(), ticket);
    }

    fn take_back(&self, provider: ProviderId, entry: &mut Entry, ticket: Ticket) {
        let (before, now) = (entry.standing(), entry.changed);
        entry.breaker.gave_up(ticket);
        // As late as the probe that it takes back: told after it, and so believed.
        self.mark(provider, entry, before, now.unwrap_or(Timestamp(0)).plus_ms(1));
    }

    /// Forgets what was seen of a provider before its address, credential or proxy was changed, or
    /// before it was enabled again. Every node does so by itself, as it first works with the new
    /// version.
    fn renew(&self, provider: &Provider, entry: &mut Entry) {
        if provider.health_since <= entry.since {
            return;
        }
        entry.since = provider.health_since;
        let was_known = entry.changed.is_some() || !entry.log.is_empty();
        let change = entry.breaker.renew();
        entry.log.renew();
        entry.rest_until = None;
        if let Some(changed) = entry.changed {
            entry.changed = Some(changed.plus_ms(1).max(entry.since));
            self.tell_of(provider.id);
        }
        self.report(provider, change, Happened { now: entry.since, failures: 0, error: None });
        if was_known {
            self.events.tell(|| Event::Provider(provider.id));
        }
    }

    /// The probes of a provider's circuit that failed in a row, and what the last failed attempt on
    /// this node was.
    #[must_use]
    pub fn failed_probes(&self, provider: &Provider) -> (u32, Option<Arc<AttemptError>>) {
        let entry = self.entry(provider.id);
        let mut entry = entry.lock();
        self.renew(provider, &mut entry);
        (entry.breaker.standing().failed_probes, entry.log.last_error())
    }

    /// Closes the circuit by hand and ends a rest. Told even if it was closed: its counts are gone.
    pub fn reset(&self, provider: &Provider, now: Timestamp) {
        let entry = self.entry(provider.id);
        let mut entry = entry.lock();
        entry.breaker.reset();
        entry.log.reset();
        entry.rest_until = None;
        // Later than what it undoes, also where that was told by a node whose clock is ahead.
        entry.changed = entry.changed.map(|changed| changed.plus_ms(1)).max(Some(now));
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
    pub fn snapshot(&self, provider: &Provider, now: Timestamp) -> BreakerSnapshot {
        let entry = self.entry(provider.id);
        let mut entry = entry.lock();
        self.renew(provider, &mut entry);
        entry.breaker.snapshot(now)
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

    /// Takes over what another node tells, if it is newer than what is known here; else it is the
    /// other that should know.
    pub fn hear(&self, told: &Told, provider: &Provider) {
        let entry = self.entry(provider.id);
        let mut entry = entry.lock();
        self.renew(provider, &mut entry);
        if told.at < entry.since {
            return;
        }
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
