//! The counters that requests and permits use: the node's own, or those that all nodes share.
//!
//! An enum rather than a trait: the futures of the node's own counters are ready when they are
//! first polled, and need no box.

use std::sync::Arc;

use chrono_tz::Tz;

use super::admission::{Admission, Refused};
use super::charge::{Charge, Settlement};
use super::listing::LiveSession;
use super::memory::Memory;
use super::permit::Permit;
use super::provider::Blocked;
use super::rebuild::Owned;
use super::redis::{AskedHolder, Shared};
use super::sessions::Slot;
use super::usage::HolderUsage;
use crate::domain::clock::Timestamp;
use crate::domain::ids::ProviderId;
use crate::domain::key::Key;
use crate::domain::provider::Provider;
use crate::domain::user::User;

/// The counters behind [`super::Counters`] and behind every permit.
#[derive(Clone)]
pub(super) enum CounterBackend {
    /// Of this process only.
    Own(Arc<Memory>),
    /// Of all nodes, in Redis.
    Shared(Arc<Shared>),
}

impl CounterBackend {
    pub(super) fn memory(&self) -> &Memory {
        match self {
            Self::Own(memory) => memory,
            Self::Shared(shared) => &shared.memory,
        }
    }

    /// Converts a time of this node to the counters' clock.
    pub(super) fn time(&self, own: Timestamp) -> Timestamp {
        match self {
            Self::Own(_) => own,
            Self::Shared(shared) => shared.time(own),
        }
    }

    /// The time zone of the calendar windows.
    pub(super) fn zone(&self) -> Tz {
        match self {
            Self::Own(memory) => memory.settings.time_zone,
            Self::Shared(shared) => shared.zone(),
        }
    }

    pub(super) async fn admit(
        &self,
        ask: &Admission<'_>,
        first: Option<&Provider>,
    ) -> Result<Permit, Refused> {
        let counted = match self {
            Self::Own(memory) => memory.admit(ask)?,
            // Boxed, so that the futures of requests do not grow to the size that Redis needs.
            Self::Shared(shared) => Box::pin(shared.admit(ask, first)).await?,
        };
        Ok(Permit::new(self.clone(), counted))
    }

    pub(super) async fn blocked(
        &self,
        providers: &[Arc<Provider>],
        slot: &Slot,
        now: Timestamp,
    ) -> Vec<(ProviderId, Blocked)> {
        match self {
            Self::Own(memory) => memory.blocked(providers, slot, now),
            Self::Shared(shared) => Box::pin(shared.blocked(providers, slot, now)).await,
        }
    }

    pub(super) async fn enter(&self, charge: &Charge, provider: &Provider, now: Timestamp) -> bool {
        match self {
            Self::Own(memory) => memory.enter(charge, provider, now),
            Self::Shared(shared) => Box::pin(shared.enter(charge, provider, now)).await,
        }
    }

    /// Takes back what [`Self::enter`] did. Like the functions below, it never waits.
    pub(super) fn withdraw(&self, charge: &Charge, provider: ProviderId, now: Timestamp) {
        match self {
            Self::Own(memory) => memory.withdraw(charge, provider, now),
            Self::Shared(shared) => shared.withdraw(charge, provider, now),
        }
    }

    pub(super) fn settle(&self, charge: &Charge, end: &Settlement) {
        match self {
            Self::Own(memory) => memory.settle(charge, end),
            Self::Shared(shared) => shared.settle(charge, end),
        }
    }

    /// Removes the request from all counters, as if it had not been admitted.
    pub(super) fn give_back(&self, charge: &Charge, at: Option<ProviderId>) {
        match self {
            Self::Own(memory) => memory.give_back(charge, at),
            Self::Shared(shared) => shared.give_back(charge, at),
        }
    }

    pub(super) async fn key_usage(&self, key: &Key, now: Timestamp) -> HolderUsage {
        let limits = &key.limits;
        let asked = AskedHolder { holder: Owned::Key(key.user_id, key.id), rpm: 0, limits };
        match self.ask(&asked, now).await {
            Some(usage) => usage,
            None => self.memory().key_usage(key, now),
        }
    }

    pub(super) async fn user_usage(&self, user: &User, now: Timestamp) -> HolderUsage {
        let limits = &user.limits;
        let asked = AskedHolder { holder: Owned::User(user.id), rpm: user.rpm, limits };
        match self.ask(&asked, now).await {
            Some(usage) => usage,
            None => self.memory().user_usage(user, now),
        }
    }

    pub(super) async fn provider_usage(&self, provider: &Provider, now: Timestamp) -> HolderUsage {
        let limits = &provider.limits;
        let asked = AskedHolder { holder: Owned::Provider(provider.id), rpm: 0, limits };
        match self.ask(&asked, now).await {
            Some(usage) => usage,
            None => self.memory().provider_usage(provider, now),
        }
    }

    /// `None` if the node's own figures apply.
    async fn ask(&self, asked: &AskedHolder<'_>, now: Timestamp) -> Option<HolderUsage> {
        match self {
            Self::Own(_) => None,
            Self::Shared(shared) => Box::pin(shared.usage(asked, now)).await,
        }
    }

    pub(super) async fn live_sessions(&self, now: Timestamp) -> Vec<LiveSession> {
        match self {
            Self::Own(memory) => memory.live_sessions(now),
            Self::Shared(shared) => Box::pin(shared.live_sessions(now)).await,
        }
    }
}
