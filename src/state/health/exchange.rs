//! Exchanges health with other nodes and processes: what changed here goes out, newer changes of
//! others are applied.

use super::update::HealthUpdate;
use super::{Happened, Health, HealthStanding};
use crate::domain::ids::ProviderId;
use crate::domain::provider::Provider;
use crate::policy::breaker::Change;

impl Health {
    /// Resolves when there are changes that other nodes do not have.
    pub async fn marked(&self) {
        loop {
            let marked = self.marked.notified();
            if !self.news.lock().is_empty() {
                return;
            }
            marked.await;
        }
    }

    /// The changes that other nodes do not have yet; they count as sent then.
    pub fn take_updates(&self) -> Vec<HealthUpdate> {
        let news = std::mem::take(&mut *self.news.lock());
        news.into_iter().filter_map(|provider| self.update_of(provider)).collect()
    }

    /// Every circuit and cooldown that ever changed.
    pub fn all(&self) -> Vec<HealthUpdate> {
        let known: Vec<ProviderId> = self.entries.read().keys().copied().collect();
        known.into_iter().filter_map(|provider| self.update_of(provider)).collect()
    }

    /// Marks a change that could not be sent.
    pub fn mark_changed(&self, provider: ProviderId) {
        self.news.lock().insert(provider);
        self.marked.notify_one();
    }

    /// Applies another node's change if it is newer than the local state; otherwise the local state
    /// is sent.
    pub fn apply_update(&self, update: &HealthUpdate, provider: &Provider) {
        let entry = self.entry(provider.id);
        let mut entry = entry.lock();
        self.renew(provider, &mut entry);
        if update.at < entry.since {
            return;
        }
        entry.breaker.hear_suspects(&update.standing);
        let HealthStanding { circuit: standing, cooldown_until } = entry.standing();
        match entry.changed {
            Some(changed) if changed > update.at => {
                let differs = !standing.same_state(&update.standing)
                    || cooldown_until != update.cooldown_until;
                if differs {
                    self.mark_changed(provider.id);
                }
                return;
            }
            Some(changed) if changed == update.at => return,
            _ => {}
        }
        let change = entry.breaker.adopt(update.standing);
        if change != Change::None {
            entry.log.forget_reason();
        }
        (entry.cooldown_until, entry.changed) = (update.cooldown_until, Some(update.at));
        entry.set_at = update.at;
        drop(entry);
        self.report(
            provider,
            change,
            Happened { now: update.at, failures: update.standing.failures, error: None },
        );
    }

    fn update_of(&self, provider: ProviderId) -> Option<HealthUpdate> {
        let entry = self.entries.read().get(&provider).cloned()?;
        let entry = entry.lock();
        // Suspects alone are not a change of the circuit.
        let at = entry.changed.unwrap_or(entry.since);
        // Its times are right for `set_at`, and are sent as those of `at`, which only orders.
        let ahead_ms = entry.changed.map_or(0, |at| at.since(entry.set_at).max(0));
        let mut breaker = entry.breaker.clone();
        breaker.shift(ahead_ms);
        let cooldown_until = entry.cooldown_until.map(|until| until.plus_ms(ahead_ms));
        Some(HealthUpdate { provider, at, standing: breaker.standing(), cooldown_until })
    }
}
