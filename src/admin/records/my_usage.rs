//! What a key may know about itself.

use schemars::JsonSchema;
use serde::Serialize;

use super::statistics::ModelStatisticsRecord;
use super::usage::{LimitUsage, UserLimitUsage};
use super::{Exact, Iso, groups_text};
use crate::admin::context::Context;
use crate::domain::key::Key;
use crate::domain::user::User;
use crate::store::{ModelStatistics, UsageTotal};

/// The key and its user.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MyMetadata {
    /// The key that the caller authenticated with.
    pub key_id: i64,
    /// The key's name, 1–64 characters.
    pub key_name: String,
    /// When the key expires; `null` = never.
    pub key_expires_at: Option<Iso>,
    /// Comma-separated group names.
    pub key_provider_group: String,
    /// Whether the key may use the whole web UI.
    pub can_login_web_ui: bool,
    /// The user who owns the key.
    pub user_id: i64,
    /// The user's name, 1–64 characters.
    pub user_name: String,
    /// When the user expires; from then on all their keys are refused. `null` = never.
    pub user_expires_at: Option<Iso>,
    /// Model names, a trailing `*` matches any suffix; empty = every model.
    pub allowed_models: Vec<String>,
    /// `fixed`: the key's day begins at `dailyResetTime`; `rolling`: it is the past 24 hours.
    pub daily_reset_mode: &'static str,
    /// `HH:MM` in the gateway's time zone; unused where the mode is `rolling`.
    pub daily_reset_time: String,
    /// IANA name of the gateway's time zone.
    pub time_zone: &'static str,
    /// A symbol to show before amounts; they are USD.
    pub currency_display: String,
    /// What this gateway is called.
    pub site_title: String,
}

impl MyMetadata {
    /// The settings and the time zone come from `ctx`.
    pub fn new(ctx: &Context, key: &Key, user: &User) -> Self {
        let settings = ctx.node.state.peek().settings.clone();
        Self {
            key_id: key.id.0,
            key_name: key.name.clone(),
            key_expires_at: key.expires_at.map(Iso),
            key_provider_group: groups_text(&key.provider_group),
            can_login_web_ui: key.can_login_web_ui,
            user_id: user.id.0,
            user_name: user.name.clone(),
            user_expires_at: user.expires_at.map(Iso),
            allowed_models: user.allowed_models.clone(),
            daily_reset_mode: key.limits.daily_reset.mode.as_str(),
            daily_reset_time: key.limits.daily_reset.time.to_string(),
            time_zone: ctx.time_zone.name(),
            currency_display: settings.currency_display,
            site_title: settings.site_title,
        }
    }
}

/// Every limit of the key, and of its user with all keys together.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MyQuota {
    /// What this key has used of its limits.
    pub key: LimitUsage,
    /// What all of the user's keys together have used of the user's limits.
    pub user: UserLimitUsage,
}

/// What the key was used for in the requested time.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MyStats {
    /// Requests, whatever became of them.
    pub calls: u64,
    /// Text that was neither read from nor written to a cache.
    pub input_tokens: u64,
    /// All output, reasoning included.
    pub output_tokens: u64,
    /// Input written to prompt caches of any lifetime.
    pub cache_creation_tokens: u64,
    /// Input read from a prompt cache.
    pub cache_read_tokens: u64,
    /// The four together.
    pub total_tokens: u64,
    /// USD; requests without a price count as nothing.
    pub cost_usd: Exact,
    /// By model, most expensive first.
    pub model_stats: Vec<ModelStatisticsRecord>,
}

impl MyStats {
    /// Sums over `models`, whose order is kept in `model_stats`.
    pub fn new(models: Vec<ModelStatistics>) -> Self {
        let sum = |of: fn(&ModelStatistics) -> u64| models.iter().map(of).sum();
        Self {
            calls: sum(|m| m.requests),
            input_tokens: sum(|m| m.input_tokens),
            output_tokens: sum(|m| m.output_tokens),
            cache_creation_tokens: sum(|m| m.cache_write_tokens),
            cache_read_tokens: sum(|m| m.cache_read_tokens),
            total_tokens: sum(super::statistics::tokens),
            cost_usd: Exact::usd(models.iter().map(|m| m.cost).sum()),
            model_stats: models.into_iter().map(ModelStatisticsRecord::from).collect(),
        }
    }
}

/// A lifetime's figures in the shape of a stretch of time's.
pub fn of_lifetime(total: UsageTotal) -> ModelStatistics {
    ModelStatistics {
        model: total.model,
        requests: total.requests,
        input_tokens: total.input_tokens,
        output_tokens: total.output_tokens,
        cache_write_tokens: total.cache_write_tokens,
        cache_read_tokens: total.cache_read_tokens,
        cost: total.cost,
    }
}
