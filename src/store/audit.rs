//! Who changed what: written in the same transaction as the change, so that neither is there without the other.

use serde_json::Value;

use super::column::Values;
use super::error::StoreError;
use super::tx::Tx;
use crate::domain::clock::Timestamp;

/// One administrative write. Secrets are masked by the caller before they come here.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditEntry {
    pub at: Timestamp,
    /// `admin token`, or the user and key.
    pub actor: String,
    /// The operation, as in its path: `keys/editKey`.
    pub action: String,
    /// What it was done to: `key 12`.
    pub target: String,
    pub before: Option<Value>,
    pub after: Option<Value>,
    pub client_addr: Option<String>,
}

impl Tx {
    /// Adds an entry to the audit log.
    ///
    /// # Errors
    /// [`StoreError`] of the write.
    pub async fn audit(&mut self, entry: &AuditEntry) -> Result<(), StoreError> {
        let json = |value: &Option<Value>| value.as_ref().map(Value::to_string);
        let mut values = Values::default();
        values.time(entry.at).text(&entry.actor).text(&entry.action).text(&entry.target);
        values.opt_text(json(&entry.before).as_deref()).opt_text(json(&entry.after).as_deref());
        values.opt_text(entry.client_addr.as_deref());
        let sql = "INSERT INTO audit_log (happened_at, actor, action, target, state_before, state_after, client_addr) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7)";
        sqlx::query_with(sql, values.into_arguments()).execute(&mut *self.inner).await?;
        Ok(())
    }
}
