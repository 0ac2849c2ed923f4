//! `audit/getAuditLog`: the changes, with their author and the values before and after.
//!
//! Entries are written with the change itself and are never changed or removed by any operation.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::admin::bodies::{Id, Moment, Plain, Text, Whole};
use crate::admin::call::Call;
use crate::admin::envelope::ApiError;
use crate::admin::operation::{Operation, Permission};
use crate::admin::records::audit::AuditPageRecord;
use crate::store::AuditAsk;

/// Filters and the page; every filter that is sent must match.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditFilter {
    /// A part of who did it, in any case: `admin token`, `user 3`, a name.
    pub actor: Option<Text<1, 200>>,
    /// How the operation's name begins: `keys.`, or `keys.editKey`.
    pub action: Option<Text<1, 200>>,
    /// What it was done to, exactly: `key 12`.
    pub target: Option<Text<1, 200>>,
    /// From this time, or the start of this day.
    pub start_date: Option<Moment>,
    /// Up to and with this time, or the end of this day.
    pub end_date: Option<Moment>,
    /// Entries in one answer.
    #[serde(default)]
    pub page_size: Whole<u32, 1, 100, 50>,
    /// The `nextCursor` of the page before.
    pub cursor: Option<Id>,
}

/// The operations of this file, for the table of all.
pub fn operations() -> Vec<Operation> {
    vec![
        Operation::action("actions/audit/getAuditLog", Permission::Admin, get_audit_log)
            .report()
            .doc("A page of the audit log, newest first."),
    ]
}

async fn get_audit_log(call: Call, body: AuditFilter) -> Result<AuditPageRecord, ApiError> {
    let tz = call.ctx.time_zone;
    let ask = AuditAsk {
        actor: body.actor.plain(),
        action: body.action.plain(),
        target: body.target.plain(),
        start: body.start_date.map(|start| start.start(tz)),
        // The store's end is exclusive, the wire's inclusive, to the millisecond.
        end: body.end_date.map(|end| end.end(tz).plus_ms(1)),
        before: body.cursor.plain(),
        max: body.page_size.0,
    };
    Ok(call.ctx.node.store.audit_log(&ask).await?.into())
}
