//! The system settings: one row with one JSON document.

use sqlx::AnyConnection;

use crate::domain::settings::SystemSettings;
use crate::store::engine::column::{Fields, Values};
use crate::store::engine::error::StoreError;
use crate::store::engine::tx::Tx;

impl Tx {
    /// The system settings.
    pub async fn settings(&mut self) -> Result<SystemSettings, StoreError> {
        of(&mut self.inner).await
    }

    /// Replaces the system settings.
    pub async fn save_settings(&mut self, settings: &SystemSettings) -> Result<(), StoreError> {
        let mut values = Values::default();
        values.json(settings);
        let sql = "INSERT INTO system_settings (id, data) VALUES (1, $1) \
                   ON CONFLICT (id) DO UPDATE SET data = excluded.data";
        sqlx::query_with(sql, values.into_arguments()).execute(&mut *self.inner).await?;
        Ok(())
    }
}

/// The stored settings; fields that are absent, or all of them, have their defaults.
pub(super) async fn of(connection: &mut AnyConnection) -> Result<SystemSettings, StoreError> {
    let row = sqlx::query("SELECT data FROM system_settings WHERE id = 1")
        .fetch_optional(connection)
        .await?;
    row.map_or_else(
        || Ok(SystemSettings::default()),
        |row| Fields { row: &row, table: "system_settings" }.json("data"),
    )
}
