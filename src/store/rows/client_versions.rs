//! The noted versions of known clients: one row for each user and version. Not part of the
//! configuration.

use sqlx::AssertSqlSafe;

use crate::domain::clock::Timestamp;
use crate::domain::ids::UserId;
use crate::store::Store;
use crate::store::engine::column::{Fields, Values};
use crate::store::engine::error::StoreError;
use crate::store::engine::sql;

const COLUMNS: &[&str] = &["client", "version", "user_id", "last_seen"];
const REPLACE: &str =
    "ON CONFLICT (client, version, user_id) DO UPDATE SET last_seen = excluded.last_seen";
/// Rows per statement.
const CHUNK: usize = 100;

/// A user runs a version of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenClient {
    /// The client's name, without its version, as `User-Agent` headers give it.
    pub client: String,
    /// The version, as the client gives it.
    pub version: String,
    /// The user whose key the client used.
    pub user: UserId,
    /// When the user's client was last seen.
    pub at: Timestamp,
}

impl Store {
    /// Stores the notes (each user and version once), and removes those last seen before `since`.
    ///
    /// # Errors
    /// [`StoreError`] of the write; nothing was stored then.
    pub async fn note_clients(
        &self,
        seen: &[SeenClient],
        since: Timestamp,
    ) -> Result<(), StoreError> {
        let mut tx = self.write().await?;
        // In the same order on every node, so that two concurrent writers do not deadlock.
        let mut seen: Vec<&SeenClient> = seen.iter().collect();
        seen.sort_by(|a, b| (&a.client, &a.version, a.user).cmp(&(&b.client, &b.version, b.user)));
        for chunk in seen.chunks(CHUNK) {
            let mut values = Values::default();
            for one in chunk {
                values.text(&one.client).text(&one.version).int(one.user.0).time(one.at);
            }
            let sql = AssertSqlSafe(
                sql::insert(self.backend(), "client_versions", COLUMNS, chunk.len()) + REPLACE,
            );
            sqlx::query_with(sql, values.into_arguments())
                .persistent(false)
                .execute(&mut *tx)
                .await?;
        }
        let mut values = Values::default();
        values.time(since);
        sqlx::query_with(
            "DELETE FROM client_versions WHERE last_seen < $1",
            values.into_arguments(),
        )
        .execute(&mut *tx)
        .await?;
        Ok(tx.commit().await?)
    }

    /// Clients and versions that at least this many users ran since then.
    ///
    /// # Errors
    /// [`StoreError`] of the read.
    pub async fn agreed_clients(
        &self,
        since: Timestamp,
        users: usize,
    ) -> Result<Vec<(String, String)>, StoreError> {
        let mut values = Values::default();
        values.time(since).count_of(users as u64);
        let sql = "SELECT client, version FROM client_versions WHERE last_seen >= $1 \
                   GROUP BY client, version HAVING COUNT(*) >= $2";
        let rows = sqlx::query_with(sql, values.into_arguments())
            .fetch_all(&mut *self.reader().await?)
            .await?;
        let read = |row| {
            let fields = Fields { row, table: "client_versions" };
            Ok((fields.text("client")?, fields.text("version")?))
        };
        rows.iter().map(read).collect()
    }
}
