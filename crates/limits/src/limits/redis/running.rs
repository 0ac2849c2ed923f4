//! The requests in flight on this node, so that they can be sent to counters that lost them or
//! never had them.

use std::collections::HashMap;

use parking_lot::{Mutex, MutexGuard};

use super::super::charge::Charge;
use crate::domain::ids::{ProviderId, RequestId};

/// A power of two.
const SHARDS: usize = 16;

type Shard = HashMap<RequestId, (Charge, Option<ProviderId>)>;

pub(super) struct Running([Mutex<Shard>; SHARDS]);

impl Running {
    pub(super) fn new() -> Self {
        Self(std::array::from_fn(|_| Mutex::default()))
    }

    pub(super) fn begin(&self, charge: &Charge) {
        self.shard(charge.request).insert(charge.request, (charge.clone(), None));
    }

    pub(super) fn move_to(&self, request: RequestId, provider: Option<ProviderId>) {
        if let Some((_, at)) = self.shard(request).get_mut(&request) {
            *at = provider;
        }
    }

    /// Notes where a request is, whether or not it was noted before.
    pub(super) fn put(&self, charge: &Charge, provider: ProviderId) {
        let mut shard = self.shard(charge.request);
        shard.entry(charge.request).or_insert_with(|| (charge.clone(), None)).1 = Some(provider);
    }

    pub(super) fn remove(&self, request: RequestId) {
        self.shard(request).remove(&request);
    }

    /// Calls `tell` for each. A request that ends meanwhile is reported as ended only afterwards.
    pub(super) fn each(&self, mut tell: impl FnMut(&Charge, Option<ProviderId>)) {
        for shard in &self.0 {
            shard.lock().values().for_each(|(charge, at)| tell(charge, *at));
        }
    }

    fn shard(&self, request: RequestId) -> MutexGuard<'_, Shard> {
        self.0[usize::from(request.0.as_bytes()[15]) % SHARDS].lock()
    }
}
