//! The whole configuration in one consistent read: the source of the data plane's snapshot.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sqlx::AnyConnection;

use super::invoice_sources::StoredInvoiceSource;
use super::notifications::StoredNotifications;
use super::providers::StoredProvider;
use super::{
    error_rules, invoice_sources, keys, notifications, prices, providers, sealed, settings, users,
    words,
};
use crate::domain::error_rule::ErrorRule;
use crate::domain::fast_map::FastMap;
use crate::domain::key::Key;
use crate::domain::price::Price;
use crate::domain::settings::SystemSettings;
use crate::domain::user::User;
use crate::domain::word::SensitiveWord;
use crate::store::Store;
use crate::store::engine::column::Fields;
use crate::store::engine::error::StoreError;
use crate::store::engine::tx::Tx;

/// Everything that is configured and not deleted, as of one moment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Everything {
    /// Rises with every committed change.
    pub version: i64,
    /// Users, the oldest first, disabled ones too.
    pub users: Vec<User>,
    /// Keys, the oldest first, disabled and expired ones too. Only the hash of a key is stored.
    pub keys: Vec<Key>,
    /// Providers, the oldest first, disabled ones too, each with its sealed credential.
    pub providers: Vec<StoredProvider>,
    /// The price table: one entry for each model, sorted by name.
    #[serde(with = "prices::stored")]
    pub prices: Vec<Arc<Price>>,
    /// The system settings, with defaults for those that are not stored.
    pub settings: SystemSettings,
    /// Sensitive words, the oldest first, disabled ones too.
    pub words: Vec<SensitiveWord>,
    /// Error rules in the order of their evaluation, disabled ones too, without removed ones.
    pub error_rules: Vec<ErrorRule>,
}

impl Store {
    /// Reads the whole configuration as of one moment.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] names the table and column of a value that cannot be read.
    pub async fn load_all(&self) -> Result<Everything, StoreError> {
        self.load_all_after(&FastMap::default()).await
    }

    /// The same; prices of the former load that are unchanged are taken from there.
    pub async fn load_all_after(
        &self,
        prices: &FastMap<String, Arc<Price>>,
    ) -> Result<Everything, StoreError> {
        let mut tx = self.read().await?;
        let everything = read(&mut tx, prices).await?;
        tx.commit().await?;
        Ok(everything)
    }

    /// The configuration's version: the same number means that nothing has changed.
    pub async fn config_version(&self) -> Result<i64, StoreError> {
        version(&mut *self.reader().await?).await
    }
}

/// [`Everything`], and what no request needs.
#[derive(Debug, Clone)]
pub struct WholeDatabase {
    /// What requests need.
    pub everything: Everything,
    /// The settings of notifications, with the sealed key that signs them.
    pub notifications: StoredNotifications,
    /// Where providers' invoices are read from, each with its sealed key.
    pub invoice_sources: Vec<StoredInvoiceSource>,
    /// All error rules; removed ones of the program's own among them.
    pub error_rules: Vec<ErrorRule>,
    /// The id of the key that new texts are sealed with.
    pub sealing_key: Option<String>,
}

impl Store {
    /// Reads all that is configured as of one moment.
    pub async fn load_whole(&self) -> Result<WholeDatabase, StoreError> {
        let mut tx = self.read().await?;
        let whole = read_whole(&mut tx).await?;
        tx.commit().await?;
        Ok(whole)
    }
}

impl Tx {
    /// All that is configured, as this transaction sees it.
    pub async fn whole(&mut self) -> Result<WholeDatabase, StoreError> {
        read_whole(&mut self.inner).await
    }
}

async fn read_whole(connection: &mut AnyConnection) -> Result<WholeDatabase, StoreError> {
    Ok(WholeDatabase {
        everything: read(connection, &FastMap::default()).await?,
        notifications: notifications::settings(connection).await?,
        invoice_sources: invoice_sources::all(connection).await?,
        error_rules: error_rules::with_removed(connection).await?,
        sealing_key: sealed::sealing_key(connection).await?,
    })
}

async fn read(
    connection: &mut AnyConnection,
    known: &FastMap<String, Arc<Price>>,
) -> Result<Everything, StoreError> {
    Ok(Everything {
        version: version(connection).await?,
        users: users::all(connection).await?,
        keys: keys::all(connection).await?,
        providers: providers::all(connection).await?,
        prices: prices::all(connection, known).await?,
        settings: settings::of(connection).await?,
        words: words::all(connection).await?,
        error_rules: error_rules::all(connection).await?,
    })
}

impl Store {
    /// The system settings as stored.
    pub async fn settings(&self) -> Result<SystemSettings, StoreError> {
        settings::of(&mut *self.reader().await?).await
    }
}

async fn version(connection: &mut AnyConnection) -> Result<i64, StoreError> {
    let row = sqlx::query("SELECT version FROM config_version WHERE id = 1")
        .fetch_one(connection)
        .await?;
    Fields { row: &row, table: "config_version" }.int("version")
}
