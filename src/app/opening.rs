//! Opening balances that `tollgate import` writes while this gateway runs: counted within seconds,
//! without a restart.
//!
//! Only for counters of this process. Shared ones are rebuilt, which the import requests.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::domain::money::NanoUsd;
use crate::state::Node;
use crate::store::{LateCosts, SpendRow};

/// How often the configuration's version is compared, in memory: an import raises it. Until then a
/// key that was just imported can spend what it has spent at the peer already.
const INTERVAL: Duration = Duration::from_millis(100);
/// Pause after a failure.
const RETRY: Duration = Duration::from_secs(1);

/// What the counters contain of opening balances.
#[derive(Debug, Default)]
pub(super) struct OpeningCounted(Mutex<Vec<SpendRow>>);

impl OpeningCounted {
    /// The rows that the counters were built with.
    pub(super) fn new(rows: Vec<SpendRow>) -> Self {
        Self(Mutex::new(rows))
    }

    /// Takes over what is stored now; returns what differs, as rows to add.
    fn take_over(&self, stored: Vec<SpendRow>) -> Vec<SpendRow> {
        let mut sums: HashMap<_, i64> = HashMap::new();
        let mut before = self.0.lock();
        for (rows, sign) in [(&stored, 1), (&*before, -1)] {
            for found in rows {
                let sum = sums
                    .entry((found.minute, found.user_id, found.key_id, found.provider_id))
                    .or_default();
                *sum = sum.saturating_add(found.cost.0.saturating_mul(sign));
            }
        }
        *before = stored;
        let differs = sums.into_iter().filter(|(_, cost)| *cost != 0);
        let of = |((minute, user_id, key_id, provider_id), cost)| SpendRow {
            minute,
            key_id,
            user_id,
            provider_id,
            cost: NanoUsd(cost),
        };
        differs.map(of).collect()
    }
}

/// Watches for imports.
pub(super) struct Watch {
    pub counted: Arc<OpeningCounted>,
    pub node: Arc<Node>,
}

impl Watch {
    /// Runs until `stop` is set.
    pub(super) async fn run(self, mut stop: watch::Receiver<bool>) {
        // The version that was read before the counters were built may be older: look once.
        let (mut seen, mut failing) = (None, false);
        loop {
            let mut pause = INTERVAL;
            let version = self.node.state.peek().version;
            if seen != Some(version) {
                match self.node.store.opening_balances().await {
                    Ok(stored) => {
                        let differs = LateCosts::own(self.counted.take_over(stored));
                        self.node.counters.spent_late(&differs, self.node.clock.now());
                        (seen, failing) = (Some(version), false);
                    }
                    Err(error) => {
                        pause = RETRY;
                        if !std::mem::replace(&mut failing, true) {
                            tracing::warn!(error = %error, "opening balances cannot be read; \
                                trying again");
                        }
                    }
                }
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = stop.wait_for(|stopped| *stopped) => return,
            }
        }
    }
}
