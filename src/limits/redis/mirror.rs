//! Adds what other nodes settled to this node's own counters, which it uses if Redis is lost.

use super::super::held::Held;
use super::super::memory::Memory;
use super::super::provider::ProviderState;
use super::super::spend::Spend;
use super::Shared;
use super::scripts::whole;
use crate::domain::clock::Timestamp;
use crate::domain::ids::{KeyId, ProviderId, UserId};
use crate::domain::money::NanoUsd;

impl Shared {
    /// Takes in news: the sender's name and a line feed, then six packed numbers for each
    /// settlement: user, key, provider (0: none), start, and the cost in two parts.
    pub(super) fn apply_news(&self, news: &[u8], now: Timestamp) {
        let end = news.iter().position(|byte| *byte == b'\n').unwrap_or(news.len());
        let (sender, settled) = news.split_at(end);
        if self.names.lock().iter().any(|name| name.as_bytes() == sender) {
            return;
        }
        let settled = settled.get(1..).unwrap_or_default().chunks_exact(Settled::BYTES);
        settled.map(Settled::read).for_each(|settled| self.memory.apply_news(&settled, now));
    }
}

struct Settled {
    holder: Option<(UserId, KeyId)>,
    provider: Option<ProviderId>,
    started: Timestamp,
    cost: NanoUsd,
}

impl Settled {
    const BYTES: usize = 6 * size_of::<f64>();

    fn read(packed: &[u8]) -> Self {
        let mut numbers = packed.chunks_exact(size_of::<f64>()).map(|bytes| {
            let mut word = [0; size_of::<f64>()];
            word.copy_from_slice(bytes);
            f64::from_le_bytes(word) as i64
        });
        let mut next = || numbers.next().unwrap_or(0);
        let (user, key, provider, started) = (next(), next(), next(), next());
        let id = |number: i64| Some(number).filter(|number| *number != 0);
        Self {
            holder: id(user).map(UserId).zip(id(key).map(KeyId)),
            provider: id(provider).map(ProviderId),
            started: Timestamp(started),
            cost: whole(next(), next()),
        }
    }
}

impl Memory {
    fn apply_news(&self, settled: &Settled, now: Timestamp) {
        let amount = Held::spent(settled.cost);
        if let Some((user, key)) = settled.holder {
            let mut users = self.users.lock(user.0);
            let pair = users.entry(user).or_default().with_key(key, now, &self.settings);
            pair.spend.add(settled.started, amount);
            pair.key.spend.add(settled.started, amount);
        }
        if let Some(provider) = settled.provider {
            let mut providers = self.providers.lock(provider.0);
            let state: &mut ProviderState = providers.entry(provider).or_default();
            state.refresh(now, &self.settings);
            state.spend.add(settled.started, amount);
        }
    }

    /// Takes over the spend of each holder of whom the ledger has at least as much; reservations
    /// stay. The ledger may lack what this node settled last: what is known here never becomes
    /// less, or the node would admit the difference again when it next counts for itself.
    pub(super) fn catch_up(&self, made: Self, now: Timestamp) {
        let tz = self.settings.time_zone;
        let take = |own: &mut Spend, from: Spend| {
            if from.total_spent() >= own.total_spent() {
                own.adopt(from, now, tz);
            }
        };
        for mut users in made.users.each() {
            for (id, state) in users.drain() {
                let mut own = self.users.lock(id.0);
                let own = own.entry(id).or_default();
                take(&mut own.spend, state.spend);
                for (key, state) in state.keys {
                    take(&mut own.keys.entry(key).or_default().spend, state.spend);
                }
            }
        }
        for mut providers in made.providers.each() {
            for (id, state) in providers.drain() {
                take(&mut self.providers.lock(id.0).entry(id).or_default().spend, state.spend);
            }
        }
    }
}
