//! The whole configuration in one consistent read: the source of the data plane's snapshot.

use sqlx::AnyConnection;

use super::providers::StoredProvider;
use super::{error_rules, keys, prices, providers, users, words};
use crate::domain::error_rule::ErrorRule;
use crate::domain::key::Key;
use crate::domain::price::Price;
use crate::domain::settings::SystemSettings;
use crate::domain::user::User;
use crate::domain::word::SensitiveWord;
use crate::store::Store;
use crate::store::engine::column::Fields;
use crate::store::engine::error::StoreError;

/// Everything that is configured and not deleted, as of one moment.
#[derive(Debug, Clone)]
pub struct Everything {
    /// Rises with every committed change.
    pub version: i64,
    pub users: Vec<User>,
    pub keys: Vec<Key>,
    pub providers: Vec<StoredProvider>,
    pub prices: Vec<Price>,
    pub settings: SystemSettings,
    pub words: Vec<SensitiveWord>,
    pub error_rules: Vec<ErrorRule>,
}

impl Store {
    /// Reads the whole configuration as of one moment.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] names the table and column of a value that cannot be read.
    pub async fn load_all(&self) -> Result<Everything, StoreError> {
        let mut tx = self.read().await?;
        let everything = Everything {
            version: version(&mut tx).await?,
            users: users::all(&mut tx).await?,
            keys: keys::all(&mut tx).await?,
            providers: providers::all(&mut tx).await?,
            prices: prices::all(&mut tx).await?,
            settings: settings(&mut tx).await?,
            words: words::all(&mut tx).await?,
            error_rules: error_rules::all(&mut tx).await?,
        };
        tx.commit().await?;
        Ok(everything)
    }

    /// The configuration's version: the same number means that nothing has changed.
    ///
    /// # Errors
    /// [`StoreError`] of the read.
    pub async fn config_version(&self) -> Result<i64, StoreError> {
        version(&mut *self.reader().await?).await
    }
}

impl Store {
    /// The system settings as stored.
    ///
    /// # Errors
    /// [`StoreError`] of the read.
    pub async fn settings(&self) -> Result<SystemSettings, StoreError> {
        settings(&mut *self.reader().await?).await
    }
}

async fn version(connection: &mut AnyConnection) -> Result<i64, StoreError> {
    let row = sqlx::query("SELECT version FROM config_version WHERE id = 1").fetch_one(connection).await?;
    Fields { row: &row, table: "config_version" }.int("version")
}

/// The stored settings; fields that an older version did not store, or all of them, have their
/// defaults.
pub(in crate::store) async fn settings(connection: &mut AnyConnection) -> Result<SystemSettings, StoreError> {
    let row = sqlx::query("SELECT data FROM system_settings WHERE id = 1").fetch_optional(connection).await?;
    row.map_or_else(|| Ok(SystemSettings::default()), |row| Fields { row: &row, table: "system_settings" }.json("data"))
}
