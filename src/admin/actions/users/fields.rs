//! The bodies of `users/*`, and how they are applied to a user.

use chrono_tz::Tz;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::admin::actions::keys::fields::{GroupText, Name, groups};
use crate::admin::bodies::{
    FeatureList, Id, List, ModelText, Moment, OneOf, Patch, Sent, Text, Usd, Whole, features,
};
use crate::admin::envelope::{ApiError, Code};
use crate::admin::limits::{OF_USER, UserLimits};
use crate::admin::reasons::Reason;
use crate::domain::user::{Role, User};

/// Which user.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfUser {
    /// The user.
    pub user_id: Id,
}

/// A user's own fields: of a new one, and of an edit.
#[derive(Debug, Default, Clone, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct UserFields {
    /// What the user is called.
    #[schemars(extend("required" = true))]
    pub name: Sent<Name>,
    /// For administrators.
    pub note: Patch<Text<0, 200>>,
    /// `admin` manages everything, `user` their own.
    #[schemars(extend("default" = "user"))]
    pub role: Sent<OneOf<Role>>,
    /// A disabled user's keys do not work.
    #[schemars(extend("default" = true))]
    pub is_enabled: Sent<bool>,
    /// A date (the end of that day in the gateway's time zone) or an ISO 8601 time; `null` = never
    /// expires; an empty text is as if not sent.
    pub expires_at: Patch<Moment>,
    /// Comma-separated provider groups. Of a new user: those of the key `default`. In an edit:
    /// groups that the user may give to new keys, until a key's groups change and the union of the
    /// keys' groups takes their place.
    pub provider_group: Patch<GroupText>,
    /// For administrators.
    pub tags: Patch<List<Text<1, 32>, 0, 20>>,
    /// Requests per minute; 0 or `null` = no limit.
    pub rpm: Patch<Whole<u32, 0, 1_000_000>>,
    /// The same as `limitDailyUsd`: send one of them.
    pub daily_quota: Patch<Usd<{ OF_USER.daily }>>,
    /// Their limits.
    #[serde(flatten)]
    pub limits: UserLimits,
    /// A trailing `*` matches any suffix; empty = every model.
    pub allowed_models: Patch<List<ModelText<1, 200>, 0, 200>>,
    /// Parts of `User-Agent`; empty = every client.
    pub allowed_clients: Patch<List<Text<1, 200>, 0, 50>>,
    /// Features that the user's keys may use though a group denies them.
    pub allowed_features: Patch<FeatureList>,
    /// Features that the user's keys may not use, unless the key allows them.
    pub denied_features: Patch<FeatureList>,
    /// Only administrators change the limits of the user's keys, and add keys beyond `maxKeys`; a
    /// key that the user adds gets the tightest limits of their other keys.
    #[schemars(extend("default" = false))]
    pub lock_key_limits: Sent<bool>,
    /// How many keys the user may have had, deleted ones included, to add one; `null` = none with
    /// `lockKeyLimits`, else any number.
    pub max_keys: Patch<Whole<u32, 0, 1000>>,
}

impl UserFields {
    /// Sets every field that was sent; moments without an offset are in `tz`.
    ///
    /// # Errors
    /// 400 when the two names of the daily limit are sent with different values.
    pub fn apply(&self, user: &mut User, tz: Tz) -> Result<(), ApiError> {
        let (quota, daily) = (self.daily_quota.plain(), self.limits.limit_daily_usd.plain());
        if quota.is_sent() && daily.is_sent() && quota != daily {
            let refusal = ApiError::because(Code::INVALID_FORMAT, Reason::TwoDailyLimits);
            return Err(refusal.with("field", "limitDailyUsd".into()));
        }
        self.name.apply(&mut user.name);
        self.note.plain().apply(&mut user.note);
        self.role.apply(&mut user.role);
        self.is_enabled.apply(&mut user.is_enabled);
        self.expires_at.map(|moment| moment.end(tz)).apply_option(&mut user.expires_at);
        groups(&self.provider_group).apply(&mut user.provider_group);
        self.tags.plain().apply(&mut user.tags);
        self.rpm.plain().apply(&mut user.rpm);
        user.limits = self.limits.on(user.limits);
        quota.apply_option(&mut user.limits.daily);
        self.allowed_models.plain().apply(&mut user.allowed_models);
        self.allowed_clients.plain().apply(&mut user.allowed_clients);
        features(&self.allowed_features).apply(&mut user.features.allowed);
        features(&self.denied_features).apply(&mut user.features.denied);
        self.lock_key_limits.apply(&mut user.lock_key_limits);
        self.max_keys.plain().apply_option(&mut user.max_keys);
        Ok(())
    }
}
