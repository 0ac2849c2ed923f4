//! A summary of all providers: which of the enabled ones work, and what is wrong with the others.

use std::sync::Arc;

use super::credentials::CredentialStates;
use super::health::Health;
use super::health::attempts::Seen;
use super::node::Node;
use super::snapshot::Snapshot;
use crate::domain::clock::Timestamp;
use crate::domain::provider::Provider;
use crate::policy::provider_state::ProviderState;
use crate::policy::select::Availability;

/// How many providers a sentence names.
const NAMED: usize = 5;

/// The enabled providers of a snapshot, from the point of view of one process.
pub struct ProviderSummary {
    /// The number of enabled providers, working or not.
    pub enabled: usize,
    /// Enabled providers that do not work now, the most harmful state first, then by id.
    pub not_working: Vec<(Arc<Provider>, Seen)>,
    /// Why providers have no credential. They are not among the enabled ones.
    left_out: Vec<String>,
    /// Providers exist, enabled or not.
    any: bool,
}

impl ProviderSummary {
    /// Looks at each provider of the snapshot, as of `now`. Changes nothing.
    /// A provider none of whose several credentials can be used has a cooldown.
    pub fn of(
        snapshot: &Snapshot,
        health: &Health,
        credentials: &CredentialStates,
        now: Timestamp,
    ) -> Self {
        let enabled = || snapshot.providers.iter().filter(|provider| provider.is_enabled);
        let seen = enabled()
            .map(|provider| (Arc::clone(provider), seen(provider, health, credentials, now)));
        let mut not_working: Vec<_> = seen.filter(|(_, seen)| !works(seen.state)).collect();
        not_working.sort_by_key(|(provider, seen)| (rank(seen.state), provider.id));
        let left_out = snapshot.faults.clone();
        let any = !snapshot.providers.is_empty() || !left_out.is_empty();
        Self { enabled: enabled().count(), not_working, left_out, any }
    }

    /// Providers exist, and none of them is expected to answer.
    pub fn none_works(&self) -> bool {
        self.any && self.not_working.len() == self.enabled
    }

    /// The text of `/readyz` and the overview if none works.
    pub fn none_works_text(&self) -> String {
        match self.enabled {
            0 if self.left_out.is_empty() => "none is enabled: no request can be served".to_owned(),
            0 => {
                let named = self.left_out.iter().take(NAMED).map(String::as_str);
                let named = named.collect::<Vec<_>>().join("; ");
                format!("none is enabled and has its credential: {named}")
            }
            _ => format!("none of the enabled ones works: {}", self.names()),
        }
    }

    /// For `/readyz`: `None` when all is well. Cooldowns alone are not a fault while another
    /// provider works.
    pub fn fault(&self) -> Option<String> {
        let fails = self.not_working.iter().any(|(_, seen)| seen.state != ProviderState::Cooldown);
        if self.none_works() {
            Some(self.none_works_text())
        } else if fails {
            Some(format!(
                "{} of {} enabled ones do not work: {}",
                self.not_working.len(),
                self.enabled,
                self.names()
            ))
        } else {
            None
        }
    }

    fn names(&self) -> String {
        let named = self
            .not_working
            .iter()
            .take(NAMED)
            .map(|(provider, seen)| format!("{} {}", provider.name, words(seen)));
        let mut text = named.collect::<Vec<_>>().join(", ");
        if self.not_working.len() > NAMED {
            text.push_str(", …");
        }
        text
    }
}

/// The provider's state, and that of its several credentials.
fn seen(
    provider: &Provider,
    health: &Health,
    credentials: &CredentialStates,
    now: Timestamp,
) -> Seen {
    let mut seen = health.seen(provider, now);
    if let Availability::NoCredential { until } = credentials.availability(provider, now)
        && rank(seen.state) > rank(ProviderState::Failing)
    {
        seen.state = ProviderState::Cooldown;
        seen.cooldown_until = seen.cooldown_until.max(until);
    }
    seen
}

const fn works(state: ProviderState) -> bool {
    matches!(state, ProviderState::Healthy | ProviderState::NeverUsed)
}

impl Node {
    /// Whether a request to the provider can be expected to be answered.
    pub fn expects_answer(&self, provider: &Provider, now: Timestamp) -> bool {
        works(seen(provider, &self.health, &self.credentials, now).state)
    }
}

const fn rank(state: ProviderState) -> u8 {
    match state {
        ProviderState::CircuitOpen => 0,
        ProviderState::Failing => 1,
        ProviderState::Cooldown => 2,
        ProviderState::Healthy | ProviderState::NeverUsed => 3,
    }
}

/// A provider's state with the kind and status of its last error, but not its text: `/readyz`
/// requires no credential.
pub fn words(seen: &Seen) -> String {
    let state = match seen.state {
        ProviderState::CircuitOpen => "has an open circuit",
        ProviderState::Failing => "is failing",
        ProviderState::Cooldown if seen.cooldown_until.is_none() => "has no key that can be used",
        ProviderState::Cooldown => "asked for a pause",
        ProviderState::Healthy => "is healthy",
        ProviderState::NeverUsed => "was never used",
    };
    match &seen.last_error {
        Some(error) => match error.status {
            Some(status) => format!("{state} ({} {status})", error.kind.as_str()),
            None => format!("{state} ({})", error.kind.as_str()),
        },
        None => state.to_owned(),
    }
}
