//! The models that requests asked this node for without a price, since its start: an administrator
//! is told of them from the first request on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::snapshot::Snapshot;
use crate::domain::clock::Timestamp;

/// Models that are kept; names of further ones are dropped.
const MOST: usize = 100;

/// One model without a price.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnpricedModel {
    /// The client's name for it.
    pub model: Arc<str>,
    /// The provider's name for it, as far as a provider was asked.
    pub upstream: Arc<str>,
    /// The first request.
    pub since: Timestamp,
    /// Requests that were served.
    pub served: u64,
    /// Requests that were refused, as the setting wants it.
    pub refused: u64,
}

/// All of them.
#[derive(Debug, Default)]
pub struct UnpricedModels {
    models: Mutex<BTreeMap<Arc<str>, UnpricedModel>>,
    has_some: AtomicBool,
}

impl UnpricedModels {
    /// Notes a request. `upstream`: the provider's name for the model; `None` if it was refused.
    pub fn note(&self, model: &Arc<str>, upstream: Option<&Arc<str>>, now: Timestamp) {
        let mut models = self.models.lock();
        if models.len() >= MOST && !models.contains_key(model) {
            return;
        }
        let known = models.entry(Arc::clone(model)).or_insert_with(|| UnpricedModel {
            model: Arc::clone(model),
            upstream: Arc::clone(model),
            since: now,
            served: 0,
            refused: 0,
        });
        match upstream {
            Some(upstream) => {
                known.upstream = Arc::clone(upstream);
                known.served += 1;
            }
            None => known.refused += 1,
        }
        self.has_some.store(true, Ordering::Relaxed);
    }

    /// Those that still have no price, by name. The others are forgotten.
    pub fn still(&self, snapshot: &Snapshot) -> Vec<UnpricedModel> {
        if !self.has_some.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let mut models = self.models.lock();
        models.retain(|_, one| snapshot.price_for(&one.model, &one.upstream).is_none());
        self.has_some.store(!models.is_empty(), Ordering::Relaxed);
        models.values().cloned().collect()
    }
}
