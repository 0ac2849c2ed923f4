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
    /// The user whose key the client used; [`SeenClient::TOKEN`] for the admin token.
    pub user: UserId,
    /// When the user's client was last seen.
    pub at: Timestamp,
}

impl SeenClient {
    /// Stands for the admin token, which is not a user.
    pub const TOKEN: UserId = UserId(0);
}

/// A version of a client that enough users or an administrator run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgreedClient {
    /// The client's name.
    pub client: String,
    /// The version.
    pub version: String,
    /// Users who run it.
    pub users: u64,
    /// Users of the client, of any version.
    pub of_client: u64,
    /// Whether an administrator runs it.
    pub has_administrator: bool,
}

/// `$1`: the earliest time; `$2`: how many users are enough.
const AGREED: &str = "SELECT seen.client AS client, seen.version AS version, \
    SUM(CASE WHEN seen.user_id <> 0 THEN 1 ELSE 0 END) AS users, MAX(every.users) AS of_client, \
    MAX(CASE WHEN seen.user_id = 0 OR users.role = 'admin' THEN 1 ELSE 0 END) AS administrators \
    FROM client_versions AS seen \
    JOIN (SELECT client, COUNT(DISTINCT CASE WHEN user_id <> 0 THEN user_id END) AS users \
    FROM client_versions WHERE last_seen >= $1 GROUP BY client) AS every \
    ON every.client = seen.client \
    LEFT JOIN users ON users.id = seen.user_id AND users.deleted_at IS NULL \
    WHERE seen.last_seen >= $1 GROUP BY seen.client, seen.version \
    HAVING SUM(CASE WHEN seen.user_id <> 0 THEN 1 ELSE 0 END) >= $2 OR \
    MAX(CASE WHEN seen.user_id = 0 OR users.role = 'admin' THEN 1 ELSE 0 END) = 1";

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

    /// Clients and versions that at least this many users, or an administrator, ran since then.
    pub async fn agreed_clients(
        &self,
        since: Timestamp,
        users: u64,
    ) -> Result<Vec<AgreedClient>, StoreError> {
        let mut values = Values::default();
        values.time(since).count_of(users);
        let rows = sqlx::query_with(AGREED, values.into_arguments())
            .fetch_all(&mut *self.reader().await?)
            .await?;
        let read = |row| {
            let fields = Fields { row, table: "client_versions" };
            Ok(AgreedClient {
                client: fields.text("client")?,
                version: fields.text("version")?,
                users: fields.number("users")?,
                of_client: fields.number("of_client")?,
                has_administrator: fields.int("administrators")? == 1,
            })
        };
        rows.iter().map(read).collect()
    }
}
