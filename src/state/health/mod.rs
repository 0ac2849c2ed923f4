//! The present health of each provider: its circuit, its cooldown, and the results of its attempts.
//!
//! The circuit itself is a pure state machine (`policy::breaker`); this module holds one per
//! provider, in process. It never waits for other nodes: changes are marked, `super::peers` or
//! [`mod@file`] send them, and a received change is applied if it is newer ([`exchange`]).

pub mod attempts;
mod exchange;
pub mod file;
pub mod update;

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;

use self::attempts::{AttemptError, AttemptLog, Failed, Noted, Seen};
use super::events::{CircuitChange, Events, NodeEvent, ProviderChange, ProviderNews};
use crate::domain::clock::{JITTER_MS, Timestamp};
use crate::domain::fast_map::FastMap;
use crate::domain::ids::ProviderId;
use crate::domain::provider::Provider;
use crate::policy::breaker::{Breaker, BreakerFigures, Change, Outlook, Standing, Suspect, Ticket};
use crate::policy::classify::Counts;
use crate::policy::select::Availability;

/// The health of all providers.
#[derive(Default)]
pub struct Health {
    entries: RwLock<FastMap<ProviderId, Arc<Mutex<HealthEntry>>>>,
    events: Events,
    /// Changes that other nodes do not have yet.
    news: Mutex<HashSet<ProviderId>>,
    marked: Notify,
}

#[derive(Default)]
struct HealthEntry {
    breaker: Breaker,
    /// No request before this time (`Retry-After`).
    cooldown_until: Option<Timestamp>,
    /// When circuit or cooldown last changed, here or elsewhere. It never decreases.
    changed: Option<Timestamp>,
    /// The time at which circuit and cooldown were set, by the clock of the node that set them.
    set_at: Timestamp,
    /// [`Provider::health_since`] of the newest version of the provider: the entry contains nothing
    /// older.
    since: Timestamp,
    /// The results of this process's attempts.
    log: AttemptLog,
}

/// Circuit and cooldown, as other nodes are told.
struct HealthStanding {
    circuit: Standing,
    cooldown_until: Option<Timestamp>,
}

impl HealthEntry {
    fn standing(&self) -> HealthStanding {
        HealthStanding { circuit: self.breaker.standing(), cooldown_until: self.cooldown_until }
    }

    /// Whether this version of the provider is from before its address or credential was changed: a
    /// request that began then still uses it.
    fn outdates(&self, provider: &Provider) -> bool {
        provider.health_since < self.since
    }

    /// Moves the times of circuit and cooldown back if they were set ahead of now: the clock was
    /// set back, or the node that set them has a clock that is ahead. Otherwise they would end
    /// later, by that difference. Once for each change, so that a `now` read long ago does little
    /// harm.
    fn follow_clock(&mut self, now: Timestamp) {
        let ahead_ms = self.set_at.since(now);
        if ahead_ms > JITTER_MS {
            self.breaker.shift(-ahead_ms);
            self.cooldown_until = self.cooldown_until.map(|until| until.plus_ms(-ahead_ms));
            self.set_at = now;
        }
    }

    fn cooldown_at(&self, now: Timestamp) -> Option<Timestamp> {
        self.cooldown_until.filter(|until| *until > now)
    }
}

/// How an attempt failed, for the provider's health.
#[derive(Debug, Clone, Copy)]
pub struct Setback {
    /// Whether it counts towards opening the circuit.
    pub counts: Counts,
    /// Whose request it was.
    pub by: Suspect,
    /// The provider's cooldown ends then, by its `Retry-After`; `None` = it asked for none.
    pub cooldown_until: Option<Timestamp>,
}

impl Health {
    /// Changes of circuits are sent through `events`.
    pub fn new(events: Events) -> Self {
        Self { events, ..Self::default() }
    }

    /// Whether the provider is available; changes nothing.
    pub fn availability(&self, provider: &Provider, now: Timestamp) -> Availability {
        let Some(entry) = self.entries.read().get(&provider.id).cloned() else {
            return Availability::Ready;
        };
        let mut entry = entry.lock();
        self.update(provider, &mut entry, now);
        match (entry.breaker.look(now), entry.cooldown_at(now)) {
            (Outlook::Refuse { until }, _) => Availability::CircuitOpen { until },
            (_, Some(until)) => Availability::Cooldown { until },
            _ => Availability::Ready,
        }
    }

    /// Takes a place at the provider; `None` if its circuit admits no request now, or it is in a
    /// cooldown.
    pub fn enter(&self, provider: &Provider, now: Timestamp) -> Option<Ticket> {
        let entry = self.entry(provider.id);
        let mut entry = entry.lock();
        self.update(provider, &mut entry, now);
        if entry.cooldown_at(now).is_some() {
            return None;
        }
        let before = entry.standing();
        let ticket = entry.breaker.admit(now).ok();
        self.mark(provider.id, &mut entry, before, now);
        ticket
    }

    /// A reply completed.
    pub fn succeeded(&self, provider: &Provider, ticket: Ticket, now: Timestamp) {
        let entry = self.entry(provider.id);
        let mut entry = entry.lock();
        self.update(provider, &mut entry, now);
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

    /// One attempt failed, whether or not it counts for the circuit or is retried at the same
    /// provider. The first failure is logged, further ones at most once a minute.
    pub fn attempt_failed(&self, provider: &Provider, now: Timestamp, failed: Failed<'_>) {
        let error = Arc::new(AttemptError::new(provider, failed, now));
        let noted = {
            let entry = self.entry(provider.id);
            let mut entry = entry.lock();
            self.update(provider, &mut entry, now);
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

    fn tell_attempts(
        &self,
        provider: &Provider,
        noted: &Noted,
        error: Option<&AttemptError>,
        now: Timestamp,
    ) {
        if noted.turned {
            if error.is_none() {
                tracing::info!(provider = provider.name, "a provider that failed answers again");
            }
            self.events.tell(|| NodeEvent::Provider(provider.id));
        }
        if noted.reported {
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

    /// The state of the provider's attempts on this process.
    pub fn seen(&self, provider: &Provider, now: Timestamp) -> Seen {
        let entry = self.entry(provider.id);
        let mut entry = entry.lock();
        self.update(provider, &mut entry, now);
        entry.log.seen(entry.breaker.figures(now).open_until, entry.cooldown_at(now), now)
    }

    /// An attempt failed, or a reply broke off.
    pub fn failed(&self, provider: &Provider, ticket: Ticket, now: Timestamp, setback: Setback) {
        let entry = self.entry(provider.id);
        let mut entry = entry.lock();
        self.update(provider, &mut entry, now);
        if entry.outdates(provider) {
            return self.take_back(provider.id, &mut entry, ticket);
        }
        let before = entry.standing();
        // What was in flight when the provider asked for a pause tells the same once more.
        let is_repeated = !ticket.is_probe()
            && setback.cooldown_until.is_some()
            && entry.cooldown_at(now).is_some();
        entry.cooldown_until = entry.cooldown_until.max(setback.cooldown_until);
        let settings = &provider.breaker;
        let change = match setback.counts {
            Counts::Yes if !is_repeated => entry.breaker.failed(ticket, now, settings),
            Counts::OfSeveralUsers if !is_repeated => {
                entry.breaker.suspected(ticket, now, settings, setback.by)
            }
            _ => {
                entry.breaker.gave_up(ticket);
                Change::None
            }
        };
        self.mark(provider.id, &mut entry, before, now);
        let failures = entry.breaker.figures(now).failure_count;
        if matches!(change, Change::Opened { .. }) {
            entry.log.opened();
        }
        let error = entry.log.last_message();
        drop(entry);
        self.report(provider, change, Happened { now, failures, error });
    }

    /// How many users' requests the provider has failed since its last success in a way that one
    /// client alone can cause, with this one.
    pub fn suspects(&self, provider: &Provider, by: Suspect, now: Timestamp) -> usize {
        self.entry(provider.id).lock().breaker.suspects_with(by, now)
    }

    /// The attempt says nothing about the provider: the client closed the connection, or no request
    /// was sent.
    pub fn gave_up(&self, provider: &Provider, ticket: Ticket) {
        let entry = self.entry(provider.id);
        self.take_back(provider.id, &mut entry.lock(), ticket);
    }

    fn take_back(&self, provider: ProviderId, entry: &mut HealthEntry, ticket: Ticket) {
        let (before, set_at) = (entry.standing(), entry.set_at);
        entry.breaker.gave_up(ticket);
        // With the time of the probe that it takes back: it follows the probe, and wins.
        self.mark(provider, entry, before, set_at);
    }

    /// Brings the entry up to the clock and to the provider's version.
    fn update(&self, provider: &Provider, entry: &mut HealthEntry, now: Timestamp) {
        entry.follow_clock(now);
        self.renew(provider, entry);
    }

    /// Drops the health from before the provider's address, credential or proxy was changed, or
    /// before it was enabled again. Every node does so on its own, when it first uses the new
    /// version.
    fn renew(&self, provider: &Provider, entry: &mut HealthEntry) {
        if provider.health_since <= entry.since {
            return;
        }
        entry.since = provider.health_since;
        let was_known = entry.changed.is_some() || !entry.log.is_empty();
        let change = entry.breaker.renew();
        entry.log.renew();
        entry.cooldown_until = None;
        if let Some(changed) = entry.changed {
            entry.changed = Some(changed.plus_ms(1).max(entry.since));
            self.mark_changed(provider.id);
        }
        self.report(provider, change, Happened { now: entry.since, failures: 0, error: None });
        if was_known {
            self.events.tell(|| NodeEvent::Provider(provider.id));
        }
    }

    /// The number of failed probes of a provider's circuit in a row, and the last failed attempt on
    /// this node.
    pub fn failed_probes(&self, provider: &Provider) -> (u32, Option<Arc<AttemptError>>) {
        let entry = self.entry(provider.id);
        let mut entry = entry.lock();
        self.renew(provider, &mut entry);
        (entry.breaker.standing().failed_probes, entry.log.last_error())
    }

    /// Closes the circuit by hand and ends a cooldown. Sent even if the circuit was closed: its
    /// counts are reset.
    pub fn reset(&self, provider: &Provider, now: Timestamp) {
        let entry = self.entry(provider.id);
        let mut entry = entry.lock();
        entry.breaker.reset();
        entry.log.reset();
        entry.cooldown_until = None;
        // Later than what it undoes, even if that was sent by a node whose clock is ahead.
        entry.changed = entry.changed.map(|changed| changed.plus_ms(1)).max(Some(now));
        self.mark_changed(provider.id);
        drop(entry);
        self.report(provider, Change::Closed, Happened { now, failures: 0, error: None });
    }

    /// The end of the provider's cooldown, if it is in one.
    pub fn cooldown_until(&self, provider: ProviderId, now: Timestamp) -> Option<Timestamp> {
        self.entries.read().get(&provider)?.lock().cooldown_at(now)
    }

    /// The circuit as shown to administrators; closed for a provider that was never used.
    pub fn figures(&self, provider: &Provider, now: Timestamp) -> BreakerFigures {
        let entry = self.entry(provider.id);
        let mut entry = entry.lock();
        self.update(provider, &mut entry, now);
        entry.breaker.figures(now)
    }

    /// Marks circuit or cooldown as changed, if they are. Counts are local to each node.
    fn mark(
        &self,
        provider: ProviderId,
        entry: &mut HealthEntry,
        before: HealthStanding,
        now: Timestamp,
    ) {
        let after = entry.standing();
        if after.circuit.same_state(&before.circuit)
            && after.cooldown_until == before.cooldown_until
        {
            // Without a new time: only a change of the circuit or the cooldown replaces another.
            if !after.circuit.same_suspects(&before.circuit) {
                self.mark_changed(provider);
            }
            return;
        }
        // Two changes within one millisecond need different times.
        entry.changed = entry.changed.map(|changed| changed.plus_ms(1)).max(Some(now));
        entry.set_at = now;
        self.mark_changed(provider);
    }

    /// Drops providers that no longer exist.
    pub fn keep_only(&self, exists: impl Fn(ProviderId) -> bool) {
        self.entries.write().retain(|id, _| exists(*id));
    }

    fn entry(&self, provider: ProviderId) -> Arc<Mutex<HealthEntry>> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::provider::BreakerSettings;
    use crate::policy::breaker::PROBE_LEASE_MS;

    #[test]
    fn circuit_and_cooldown_last_no_longer_when_the_clock_is_set_back() {
        let settings = BreakerSettings { failure_threshold: 1, ..BreakerSettings::default() };
        let length_ms = i64::try_from(settings.open_duration_ms).unwrap();
        let ahead = Timestamp(1_000_000_000);
        let back = ahead.plus_ms(-3_600_000);
        let mut entry = HealthEntry { set_at: ahead, ..HealthEntry::default() };
        let ticket = entry.breaker.admit(ahead).unwrap();
        entry.breaker.failed(ticket, ahead, &settings);
        entry.cooldown_until = Some(ahead.plus_ms(5_000));

        entry.follow_clock(ahead.plus_ms(-JITTER_MS));
        assert_eq!(
            entry.cooldown_at(back),
            Some(ahead.plus_ms(5_000)),
            "threads differ by as much"
        );
        for _ in 0..2 {
            entry.follow_clock(back);
            assert_eq!(entry.cooldown_at(back), Some(back.plus_ms(5_000)));
            let until = back.plus_ms(length_ms);
            assert_eq!(entry.breaker.look(back), Outlook::Refuse { until });
        }

        let probe = entry.breaker.admit(ahead).unwrap();
        entry.set_at = ahead;
        entry.follow_clock(back);
        assert_eq!(entry.breaker.look(back.plus_ms(PROBE_LEASE_MS)), Outlook::Probe);
        entry.breaker.gave_up(probe);
    }
}
