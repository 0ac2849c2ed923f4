//! When keys were last used: one statement for all of them.
//!
//! Each key's latest request is the last entry of its range of an index; a sub-query per key inside
//! the statement keeps both planners from scanning the ledger.

use crate::domain::clock::Timestamp;
use crate::domain::ids::{KeyId, UserId};
use crate::store::Store;
use crate::store::engine::column::{Fields, Values};
use crate::store::engine::error::StoreError;

/// A key, deleted or not, and the start of its latest recorded request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastUse {
    /// The key that was used.
    pub key_id: KeyId,
    /// The owner of the key.
    pub user_id: UserId,
    /// When that request began; `None` = the key was never used.
    pub at: Option<Timestamp>,
}

/// The latest start by its order, not by `MAX`: SQLite's ledger is a view of two tables, for which
/// it uses an index for an order only.
macro_rules! keys {
    ($which:literal) => {
        concat!(
            "SELECT id, user_id, (SELECT started_at FROM ledger WHERE key_id = api_keys.id \
             ORDER BY started_at DESC LIMIT 1) AS used_at FROM api_keys",
            $which
        )
    };
}

pub(super) const EVERY_KEY: &str = keys!("");
const KEYS_OF: &str = keys!(" WHERE user_id = $1");

impl Store {
    /// Of all keys, or those of one user.
    pub async fn last_uses(&self, user: Option<UserId>) -> Result<Vec<LastUse>, StoreError> {
        let mut values = Values::default();
        let sql = match user {
            Some(user) => {
                values.int(user.0);
                KEYS_OF
            }
            None => EVERY_KEY,
        };
        let rows = sqlx::query_with(sql, values.into_arguments())
            .fetch_all(&mut *self.report().await?)
            .await?;
        let read = |row| {
            let fields = Fields { row, table: "api_keys" };
            let (key_id, user_id) = (KeyId(fields.int("id")?), UserId(fields.int("user_id")?));
            Ok(LastUse { key_id, user_id, at: fields.opt_time("used_at")? })
        };
        rows.iter().map(read).collect()
    }
}
