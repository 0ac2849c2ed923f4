//! The latest model listings of providers, kept for all requests. The data plane fetches them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::domain::clock::Timestamp;
use crate::domain::ids::ProviderId;
use crate::domain::provider::Provider;

/// How long a listing is used before it is fetched again, and how long a failure is kept.
const FRESH: Duration = Duration::from_secs(600);
const RETRY: Duration = Duration::from_secs(30);

/// The latest listings of providers.
#[derive(Default)]
pub struct Listings {
    kept: Mutex<HashMap<ProviderId, KeptListing>>,
}

struct KeptListing {
    /// The version of the provider's record at the time of the fetch.
    version: Timestamp,
    asked: Instant,
    /// `None`: it did not answer.
    models: Option<Arc<[String]>>,
}

impl Listings {
    /// The provider's recent listing; `None` if it must be fetched, `Some(None)` if the provider
    /// has none.
    pub fn fresh(&self, provider: &Provider) -> Option<Option<Arc<[String]>>> {
        let kept = self.kept.lock();
        let entry = kept.get(&provider.id).filter(|k| k.version == provider.updated_at)?;
        let valid = if entry.models.is_some() { FRESH } else { RETRY };
        (entry.asked.elapsed() < valid).then(|| entry.models.clone())
    }

    /// The provider's last listing, however old.
    pub fn last(&self, provider: &Provider) -> Option<Arc<[String]>> {
        let kept = self.kept.lock();
        kept.get(&provider.id).filter(|k| k.version == provider.updated_at)?.models.clone()
    }

    /// Drops providers that no longer exist.
    pub fn keep_only(&self, keep: impl Fn(ProviderId) -> bool) {
        self.kept.lock().retain(|provider, _| keep(*provider));
    }

    /// Stores what a provider listed; `None` if it did not answer. The entry is for the present
    /// version of the provider's record.
    pub fn put(&self, provider: &Provider, models: Option<Arc<[String]>>) {
        let entry = KeptListing { version: provider.updated_at, asked: Instant::now(), models };
        self.kept.lock().insert(provider.id, entry);
    }
}
