//! Where a permit is written back to, and who is asked: the node's own counters.
//!
//! An enum rather than a trait: the futures of the node's own counters are ready when they are first polled, and need no box.

use std::sync::Arc;

use super::admission::{Admission, Refused};
use super::listing::LiveSession;
use super::memory::Memory;
use super::permit::{Charge, Permit, Settlement};
use super::provider::Blocked;
use super::sessions::Slot;
use super::usage::HolderUsage;
use crate::domain::clock::Timestamp;
use crate::domain::ids::ProviderId;
use crate::domain::key::Key;
use crate::domain::provider::Provider;
use crate::domain::user::User;

/// The counters behind [`super::Counters`] and behind every permit.
#[derive(Clone)]
pub(super) enum Books {
    /// Of this process alone.
    Own(Arc<Memory>),
}

impl Books {
    pub(super) fn memory(&self) -> &Memory {
        match self {
            Self::Own(memory) => memory,
        }
    }

    pub(super) async fn admit(&self, ask: &Admission<'_>) -> Result<Permit, Refused> {
        match self {
            Self::Own(memory) => {
                let (charge, served_before) = memory.admit(ask)?;
                Ok(Permit::new(self.clone(), charge, served_before))
            }
        }
    }

    pub(super) async fn blocked(
        &self,
        providers: &[Arc<Provider>],
        slot: &Slot,
        now: Timestamp,
    ) -> Vec<(ProviderId, Blocked)> {
        match self {
            Self::Own(memory) => memory.blocked(providers, slot, now),
        }
    }

    pub(super) async fn enter(&self, charge: &Charge, provider: &Provider, now: Timestamp) -> bool {
        match self {
            Self::Own(memory) => memory.enter(charge, provider, now),
        }
    }

    /// Takes back what [`Self::enter`] did. This and what follows never waits.
    pub(super) fn withdraw(&self, charge: &Charge, provider: ProviderId, now: Timestamp) {
        match self {
            Self::Own(memory) => memory.withdraw(charge, provider, now),
        }
    }

    pub(super) fn settle(&self, charge: &Charge, end: &Settlement) {
        match self {
            Self::Own(memory) => memory.settle(charge, end),
        }
    }

    pub(super) fn give_back(&self, charge: &Charge, at: Option<ProviderId>) {
        match self {
            Self::Own(memory) => memory.give_back(charge, at),
        }
    }

    pub(super) async fn key_usage(&self, key: &Key, now: Timestamp) -> HolderUsage {
        match self {
            Self::Own(memory) => memory.key_usage(key, now),
        }
    }

    pub(super) async fn user_usage(&self, user: &User, now: Timestamp) -> HolderUsage {
        match self {
            Self::Own(memory) => memory.user_usage(user, now),
        }
    }

    pub(super) async fn provider_usage(&self, provider: &Provider, now: Timestamp) -> HolderUsage {
        match self {
            Self::Own(memory) => memory.provider_usage(provider, now),
        }
    }

    pub(super) async fn live_sessions(&self, now: Timestamp) -> Vec<LiveSession> {
        match self {
            Self::Own(memory) => memory.live_sessions(now),
        }
    }
}
