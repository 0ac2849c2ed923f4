//! `cost_alert`: a spending limit of a key, a user or a provider is nearly or completely used up.
//! Once for each window of each limit. A rolling window counts as new when its length has passed; a
//! changed limit is a new limit.

use serde::Serialize;

use super::delivery::{Outbox, Parcel};
use super::message::{self, MessageKind, Urgency, Usd};
use super::{Notifier, NotifyError};
use crate::domain::clock::Timestamp;
use crate::domain::limits::Limits;
use crate::domain::money::NanoUsd;
use crate::limits::{HolderUsage, MoneyUsage};
use crate::policy::window::Window;
use crate::store::StoredNotifications;
use rust_decimal::Decimal;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CostData<'a> {
    /// `key`, `user` or `provider`.
    target_type: &'static str,
    target_id: i64,
    target_name: &'a str,
    current_cost: Usd,
    quota_limit: Usd,
    /// The share from which on the alert is sent.
    threshold: Share,
    /// A name of a [`Period`](crate::domain::limits::Period).
    period: &'static str,
}

/// A share as a JSON number.
struct Share(Decimal);

impl Serialize for Share {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.0.normalize().to_string();
        serde_json::value::RawValue::from_string(text)
            .map_err(serde::ser::Error::custom)?
            .serialize(serializer)
    }
}

/// The holder whose limits are checked.
struct LimitHolder<'a> {
    kind: &'static str,
    id: i64,
    name: &'a str,
    limits: &'a Limits,
}

pub(super) async fn if_due(
    notifier: &Notifier,
    outbox: &Outbox,
    checked: &mut Timestamp,
) -> Result<(), NotifyError> {
    let Some(stored) = notifier.settings().await? else { return Ok(()) };
    let settings = &stored.settings;
    if !settings.cost_alert_enabled || settings.cost_alert_webhook.is_none() {
        return Ok(());
    }
    // Counters convert this node's own time.
    let (now, own) = (notifier.now().await?, notifier.node.clock.now());
    if now.is_within(i64::from(settings.cost_alert_check_interval) * 60_000, *checked) {
        return Ok(());
    }
    *checked = now;
    let snapshot = notifier.node.state.snapshot();
    let check = Check { notifier, outbox, stored: &stored, now };
    for caller in snapshot.callers() {
        let target = LimitHolder {
            kind: "key",
            id: caller.key.id.0,
            name: &caller.key.name,
            limits: &caller.key.limits,
        };
        if target.limits.of_money() {
            check.all(&target, notifier.node.counters.key_usage(&caller.key, own).await).await?;
        }
    }
    for user in snapshot.users.values().filter(|user| user.limits.of_money()) {
        let target =
            LimitHolder { kind: "user", id: user.id.0, name: &user.name, limits: &user.limits };
        check.all(&target, notifier.node.counters.user_usage(user, own).await).await?;
    }
    for provider in snapshot.providers.iter().filter(|provider| provider.limits.of_money()) {
        let target = LimitHolder {
            kind: "provider",
            id: provider.id.0,
            name: &provider.name,
            limits: &provider.limits,
        };
        check.all(&target, notifier.node.counters.provider_usage(provider, own).await).await?;
    }
    Ok(())
}

struct Check<'a> {
    notifier: &'a Notifier,
    outbox: &'a Outbox,
    stored: &'a StoredNotifications,
    now: Timestamp,
}

impl Check<'_> {
    async fn all(&self, target: &LimitHolder<'_>, usage: HolderUsage) -> Result<(), NotifyError> {
        for (period, money) in usage.money.each() {
            let window = Window::of(period, target.limits.daily_reset);
            let rolling = window.and_then(Window::rolling_ms);
            self.one(target, period.as_str(), money, rolling).await?;
        }
        Ok(())
    }

    async fn one(
        &self,
        target: &LimitHolder<'_>,
        period: &'static str,
        money: MoneyUsage,
        rolling: Option<i64>,
    ) -> Result<(), NotifyError> {
        let settings = &self.stored.settings;
        let Some(limit) = money.limit.filter(|limit| *limit > NanoUsd::ZERO) else { return Ok(()) };
        // With a threshold of 0, any spending is an alert, and none is not.
        let is_below =
            money.current.to_decimal() < limit.to_decimal() * settings.cost_alert_threshold;
        if is_below || money.current == NanoUsd::ZERO {
            return Ok(());
        }
        // A lifetime limit has no end, nor has a rolling window.
        let ends = match rolling {
            Some(length) => self.now.plus_ms(length),
            None => money.reset_at.unwrap_or(Timestamp(i64::MAX)),
        };
        let window = if rolling.is_some() { 0 } else { ends.0 };
        let name = format!("cost:{}:{}:{period}:{}:{window}", target.kind, target.id, limit.0);
        if !self.notifier.node.store.claim_notice(&name, self.now, ends).await? {
            return Ok(());
        }
        let Some(address) = settings.cost_alert_webhook.clone() else { return Ok(()) };
        let data = CostData {
            target_type: target.kind,
            target_id: target.id,
            target_name: target.name,
            current_cost: Usd(money.current),
            quota_limit: Usd(limit),
            threshold: Share(settings.cost_alert_threshold),
            period,
        };
        let title = format!(
            "{} {}: {} of {} USD ({period}) are used",
            target.kind, target.name, money.current, limit
        );
        let level = if money.current >= limit { Urgency::Error } else { Urgency::Warning };
        let body = message::text(MessageKind::CostAlert, &title, level, self.now, &data);
        let secret = self.notifier.secret(self.stored)?;
        self.outbox.post(Parcel { kind: MessageKind::CostAlert, address, body, secret });
        Ok(())
    }
}
