//! One request of the usage log, by its id.

use sqlx::AssertSqlSafe;

use crate::domain::ids::RequestId;
use crate::store::Store;
use crate::store::engine::column::Values;
use crate::store::engine::error::StoreError;
use crate::store::engine::sql;
use crate::store::ledger::log_row::{self, LogRow};

/// The condition that finds the request whose id is `$at` in the log, by the ledger's time for it:
/// the log has an index of times, but none of ids.
pub(super) fn by_id(at: usize) -> String {
    format!(
        "started_at = (SELECT started_at FROM ledger \
         WHERE request_id = ${at}) AND request_id = ${at}"
    )
}

impl Store {
    /// The request with this id, if the log still has it.
    pub async fn usage_log(&self, id: RequestId) -> Result<Option<LogRow>, StoreError> {
        let rest = format!("WHERE {}", by_id(1));
        let sql = AssertSqlSafe(sql::select("request_log", log_row::LOG_COLUMNS, &rest));
        let mut values = Values::default();
        values.bytes(id.0.as_bytes());
        let row = sqlx::query_with(sql, values.into_arguments())
            .fetch_optional(&mut *self.report().await?)
            .await?;
        row.as_ref().map(log_row::read).transpose()
    }
}
