//! API key rows.

use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe};

use super::{features, limits};
use crate::domain::group::Groups;
use crate::domain::ids::{KeyId, UserId};
use crate::domain::key::{CacheTtl, Key, KeyHash};
use crate::store::engine::column::{Fields, Values};
use crate::store::engine::error::StoreError;
use crate::store::engine::sql;
use crate::store::engine::tx::Tx;

const COLUMNS: &[&str] = limits::columns!(
    [
        "user_id",
        "name",
        "hash",
        "prefix",
        "last_four",
        "is_enabled",
        "expires_at",
        "can_login_web_ui"
    ],
    [
        "provider_group",
        "cache_ttl",
        "allowed_models",
        "allowed_features",
        "denied_features",
        "created_at",
        "updated_at",
        "deleted_at"
    ]
);

/// Ids in one `IN (…)`: far below the limit of either back end.
const IDS_PER_QUERY: usize = 500;

fn bind(key: &Key) -> Values {
    let mut values = Values::default();
    values
        .int(key.user_id.0)
        .text(&key.name)
        .bytes(&key.hash.0)
        .text(&key.prefix)
        .text(&key.last_four);
    values.flag(key.is_enabled).opt_time(key.expires_at).flag(key.can_login_web_ui);
    limits::bind(&mut values, &key.limits);
    values.text(&key.provider_group.to_string()).text(key.cache_ttl.as_str());
    values.json(&key.allowed_models).json(&key.features.allowed).json(&key.features.denied);
    values.time(key.created_at).time(key.updated_at).opt_time(key.deleted_at);
    values
}

fn read(row: &AnyRow) -> Result<Key, StoreError> {
    let fields = Fields { row, table: "api_keys" };
    Ok(Key {
        id: KeyId(fields.int("id")?),
        user_id: UserId(fields.int("user_id")?),
        name: fields.text("name")?,
        hash: KeyHash(fields.bytes("hash")?),
        prefix: fields.text("prefix")?,
        last_four: fields.text("last_four")?,
        is_enabled: fields.flag("is_enabled")?,
        expires_at: fields.opt_time("expires_at")?,
        can_login_web_ui: fields.flag("can_login_web_ui")?,
        limits: limits::read(fields)?,
        provider_group: Groups::parse(&fields.text("provider_group")?),
        cache_ttl: fields.named("cache_ttl", CacheTtl::parse)?,
        allowed_models: fields.json("allowed_models")?,
        features: features::read(fields)?,
        created_at: fields.time("created_at")?,
        updated_at: fields.time("updated_at")?,
        deleted_at: fields.opt_time("deleted_at")?,
    })
}

/// Every key that is not deleted, oldest first.
pub(super) async fn all(connection: &mut AnyConnection) -> Result<Vec<Key>, StoreError> {
    let sql = sql::select("api_keys", COLUMNS, "WHERE deleted_at IS NULL ORDER BY id");
    sqlx::query(AssertSqlSafe(sql)).fetch_all(connection).await?.iter().map(read).collect()
}

impl Tx {
    /// A user's keys that are not deleted, oldest first.
    pub async fn keys_of(&mut self, user: UserId) -> Result<Vec<Key>, StoreError> {
        let sql = sql::select(
            "api_keys",
            COLUMNS,
            "WHERE deleted_at IS NULL AND user_id = $1 ORDER BY id",
        );
        let rows = sqlx::query(AssertSqlSafe(sql)).bind(user.0).fetch_all(&mut *self.inner).await?;
        rows.iter().map(read).collect()
    }

    /// How many keys the user has had, deleted ones included.
    pub async fn keys_ever_of(&mut self, user: UserId) -> Result<u64, StoreError> {
        let sql = "SELECT COUNT(*) AS ever FROM api_keys WHERE user_id = $1";
        let row = sqlx::query(sql).bind(user.0).fetch_one(&mut *self.inner).await?;
        Fields { row: &row, table: "api_keys" }.number("ever")
    }

    /// The key, unless it is deleted or does not exist.
    pub async fn key(&mut self, id: KeyId) -> Result<Option<Key>, StoreError> {
        Ok(self.keys(&[id]).await?.pop())
    }

    /// The keys of these ids that exist and are not deleted, each once, oldest first.
    pub async fn keys(&mut self, ids: &[KeyId]) -> Result<Vec<Key>, StoreError> {
        let mut ids: Vec<i64> = ids.iter().map(|id| id.0).collect();
        ids.sort_unstable();
        ids.dedup();
        let mut keys = Vec::with_capacity(ids.len());
        for chunk in ids.chunks(IDS_PER_QUERY) {
            let places: Vec<String> = (1..=chunk.len()).map(|at| format!("${at}")).collect();
            let rest =
                format!("WHERE deleted_at IS NULL AND id IN ({}) ORDER BY id", places.join(","));
            let mut values = Values::default();
            for id in chunk {
                values.int(*id);
            }
            let sql = AssertSqlSafe(sql::select("api_keys", COLUMNS, &rest));
            let query = sqlx::query_with(sql, values.into_arguments()).persistent(chunk.len() == 1);
            for row in &query.fetch_all(&mut *self.inner).await? {
                keys.push(read(row)?);
            }
        }
        Ok(keys)
    }

    /// The removed key that has this hash. A hash is unique among removed keys too.
    pub async fn removed_key(&mut self, hash: &KeyHash) -> Result<Option<Key>, StoreError> {
        let mut values = Values::default();
        values.bytes(&hash.0);
        let sql = AssertSqlSafe(sql::select(
            "api_keys",
            COLUMNS,
            "WHERE deleted_at IS NOT NULL AND hash = $1",
        ));
        let row =
            sqlx::query_with(sql, values.into_arguments()).fetch_optional(&mut *self.inner).await?;
        row.as_ref().map(read).transpose()
    }

    /// Adds a key; its `id` is ignored and the new one returned.
    ///
    /// # Errors
    /// [`StoreError::Constraint`] when the user has a key of that name, the user is not there, or
    /// the hash is known.
    pub async fn insert_key(&mut self, key: &Key) -> Result<KeyId, StoreError> {
        self.insert_row("api_keys", COLUMNS, bind(key)).await.map(KeyId)
    }

    /// Overwrites every field of the key. To delete softly, set `deleted_at`.
    ///
    /// # Errors
    /// [`StoreError::Missing`] when there is no such key, [`StoreError::Constraint`] as for adding.
    pub async fn update_key(&mut self, key: &Key) -> Result<(), StoreError> {
        self.update_row("api_keys", COLUMNS, bind(key), key.id.0).await
    }
}
