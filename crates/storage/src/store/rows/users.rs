//! User rows.

use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe};

use super::{features, limits};
use crate::domain::group::Groups;
use crate::domain::ids::UserId;
use crate::domain::user::{Role, User};
use crate::store::engine::column::{Fields, Values};
use crate::store::engine::error::StoreError;
use crate::store::engine::sql;
use crate::store::engine::tx::Tx;

const COLUMNS: &[&str] = limits::columns!(
    ["name", "note", "role", "is_enabled", "expires_at", "rpm"],
    [
        "provider_group",
        "tags",
        "allowed_models",
        "allowed_clients",
        "allowed_features",
        "denied_features",
        "lock_key_limits",
        "max_keys",
        "created_at",
        "updated_at",
        "deleted_at"
    ]
);

fn bind(user: &User) -> Values {
    let mut values = Values::default();
    values.text(&user.name).text(&user.note).text(user.role.as_str());
    values.flag(user.is_enabled).opt_time(user.expires_at).int(i64::from(user.rpm));
    limits::bind(&mut values, &user.limits);
    values.text(&user.provider_group.to_string());
    values.json(&user.tags).json(&user.allowed_models).json(&user.allowed_clients);
    values.json(&user.features.allowed).json(&user.features.denied);
    values.flag(user.lock_key_limits).opt_int(user.max_keys.map(i64::from));
    values.time(user.created_at).time(user.updated_at).opt_time(user.deleted_at);
    values
}

fn read(row: &AnyRow) -> Result<User, StoreError> {
    let fields = Fields { row, table: "users" };
    Ok(User {
        id: UserId(fields.int("id")?),
        name: fields.text("name")?,
        note: fields.text("note")?,
        role: fields.named("role", Role::parse)?,
        is_enabled: fields.flag("is_enabled")?,
        expires_at: fields.opt_time("expires_at")?,
        rpm: fields.number("rpm")?,
        limits: limits::read(fields)?,
        provider_group: Groups::parse(&fields.text("provider_group")?),
        tags: fields.json("tags")?,
        allowed_models: fields.json("allowed_models")?,
        allowed_clients: fields.json("allowed_clients")?,
        features: features::read(fields)?,
        lock_key_limits: fields.flag("lock_key_limits")?,
        max_keys: fields.opt_number("max_keys")?,
        created_at: fields.time("created_at")?,
        updated_at: fields.time("updated_at")?,
        deleted_at: fields.opt_time("deleted_at")?,
    })
}

/// Every user that is not deleted, oldest first.
pub(super) async fn all(connection: &mut AnyConnection) -> Result<Vec<User>, StoreError> {
    let sql = sql::select("users", COLUMNS, "WHERE deleted_at IS NULL ORDER BY id");
    sqlx::query(AssertSqlSafe(sql)).fetch_all(connection).await?.iter().map(read).collect()
}

impl Tx {
    /// Every user that is not deleted, oldest first.
    pub async fn users(&mut self) -> Result<Vec<User>, StoreError> {
        all(&mut self.inner).await
    }

    /// The user, unless deleted or nonexistent.
    pub async fn user(&mut self, id: UserId) -> Result<Option<User>, StoreError> {
        let sql = sql::select("users", COLUMNS, "WHERE deleted_at IS NULL AND id = $1");
        let row =
            sqlx::query(AssertSqlSafe(sql)).bind(id.0).fetch_optional(&mut *self.inner).await?;
        row.as_ref().map(read).transpose()
    }

    /// Adds a user; its `id` is ignored and the new one returned.
    pub async fn insert_user(&mut self, user: &User) -> Result<UserId, StoreError> {
        self.insert_row("users", COLUMNS, bind(user)).await.map(UserId)
    }

    /// Overwrites every field of the user. To delete softly, set `deleted_at`.
    ///
    /// # Errors
    /// [`StoreError::Missing`] when there is no such user.
    pub async fn update_user(&mut self, user: &User) -> Result<(), StoreError> {
        self.update_row("users", COLUMNS, bind(user), user.id.0).await
    }
}
