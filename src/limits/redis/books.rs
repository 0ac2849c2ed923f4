//! The operations of permits and readers on the shared counters. Each has a fallback without Redis.

use std::sync::Arc;

use redis::Value;
use tokio::time::Instant;

use super::super::admission::{Admission, Refused};
use super::super::charge::{Charge, Counted, Settlement};
use super::super::listing::LiveSession;
use super::super::permit::Permit;
use super::super::provider::{Blocked, is_limited};
use super::super::rebuild::SpendRow;
use super::super::sessions::Slot;
use super::super::standing::Standing;
use super::super::usage::HolderUsage;
use super::link::{Fault, TIME_LIMIT, Up};
use super::outbox::Kind;
use super::reply::{self, Reader};
use super::scripts::{ADMIT, ENTER, LISTING, PEEK, ScriptCall, USAGE};
use super::{OnLoss, Shared};
use crate::domain::clock::Timestamp;
use crate::domain::ids::{ProviderId, RequestId, SessionId};
use crate::domain::limits::Limits;
use crate::domain::money::NanoUsd;
use crate::domain::provider::Provider;
use crate::limits::backend::CounterBackend;
use crate::policy::reservation::Reservation;

/// The most live sessions that are listed.
const LISTED: i64 = 10_000;

/// The provider of the live session, and the remaining amounts of the limits.
type Found = (Option<ProviderId>, Standing);

/// The holder whose figures are read.
pub(in super::super) struct Asked<'a> {
    /// Its name in Redis: `k7`, `u3`, `p1`.
    pub(in super::super) holder: String,
    /// The user whose requests per minute belong to it.
    pub(in super::super) user: Option<i64>,
    pub(in super::super) rpm: u32,
    pub(in super::super) limits: &'a Limits,
}

impl Shared {
    /// `own`: with this node's clock.
    pub(in super::super) async fn admit(
        self: &Arc<Self>,
        own: &Admission<'_>,
    ) -> Result<Permit, Refused> {
        let name = self.link.name();
        let mut ask = self.as_shared(own);
        let mut charge = self.memory.charge_of(&ask);
        let mut answer = self.admitted(&ask, &charge).await;
        if matches!(answer, RedisReply::ClockSet) {
            ask = self.as_shared(own);
            charge = self.memory.charge_of(&ask);
            answer = self.admitted(&ask, &charge).await;
        }
        let ask = &ask;
        let (served_before, standing, is_known) = match answer {
            RedisReply::Said(admitted) => {
                let (served_before, standing) = admitted?;
                self.memory.count(&mut charge);
                (served_before, standing, true)
            }
            silence => match self.admit_alone(ask, &mut charge) {
                Ok((served_before, standing)) => (served_before, standing, false),
                Err(refused) => {
                    if matches!(silence, RedisReply::InVain) {
                        self.push(Kind::GivenBack, &charge, ask.now);
                    }
                    return Err(refused);
                }
            },
        };
        self.running.begin(&charge);
        // It changes nothing if Redis already has the request.
        if self.link.hears() && !(is_known && self.link.name() == name) {
            self.push(Kind::Running { at: None }, &charge, ask.now);
        }
        let counted = Counted { charge, served_before, standing };
        Ok(Permit::new(CounterBackend::Shared(Arc::clone(self)), counted))
    }

    fn as_shared<'a>(&self, own: &Admission<'a>) -> Admission<'a> {
        Admission { now: self.time(own.now), started: self.time(own.started), ..*own }
    }

    /// Follows the configured mode for the loss of Redis.
    fn admit_alone(&self, ask: &Admission<'_>, charge: &mut Charge) -> Result<Found, Refused> {
        match self.settings.on_loss {
            OnLoss::Local => {
                let counted = self.memory.admit(ask)?;
                *charge = counted.charge;
                Ok((counted.served_before, counted.standing))
            }
            OnLoss::Open => Ok((self.memory.count(charge), Standing::default())),
            OnLoss::Closed => Err(Refused::Unreachable),
        }
    }

    /// The checks in Redis.
    async fn admitted(
        &self,
        ask: &Admission<'_>,
        charge: &Charge,
    ) -> RedisReply<Result<Found, Refused>> {
        let settings = &self.counting();
        let question = |up: &Up| {
            let call = self
                .call(&ADMIT, up, ask.now)
                .int(ask.user.id.0)
                .int(ask.key.id.0)
                .text(ask.session.as_str());
            let call = call.bytes(charge.request.0.as_bytes()).int(charge.reserved.0);
            let call = call.limits(&ask.key.limits, ask.now, settings).limits(
                &ask.user.limits,
                ask.now,
                settings,
            );
            let call = call
                .int(i64::from(ask.user.rpm))
                .int(i64::from(settings.reservation == Reservation::Strict));
            call.int(ask.started.0).text(&ask.asks.model).text(ask.asks.format.as_str())
        };
        let mut unanswered = Unanswered { shared: self, charge: Some(charge) };
        let answer = self.ask(ask.now, question).await;
        unanswered.charge = None;
        let answer = match answer {
            RedisReply::Said(answer) => answer,
            RedisReply::InVain => return RedisReply::InVain,
            RedisReply::NotAsked => return RedisReply::NotAsked,
            RedisReply::ClockSet => return RedisReply::ClockSet,
        };
        match reply::text(answer.first()) {
            "ok" => {
                let standing = reply::standing(&answer, ask, &self.spans(ask.now), settings);
                RedisReply::Said(Ok((reply::int(answer.get(1)).map(ProviderId), standing)))
            }
            _ => match reply::denied(&answer, ask, &self.spans(ask.now), settings) {
                Some(denied) => RedisReply::Said(Err(denied.into())),
                None => RedisReply::InVain,
            },
        }
    }

    pub(in super::super) async fn blocked(
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
        let Some(answer) = self.peek(&limited, slot, now).await else {
            return match self.settings.on_loss {
                OnLoss::Open => Vec::new(),
                OnLoss::Local | OnLoss::Closed => self.memory.blocked(providers, slot, now),
            };
        };
        let each = limited.iter().zip(answer.iter().skip(1));
        each.filter_map(|(provider, why)| Some((provider.id, reply::blocked(Some(why))?))).collect()
    }

    async fn peek(
        &self,
        limited: &[&Arc<Provider>],
        slot: &Slot,
        now: Timestamp,
    ) -> Option<Vec<Value>> {
        let settings = self.counting();
        let question = |up: &Up| {
            let call = self
                .call(&PEEK, up, now)
                .maybe(slot.key.map(|key| key.0))
                .text(slot.session.as_str());
            limited.iter().fold(call, |call, provider| {
                call.int(provider.id.0).limits(&provider.limits, now, &settings)
            })
        };
        match self.ask(now, question).await {
            RedisReply::Said(answer) => Some(answer),
            RedisReply::InVain | RedisReply::NotAsked | RedisReply::ClockSet => None,
        }
    }

    /// Calls Redis, within the time that a request waits. If the counters have moved, uses those in
    /// effect.
    async fn ask<'a>(
        &'a self,
        now: Timestamp,
        question: impl Fn(&Up) -> ScriptCall<'a>,
    ) -> RedisReply<Vec<Value>> {
        let (asked, bound) = (Instant::now(), self.settings.timeout);
        let until = asked + bound;
        while let Some(up) = self.link.ready(until).await {
            match self.link.ask(&up, question(&up), (until, bound)).await {
                Ok(answer) => return RedisReply::Said(answer),
                // The call changed nothing. This node's clock was set since the last heartbeat.
                Err(Fault::Clock(redis)) => {
                    self.agreement.correct(redis, now, asked.elapsed());
                    return RedisReply::ClockSet;
                }
                // The call was not executed.
                Err(Fault::Gone) => {}
                Err(_) => return RedisReply::InVain,
            }
        }
        RedisReply::NotAsked
    }

    pub(in super::super) async fn enter(
        &self,
        charge: &Charge,
        provider: &Provider,
        now: Timestamp,
    ) -> bool {
        let (limited, name) = (is_limited(&provider.limits), self.link.name());
        let answer =
            if limited { self.entered(charge, provider, now).await } else { RedisReply::NotAsked };
        let entered = match answer {
            RedisReply::Said(entered) => {
                if entered {
                    self.memory.enter_unchecked(charge, provider.id, now);
                }
                entered
            }
            _ if limited && self.settings.on_loss == OnLoss::Local => {
                self.memory.enter(charge, provider, now)
            }
            _ => {
                self.memory.enter_unchecked(charge, provider.id, now);
                true
            }
        };
        if entered {
            self.running.move_to(charge.request, Some(provider.id));
        }
        // If the answer to a call was lost, its effect in Redis is reconciled.
        match answer {
            RedisReply::Said(_) if self.link.name() == name => {}
            _ if entered => self.push(Kind::Entered { at: provider.id }, charge, now),
            RedisReply::InVain => self.push(Kind::Withdrawn { from: provider.id }, charge, now),
            RedisReply::Said(_) | RedisReply::NotAsked | RedisReply::ClockSet => {}
        }
        entered
    }

    async fn entered(
        &self,
        charge: &Charge,
        provider: &Provider,
        now: Timestamp,
    ) -> RedisReply<bool> {
        let question = |up: &Up| {
            let (request, user) = (charge.request.0.as_bytes(), charge.user.map(|user| user.0));
            let call = self
                .call(&ENTER, up, now)
                .bytes(request)
                .maybe(user)
                .maybe(charge.slot.key.map(|key| key.0));
            let call = call
                .text(charge.slot.session.as_str())
                .int(charge.started.0)
                .int(charge.reserved.0);
            call.int(provider.id.0).limits(&provider.limits, now, &self.counting())
        };
        match self.ask(now, question).await {
            RedisReply::Said(answer) => RedisReply::Said(reply::text(answer.first()) == "ok"),
            RedisReply::InVain => RedisReply::InVain,
            RedisReply::NotAsked => RedisReply::NotAsked,
            RedisReply::ClockSet => RedisReply::ClockSet,
        }
    }

    pub(in super::super) fn withdraw(&self, charge: &Charge, provider: ProviderId, now: Timestamp) {
        self.memory.withdraw(charge, provider, now);
        self.running.move_to(charge.request, None);
        self.push(Kind::Withdrawn { from: provider }, charge, now);
    }

    pub(in super::super) fn settle(&self, charge: &Charge, end: &Settlement) {
        self.memory.settle(charge, end);
        self.running.end(charge.request);
        self.push(Kind::Settled { cost: end.cost, served: end.served }, charge, end.now);
    }

    pub(in super::super) fn give_back(&self, charge: &Charge, at: Option<ProviderId>) {
        self.memory.give_back(charge, at);
        self.running.end(charge.request);
        self.push(Kind::GivenBack, charge, charge.started);
    }

    /// Counts the later cost of settled requests, in this node's counters and, queued, in Redis.
    pub(in super::super) fn spent_late(&self, rows: &[SpendRow], now: Timestamp) {
        self.memory.spent_late(rows, now);
        for row in rows {
            let charge = Charge {
                request: RequestId::new(),
                user: row.user,
                slot: Slot { key: row.key, session: SessionId::from("") },
                reserved: NanoUsd::ZERO,
                started: row.minute,
                admitted: row.minute,
                minute: None,
                asks: None,
            };
            self.push(Kind::Late { cost: row.cost, served: row.provider }, &charge, now);
        }
    }

    /// `None` if Redis is unreachable: then this node's own figures are the best available.
    pub(in super::super) async fn usage(
        &self,
        asked: &Asked<'_>,
        now: Timestamp,
    ) -> Option<HolderUsage> {
        let up = self.link.get()?;
        let settings = &self.counting();
        let call = self.call(&USAGE, &up, now).text(&asked.holder).day(
            asked.limits.daily_reset,
            now,
            settings,
        );
        let answer = self.read(&up, call.maybe(asked.user)).await?;
        let spans = self.spans(now);
        Some(reply::usage(
            &answer,
            &Reader { limits: asked.limits, rpm: asked.rpm, now, spans: &spans, settings },
        ))
    }

    pub(in super::super) async fn live_sessions(&self, now: Timestamp) -> Vec<LiveSession> {
        let Some(up) = self.link.get() else { return self.memory.live_sessions(now) };
        match self.read(&up, self.call(&LISTING, &up, now).int(LISTED)).await {
            Some(rows) => rows.iter().skip(1).filter_map(reply::session).collect(),
            None => self.memory.live_sessions(now),
        }
    }

    /// Readers are administrators: they can wait a little longer than requests.
    async fn read(&self, up: &Arc<Up>, call: ScriptCall<'_>) -> Option<Vec<Value>> {
        let bound = self.settings.timeout;
        self.link.ask(up, call, (Instant::now() + bound.max(TIME_LIMIT), bound)).await.ok()
    }
}

/// The result of a call to Redis.
#[derive(Clone, Copy)]
enum RedisReply<T> {
    Said(T),
    /// No answer in time: the effect of the call in Redis is unknown.
    InVain,
    /// Redis is slow or lost; no call was made.
    NotAsked,
    /// It refused the call because of its time, and changed nothing; the offset of this node's
    /// clock is corrected.
    ClockSet,
}

/// If a client closes its connection while Redis is called, its request must not stay counted.
struct Unanswered<'a> {
    shared: &'a Shared,
    charge: Option<&'a Charge>,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if let Some(charge) = self.charge {
            self.shared.push(Kind::GivenBack, charge, charge.started);
        }
    }
}
