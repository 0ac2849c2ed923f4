//! Hears at once when another process commits a change of the configuration: PostgreSQL's own
//! notifications.
//!
//! They come with the commit and need no other server. Whoever misses one (the connection broke)
//! still has the look at the version, once a second.

use sqlx::postgres::PgListener;

use super::error::StoreError;
use crate::store::Store;

const CHANNEL: &str = "tollgate_configuration";
/// Sent in the transaction that raises the version: heard when it commits, and not otherwise.
pub(in crate::store) const TELL: &str = "SELECT CAST(pg_notify('tollgate_configuration', '') AS TEXT)";

/// A connection that hears of changes.
pub struct Changes(PgListener);

impl Store {
    /// `None` on SQLite, where there are no notifications.
    ///
    /// # Errors
    /// [`StoreError::Unreachable`] when no connection can be made.
    pub async fn changes(&self) -> Result<Option<Changes>, StoreError> {
        let Some(url) = &self.pools.url else { return Ok(None) };
        let mut listener = PgListener::connect(url.expose()).await?;
        listener.ignore_pool_close_event(true);
        listener.listen(CHANNEL).await?;
        Ok(Some(Changes(listener)))
    }
}

impl Changes {
    /// Resolves when something was changed, or when the connection had been lost meanwhile.
    ///
    /// # Errors
    /// When the connection is lost for good.
    pub async fn next(&mut self) -> Result<(), StoreError> {
        self.0.try_recv().await?;
        Ok(())
    }
}
