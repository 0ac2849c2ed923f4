//! The bodies of `keys/*`, and how they are applied to a key.

use chrono_tz::Tz;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::admin::bodies::{
    FeatureList, Id, List, ModelText, Moment, NameText, OneOf, Part, Patch, Sent, features,
};
use crate::admin::envelope::Code;
use crate::admin::limits::{BatchLimits, KeyLimits};
use crate::domain::group::Groups;
use crate::domain::key::{CacheTtl, Key};
use crate::domain::limits::SharedLimit;

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
    /// Its limits.
    #[serde(flatten)]
    pub limits: KeyLimits,
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
    /// Its limits.
    #[serde(flatten)]
    pub limits: BatchLimits,
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

/// The codes of keys' limits that are above their user's.
pub fn above_users() -> Vec<Code> {
    SharedLimit::ALL.iter().map(|limit| Code(limit.above_users())).collect()
}

/// The codes of `keys/addKey`, beside those of every body's check.
pub const ADD_ERRORS: &[Code] = &[
    Code::NOT_FOUND,
    Code::DUPLICATE_NAME,
    Code::NO_DEFAULT_GROUP_PERMISSION,
    Code::NO_GROUP_PERMISSION,
    Code::KEY_LIMITS_LOCKED,
];

/// The codes of `keys/editKey`, beside those of every body's check.
pub const EDIT_ERRORS: &[Code] = &[
    Code::NOT_FOUND,
    Code::DUPLICATE_NAME,
    Code::CANNOT_DISABLE_LAST_KEY,
    Code::KEY_LIMITS_LOCKED,
];

/// The codes of `keys/batchUpdateKeys`, beside those of every body's check.
pub const BATCH_ERRORS: &[Code] = &[
    Code::BATCH_SIZE_EXCEEDED,
    Code::NOT_FOUND,
    Code::CANNOT_DISABLE_LAST_KEY,
    Code(SharedLimit::FiveHours.above_users()),
    Code(SharedLimit::Daily.above_users()),
    Code(SharedLimit::Weekly.above_users()),
    Code(SharedLimit::Monthly.above_users()),
];

impl KeyFields {
    /// Sets every field that was sent; moments without an offset are in `tz`.
    pub fn apply(&self, key: &mut Key, tz: Tz) {
        self.name.apply(&mut key.name);
        self.expires_at.map(|moment| moment.end(tz)).apply_option(&mut key.expires_at);
        self.cache_ttl_preference.apply(&mut key.cache_ttl);
        key.limits = self.limits.on(key.limits);
        self.is_enabled.apply(&mut key.is_enabled);
        self.can_login_web_ui.apply(&mut key.can_login_web_ui);
        groups(&self.provider_group).apply(&mut key.provider_group);
        self.allowed_models.plain().apply(&mut key.allowed_models);
        features(&self.allowed_features).apply(&mut key.features.allowed);
        features(&self.denied_features).apply(&mut key.features.denied);
    }
}

impl KeyUpdates {
    /// Sets every field that was sent.
    pub fn apply(&self, key: &mut Key) {
        key.limits = self.limits.on(key.limits);
        self.is_enabled.apply(&mut key.is_enabled);
        self.can_login_web_ui.apply(&mut key.can_login_web_ui);
        groups(&self.provider_group).apply(&mut key.provider_group);
    }
}

/// The groups that a text names.
pub fn groups(text: &Patch<GroupText>) -> Patch<Groups> {
    text.plain().map(|text| Groups::parse(&text))
}
