//! Audit entries as shown.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::Iso;
use crate::store::{AuditPage, AuditRow};

/// One administrative write.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditRecord {
    /// Identifies the entry; later entries have greater ids.
    pub id: i64,
    /// When the change was made.
    pub happened_at: Iso,
    /// `admin token`, or the user and the key that it was done with.
    pub actor: String,
    /// The operation: `keys.editKey`.
    pub action: String,
    /// What it was done to: `key 12`.
    pub target: String,
    /// The record before the change; secrets are masked. `null`: there was none.
    pub before: Option<Value>,
    /// The record after it.
    pub after: Option<Value>,
    /// The address that it was done from.
    pub client_address: Option<String>,
}

impl From<AuditRow> for AuditRecord {
    fn from(row: AuditRow) -> Self {
        let AuditRow { id, entry } = row;
        Self {
            id,
            happened_at: Iso(entry.at),
            actor: entry.actor,
            action: entry.action,
            target: entry.target,
            before: entry.before,
            after: entry.after,
            client_address: entry.client_addr,
        }
    }
}

/// One page of the audit log, newest first.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditPageRecord {
    /// The entries of this page.
    pub entries: Vec<AuditRecord>,
    /// Asks for the page after; `null` on the last.
    pub next_cursor: Option<i64>,
}

impl From<AuditPage> for AuditPageRecord {
    fn from(page: AuditPage) -> Self {
        Self {
            entries: page.rows.into_iter().map(AuditRecord::from).collect(),
            next_cursor: page.next,
        }
    }
}
