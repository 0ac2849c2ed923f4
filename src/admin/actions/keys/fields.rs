//! The bodies of `keys/*`, and how they are applied to a key.

use chrono_tz::Tz;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::admin::bodies::{
    Clock, FeatureList, Id, List, ModelText, Moment, NameText, OneOf, Part, Patch, Sent, Usd,
    Whole, features,
};
use crate::admin::envelope::Code;
use crate::admin::limits::{LimitPatch, limit_patch};
use crate::domain::group::Groups;
use crate::domain::key::{CacheTtl, Key};
use crate::domain::limits::ResetMode;

/// Whose keys.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfUser {
    /// The owner.
    pub user_id: Id,
}
/// Which key.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfKey {
    /// The key.
    pub key_id: Id,
}

const MAX_BATCH: usize = 500;

/// The name of a key, a user or a provider.
pub type Name = NameText<1, 64>;
/// Names of provider groups, between commas.
pub type GroupText = NameText<0, 200>;

/// A key's own fields: of a new one, and of an edit.
#[derive(Debug, Default, Clone, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct KeyFields {
    /// Unique among the user's keys.
    #[schemars(extend("required" = true))]
    pub name: Sent<Name>,
    /// Whether the key works.
    #[schemars(extend("default" = true))]
    pub is_enabled: Sent<bool>,
    /// A date (the end of that day in the gateway's time zone) or an ISO 8601 time; `null` = never
    /// expires; an empty text is as if not sent.
    pub expires_at: Patch<Moment>,
    /// Whether the key opens the web UI and these actions; without it, it reads its own usage only.
    #[schemars(extend("default" = true))]
    pub can_login_web_ui: Sent<bool>,
    /// USD in any 5 hours; `null` = no limit, 0 = nothing.
    pub limit_5h_usd: Patch<Usd<10_000>>,
    /// USD a day; `null` = no limit, 0 = nothing.
    pub limit_daily_usd: Patch<Usd<10_000>>,
    /// `fixed`: at `dailyResetTime`; `rolling`: the past 24 hours.
    #[schemars(extend("default" = "fixed"))]
    pub daily_reset_mode: Sent<OneOf<ResetMode>>,
    /// `HH:MM` in the gateway's time zone.
    #[schemars(extend("default" = "00:00"))]
    pub daily_reset_time: Sent<Clock>,
    /// USD a calendar week; `null` = no limit, 0 = nothing.
    pub limit_weekly_usd: Patch<Usd<50_000>>,
    /// USD a calendar month; `null` = no limit, 0 = nothing.
    pub limit_monthly_usd: Patch<Usd<200_000>>,
    /// USD ever; `null` = no limit, 0 = nothing.
    pub limit_total_usd: Patch<Usd<10_000_000>>,
    /// Conversations at once; 0 or `null` = no limit.
    pub limit_concurrent_sessions: Patch<Whole<u32, 0, 1000>>,
    /// Comma-separated provider groups; empty or `null` = the default group. Changed by
    /// administrators only.
    pub provider_group: Patch<GroupText>,
    /// Lifetime that prompt caches are asked for.
    #[schemars(extend("default" = "inherit"))]
    pub cache_ttl_preference: Sent<OneOf<CacheTtl>>,
    /// A trailing `*` matches any suffix; empty = every model. The user's list applies as well.
    /// Changed by administrators only, as the next two.
    pub allowed_models: Patch<List<ModelText<1, 200>, 0, 200>>,
    /// Features that the key may use though its user or a group denies them.
    pub allowed_features: Patch<FeatureList>,
    /// Features that the key may not use.
    pub denied_features: Patch<FeatureList>,
}

/// The body of `keys/toggleKeyEnabled`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToggleKey {
    /// The key.
    pub key_id: Id,
    /// Whether the key is to work.
    pub enabled: bool,
}

/// The body of `keys/renewKeyExpiresAt`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RenewKey {
    /// The key.
    pub key_id: Id,
    /// A date (the end of that day in the gateway's time zone) or an ISO 8601 time; `null` = never
    /// expires; an empty text is as if not sent.
    #[schemars(extend("required" = true))]
    #[serde(default)]
    pub expires_at: Patch<Moment>,
    /// Also enables a disabled key.
    #[serde(default)]
    pub enable_key: bool,
}

/// The fields that a batch may change.
#[derive(Debug, Default, Clone, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct KeyUpdates {
    /// Comma-separated provider groups; empty or `null` = the default group. Changed by
    /// administrators only.
    pub provider_group: Patch<GroupText>,
    /// USD in any 5 hours; `null` = no limit, 0 = nothing.
    pub limit_5h_usd: Patch<Usd<10_000>>,
    /// USD a day; `null` = no limit, 0 = nothing.
    pub limit_daily_usd: Patch<Usd<10_000>>,
    /// USD a calendar week; `null` = no limit, 0 = nothing.
    pub limit_weekly_usd: Patch<Usd<50_000>>,
    /// USD a calendar month; `null` = no limit, 0 = nothing.
    pub limit_monthly_usd: Patch<Usd<200_000>>,
    /// Whether the key opens the web UI and these actions; without it, it reads its own usage only.
    pub can_login_web_ui: Sent<bool>,
    /// Whether the key works.
    pub is_enabled: Sent<bool>,
}

/// The body of `keys/batchUpdateKeys`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BatchUpdate {
    /// The keys to change.
    pub key_ids: List<Id, 1, MAX_BATCH, true>,
    /// What changes on each of them.
    pub updates: Part<KeyUpdates>,
}

/// The key's limit of any 5 hours is above its user's.
pub const H5: Code = Code("KEY_LIMIT_5H_EXCEEDS_USER_LIMIT");
/// The key's daily limit is above its user's.
pub const DAILY: Code = Code("KEY_LIMIT_DAILY_EXCEEDS_USER_LIMIT");
/// The key's weekly limit is above its user's.
pub const WEEKLY: Code = Code("KEY_LIMIT_WEEKLY_EXCEEDS_USER_LIMIT");
/// The key's monthly limit is above its user's.
pub const MONTHLY: Code = Code("KEY_LIMIT_MONTHLY_EXCEEDS_USER_LIMIT");
/// The key's total limit is above its user's.
pub const TOTAL: Code = Code("KEY_LIMIT_TOTAL_EXCEEDS_USER_LIMIT");
/// The key's limit of concurrent sessions is above its user's.
pub const CONCURRENT: Code = Code("KEY_LIMIT_CONCURRENT_EXCEEDS_USER_LIMIT");

/// The codes of `keys/addKey`, beside those of every body's check.
pub const ADD_ERRORS: &[Code] = &[
    Code::NOT_FOUND,
    Code::DUPLICATE_NAME,
    Code::NO_DEFAULT_GROUP_PERMISSION,
    Code::NO_GROUP_PERMISSION,
    Code::KEY_LIMITS_LOCKED,
    H5,
    DAILY,
    WEEKLY,
    MONTHLY,
    TOTAL,
    CONCURRENT,
];

/// The codes of `keys/editKey`, beside those of every body's check.
pub const EDIT_ERRORS: &[Code] = &[
    Code::NOT_FOUND,
    Code::DUPLICATE_NAME,
    Code::CANNOT_DISABLE_LAST_KEY,
    Code::KEY_LIMITS_LOCKED,
    H5,
    DAILY,
    WEEKLY,
    MONTHLY,
    TOTAL,
    CONCURRENT,
];

/// The codes of `keys/batchUpdateKeys`, beside those of every body's check.
pub const BATCH_ERRORS: &[Code] = &[
    Code::BATCH_SIZE_EXCEEDED,
    Code::NOT_FOUND,
    Code::CANNOT_DISABLE_LAST_KEY,
    H5,
    DAILY,
    WEEKLY,
    MONTHLY,
];

impl KeyFields {
    /// Sets every field that was sent; moments without an offset are in `tz`.
    pub fn apply(&self, key: &mut Key, tz: Tz) {
        self.name.apply(&mut key.name);
        self.expires_at.map(|moment| moment.end(tz)).apply_option(&mut key.expires_at);
        self.cache_ttl_preference.apply(&mut key.cache_ttl);
        self.limits().apply(&mut key.limits);
        self.is_enabled.apply(&mut key.is_enabled);
        self.can_login_web_ui.apply(&mut key.can_login_web_ui);
        groups(&self.provider_group).apply(&mut key.provider_group);
        self.allowed_models.plain().apply(&mut key.allowed_models);
        features(&self.allowed_features).apply(&mut key.features.allowed);
        features(&self.denied_features).apply(&mut key.features.denied);
    }

    /// The limits that were sent.
    pub(in crate::admin) fn limits(&self) -> LimitPatch {
        limit_patch!(self)
    }
}

impl KeyUpdates {
    /// Sets every field that was sent.
    pub fn apply(&self, key: &mut Key) {
        self.limits().apply(&mut key.limits);
        self.is_enabled.apply(&mut key.is_enabled);
        self.can_login_web_ui.apply(&mut key.can_login_web_ui);
        groups(&self.provider_group).apply(&mut key.provider_group);
    }

    /// The limits that were sent.
    pub(in crate::admin) fn limits(&self) -> LimitPatch {
        LimitPatch {
            five_hours: self.limit_5h_usd.plain(),
            daily: self.limit_daily_usd.plain(),
            weekly: self.limit_weekly_usd.plain(),
            monthly: self.limit_monthly_usd.plain(),
            ..LimitPatch::default()
        }
    }
}

/// The groups that a text names.
pub fn groups(text: &Patch<GroupText>) -> Patch<Groups> {
    text.plain().map(|text| Groups::parse(&text))
}
