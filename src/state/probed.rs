//! The providers that this process probes. Of several nodes, the one that probes a provider knows
//! best how it is.

use std::time::Duration;

use parking_lot::RwLock;

use crate::domain::clock::Timestamp;
use crate::domain::fast_map::FastMap;
use crate::domain::ids::ProviderId;
use crate::domain::provider::Provider;
use crate::store::LOOK_MS;

/// Until when each counts as probed by this process.
pub struct ProbedProviders {
    holder: String,
    until: RwLock<FastMap<ProviderId, Timestamp>>,
}

impl Default for ProbedProviders {
    fn default() -> Self {
        Self { holder: uuid::Uuid::new_v4().to_string(), until: RwLock::default() }
    }
}

impl ProbedProviders {
    /// The name of this process, as the holder of the jobs.
    pub fn holder(&self) -> &str {
        &self.holder
    }

    /// The job of probing a provider.
    pub fn job(provider: ProviderId) -> String {
        format!("probe {provider}")
    }

    /// This process probes the provider.
    pub fn note(&self, provider: ProviderId, until: Timestamp) {
        self.until.write().insert(provider, until);
    }

    /// Another node probes the provider.
    pub fn forget(&self, provider: ProviderId) {
        self.until.write().remove(&provider);
    }

    /// The jobs that this process has taken; it stops probing.
    pub fn take_jobs(&self) -> Vec<String> {
        std::mem::take(&mut *self.until.write()).into_keys().map(Self::job).collect()
    }

    /// Whether this process probes the provider.
    pub fn is_here(&self, provider: ProviderId, now: Timestamp) -> bool {
        self.until.read().get(&provider).is_some_and(|until| *until >= now)
    }

    /// Whether another node, or none yet, probes the provider, although one is to. What a node knows
    /// by probes that are further apart than two looks is no better than what this one knows.
    pub fn is_elsewhere(&self, provider: &Provider, now: Timestamp) -> bool {
        let looks = Duration::from_millis(LOOK_MS.unsigned_abs());
        provider.probes().is_some_and(|(every, _)| every <= looks)
            && !self.is_here(provider.id, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_probes_are_elsewhere_until_they_are_noted_here() {
        let (probed, now) = (ProbedProviders::default(), Timestamp(1_000));
        let every = |seconds| Provider {
            id: ProviderId(7),
            probe_interval: Some(seconds),
            probe_model: Some("m".to_owned()),
            ..Provider::blank(now)
        };
        assert!(probed.is_elsewhere(&every(300), now));
        assert!(!probed.is_elsewhere(&every(301), now), "its node knows little more");
        assert!(!probed.is_elsewhere(&Provider::blank(now), now));
        probed.note(ProviderId(7), now);
        assert!(!probed.is_elsewhere(&every(300), now));
        assert!(probed.is_elsewhere(&every(300), now.plus_ms(1)), "it was not probed again");
        probed.forget(ProviderId(7));
        assert!(probed.is_elsewhere(&every(300), now));
        probed.note(ProviderId(7), now);
        assert_eq!(probed.take_jobs(), ["probe 7"]);
        assert!(!probed.is_here(ProviderId(7), now));
    }
}
