//! Sends what this node counted: one numbered batch at a time, as one call of a script.

use std::collections::BTreeSet;

use super::Shared;
use super::link::{Fault, TIME_LIMIT, Up, ask};
use super::outbox::{Kind, Op};
use super::part::Part;
use super::scripts::{BATCH, Numbers, ScriptCall};
use crate::domain::clock::Timestamp;
use crate::domain::ids::ProviderId;
use crate::domain::money::NanoUsd;
use crate::limits::charge::Charge;

impl Shared {
    /// Sends a batch under its number, which Redis applies once.
    ///
    /// # Errors
    /// When there is no answer, or one that refuses it. It is unknown then whether it was applied,
    /// except with [`Fault::Gone`] and [`Fault::Clock`]: it was not.
    pub(super) async fn send_batch(
        &self,
        up: &Up,
        ops: &[Op],
        number: i64,
        now: Timestamp,
    ) -> Result<(), Fault> {
        let call = self.batch_call(up, ops, number, now);
        ask(&mut up.connection.clone(), call, TIME_LIMIT).await.map(|_| ())
    }

    fn batch_call(&self, up: &Up, ops: &[Op], number: i64, now: Timestamp) -> ScriptCall {
        let users: BTreeSet<i64> = ops.iter().filter_map(|op| Some(op.charge.user?.0)).collect();
        let providers = ops.iter().filter_map(|op| op.kind.provider());
        let own = providers.filter(|id| self.part.has_provider(ProviderId(*id)));
        let providers: BTreeSet<i64> = own.collect();
        let users = users.into_iter().map(|id| up.names.user(id));
        let holders: Vec<String> =
            users.chain(providers.into_iter().map(|id| up.names.provider(id))).collect();
        let mut keys = vec![up.names.seq.as_str()];
        keys.extend(holders.iter().map(String::as_str));
        let call = self.call(&BATCH, up, now, keys).int(number);
        let call = call.text(&format!("{}news", self.space));
        ops.iter().fold(call, |call, op| call.bytes(&packed(op, self.part)))
    }
}

impl Kind {
    /// The operation's letter, its cost, and the provider that it names.
    fn parts(self) -> (u8, NanoUsd, Option<i64>) {
        match self {
            Self::Settled { cost, served } => (b'S', cost, served.map(|id| id.0)),
            Self::Late { cost, served } => (b'L', cost, served.map(|id| id.0)),
            Self::Withdrawn { from } => (b'W', NanoUsd::ZERO, Some(from.0)),
            Self::GivenBack => (b'G', NanoUsd::ZERO, None),
            Self::Entered { at } => (b'E', NanoUsd::ZERO, Some(at.0)),
            Self::Running { at } => (b'R', NanoUsd::ZERO, at.map(|id| id.0)),
        }
    }

    fn provider(self) -> Option<i64> {
        self.parts().2
    }
}

/// One operation, as `lua/batch.lua` reads it. A provider of another server has its number below
/// zero.
fn packed(op: &Op, part: Part) -> Vec<u8> {
    let Op { kind, charge, now, .. } = op;
    let (letter, cost, provider) = kind.parts();
    let provider = provider.map(|id| if part.has_provider(ProviderId(id)) { id } else { -id });
    let numbers = Numbers::of(10).id(charge.user.map(|user| user.0));
    let numbers = numbers.id(charge.slot.key.map(|key| key.0)).int(charge.started.0);
    let numbers = numbers.amount(charge.reserved).amount(cost).id(provider);
    let numbers = numbers.int(now.0).int(charge.admitted.0).bytes();
    let (member, asks) = (charge.member(), charge.asked());
    let mut bytes = Vec::with_capacity(19 + numbers.len() + member.len() + asks.len());
    bytes.push(letter);
    bytes.extend_from_slice(charge.request.0.as_bytes());
    bytes.extend_from_slice(&numbers);
    bytes.extend_from_slice(&u16::try_from(member.len()).unwrap_or(u16::MAX).to_le_bytes());
    bytes.extend_from_slice(member.as_bytes());
    bytes.extend_from_slice(asks.as_bytes());
    bytes
}

impl Charge {
    /// The session's name within its user, in Redis: `key:session`.
    pub(super) fn member(&self) -> String {
        let session = self.slot.session.as_str();
        self.slot.key.map_or_else(|| format!(":{session}"), |key| format!("{}:{session}", key.0))
    }

    /// What the request asks for, in Redis: the model, a line feed, the format.
    pub(super) fn asked(&self) -> String {
        let asks = self.asks.as_ref();
        asks.map_or_else(String::new, |asks| format!("{}\n{}", asks.model, asks.format.as_str()))
    }

    /// Its note in Redis without slot, provider and start: user, key, reserved, session.
    pub(super) fn note_end(&self) -> Vec<u8> {
        let numbers = Numbers::of(8).id(self.user.map(|user| user.0));
        let numbers = numbers.id(self.slot.key.map(|key| key.0)).amount(self.reserved);
        let mut bytes = numbers.bytes();
        bytes.extend_from_slice(self.member().as_bytes());
        bytes
    }

    /// The whole note of a request that has neither slot nor provider.
    pub(super) fn note(&self) -> Vec<u8> {
        let mut bytes = Numbers::of(8).int(0).int(0).int(self.started.0).bytes();
        bytes.extend(self.note_end());
        bytes
    }
}
