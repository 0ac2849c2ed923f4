//! Receives PostgreSQL's notifications when another process commits a change of the configuration.
//!
//! They come with the commit and need no other server. If one is missed (the connection broke), the
//! version check still runs once a second.

use sqlx::postgres::PgListener;

use super::connect::ACQUIRE_TIMEOUT;
use super::error::StoreError;
use crate::store::Store;

const CHANNEL: &str = "tollgate_configuration";
/// Sent in the transaction that raises the version: delivered if it commits, and not otherwise.
pub(in crate::store) const TELL: &str =
    "SELECT CAST(pg_notify('tollgate_configuration', '') AS TEXT)";

/// A connection that receives notifications of changes.
pub struct Changes(PgListener);

impl Store {
    /// `None` on SQLite, where there are no notifications.
    ///
    /// # Errors
    /// [`StoreError::Unreachable`] when no connection is possible, and [`StoreError::Busy`] when
    /// there is no answer within 5 s.
    pub async fn changes(&self) -> Result<Option<Changes>, StoreError> {
        let Some(url) = &self.pools.url else { return Ok(None) };
        self.hold.check()?;
        let listening = async {
            let mut listener = PgListener::connect(url.expose()).await?;
            listener.ignore_pool_close_event(true);
            listener.listen(CHANNEL).await?;
            Ok(Some(Changes(listener)))
        };
        // A server that accepts connections and does not answer must not delay the version check.
        let listening = tokio::time::timeout(ACQUIRE_TIMEOUT, listening).await;
        Ok(listening.unwrap_or(Err(sqlx::Error::PoolTimedOut))?)
    }
}

impl Changes {
    /// Resolves when something was changed, or when the connection was lost meanwhile.
    ///
    /// # Errors
    /// When the connection is lost for good.
    pub async fn next(&mut self) -> Result<(), StoreError> {
        self.0.try_recv().await?;
        Ok(())
    }
}
