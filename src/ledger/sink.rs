//! Where records go: the database, as the writer sees it.

use std::future::Future;
use std::time::Duration;

use crate::domain::record::Record;
use crate::store::{Store, StoreError};

/// Takes batches of records, each record once.
pub trait Sink: Send + Sync {
    /// Writes the records in one transaction and gives how many were new.
    ///
    /// `Ok` means that they are on the database's disk: the journal lets go of them.
    ///
    /// A record whose request id is there already is no error and changes nothing. On an error
    /// nothing was written.
    fn append_records(&self, records: &[Record]) -> impl Future<Output = Result<u64, SinkError>> + Send;
}

/// Why a batch was not written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SinkError {
    /// The database cannot be reached or does not answer: the same batch will do later.
    #[error("database unavailable: {0}")]
    Unavailable(String),
    /// The database answers, and a rule of it refuses something in this batch.
    #[error("refused by the database: {0}")]
    Refused(String),
    /// The database answers with an error that may be the batch's fault or its own. It is taken to
    /// be a record's only when another record of the same batch is written.
    #[error("the database failed: {0}")]
    Doubtful(String),
}

/// A database that answers takes a batch in milliseconds. One that takes longer than this has gone
/// without a word (its machine, or the network on the way): the batch is given up, and written
/// again over another connection.
const PATIENCE: Duration = Duration::from_secs(30);

impl Sink for Store {
    async fn append_records(&self, records: &[Record]) -> Result<u64, SinkError> {
        match tokio::time::timeout(PATIENCE, self.append_records(records)).await {
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
            | StoreError::Corrupt { .. } => Self::Unavailable(what),
        }
    }
}
