//! When the credentials of providers were used last. Not part of the configuration.

use crate::domain::clock::Timestamp;
use crate::domain::ids::{CredentialId, ProviderId};
use crate::store::Store;
use crate::store::engine::column::{Fields, Values};
use crate::store::engine::error::StoreError;

/// What is known of the uses of one credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CredentialUse {
    /// The provider.
    pub provider: ProviderId,
    /// Which of its credentials.
    pub credential: CredentialId,
    /// Since when uses are noted.
    pub known_since: Timestamp,
    /// The last one; `None` = none since then.
    pub used_at: Option<Timestamp>,
}

impl Store {
    /// Stores uses. A later one that is stored stays, and so does the beginning.
    ///
    /// # Errors
    /// [`StoreError`] of a write.
    pub async fn note_credential_uses(&self, uses: &[CredentialUse]) -> Result<(), StoreError> {
        let mut tx = self.begin().await?;
        for one in uses {
            let mut values = Values::default();
            values.int(one.provider.0).int(one.credential.0).time(one.known_since);
            values.opt_time(one.used_at);
            let sql = "INSERT INTO credential_uses \
                       (provider_id, credential_id, known_since, used_at) \
                       VALUES ($1, $2, $3, $4) ON CONFLICT (provider_id, credential_id) DO UPDATE \
                       SET used_at = excluded.used_at \
                       WHERE excluded.used_at > COALESCE(credential_uses.used_at, 0)";
            sqlx::query_with(sql, values.into_arguments()).execute(&mut *tx.inner).await?;
        }
        tx.commit_record().await
    }

    /// Removes what is stored of these credentials.
    ///
    /// # Errors
    /// [`StoreError`] of a write.
    pub async fn forget_credential_uses(
        &self,
        gone: &[(ProviderId, CredentialId)],
    ) -> Result<(), StoreError> {
        if gone.is_empty() {
            return Ok(());
        }
        let mut tx = self.begin().await?;
        for (provider, credential) in gone {
            let mut values = Values::default();
            values.int(provider.0).int(credential.0);
            let sql = "DELETE FROM credential_uses WHERE provider_id = $1 AND credential_id = $2";
            sqlx::query_with(sql, values.into_arguments()).execute(&mut *tx.inner).await?;
        }
        tx.commit_record().await
    }

    /// All that are stored.
    ///
    /// # Errors
    /// [`StoreError`] of the query, or a row that cannot be read.
    pub async fn credential_uses(&self) -> Result<Vec<CredentialUse>, StoreError> {
        let sql = "SELECT provider_id, credential_id, known_since, used_at FROM credential_uses";
        let rows = sqlx::query(sql).fetch_all(&mut *self.reader().await?).await?;
        let read = |row| {
            let fields = Fields { row, table: "credential_uses" };
            Ok(CredentialUse {
                provider: ProviderId(fields.int("provider_id")?),
                credential: CredentialId(fields.int("credential_id")?),
                known_since: fields.time("known_since")?,
                used_at: fields.opt_time("used_at")?,
            })
        };
        rows.iter().map(read).collect()
    }
}
