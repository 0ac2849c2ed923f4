//! A user's record with its keys inside: one lock for everything that an admission changes.
//!
//! See docs/decisions/22-one-lock.md.

use super::charge::Charge;
use super::held::HeldAmounts;
use super::rpm::Rpm;
use super::sessions::{Sessions, Slot};
use super::settings::CounterSettings;
use super::spend::Spend;
use crate::domain::clock::Timestamp;
use crate::domain::fast_map::FastMap;
use crate::domain::ids::{KeyId, ProviderId};
use crate::domain::money::NanoUsd;

#[derive(Debug, Default)]
pub(super) struct KeyState {
    pub(super) spend: Spend,
    /// How many of the user's live sessions are this key's.
    pub(super) sessions: u64,
    pub(super) running: u64,
}

#[derive(Debug, Default)]
pub(super) struct UserState {
    pub(super) spend: Spend,
    pub(super) rpm: Rpm,
    /// The sessions of all keys.
    pub(super) sessions: Sessions,
    pub(super) keys: FastMap<KeyId, KeyState>,
}

/// A user's record and one of its keys, both up to date.
pub(super) struct Pair<'a> {
    pub(super) key: &'a mut KeyState,
    pub(super) spend: &'a mut Spend,
    pub(super) rpm: &'a mut Rpm,
    pub(super) sessions: &'a mut Sessions,
}

impl UserState {
    /// Brings the user's figures up to `now`.
    pub(super) fn refresh(&mut self, now: Timestamp, settings: &CounterSettings) {
        let keys = &mut self.keys;
        self.sessions.refresh(now, settings.session_ttl_ms, |gone| {
            if let Some(state) = gone.key.and_then(|key| keys.get_mut(&key)) {
                state.sessions = state.sessions.saturating_sub(1);
            }
        });
        self.rpm.refresh(now);
        self.spend.refresh(now, settings.time_zone);
    }

    /// The time by whose windows a request is checked that is admitted `now`. Another thread may
    /// have brought the windows to the next minute already.
    pub(super) fn present(&self, key: KeyId, now: Timestamp) -> Timestamp {
        let now = self.spend.present(now);
        self.keys.get(&key).map_or(now, |key| key.spend.present(now))
    }

    /// Brings the user's figures, and one key's, up to `now`.
    pub(super) fn with_key(
        &mut self,
        key: KeyId,
        now: Timestamp,
        settings: &CounterSettings,
    ) -> Pair<'_> {
        self.refresh(now, settings);
        let pair = self.pair(key);
        pair.key.spend.refresh(now, settings.time_zone);
        pair
    }

    /// The user and one key, without an update.
    pub(super) fn pair(&mut self, key: KeyId) -> Pair<'_> {
        Pair {
            key: self.keys.entry(key).or_default(),
            spend: &mut self.spend,
            rpm: &mut self.rpm,
            sessions: &mut self.sessions,
        }
    }

    pub(super) fn serve_by(&mut self, slot: &Slot, provider: ProviderId) {
        if let Some(live) = self.sessions.get_mut(slot) {
            live.provider = Some(provider);
        }
    }
}

impl Pair<'_> {
    /// Counts an admitted request.
    pub(super) fn count(&mut self, charge: &mut Charge) {
        let is_new = self.sessions.enter(&charge.slot, charge.admitted, charge.asks.as_ref());
        charge.minute = Some(self.rpm.add(charge.admitted));
        self.add(charge, HeldAmounts::reserved(charge.reserved));
        self.key.running += 1;
        self.key.sessions += u64::from(is_new);
    }

    /// Replaces the reservation by the actual cost.
    pub(super) fn settle(&mut self, charge: &Charge, now: Timestamp, cost: NanoUsd) {
        self.add(charge, HeldAmounts { spent: cost, reserved: -charge.reserved });
        self.sessions.leave(&charge.slot, now, cost);
        self.key.running = self.key.running.saturating_sub(1);
    }

    /// As if the request had never been admitted.
    pub(super) fn take_back(&mut self, charge: &Charge) {
        self.add(charge, HeldAmounts::reserved(-charge.reserved));
        if let Some(minute) = charge.minute {
            self.rpm.take_back(minute);
        }
        let gone = self.sessions.take_back(&charge.slot);
        self.key.sessions = self.key.sessions.saturating_sub(u64::from(gone));
        self.key.running = self.key.running.saturating_sub(1);
    }

    fn add(&mut self, charge: &Charge, held: HeldAmounts) {
        self.spend.add(charge.admitted, held);
        self.key.spend.add(charge.admitted, held);
    }
}
