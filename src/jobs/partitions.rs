//! Keeps the partitions of PostgreSQL's tables: makes each month's partition a month ahead.

use super::{Jobs, TICK};
use crate::store::{Backend, StoreError};

impl Jobs {
    /// Looks at every tick; never ends.
    pub(super) async fn partitioning(&self) {
        if self.0.parts.node.store.backend() != Backend::Postgres {
            return std::future::pending().await;
        }
        loop {
            self.keep_partitions().await;
            tokio::time::sleep(TICK).await;
        }
    }

    /// One look: makes what is missing now. Failures are logged, and the next look tries again.
    pub async fn keep_partitions(&self) {
        let kept = async { self.0.parts.node.store.keep_partitions(self.now().await?).await };
        match kept.await {
            Ok(made) => made.iter().for_each(|name| tracing::info!(name, "made a partition")),
            Err(StoreError::Busy { what }) => {
                tracing::info!(what, "the partitions wait for a lock; the next look tries again");
            }
            // Its loss is logged already.
            Err(StoreError::Unreachable { .. }) => {}
            Err(error) => tracing::warn!(
                %error,
                "the partitions could not be kept: rows of months without one go to the default \
                 partition; the next look tries again"
            ),
        }
    }
}
