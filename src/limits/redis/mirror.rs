//! Keeps what all nodes settled in this node's own counters, which it uses if Redis is lost: from
//! the news of other nodes, and from the ledger.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use super::super::held::Held;
use super::super::memory::Memory;
use super::super::provider::ProviderState;
use super::super::spend::Spend;
use super::Shared;
use super::outbox::Kind;
use super::scripts::whole;
use crate::domain::clock::Timestamp;
use crate::domain::ids::{KeyId, ProviderId, RequestId, UserId};
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

/// What the ledger had when it was read.
pub(super) struct Read<'a> {
    pub(super) at: Timestamp,
    /// The requests that ended at `ended_since` or later. The ledger has all that ended before.
    pub(super) ended: &'a [RequestId],
    pub(super) ended_since: Timestamp,
    /// The last late costs that it had ([`crate::store::LateCosts`]).
    pub(super) late: i64,
}

impl Shared {
    /// Makes counters that were just built from the ledger this node's own. Before another node
    /// sends again what the ledger lacks: that is added then.
    pub(super) fn adopt(&self, made: Memory, read: &Read<'_>) {
        self.with_own(made, read, |made| {
            self.memory.adopt(made, read.at);
            self.late_known.store(read.late, Ordering::Relaxed);
        });
    }

    /// Takes over what other nodes spent.
    pub(super) fn learn(&self, made: Memory, read: &Read<'_>) {
        self.with_own(made, read, |made| self.memory.catch_up(made, read.at));
    }

    /// Adds what this node settled and the ledger lacks: if the node forgot it, it would admit as
    /// much again when it next counts for itself.
    fn with_own(&self, made: Memory, read: &Read<'_>, take: impl FnOnce(Memory)) {
        let ended: HashSet<RequestId> = read.ended.iter().copied().collect();
        let _alone = self.settling.write();
        for op in self.outbox.settled_since(read.ended_since) {
            let (cost, served) = match op.kind {
                Kind::Settled { cost, served } if !ended.contains(&op.charge.request) => {
                    (cost, served)
                }
                Kind::Late { cost, served, number } if number > read.late => (cost, served),
                _ => continue,
            };
            let (holder, started) = (op.charge.holder(), op.charge.started);
            let provider = served.filter(|id| self.part.has_provider(*id));
            made.apply_news(&Settled { holder, provider, started, cost }, read.at);
        }
        take(made);
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

    /// Takes over the spend of these counters; reservations stay.
    fn adopt(&self, made: Self, now: Timestamp) {
        let tz = self.settings.time_zone;
        self.take_over(made, |own, from| own.adopt(from, now, tz));
    }

    /// The same for each holder of whom they have at least as much: they may lack what other nodes
    /// settled last, which this node knows from them.
    fn catch_up(&self, made: Self, now: Timestamp) {
        let tz = self.settings.time_zone;
        self.take_over(made, |own, from| {
            if from.total_spent() >= own.total_spent() {
                own.adopt(from, now, tz);
            }
        });
    }

    fn take_over(&self, made: Self, take: impl Fn(&mut Spend, Spend)) {
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
