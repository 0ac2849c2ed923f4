//! Every text that is stored sealed, and the id of the key that seals new ones. This module neither
//! seals nor opens.

use sqlx::{AnyConnection, AssertSqlSafe};

use crate::domain::ids::ProviderId;
use crate::store::Store;
use crate::store::engine::column::{Fields, Values};
use crate::store::engine::error::StoreError;
use crate::store::engine::tx::Tx;

/// A sealed text and its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedText {
    /// Whose text it is.
    pub owner: SealedOwner,
    /// The sealed text, as `crypto` writes it.
    pub cipher: String,
}

/// The owner of a sealed text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SealedOwner {
    /// The credential of a provider, with its name for messages.
    Provider(ProviderId, String),
    /// The key that signs webhooks.
    WebhookSecret,
    /// The administration key for the invoice of a provider, with the provider's name.
    Invoice(ProviderId, String),
}

async fn all(connection: &mut AnyConnection) -> Result<Vec<SealedText>, StoreError> {
    let sql = "SELECT id, name, key_cipher FROM providers \
               WHERE deleted_at IS NULL AND key_cipher <> '' ORDER BY id";
    let rows = sqlx::query(sql).fetch_all(&mut *connection).await?;
    let mut texts = Vec::with_capacity(rows.len() + 1);
    for row in &rows {
        let fields = Fields { row, table: "providers" };
        let owner = SealedOwner::Provider(ProviderId(fields.int("id")?), fields.text("name")?);
        texts.push(SealedText { owner, cipher: fields.text("key_cipher")? });
    }
    let sql = "SELECT secret_cipher FROM notification_settings WHERE id = 1";
    if let Some(row) = sqlx::query(sql).fetch_optional(&mut *connection).await? {
        let cipher =
            Fields { row: &row, table: "notification_settings" }.opt_text("secret_cipher")?;
        texts.extend(cipher.map(|cipher| SealedText { owner: SealedOwner::WebhookSecret, cipher }));
    }
    let sql = "SELECT provider_id, name, invoice_sources.key_cipher AS cipher FROM \
               invoice_sources JOIN providers ON providers.id = provider_id \
               WHERE invoice_sources.key_cipher <> '' ORDER BY provider_id";
    for row in &sqlx::query(sql).fetch_all(connection).await? {
        let fields = Fields { row, table: "invoice_sources" };
        let id = ProviderId(fields.int("provider_id")?);
        let owner = SealedOwner::Invoice(id, fields.text("name")?);
        texts.push(SealedText { owner, cipher: fields.text("cipher")? });
    }
    Ok(texts)
}

pub(super) async fn sealing_key(
    connection: &mut AnyConnection,
) -> Result<Option<String>, StoreError> {
    let row = sqlx::query("SELECT key_id FROM sealing_key WHERE id = 1")
        .fetch_optional(connection)
        .await?;
    row.map(|row| Fields { row: &row, table: "sealing_key" }.text("key_id")).transpose()
}

impl Store {
    /// Every sealed text, and the id of the key that seals new ones, as of one moment.
    pub async fn sealed_texts(&self) -> Result<(Vec<SealedText>, Option<String>), StoreError> {
        let mut tx = self.read().await?;
        let found = (all(&mut tx).await?, sealing_key(&mut tx).await?);
        tx.commit().await?;
        Ok(found)
    }
}

impl Tx {
    /// Every sealed text.
    pub async fn sealed_texts(&mut self) -> Result<Vec<SealedText>, StoreError> {
        all(&mut self.inner).await
    }

    /// The id of the key that seals new texts; `None` before the first.
    pub async fn sealing_key(&mut self) -> Result<Option<String>, StoreError> {
        sealing_key(&mut self.inner).await
    }

    /// Sets the key that seals new texts.
    pub async fn set_sealing_key(&mut self, key_id: &str) -> Result<(), StoreError> {
        let mut values = Values::default();
        values.text(key_id);
        let sql = "INSERT INTO sealing_key (id, key_id) VALUES (1, $1) \
                   ON CONFLICT (id) DO UPDATE SET key_id = excluded.key_id";
        sqlx::query_with(sql, values.into_arguments()).execute(&mut *self.inner).await?;
        Ok(())
    }

    /// Replaces a sealed text.
    pub async fn replace_sealed(
        &mut self,
        owner: &SealedOwner,
        cipher: &str,
    ) -> Result<(), StoreError> {
        let sql = match owner {
            SealedOwner::Provider(id, _) => return self.set_provider_key(*id, cipher).await,
            SealedOwner::Invoice(id, _) => return self.set_invoice_key(*id, cipher).await,
            SealedOwner::WebhookSecret => {
                "UPDATE notification_settings SET secret_cipher = $1 WHERE id = 1"
            }
        };
        let mut values = Values::default();
        values.text(cipher);
        sqlx::query_with(AssertSqlSafe(sql), values.into_arguments())
            .execute(&mut *self.inner)
            .await?;
        Ok(())
    }

    /// Removes a sealed text; its owner stays, without a credential.
    pub async fn forget_sealed(&mut self, owner: &SealedOwner) -> Result<(), StoreError> {
        match owner {
            SealedOwner::Provider(id, _) => self.set_provider_key(*id, "").await,
            SealedOwner::Invoice(id, _) => self.set_invoice_key(*id, "").await,
            SealedOwner::WebhookSecret => {
                let sql = "UPDATE notification_settings SET secret_cipher = NULL WHERE id = 1";
                sqlx::query(sql).execute(&mut *self.inner).await?;
                Ok(())
            }
        }
    }
}
