//! `my-usage/*`: what a key may read about itself, even one that may not use the web UI. Never
//! about another key.

use std::sync::Arc;

use super::{logs, overview};
use crate::admin::auth::Actor;
use crate::admin::call::Call;
use crate::admin::envelope::ApiError;
use crate::admin::fields::{Body, DayEdge, Field, Kind, Values};
use crate::admin::records::log::LogPageRecord;
use crate::admin::records::my_usage::{MyMetadata, MyQuota, MyStats, of_lifetime};
use crate::admin::table::{Operation, Permission};
use crate::domain::clock::Timestamp;
use crate::domain::key::Key;
use crate::domain::user::User;
use crate::state::Reach;
use crate::store::{LogFilter, ModelStatistics};

const TEXT: Kind = Kind::text(1, 512);

/// As in `usage-logs/getUsageLogs`, without the filters by key.
pub const LOGS: &[Field] = &[
    Field::new("startDate", Kind::Moment(DayEdge::Start), "From this time, or the start of this day.").nullable(),
    Field::new("endDate", Kind::Moment(DayEdge::End), "Up to and with this time, or the end of this day.").nullable(),
    Field::new("model", TEXT, "As the client asked for it, exactly.").nullable(),
    Field::new("statusCode", Kind::Integer { min: 100, max: 599 }, "").nullable(),
    Field::new("sessionId", TEXT, "").nullable(),
    Field::new("requestId", Kind::text(1, 64), "One request, by its header `x-tollgate-request-id`.").nullable(),
    Field::new("endpoint", TEXT, "The request's path, exactly.").nullable(),
    Field::new("minRetryCount", Kind::Integer { min: 0, max: 100 }, "At least so many attempts beyond the first.")
        .nullable(),
    Field::new("excludeStatusCode200", Kind::Boolean, "").or_false(),
    Field::new(
        "page",
        Kind::Integer { min: 1, max: 1_000_000 },
        "Counted from 1; for deep pages send `cursor` instead.",
    )
    .or_integer(1),
    Field::new("pageSize", Kind::Integer { min: 1, max: 100 }, "").or_integer(50),
    Field::new("cursor", Kind::text(1, 100), "The `nextCursor` of the page before.").nullable(),
];

pub const SUMMARY: &[Field] = &[
    Field::new(
        "startDate",
        Kind::Moment(DayEdge::Start),
        "From this time, or the start of this day; else from the first request.",
    )
    .nullable(),
    Field::new(
        "endDate",
        Kind::Moment(DayEdge::End),
        "Up to and with this time, or the end of this day; else up to now.",
    )
    .nullable(),
];

pub fn operations() -> Vec<Operation> {
    let any = Permission::Any;
    vec![
        Operation::action("actions/my-usage/getMyUsageMetadata", any, Body::EMPTY, metadata)
            .doc("The key that asks, and its user."),
        Operation::action("actions/my-usage/getMyQuota", any, Body::EMPTY, quota)
            .doc("What the key and its user have used of each of their limits."),
        Operation::action("actions/my-usage/getMyTodayStats", any, Body::EMPTY, today)
            .doc("What the key was used for today, by model too."),
        Operation::action("actions/my-usage/getMyUsageLogs", any, Body::of(&[], LOGS), usage_logs)
            .doc("A page of the key's own usage log, newest first."),
        Operation::action("actions/my-usage/getMyStatsSummary", any, Body::of(&[], SUMMARY), summary)
            .doc("What the key was used for in some time, or ever, by model too."),
        Operation::action("actions/my-usage/getMyAvailableModels", any, Body::EMPTY, available_models)
            .doc("The models that the key can reach, sorted: those of `/v1/models`."),
    ]
}

/// The calling key, and its user.
fn me(call: &Call) -> Result<(Arc<Key>, Arc<User>), ApiError> {
    match &call.who()?.actor {
        Actor::Key { key, user } => Ok((Arc::clone(key), Arc::clone(user))),
        Actor::Token => Err(ApiError::denied("the administrator token is no key: it has no usage of its own")),
    }
}

async fn metadata(call: Call) -> Result<MyMetadata, ApiError> {
    let (key, user) = me(&call)?;
    Ok(MyMetadata::new(&call.ctx, &key, &user))
}

async fn quota(call: Call) -> Result<MyQuota, ApiError> {
    let (key, user) = me(&call)?;
    let counters = &call.ctx.counters;
    let of_key = counters.key_usage(&key, call.now).await;
    let of_user = counters.user_usage(&user, call.now).await;
    Ok(MyQuota { key: (&of_key).into(), user: (&of_user).into() })
}

async fn today(call: Call) -> Result<MyStats, ApiError> {
    let day = overview::today(&call.ctx, call.now);
    stats(&call, day.start, day.end).await
}

async fn usage_logs(call: Call) -> Result<LogPageRecord, ApiError> {
    let (key, user) = me(&call)?;
    let values = &call.values;
    let filter = LogFilter { key_id: Some(key.id), scope: Some(user.id), ..logs::common(values) };
    logs::page(&call, &filter).await
}

async fn summary(call: Call) -> Result<MyStats, ApiError> {
    let (key, user) = me(&call)?;
    let (start, end) = stretch(&call.values);
    if start.is_none() && end.is_none() {
        let totals = call.ctx.store.key_totals(user.id, key.id).await?;
        return Ok(MyStats::new(totals.into_iter().map(of_lifetime).collect()));
    }
    stats(&call, start.unwrap_or_default(), end.unwrap_or(call.now.plus_ms(1))).await
}

fn stretch(values: &Values) -> (Option<Timestamp>, Option<Timestamp>) {
    // The store's end is exclusive, the wire's inclusive, to the millisecond.
    (values.moment("startDate").set(), values.moment("endDate").set().map(|end| end.plus_ms(1)))
}

/// The use of the key between two times.
async fn stats(call: &Call, from: Timestamp, until: Timestamp) -> Result<MyStats, ApiError> {
    let (key, user) = me(call)?;
    let keys = call.ctx.store.key_statistics(user.id, from, until).await?;
    let models: Vec<ModelStatistics> =
        keys.into_iter().find(|found| found.key_id == key.id).map(|found| found.models).unwrap_or_default();
    Ok(MyStats::new(models))
}

/// A provider's last listing counts, however old: this page sends no requests to providers.
async fn available_models(call: Call) -> Result<Vec<String>, ApiError> {
    let (key, user) = me(&call)?;
    let reach = Reach { groups: Some(&key.provider_group), allowed_models: &user.allowed_models };
    let snapshot = call.ctx.state.snapshot();
    Ok(reach.models(&snapshot, |provider| call.ctx.listings.last(provider)).into_iter().collect())
}
