//! `daily_leaderboard`: the users of the day before, sent once a day at a time of the gateway's
//! zone.
//!
//! Days of 23 and 25 hours are complete days. If no node was up at the time, it is sent up to an
//! hour late, and after that not at all.

use serde::Serialize;

use super::delivery::{Outbox, Parcel};
use super::message::{self, MessageKind, Urgency, Usd};
use super::{Notifier, NotifyError};
use crate::domain::clock::Timestamp;
use crate::domain::limits::{DailyReset, ResetMode, TimeOfDay};
use crate::domain::money::NanoUsd;
use crate::policy::window::{DAY_MS, Window};
use crate::store::UserSum;

const LATEST_MS: i64 = 3_600_000;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LeaderboardData {
    /// The day that is reported, `YYYY-MM-DD`.
    date: String,
    entries: Vec<LeaderboardEntry>,
    total_requests: u64,
    total_cost: Usd,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LeaderboardEntry {
    rank: usize,
    /// `null`: the administrator's token.
    user_id: Option<i64>,
    user_name: String,
    requests: u64,
    tokens: u64,
    cost: Usd,
}

pub(super) async fn if_due(notifier: &Notifier, outbox: &Outbox) -> Result<(), NotifyError> {
    let Some(stored) = notifier.settings().await? else { return Ok(()) };
    let settings = &stored.settings;
    let address =
        settings.daily_leaderboard_webhook.clone().filter(|_| settings.daily_leaderboard_enabled);
    let Some(address) = address else { return Ok(()) };
    let now = notifier.now().await?;
    let at = |time| Window::Daily(DailyReset { mode: ResetMode::Fixed, time });
    let due = at(settings.daily_leaderboard_time).start(now, notifier.time_zone);
    if now.since(due) > LATEST_MS {
        return Ok(());
    }
    let today = at(TimeOfDay::default()).start(due, notifier.time_zone);
    let before = at(TimeOfDay::default()).start(today.plus_ms(-1), notifier.time_zone);
    let date = before.to_utc().with_timezone(&notifier.time_zone).format("%Y-%m-%d").to_string();
    if !notifier
        .node
        .store
        .claim_notice(&format!("leaderboard:{date}"), now, now.plus_ms(3 * DAY_MS))
        .await?
    {
        return Ok(());
    }
    let data = report(notifier, before, today, date, settings.daily_leaderboard_top_n).await?;
    let title =
        format!("{}: {} requests, {} USD", data.date, data.total_requests, data.total_cost.0);
    let body = message::text(MessageKind::DailyLeaderboard, &title, Urgency::Info, now, &data);
    outbox.post(Parcel {
        kind: MessageKind::DailyLeaderboard,
        address,
        body,
        secret: notifier.secret(&stored)?,
    });
    Ok(())
}

async fn report(
    notifier: &Notifier,
    from: Timestamp,
    until: Timestamp,
    date: String,
    most: u32,
) -> Result<LeaderboardData, NotifyError> {
    let sums = notifier.node.store.user_sums(from, until).await?;
    let snapshot = notifier.node.state.snapshot();
    let name = |sum: &UserSum| match sum.user_id {
        None => "admin token".to_owned(),
        Some(id) => {
            snapshot.user(id).map_or_else(|| format!("user {id}"), |user| user.name.clone())
        }
    };
    let entry = |(rank, sum): (usize, &UserSum)| LeaderboardEntry {
        rank,
        user_id: sum.user_id.map(|id| id.0),
        user_name: name(sum),
        requests: sum.requests,
        tokens: sum.tokens,
        cost: Usd(sum.cost),
    };
    Ok(LeaderboardData {
        date,
        entries: (1..).zip(&sums).take(most as usize).map(entry).collect(),
        total_requests: sums.iter().map(|sum| sum.requests).sum(),
        total_cost: Usd(sums.iter().map(|sum| sum.cost).sum::<NanoUsd>()),
    })
}
