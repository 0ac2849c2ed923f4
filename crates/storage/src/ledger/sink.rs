//! The destination of records: the database, as the writer uses it.

use std::future::Future;
use std::time::Duration;

use crate::domain::record::Record;
use crate::store::{Store, StoreError};

/// Accepts batches of records, each record once.
pub trait Sink: Send + Sync {
    /// Writes the records in one transaction and returns how many were new.
    ///
    /// `Ok` means that they are on the database's disk: the journal deletes them.
    ///
    /// A record whose request id already exists is not an error and changes nothing. On an error
    /// nothing was written.
    fn append_records(
        &self,
        records: &[Record],
    ) -> impl Future<Output = Result<u64, SinkError>> + Send;
}

/// Why a batch was not written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SinkError {
    /// The database is unreachable or does not answer: retry the same batch later.
    #[error("database unavailable: {0}")]
    Unavailable(String),
    /// The database answers, and one of its constraints refuses something in this batch.
    #[error("refused by the database: {0}")]
    Refused(String),
    /// The database answers with an error that may be caused by the batch or by the database
    /// itself. It is attributed to a record only if another record of the same batch is written.
    #[error("the database failed: {0}")]
    Doubtful(String),
}

/// A working database takes a batch in milliseconds. If one takes longer than this, its machine or
/// the network has failed silently: the batch is given up, and written again over another
/// connection.
const TIME_LIMIT: Duration = Duration::from_secs(30);

impl Sink for Store {
    async fn append_records(&self, records: &[Record]) -> Result<u64, SinkError> {
        match tokio::time::timeout(TIME_LIMIT, self.append_records(records)).await {
            Ok(written) => written.map_err(SinkError::from),
            Err(_) => Err(SinkError::Unavailable("it does not answer".to_owned())),
        }
    }
}

impl From<StoreError> for SinkError {
    fn from(error: StoreError) -> Self {
        let what = error.to_string();
        match error {
            StoreError::Constraint { .. } => Self::Refused(what),
            StoreError::Database { .. } => Self::Doubtful(what),
            StoreError::Unreachable { .. }
            | StoreError::Busy { .. }
            | StoreError::Missing { .. }
            | StoreError::Schema(_)
            | StoreError::Corrupt { .. }
            | StoreError::Slow => Self::Unavailable(what),
        }
    }
}
