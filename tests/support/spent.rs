//! Parts of what counters start from, read alone.

use tollgate::domain::clock::Timestamp;
use tollgate::store::{SpendLook, SpendRow, SpendSeen, SpendTotal, Store, StoreError};

const NEVER: Timestamp = Timestamp(i64::MAX);

/// What a [`Store`] says was spent.
pub trait Spent {
    async fn seen(
        &self,
        stretches: Vec<(Timestamp, Timestamp)>,
        recent: Timestamp,
    ) -> Result<SpendSeen, StoreError>;

    /// By minute, since a time.
    async fn spend_since(&self, since: Timestamp) -> Result<Vec<SpendRow>, StoreError> {
        Ok(self.seen(Vec::new(), since).await?.rows)
    }

    /// By hour, and by minute at the ends.
    async fn spend_between(
        &self,
        from: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<SpendRow>, StoreError> {
        Ok(self.seen(vec![(from, until)], NEVER).await?.rows)
    }

    /// Over all time.
    async fn spend_totals(&self) -> Result<Vec<SpendTotal>, StoreError> {
        Ok(self.seen(Vec::new(), NEVER).await?.totals)
    }
}

impl Spent for Store {
    async fn seen(
        &self,
        stretches: Vec<(Timestamp, Timestamp)>,
        recent: Timestamp,
    ) -> Result<SpendSeen, StoreError> {
        self.spend_seen(&SpendLook { stretches, recent, ended_since: None }).await
    }
}
