//! `my-usage/*`: what a key may read about itself, even one that may not use the web UI. Never
//! about another key.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::logs::{self, OwnLogQuery};
use super::overview;
use crate::admin::auth::Actor;
use crate::admin::bodies::{Moment, Nothing};
use crate::admin::call::Call;
use crate::admin::envelope::ApiError;
use crate::admin::operation::{Operation, Permission};
use crate::admin::reasons::Reason;
use crate::admin::records::log::LogPageRecord;
use crate::admin::records::my_usage::{MyMetadata, MyQuota, MyStats, of_lifetime};
use crate::domain::clock::Timestamp;
use crate::domain::key::Key;
use crate::domain::user::User;
use crate::state::Reach;
use crate::store::{LogFilter, ModelStatistics};

/// Which time.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Stretch {
    /// From this time, or the start of this day; else from the first request.
    pub start_date: Option<Moment>,
    /// Up to and with this time, or the end of this day; else up to now.
    pub end_date: Option<Moment>,
}

/// The operations of this file, for the table of all.
pub fn operations() -> Vec<Operation> {
    let any = Permission::Any;
    vec![
        Operation::action("actions/my-usage/getMyUsageMetadata", any, metadata)
            .reads()
            .doc("The key that asks, and its user."),
        Operation::action("actions/my-usage/getMyQuota", any, quota)
            .reads()
            .doc("What the key and its user have used of each of their limits."),
        Operation::action("actions/my-usage/getMyTodayStats", any, today)
            .report()
            .doc("What the key was used for today, by model too."),
        Operation::action("actions/my-usage/getMyUsageLogs", any, usage_logs)
            .report()
            .doc("A page of the key's own usage log, newest first."),
        Operation::action("actions/my-usage/getMyStatsSummary", any, summary)
            .report()
            .doc("What the key was used for in some time, or ever, by model too."),
        Operation::action("actions/my-usage/getMyAvailableModels", any, available_models)
            .reads()
            .doc("The models that the key can reach, sorted: those of `/v1/models`."),
    ]
}

/// The calling key, and its user.
fn me(call: &Call) -> Result<(Arc<Key>, Arc<User>), ApiError> {
    match &call.who()?.actor {
        Actor::Key { key, user } => Ok((Arc::clone(key), Arc::clone(user))),
        Actor::Token => Err(ApiError::denied(Reason::TokenHasNoUsage)),
    }
}

async fn metadata(call: Call, _: Nothing) -> Result<MyMetadata, ApiError> {
    let (key, user) = me(&call)?;
    Ok(MyMetadata::new(&call.ctx, &key, &user))
}

async fn quota(call: Call, _: Nothing) -> Result<MyQuota, ApiError> {
    let (key, user) = me(&call)?;
    let counters = &call.ctx.node.counters;
    let of_key = counters.key_usage(&key, call.now).await;
    let of_user = counters.user_usage(&user, call.now).await;
    Ok(MyQuota { key: (&of_key).into(), user: (&of_user).into() })
}

async fn today(call: Call, _: Nothing) -> Result<MyStats, ApiError> {
    let day = overview::today(&call.ctx, call.now);
    stats(&call, day.start, day.end).await
}

async fn usage_logs(call: Call, body: OwnLogQuery) -> Result<LogPageRecord, ApiError> {
    let (key, user) = me(&call)?;
    let own = body.filter(call.ctx.time_zone);
    let filter = LogFilter { key_id: Some(key.id), scope: Some(user.id), ..own };
    logs::page(&call, &filter, body).await
}

async fn summary(call: Call, body: Stretch) -> Result<MyStats, ApiError> {
    let (key, user) = me(&call)?;
    let tz = call.ctx.time_zone;
    // The store's end is exclusive, the wire's inclusive, to the millisecond.
    let (start, end) =
        (body.start_date.map(|at| at.start(tz)), body.end_date.map(|at| at.end(tz).plus_ms(1)));
    if start.is_none() && end.is_none() {
        let totals = call.ctx.node.store.key_totals(user.id, key.id).await?;
        return Ok(MyStats::new(totals.into_iter().map(of_lifetime).collect()));
    }
    stats(&call, start.unwrap_or_default(), end.unwrap_or(call.now.plus_ms(1))).await
}

/// The use of the key between two times.
async fn stats(call: &Call, from: Timestamp, until: Timestamp) -> Result<MyStats, ApiError> {
    let (key, user) = me(call)?;
    let keys = call.ctx.node.store.key_statistics(user.id, from, until).await?;
    let models: Vec<ModelStatistics> = keys
        .into_iter()
        .find(|found| found.key_id == key.id)
        .map(|found| found.models)
        .unwrap_or_default();
    Ok(MyStats::new(models))
}

/// A provider's last listing counts, however old: this page sends no requests to providers.
async fn available_models(call: Call, _: Nothing) -> Result<Vec<String>, ApiError> {
    let (key, user) = me(&call)?;
    let allowed_models = [&*key.allowed_models, &*user.allowed_models];
    let reach = Reach { groups: Some(&key.provider_group), allowed_models };
    let snapshot = call.ctx.node.state.snapshot();
    Ok(reach
        .models(&snapshot, |provider| call.ctx.node.listings.last(provider))
        .into_iter()
        .collect())
}
