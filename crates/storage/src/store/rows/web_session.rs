//! Logins of the administration: opaque cookies, of which only the hash is stored; they can be
//! revoked.

use sqlx::any::AnyRow;

use crate::domain::clock::Timestamp;
use crate::domain::ids::{KeyId, UserId};
use crate::store::Store;
use crate::store::engine::column::{Fields, Values};
use crate::store::engine::error::StoreError;

/// One login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebSession {
    /// SHA-256 of the cookie's value.
    pub hash: [u8; 32],
    /// `None` = the admin token.
    pub key_id: Option<KeyId>,
    /// The owner of the key; `None` = the admin token.
    pub user_id: Option<UserId>,
    /// Of a login with the admin token: binds it to that token.
    pub token_check: Option<[u8; 32]>,
    /// When the login was made.
    pub created_at: Timestamp,
    /// When it ends; from then on it is not accepted.
    pub expires_at: Timestamp,
}

fn read(row: &AnyRow) -> Result<WebSession, StoreError> {
    let fields = Fields { row, table: "web_sessions" };
    Ok(WebSession {
        hash: fields.bytes("hash")?,
        key_id: fields.opt_int("key_id")?.map(KeyId),
        user_id: fields.opt_int("user_id")?.map(UserId),
        token_check: fields.opt_bytes("token_check")?,
        created_at: fields.time("created_at")?,
        expires_at: fields.time("expires_at")?,
    })
}

impl Store {
    /// Stores a login.
    ///
    /// # Errors
    /// [`StoreError::Constraint`] when its key or user is not there.
    pub async fn insert_web_session(&self, session: &WebSession) -> Result<(), StoreError> {
        let mut values = Values::default();
        values
            .bytes(&session.hash)
            .opt_int(session.key_id.map(|id| id.0))
            .opt_int(session.user_id.map(|id| id.0));
        values.time(session.created_at).time(session.expires_at);
        let sql = match &session.token_check {
            None => {
                "INSERT INTO web_sessions (hash, key_id, user_id, created_at, expires_at) \
                 VALUES ($1, $2, $3, $4, $5)"
            }
            Some(check) => {
                values.bytes(check);
                "INSERT INTO web_sessions (hash, key_id, user_id, created_at, expires_at, \
                 token_check) VALUES ($1, $2, $3, $4, $5, $6)"
            }
        };
        sqlx::query_with(sql, values.into_arguments()).execute(&mut *self.writer().await?).await?;
        Ok(())
    }

    /// Logs out the logins of a key (`None`: of the admin token) but `newest` and the `most` newest
    /// others; returns the number of those that ended.
    pub async fn keep_newest_web_sessions(
        &self,
        key: Option<KeyId>,
        newest: &[u8; 32],
        most: u32,
    ) -> Result<u64, StoreError> {
        let mut values = Values::default();
        values.bytes(newest).int(most.into());
        let sql = match key {
            None => {
                "DELETE FROM web_sessions WHERE key_id IS NULL AND hash <> $1 AND hash NOT IN \
                 (SELECT hash FROM web_sessions WHERE key_id IS NULL AND hash <> $1 \
                 ORDER BY created_at DESC, hash LIMIT $2)"
            }
            Some(key) => {
                values.int(key.0);
                "DELETE FROM web_sessions WHERE key_id = $3 AND hash <> $1 AND hash NOT IN \
                 (SELECT hash FROM web_sessions WHERE key_id = $3 AND hash <> $1 \
                 ORDER BY created_at DESC, hash LIMIT $2)"
            }
        };
        self.delete_sessions(sql, values).await
    }

    /// The login with this hash, expired or not: the caller decides whether it is still valid.
    pub async fn web_session(&self, hash: &[u8; 32]) -> Result<Option<WebSession>, StoreError> {
        let mut values = Values::default();
        values.bytes(hash);
        let sql = "SELECT hash, key_id, user_id, token_check, created_at, expires_at \
                   FROM web_sessions WHERE hash = $1";
        let query = sqlx::query_with(sql, values.into_arguments());
        let row = query.fetch_optional(&mut *self.reader().await?).await?;
        row.as_ref().map(read).transpose()
    }

    /// Logs out one login; no error if it no longer exists.
    pub async fn delete_web_session(&self, hash: &[u8; 32]) -> Result<(), StoreError> {
        let mut values = Values::default();
        values.bytes(hash);
        self.delete_sessions("DELETE FROM web_sessions WHERE hash = $1", values).await.map(|_| ())
    }

    /// Logs out every login of a key; returns their number.
    pub async fn delete_web_sessions_of_key(&self, key: KeyId) -> Result<u64, StoreError> {
        let mut values = Values::default();
        values.int(key.0);
        self.delete_sessions("DELETE FROM web_sessions WHERE key_id = $1", values).await
    }

    /// Logs out every login of a user; returns their number.
    pub async fn delete_web_sessions_of_user(&self, user: UserId) -> Result<u64, StoreError> {
        let mut values = Values::default();
        values.int(user.0);
        self.delete_sessions("DELETE FROM web_sessions WHERE user_id = $1", values).await
    }

    /// Removes logins that expired at or before `now`; returns their number.
    pub async fn prune_web_sessions(&self, now: Timestamp) -> Result<u64, StoreError> {
        let mut values = Values::default();
        values.time(now);
        self.delete_sessions("DELETE FROM web_sessions WHERE expires_at <= $1", values).await
    }

    async fn delete_sessions(&self, sql: &'static str, values: Values) -> Result<u64, StoreError> {
        let query = sqlx::query_with(sql, values.into_arguments());
        Ok(query.execute(&mut *self.writer().await?).await?.rows_affected())
    }
}
