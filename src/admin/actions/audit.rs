//! `audit/getAuditLog`: the changes, with their author and the values before and after.
//!
//! Entries are written with the change itself and are never changed or removed by any operation.

use crate::admin::call::Call;
use crate::admin::envelope::ApiError;
use crate::admin::fields::{Body, DayEdge, Field, Kind};
use crate::admin::records::audit::AuditPageRecord;
use crate::admin::table::{Operation, Permission};
use crate::store::AuditAsk;

const TEXT: Kind = Kind::text(1, 200);

/// Filters and the page; every filter that is sent must match.
pub const FILTERS: &[Field] = &[
    Field::new("actor", TEXT, "A part of who did it, in any case: `admin token`, `user 3`, a name.").nullable(),
    Field::new("action", TEXT, "How the operation's name begins: `keys.`, or `keys.editKey`.").nullable(),
    Field::new("target", TEXT, "What it was done to, exactly: `key 12`.").nullable(),
    Field::new("startDate", Kind::Moment(DayEdge::Start), "From this time, or the start of this day.").nullable(),
    Field::new("endDate", Kind::Moment(DayEdge::End), "Up to and with this time, or the end of this day.").nullable(),
    Field::new("pageSize", Kind::Integer { min: 1, max: 100 }, "").or_integer(50),
    Field::new("cursor", Kind::ID, "The `nextCursor` of the page before.").nullable(),
];

pub fn operations() -> Vec<Operation> {
    vec![
        Operation::action("actions/audit/getAuditLog", Permission::Admin, Body::of(&[], FILTERS), get_audit_log)
            .doc("A page of the audit log, newest first."),
    ]
}

async fn get_audit_log(call: Call) -> Result<AuditPageRecord, ApiError> {
    let values = &call.values;
    let ask = AuditAsk {
        actor: values.text("actor").set(),
        action: values.text("action").set(),
        target: values.text("target").set(),
        start: values.moment("startDate").set(),
        // The store's end is exclusive, the wire's inclusive, to the millisecond.
        end: values.moment("endDate").set().map(|end| end.plus_ms(1)),
        before: values.integer("cursor").set(),
        max: values.count("pageSize").set().unwrap_or(50),
    };
    Ok(call.ctx.store.audit_log(&ask).await?.into())
}
