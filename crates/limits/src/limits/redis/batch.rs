//! Sends what this node counted: one numbered batch at a time, as one call of a script.

use super::Shared;
use super::calls::{ids, key_number};
use super::link::Up;
use super::queue::{ChargeKind, Op};
use super::scripts::{BATCH, Numbers, ScriptCall};
use crate::domain::clock::Timestamp;
use crate::domain::ids::KeyId;
use crate::domain::money::NanoUsd;
use crate::limits::charge::Charge;

impl Shared {
    /// The call for a batch under its number, which Redis applies once. Without an answer it is
    /// unknown whether it was applied; with [`super::link::LinkFault::is_refusal`] it was not.
    ///
    /// The operations of one user, key and session are together, in the order in which they
    /// happened, so that each holder is read and written once.
    pub(super) fn batch_call(
        &self,
        up: &Up,
        ops: &[Op],
        number: i64,
        now: Timestamp,
    ) -> ScriptCall {
        let mut ops: Vec<&Op> = ops.iter().collect();
        ops.sort_by(|one, other| one.order().cmp(&other.order()));
        let users = ids(ops.iter().filter_map(|op| Some(op.charge.user?.0)));
        let providers = ids(ops.iter().filter_map(|op| op.kind.provider()));
        let holders = users.iter().map(|id| up.names.user(*id));
        let holders = holders.chain(providers.iter().map(|id| up.names.provider(*id)));
        let names: Vec<String> = std::iter::once(up.names.seq.clone()).chain(holders).collect();
        let call = self.call(&BATCH, up, now, names.iter().map(String::as_str)).int(number);
        let call = call.text(&self.name("news"));
        // The first two keys are the hash of what the node runs and the number.
        ops.iter().fold(call, |call, op| {
            let user = key_number(&users, op.charge.user.map(|user| user.0), 2);
            let provider = key_number(&providers, op.kind.provider(), 2 + users.len());
            call.bytes(&packed(op, [user, provider]))
        })
    }
}

impl Op {
    fn order(&self) -> (i64, i64, &str) {
        let Charge { user, slot, .. } = &self.charge;
        let key = slot.key.map_or(0, |key| key.0);
        (user.map_or(0, |user| user.0), key, slot.session.as_str())
    }
}

impl ChargeKind {
    /// The operation's letter, its cost, and the provider that it names.
    fn parts(self) -> (u8, NanoUsd, Option<i64>) {
        match self {
            Self::Settled { cost, served } => (b'S', cost, served.map(|id| id.0)),
            Self::Late { cost, served, .. } => (b'L', cost, served.map(|id| id.0)),
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

/// One operation, as `lua/batch.lua` reads it, with the places of user and provider among the keys.
fn packed(op: &Op, places: [u16; 2]) -> Vec<u8> {
    let Op { kind, charge, now, .. } = op;
    let (letter, cost, provider) = kind.parts();
    let numbers = Numbers::of(10).id(charge.user.map(|user| user.0));
    let numbers = numbers.id(charge.slot.key.map(|key| key.0)).int(charge.admitted.0);
    let numbers = numbers.amount(charge.reserved).amount(cost).id(provider);
    let number = if let ChargeKind::Late { number, .. } = kind { *number } else { 0 };
    let numbers = numbers.int(now.0).int(number).bytes();
    let mut bytes = Vec::with_capacity(256);
    bytes.push(letter);
    places.iter().for_each(|place| bytes.extend(place.to_le_bytes()));
    bytes.extend_from_slice(charge.request.0.as_bytes());
    bytes.extend_from_slice(&numbers);
    pack_field(&mut bytes, charge.slot.key.unwrap_or(KeyId(0)));
    pack_bytes(&mut bytes, charge.member().as_bytes());
    if matches!(kind, ChargeKind::Running { .. } | ChargeKind::Entered { .. }) {
        bytes.extend_from_slice(charge.asked().as_bytes());
    }
    bytes
}

/// The field of a key's record, after its length.
pub(super) fn pack_field(bytes: &mut Vec<u8>, key: KeyId) {
    let name = format!("k{key}");
    bytes.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
    bytes.extend_from_slice(name.as_bytes());
}

/// Bytes, after their length.
pub(super) fn pack_bytes(bytes: &mut Vec<u8>, more: &[u8]) {
    bytes.extend(u16::try_from(more.len()).unwrap_or(u16::MAX).to_le_bytes());
    bytes.extend_from_slice(more);
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

    /// Its note in Redis, while it has neither slot nor provider: both and its admission, user,
    /// key, reserved, session.
    pub(super) fn note(&self) -> Vec<u8> {
        let numbers = Numbers::of(16).int(0).int(0).int(self.admitted.0);
        let numbers = numbers.id(self.user.map(|user| user.0));
        let numbers = numbers.id(self.slot.key.map(|key| key.0)).amount(self.reserved);
        let mut bytes = numbers.bytes();
        bytes.extend_from_slice(self.member().as_bytes());
        bytes
    }
}
