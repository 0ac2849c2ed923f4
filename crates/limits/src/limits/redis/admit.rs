//! Admission by the shared counters, and without them while Redis is away.

use std::sync::Arc;

use redis::Value;
use tokio::time::Instant;

use super::super::admission::{Admission, Denied, Refused};
use super::super::charge::{Charge, CountedRequest};
use super::super::standing::Standing;
use super::Shared;
use super::batch::{pack_bytes, pack_field};
use super::batcher::{Asking, Call};
use super::calls::{RedisReply, Unanswered, ids, key_number};
use super::link::Up;
use super::made::BLOCK;
use super::queue::{ARRIVED, ChargeKind};
use super::reply::{self, Passed};
use super::scripts::{ADMIT, Numbers};
use crate::domain::clock::Timestamp;
use crate::domain::ids::ProviderId;
use crate::domain::limits::Limits;
use crate::domain::provider::Provider;
use crate::limits::OnRedisLoss;
use crate::policy::reservation::Reservation;

/// What an admission found and did.
struct AdmitAnswer {
    /// When it was admitted: by Redis' clock, as the checks went.
    admitted: Timestamp,
    /// The provider of the live session.
    served_before: Option<ProviderId>,
    /// The remaining amounts of the limits.
    standing: Standing,
    /// The provider at which a place was taken.
    at: Option<ProviderId>,
}

impl Shared {
    /// `own`: with this node's clock. `first`: see [`crate::limits::Counters::admit_to`].
    pub(in super::super) async fn admit(
        &self,
        own: &Admission<'_>,
        first: Option<&Provider>,
    ) -> Result<CountedRequest, Refused> {
        let name = self.link.name();
        let (mut ask, asked) = (self.as_shared(own), Instant::now());
        let mut charge = self.memory.charge_of(&ask);
        let mut answer = self.admitted(&ask, &charge, first).await;
        if matches!(answer, RedisReply::ClockSet(_)) {
            ask = self.as_shared(own);
            charge = self.memory.charge_of(&ask);
            answer = self.admitted(&ask, &charge, first).await;
        }
        // Redis receives the end of a request after its client has the reply. The client's next
        // request may be here before.
        if let RedisReply::Said(Err(Refused::Limit(Denied { exceeds: Some(_), .. }))) = answer {
            tokio::join!(self.told(), tokio::time::sleep(ARRIVED));
            answer = self.admitted(&ask, &charge, first).await;
        }
        let ask = &ask;
        let (found, is_known) = match answer {
            RedisReply::Said(admitted) => {
                let mut found = admitted?;
                charge.admitted = found.admitted;
                let own = self.memory.count(&mut charge);
                // Where this node knows of another provider, Redis may not have it yet.
                if own.is_some() && own != found.served_before {
                    found.served_before =
                        self.queue.serves(&charge.slot, asked).or(found.served_before);
                }
                (found, true)
            }
            silence => match self.admit_alone(ask, &mut charge) {
                Ok(found) => (found, false),
                Err(refused) => {
                    if matches!(silence, RedisReply::InVain) {
                        self.push(ChargeKind::GivenBack, &charge, ask.now);
                    }
                    return Err(refused);
                }
            },
        };
        let AdmitAnswer { served_before, standing, at, .. } = found;
        self.running.begin(&charge);
        if let Some(provider) = at {
            self.memory.enter_unchecked(&charge, provider, ask.now);
            self.running.move_to(charge.request, at);
        }
        // It changes nothing if Redis already has the request.
        if self.link.hears() && !(is_known && self.link.name() == name) {
            self.push(ChargeKind::Running { at }, &charge, ask.now);
        }
        Ok(CountedRequest { charge, served_before, standing, at })
    }

    /// Waits until Redis has all that has happened on this node until now, as long as a request may
    /// wait.
    pub(super) async fn told(&self) {
        let _ = tokio::time::timeout(self.settings.timeout, self.queue.told()).await;
    }

    fn as_shared<'a>(&self, own: &Admission<'a>) -> Admission<'a> {
        Admission { now: self.time(own.now), ..*own }
    }

    /// Follows the configured mode for the loss of Redis.
    fn admit_alone(
        &self,
        ask: &Admission<'_>,
        charge: &mut Charge,
    ) -> Result<AdmitAnswer, Refused> {
        let (served_before, standing) = match self.settings.on_loss {
            OnRedisLoss::Local => {
                let CountedRequest { charge: made, served_before, standing, .. } =
                    self.memory.admit(ask)?;
                *charge = made;
                (served_before, standing)
            }
            OnRedisLoss::Open => (self.memory.count(charge), Standing::default()),
            OnRedisLoss::Closed => return Err(Refused::Unreachable),
        };
        Ok(AdmitAnswer { admitted: charge.admitted, served_before, standing, at: None })
    }

    /// The checks in Redis.
    async fn admitted(
        &self,
        ask: &Admission<'_>,
        charge: &Charge,
        first: Option<&Provider>,
    ) -> RedisReply<Result<AdmitAnswer, Refused>> {
        let settings = &self.counting();
        let mut unanswered = Unanswered::new(self, Some(charge));
        let asking = || self.asking(ask, charge, first);
        let answer = self.ask_together(&self.batcher, asking, Self::admission_call).await;
        unanswered.is_answered = true;
        let read = |answer: Value| {
            if let Some(passed) = Passed::read(&answer) {
                let Passed { before: served_before, at: admitted, .. } = passed;
                let ask = &Admission { now: admitted, ..*ask };
                let standing = reply::standing(&passed, ask, &self.spans(admitted), settings);
                let at = first.filter(|_| passed.is_placed).map(|provider| provider.id);
                return Some(Ok(AdmitAnswer { admitted, served_before, standing, at }));
            }
            let Value::Array(refusal) = &answer else { return None };
            let at = reply::time_of_refusal(refusal).unwrap_or(ask.now);
            let ask = &Admission { now: at, ..*ask };
            Some(Err(reply::denied(refusal, ask, &self.spans(at), settings)?.into()))
        };
        match answer.map(read) {
            RedisReply::Said(None) => RedisReply::InVain,
            other => other.map(|found| found.unwrap_or(Err(Refused::Unreachable))),
        }
    }

    /// The call for a group, which comes ordered by user.
    fn admission_call(&self, up: Arc<Up>, group: &mut [Asking], now: Timestamp) -> (Arc<Up>, Call) {
        let users = ids(group.iter().map(|asking| asking.user));
        let providers = ids(group.iter().filter_map(|asking| asking.provider));
        for asking in group.iter_mut() {
            let at = key_number(&providers, asking.provider, 1 + users.len());
            let user = key_number(&users, Some(asking.user), 1);
            asking.packed[..2].copy_from_slice(&[user, at]);
        }
        let users = users.into_iter().map(|id| up.names.user(id));
        let names: Vec<String> =
            users.chain(providers.into_iter().map(|id| up.names.provider(id))).collect();
        let call = self.call(&ADMIT, &up, now, names.iter().map(String::as_str));
        let call = group.iter().fold(call, |call, asking| call.bytes(&asking.packed));
        self.batcher.call(up, call)
    }

    /// An admission as `lua/admit.lua` reads it.
    fn asking(&self, ask: &Admission<'_>, charge: &Charge, first: Option<&Provider>) -> Asking {
        let settings = &self.counting();
        let of = |limits: &Limits| Numbers::of(BLOCK).limits(limits, ask.now, settings);
        let (key, user) = (of(&ask.key.limits), of(&ask.user.limits));
        let provider = first.map(|first| of(&first.limits));
        let numbers = Numbers::of(9).int(ask.user.id.0).int(ask.key.id.0);
        let numbers = numbers.amount(charge.reserved).int(i64::from(ask.user.rpm));
        let numbers = numbers.int(key.mark()).int(user.mark());
        let numbers = numbers.id(first.map(|first| first.id.0));
        let numbers = numbers.int(provider.as_ref().map_or(0, Numbers::mark));
        let mut packed = Vec::with_capacity(512);
        packed.extend([0, 0, u8::from(settings.reservation == Reservation::Strict)]);
        packed.extend(numbers.bytes());
        packed.extend_from_slice(charge.request.0.as_bytes());
        pack_field(&mut packed, ask.key.id);
        pack_bytes(&mut packed, charge.member().as_bytes());
        pack_bytes(&mut packed, charge.asked().as_bytes());
        for limits in [Some(key), Some(user), provider].into_iter().flatten() {
            packed.extend(limits.bytes());
        }
        Asking {
            order: [ask.user.id.0, ask.key.id.0],
            session: ask.session.clone(),
            user: ask.user.id.0,
            provider: first.map(|first| first.id.0),
            now: ask.now,
            packed,
        }
    }
}
