//! The operations of permits and readers on the shared counters. Each has a fallback without Redis.

use std::sync::Arc;

use redis::Value;
use tokio::time::Instant;

use super::super::charge::{Charge, Settlement};
use super::super::listing::LiveSession;
use super::super::provider::{Blocked, is_limited};
use super::super::rebuild::Owned;
use super::super::sessions::Slot;
use super::super::usage::HolderUsage;
use super::Shared;
use super::link::{LinkFault, TIME_LIMIT, Up};
use super::queue::ChargeKind;
use super::reply::{self, ReplyReader};
use super::scripts::{LISTING, Numbers, PEEK, ScriptCall, USAGE};
use crate::domain::clock::{Clock as _, SystemClock, Timestamp};
use crate::domain::ids::{ProviderId, RequestId, SessionId};
use crate::domain::limits::Limits;
use crate::domain::money::NanoUsd;
use crate::domain::provider::Provider;
use crate::limits::OnRedisLoss;
use crate::store::{LateCosts, SpendRow};

/// The most live sessions that are listed.
const LISTED: i64 = 10_000;

/// The holder whose figures are read.
pub(in super::super) struct AskedHolder<'a> {
    pub(in super::super) holder: Owned,
    /// Its requests per minute; users have them.
    pub(in super::super) rpm: u32,
    pub(in super::super) limits: &'a Limits,
}

impl Shared {
    /// `now` is by Redis' clock; the answer's times are by this node's, as those of circuits.
    pub(in super::super) async fn blocked(
        &self,
        providers: &[Arc<Provider>],
        slot: &Slot,
        now: Timestamp,
    ) -> Vec<(ProviderId, Blocked)> {
        let mut found = self.blocked_by_redis(providers, slot, now).await;
        let ahead = self.agreement.added_ms().saturating_neg();
        found.iter_mut().for_each(|(_, blocked)| *blocked = blocked.later(ahead));
        found
    }

    async fn blocked_by_redis(
        &self,
        providers: &[Arc<Provider>],
        slot: &Slot,
        now: Timestamp,
    ) -> Vec<(ProviderId, Blocked)> {
        let limited: Vec<&Arc<Provider>> =
            providers.iter().filter(|p| is_limited(&p.limits)).collect();
        if limited.is_empty() {
            return Vec::new();
        }
        // What this node knows lacks only what runs on others. Where it sees room, the place is
        // checked and taken in one step by [`Shared::enter`]; where it sees none, Redis decides.
        let near = self.memory.blocked(providers, slot, now);
        if near.is_empty() && self.link.is_up() {
            return near;
        }
        let Some(answer) = self.peek(&limited, slot, now).await else {
            return match self.settings.on_loss {
                OnRedisLoss::Open => Vec::new(),
                OnRedisLoss::Local | OnRedisLoss::Closed => {
                    self.memory.blocked(providers, slot, now)
                }
            };
        };
        let each = limited.iter().zip(answer.iter().skip(1));
        let settings = self.counting();
        let why =
            |provider: &Provider, why| reply::blocked(Some(why), &provider.limits, now, &settings);
        each.filter_map(|(provider, said)| Some((provider.id, why(provider, said)?))).collect()
    }

    /// Which of these providers Redis says have no room, within the time that a request waits.
    async fn peek(
        &self,
        limited: &[&Arc<Provider>],
        slot: &Slot,
        now: Timestamp,
    ) -> Option<Vec<Value>> {
        let settings = self.counting();
        let key = slot.key.map(|key| key.0.to_string()).unwrap_or_default();
        let member = format!("{key}:{}", slot.session.as_str());
        let bound = self.settings.timeout;
        let until = Instant::now() + bound;
        while let Some(up) = self.link.ready(until).await {
            let names: Vec<String> =
                limited.iter().map(|provider| up.names.provider(provider.id.0)).collect();
            let numbers = limited.iter().fold(Numbers::default(), |numbers, provider| {
                numbers.int(provider.id.0).limits(&provider.limits, now, &settings)
            });
            let call = self.call(&PEEK, &up, now, names.iter().map(String::as_str));
            let call = call.text(&member).numbers(numbers);
            match self.link.ask(&up, call, until, bound).await {
                Ok(answer) => return Some(answer),
                // This node's clock was set since the last heartbeat.
                Err(LinkFault::Clock(redis)) => {
                    self.agreement.correct(redis, SystemClock.now());
                    return None;
                }
                // The call was not executed: those in effect are asked.
                Err(LinkFault::Gone) => {}
                Err(_) => return None,
            }
        }
        None
    }

    pub(in super::super) fn withdraw(&self, charge: &Charge, provider: ProviderId, now: Timestamp) {
        self.memory.withdraw(charge, provider, now);
        match charge.user {
            Some(_) => self.running.move_to(charge.request, None),
            None => self.running.remove(charge.request),
        }
        self.push(ChargeKind::Withdrawn { from: provider }, charge, now);
    }

    pub(in super::super) fn settle(&self, charge: &Charge, end: &Settlement) {
        let _counting = self.settling.read();
        self.memory.settle(charge, end);
        self.running.remove(charge.request);
        self.push(ChargeKind::Settled { cost: end.cost, served: end.served }, charge, end.now);
    }

    pub(in super::super) fn give_back(&self, charge: &Charge, at: Option<ProviderId>) {
        self.memory.give_back(charge, at);
        self.running.remove(charge.request);
        self.push(ChargeKind::GivenBack, charge, charge.admitted);
    }

    /// Counts the later cost of settled requests, in this node's counters and, queued, in Redis.
    pub(in super::super) fn spent_late(&self, late: &LateCosts, now: Timestamp) {
        let _counting = self.settling.read();
        self.memory.spent_late(late, now);
        late.rows.iter().for_each(|row| self.push_late(row, late.number, now));
    }

    /// Queues the later cost of a settled request.
    fn push_late(&self, row: &SpendRow, number: i64, now: Timestamp) {
        let charge = Charge {
            request: RequestId::new(),
            user: row.user_id,
            slot: Slot { key: row.key_id, session: SessionId::from("") },
            reserved: NanoUsd::ZERO,
            admitted: row.minute,
            minute: None,
            asks: None,
        };
        let kind = ChargeKind::Late { cost: row.cost, served: row.provider_id, number };
        self.push(kind, &charge, now);
    }

    /// `None` if Redis is unreachable: then this node's own figures are the best available.
    pub(in super::super) async fn usage(
        &self,
        asked: &AskedHolder<'_>,
        now: Timestamp,
    ) -> Option<HolderUsage> {
        let up = self.link.get()?;
        let settings = &self.counting();
        let (hash, field, id, key) = match asked.holder {
            Owned::User(id) => (up.names.user(id.0), "u".to_owned(), id.0, None),
            Owned::Key(id, key) => (up.names.user(id.0), format!("k{key}"), id.0, Some(key.0)),
            Owned::Provider(id) => (up.names.provider(id.0), "p".to_owned(), id.0, None),
        };
        let numbers = Numbers::of(5).int(id).id(key).day(asked.limits.daily_reset, now, settings);
        let call = self.call(&USAGE, &up, now, [hash.as_str()]).text(&field).numbers(numbers);
        let answer = self.read(&up, call).await?;
        let spans = self.spans(now);
        Some(reply::usage(
            &answer,
            &ReplyReader { limits: asked.limits, rpm: asked.rpm, now, spans: &spans, settings },
        ))
    }

    pub(in super::super) async fn live_sessions(&self, now: Timestamp) -> Vec<LiveSession> {
        let Some(up) = self.link.get() else { return self.memory.live_sessions(now) };
        match self.read(&up, self.call(&LISTING, &up, now, []).int(LISTED)).await {
            Some(rows) => rows.iter().skip(1).filter_map(reply::session).collect(),
            None => self.memory.live_sessions(now),
        }
    }

    /// Readers are administrators: they can wait a little longer than requests.
    async fn read(&self, up: &Arc<Up>, call: ScriptCall) -> Option<Vec<Value>> {
        let bound = self.settings.timeout;
        self.link.ask(up, call, Instant::now() + bound.max(TIME_LIMIT), bound).await.ok()
    }
}
