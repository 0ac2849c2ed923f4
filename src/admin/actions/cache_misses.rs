//! `statistics/getCacheMisses`: what providers did not read from their prompt caches, and why.

use schemars::JsonSchema;
use serde::Deserialize;

use super::statistics::days;
use crate::admin::bodies::{Id, OneOf, Plain as _, Word};
use crate::admin::call::Call;
use crate::admin::envelope::ApiError;
use crate::admin::live::client;
use crate::admin::operation::{Operation, Permission};
use crate::admin::records::cache_misses::CacheMissesRecord;
use crate::domain::ids::UserId;
use crate::domain::money::NanoUsd;
use crate::policy::window::Window;
use crate::store::{GroupBy, MissAsk, Series, SeriesAsk};

/// The word of a range of days.
#[derive(Debug, Clone, Copy)]
pub struct DayRange(&'static str);

impl Word for DayRange {
    const ALL: &'static [Self] = &[Self("today"), Self("7days"), Self("30days"), Self("thisMonth")];

    fn word(self) -> &'static str {
        self.0
    }
}

impl Default for DayRange {
    fn default() -> Self {
        Self("today")
    }
}

/// The body of `statistics/getCacheMisses`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MissQuery {
    /// Calendar days in the gateway's time zone; today is the last.
    #[serde(default)]
    pub time_range: OneOf<DayRange>,
    /// The only user who counts.
    pub user_id: Option<Id>,
}

/// The operations of this file, for the table of all.
pub fn operations() -> Vec<Operation> {
    vec![
        Operation::action("actions/statistics/getCacheMisses", Permission::User, get_cache_misses)
            .report()
            .doc(
                "Input that providers could not read from their prompt caches: why, and what that \
                 cost, by cause, user, key, client and day. Users see their own.",
            ),
    ]
}

async fn get_cache_misses(call: Call, body: MissQuery) -> Result<CacheMissesRecord, ApiError> {
    let who = call.who()?;
    let asked = body.user_id.map(|id| UserId(id.0));
    let own = client::scope(who);
    if let (Some(asked), Some(_)) = (asked, own) {
        who.must_own(asked)?;
    }
    let scope = asked.or(own);
    let (now, zone) = (call.now, call.ctx.time_zone);
    let boundaries = match body.time_range.plain().word() {
        "7days" => days(now, zone, |count, _| count < 7),
        "30days" => days(now, zone, |count, _| count < 30),
        "thisMonth" => {
            let first = Window::Monthly.calendar(now, zone).start;
            days(now, zone, |_, start| start > first)
        }
        _ => days(now, zone, |_, _| false),
    };
    let from = boundaries.first().copied().unwrap_or(now);
    let until = boundaries.last().copied().unwrap_or(now);
    let store = &call.ctx.node.store;
    let misses = store.cache_misses(MissAsk { scope, from, until }).await?;
    let ask = SeriesAsk { scope, by: GroupBy::User, boundaries: boundaries.clone() };
    let spent: NanoUsd = store.series(&ask).await?.iter().map(Series::cost).sum();
    Ok(CacheMissesRecord::new(&misses, spent, &boundaries))
}
