//! Admission by the shared counters, and without them while Redis is away.

use super::super::admission::{Admission, Refused};
use super::super::charge::{Charge, Counted};
use super::super::provider::is_limited;
use super::super::standing::Standing;
use super::Shared;
use super::link::Up;
use super::operations::RedisReply;
use super::outbox::Kind;
use super::reply;
use super::scripts::{ADMIT, Numbers, ScriptCall};
use crate::config::OnRedisLoss;
use crate::domain::ids::ProviderId;
use crate::domain::limits::Limits;
use crate::domain::provider::Provider;
use crate::policy::reservation::Reservation;

/// What an admission found and did.
struct Found {
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
    ) -> Result<Counted, Refused> {
        let first = first.filter(|provider| is_limited(&provider.limits));
        let name = self.link.name();
        let mut ask = self.as_shared(own);
        let mut charge = self.memory.charge_of(&ask);
        let mut answer = self.admitted(&ask, &charge, first).await;
        if matches!(answer, RedisReply::ClockSet(_)) {
            ask = self.as_shared(own);
            charge = self.memory.charge_of(&ask);
            answer = self.admitted(&ask, &charge, first).await;
        }
        let ask = &ask;
        let (found, is_known) = match answer {
            RedisReply::Said(admitted) => {
                let found = admitted?;
                self.memory.count(&mut charge);
                // Another node may have moved the session. By this it is seen whether a provider
                // of another server is news for this one.
                if let Some(before) = found.served_before.filter(|_| self.part.of > 1) {
                    self.memory.serve_by(&charge, before);
                }
                (found, true)
            }
            silence => match self.admit_alone(ask, &mut charge) {
                Ok(found) => (found, false),
                Err(refused) => {
                    if matches!(silence, RedisReply::InVain) {
                        self.push(Kind::GivenBack, &charge, ask.now);
                    }
                    return Err(refused);
                }
            },
        };
        let Found { served_before, standing, at } = found;
        self.running.begin(&charge);
        if let Some(provider) = at {
            self.memory.enter_unchecked(&charge, provider, ask.now);
            self.running.move_to(charge.request, at);
        }
        // It changes nothing if Redis already has the request.
        if self.link.hears() && !(is_known && self.link.name() == name) {
            self.push(Kind::Running { at }, &charge, ask.now);
        }
        Ok(Counted { charge, served_before, standing, at })
    }

    fn as_shared<'a>(&self, own: &Admission<'a>) -> Admission<'a> {
        Admission { now: self.time(own.now), started: self.time(own.started), ..*own }
    }

    /// Follows the configured mode for the loss of Redis.
    fn admit_alone(&self, ask: &Admission<'_>, charge: &mut Charge) -> Result<Found, Refused> {
        match self.settings.on_loss {
            OnRedisLoss::Local => {
                let counted = self.memory.admit(ask)?;
                *charge = counted.charge.clone();
                let Counted { served_before, standing, .. } = counted;
                Ok(Found { served_before, standing, at: None })
            }
            OnRedisLoss::Open => {
                let served_before = self.memory.count(charge);
                Ok(Found { served_before, standing: Standing::default(), at: None })
            }
            OnRedisLoss::Closed => Err(Refused::Unreachable),
        }
    }

    /// The checks in Redis.
    async fn admitted(
        &self,
        ask: &Admission<'_>,
        charge: &Charge,
        first: Option<&Provider>,
    ) -> RedisReply<Result<Found, Refused>> {
        let settings = &self.counting();
        let question = |up: &Up| self.admission_call(up, ask, charge, first);
        let mut unanswered = Unanswered { shared: self, charge: Some(charge) };
        let answer = self.ask(ask.now, question).await;
        unanswered.charge = None;
        let answer = match answer {
            RedisReply::Said(answer) => answer,
            RedisReply::InVain => return RedisReply::InVain,
            RedisReply::NotAsked => return RedisReply::NotAsked,
            RedisReply::ClockSet(redis) => return RedisReply::ClockSet(redis),
        };
        match reply::text(answer.first()) {
            "ok" => {
                let standing = reply::standing(&answer, ask, &self.spans(ask.now), settings);
                let served_before = reply::id(answer.get(1)).map(ProviderId);
                let is_placed = reply::int(answer.get(5)) == Some(1);
                let at = first.filter(|_| is_placed).map(|provider| provider.id);
                RedisReply::Said(Ok(Found { served_before, standing, at }))
            }
            _ => match reply::denied(&answer, ask, &self.spans(ask.now), settings) {
                Some(denied) => RedisReply::Said(Err(denied.into())),
                None => RedisReply::InVain,
            },
        }
    }

    fn admission_call(
        &self,
        up: &Up,
        ask: &Admission<'_>,
        charge: &Charge,
        first: Option<&Provider>,
    ) -> ScriptCall {
        let settings = &self.counting();
        let no_limits = Limits::default();
        let of = |limits: &Limits| Numbers::of(9).limits(limits, ask.now, settings);
        let key = of(&ask.key.limits);
        let user = of(&ask.user.limits);
        let provider = of(first.map_or(&no_limits, |first| &first.limits));
        let numbers = Numbers::of(10).int(ask.user.id.0).int(ask.started.0).amount(charge.reserved);
        let numbers = numbers.int(i64::from(settings.reservation == Reservation::Strict));
        let numbers = numbers.int(i64::from(ask.user.rpm)).id(first.map(|first| first.id.0));
        let numbers = numbers.int(key.mark()).int(user.mark()).int(provider.mark());
        let limits = [key.bytes(), user.bytes(), provider.bytes()].concat();
        let hash = up.names.user(ask.user.id.0);
        let call = match first {
            Some(first) => {
                let provider = up.names.provider(first.id.0);
                self.call(&ADMIT, up, ask.now, [hash.as_str(), provider.as_str()])
            }
            None => self.call(&ADMIT, up, ask.now, [hash.as_str()]),
        };
        let call = call.numbers(numbers).text(&charge.member());
        let call = call.bytes(charge.request.0.as_bytes()).text(&format!("k{}", ask.key.id));
        call.bytes(&charge.note_end()).text(&charge.asked()).bytes(&limits)
    }
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
