//! The audit log: written in the same transaction as the change, so that neither exists without the
//! other; read newest first.

use std::fmt::Write as _;

use serde_json::Value;
use sqlx::AssertSqlSafe;
use sqlx::any::AnyRow;

use crate::domain::clock::Timestamp;
use crate::store::Store;
use crate::store::engine::column::{Fields, Values};
use crate::store::engine::error::StoreError;
use crate::store::engine::tx::Tx;

/// One administrative write. The caller masks secrets before.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditEntry {
    /// When the change was made.
    pub at: Timestamp,
    /// `admin token`, or the user and key.
    pub actor: String,
    /// The operation: `keys.editKey`.
    pub action: String,
    /// The changed record: `key 12`.
    pub target: String,
    /// The record before the change; `None` if there was none.
    pub before: Option<Value>,
    /// The record after the change; `None` if there is none.
    pub after: Option<Value>,
    /// The address that the change came from; `None` for commands and changes of the gateway
    /// itself.
    pub client_addr: Option<String>,
}

impl Tx {
    /// Adds an entry to the audit log.
    pub async fn audit(&mut self, entry: &AuditEntry) -> Result<(), StoreError> {
        let json = |value: &Option<Value>| value.as_ref().map(Value::to_string);
        let mut values = Values::default();
        values.time(entry.at).text(&entry.actor).text(&entry.action).text(&entry.target);
        values.opt_text(json(&entry.before).as_deref()).opt_text(json(&entry.after).as_deref());
        values.opt_text(entry.client_addr.as_deref());
        let sql = "INSERT INTO audit_log (happened_at, actor, action, target, state_before, \
                   state_after, client_addr) VALUES ($1, $2, $3, $4, $5, $6, $7)";
        sqlx::query_with(sql, values.into_arguments()).execute(&mut *self.inner).await?;
        Ok(())
    }
}

/// Which entries, and how many. All given conditions must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditAsk {
    /// A part of the actor's name, case-insensitive.
    pub actor: Option<String>,
    /// A prefix of the action's name.
    pub action: Option<String>,
    /// The changed record, exactly: `key 12`.
    pub target: Option<String>,
    /// From this time on.
    pub start: Option<Timestamp>,
    /// Before this time.
    pub end: Option<Timestamp>,
    /// Entries before the one of this number.
    pub before: Option<i64>,
    /// Maximum entries in the answer.
    pub max: u32,
}

/// A stored entry.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditRow {
    /// Rises with every entry.
    pub id: i64,
    /// The entry as it was written.
    pub entry: AuditEntry,
}

/// Entries, newest first.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditPage {
    /// At most `AuditAsk::max` entries.
    pub rows: Vec<AuditRow>,
    /// The value of `before` for the next page; `None` on the last.
    pub next: Option<i64>,
}

impl Store {
    /// One page of the audit log, newest first.
    pub async fn audit_log(&self, ask: &AuditAsk) -> Result<AuditPage, StoreError> {
        let mut values = Values::default();
        let mut sql = String::from(
            "SELECT id, happened_at, actor, action, target, state_before, state_after, client_addr \
             FROM audit_log WHERE 1 = 1",
        );
        let mut condition = |text: &str, values: &Values| {
            // Writing to a String cannot fail.
            let escape = if text.ends_with("LIKE") { r" ESCAPE '\'" } else { "" };
            let _ = write!(sql, " AND {text} ${}{escape}", values.count());
        };
        let texts = [
            ("target =", ask.target.clone()),
            ("action LIKE", ask.action.as_deref().map(|text| format!("{}%", escaped(text)))),
            (
                "LOWER(actor) LIKE",
                ask.actor.as_deref().map(|text| format!("%{}%", escaped(&text.to_lowercase()))),
            ),
        ];
        for (column, text) in texts {
            if let Some(text) = text {
                values.text(&text);
                condition(column, &values);
            }
        }
        let bounds =
            [(ask.start.map(|t| t.0), "happened_at >="), (ask.end.map(|t| t.0), "happened_at <")];
        for (bound, column) in bounds.into_iter().chain([(ask.before, "id <")]) {
            if let Some(bound) = bound {
                values.int(bound);
                condition(column, &values);
            }
        }
        // One more than requested, to find out whether there is another page.
        values.int(i64::from(ask.max) + 1);
        let _ = write!(sql, " ORDER BY id DESC LIMIT ${}", values.count());
        let query = sqlx::query_with(AssertSqlSafe(sql), values.into_arguments());
        let found = query.fetch_all(&mut *self.report().await?).await?;
        let mut rows = found.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let more = rows.len() > ask.max as usize;
        rows.truncate(ask.max as usize);
        let next = rows.last().filter(|_| more).map(|row| row.id);
        Ok(AuditPage { rows, next })
    }
}

/// Escapes text for a `LIKE` pattern whose escape is a backslash.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\\").replace('%', r"\%").replace('_', r"\_")
}

fn read(row: &AnyRow) -> Result<AuditRow, StoreError> {
    let fields = Fields { row, table: "audit_log" };
    let json = |column| match fields.opt_text(column)? {
        None => Ok(None),
        Some(_) => fields.json(column).map(Some),
    };
    Ok(AuditRow {
        id: fields.int("id")?,
        entry: AuditEntry {
            at: fields.time("happened_at")?,
            actor: fields.text("actor")?,
            action: fields.text("action")?,
            target: fields.text("target")?,
            before: json("state_before")?,
            after: json("state_after")?,
            client_addr: fields.opt_text("client_addr")?,
        },
    })
}
