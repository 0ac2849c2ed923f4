//! A place at a provider with limits, for a request that is admitted already.

use std::sync::Arc;

use tokio::time::Instant;

use super::super::charge::Charge;
use super::super::provider::is_limited;
use super::Shared;
use super::batch::pack_bytes;
use super::batcher::{Asking, Call};
use super::calls::{RedisReply, Unanswered, ids, key_number};
use super::link::Up;
use super::made::BLOCK;
use super::queue::ChargeKind;
use super::reply;
use super::scripts::{ENTER, Numbers};
use crate::domain::clock::Timestamp;
use crate::domain::provider::Provider;
use crate::limits::OnRedisLoss;

impl Shared {
    pub(in super::super) async fn enter(
        &self,
        charge: &Charge,
        provider: &Provider,
        now: Timestamp,
    ) -> bool {
        let (limited, name) = (is_limited(&provider.limits), self.link.name());
        let (mut answer, mut now, asked) = (RedisReply::NotAsked, now, Instant::now());
        // Of its moves just before, some may reach Redis after this one.
        let moves = if limited { self.queue.moves(charge.request) } else { 0 };
        if limited {
            answer = self.entered(charge, provider, now).await;
        }
        if let RedisReply::ClockSet(redis) = answer {
            now = redis;
            answer = self.entered(charge, provider, now).await;
        }
        // What requests reserved that have left it.
        if matches!(answer, RedisReply::Said(false)) && self.queue.leaves(provider.id, asked) {
            self.told().await;
            answer = self.entered(charge, provider, now).await;
        }
        let entered = match answer {
            RedisReply::Said(entered) => {
                if entered {
                    self.memory.enter_unchecked(charge, provider.id, now);
                }
                entered
            }
            _ if limited && self.settings.on_loss == OnRedisLoss::Local => {
                self.memory.enter(charge, provider, now)
            }
            _ => {
                self.memory.enter_unchecked(charge, provider.id, now);
                true
            }
        };
        if entered {
            self.running.put(charge, provider.id);
        }
        // If the answer to a call was lost, its effect in Redis is reconciled.
        match answer {
            RedisReply::Said(true)
                if moves > 0 && self.queue.recall_moves(charge.request) < moves =>
            {
                // One was sent meanwhile, and may have taken the new place, or may take it yet.
                self.push(ChargeKind::Entered { at: provider.id }, charge, now);
            }
            RedisReply::Said(_) if self.link.name() == name => {}
            _ if entered => self.push(ChargeKind::Entered { at: provider.id }, charge, now),
            RedisReply::InVain => {
                self.push(ChargeKind::Withdrawn { from: provider.id }, charge, now)
            }
            RedisReply::Said(_) | RedisReply::NotAsked | RedisReply::ClockSet(_) => {}
        }
        entered
    }

    /// A place at a provider, checked and taken in Redis. Requests that ask for one at the same
    /// time share a call.
    async fn entered(
        &self,
        charge: &Charge,
        provider: &Provider,
        now: Timestamp,
    ) -> RedisReply<bool> {
        let mut unanswered = Unanswered::new(self, None);
        let asking = || self.entering(charge, provider, now);
        let answer = self.ask_together(&self.entries, asking, Self::entries_call).await;
        unanswered.is_answered = true;
        answer.map(|answer| reply::int(Some(&answer)) == Some(1))
    }

    /// The call for a group, which comes ordered by provider.
    fn entries_call(&self, up: Arc<Up>, group: &mut [Asking], now: Timestamp) -> (Arc<Up>, Call) {
        let providers = ids(group.iter().filter_map(|asking| asking.provider));
        let users = ids(group.iter().map(|asking| asking.user).filter(|user| *user != 0));
        for asking in group.iter_mut() {
            asking.packed[0] = key_number(&providers, asking.provider, 1);
        }
        let users = users.into_iter().map(|id| up.names.user(id));
        let names: Vec<String> =
            providers.into_iter().map(|id| up.names.provider(id)).chain(users).collect();
        let call = self.call(&ENTER, &up, now, names.iter().map(String::as_str));
        let call = group.iter().fold(call, |call, asking| call.bytes(&asking.packed));
        self.entries.call(up, call)
    }

    /// A request as `lua/enter.lua` reads it.
    fn entering(&self, charge: &Charge, provider: &Provider, now: Timestamp) -> Asking {
        let limits = Numbers::of(BLOCK).limits(&provider.limits, now, &self.counting());
        let mut packed = Vec::with_capacity(256);
        packed.push(0);
        packed.extend(Numbers::of(2).int(provider.id.0).int(limits.mark()).bytes());
        packed.extend_from_slice(charge.request.0.as_bytes());
        pack_bytes(&mut packed, &charge.note());
        packed.extend(limits.bytes());
        Asking {
            order: [provider.id.0, charge.slot.key.map_or(0, |key| key.0)],
            session: charge.slot.session.clone(),
            user: charge.user.map_or(0, |user| user.0),
            provider: Some(provider.id.0),
            now,
            packed,
        }
    }
}
