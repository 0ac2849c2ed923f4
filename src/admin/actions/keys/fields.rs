//! The bodies of `keys/*`, and how they are applied to a key.

use crate::admin::envelope::Code;
use crate::admin::fields::{DayEdge, Field, Form, Kind, Need, Values};
use crate::admin::limits;
use crate::domain::group::Groups;
use crate::domain::key::{CacheTtl, Key};

pub const USER_ID: &[Field] = &[Field::new("userId", Kind::ID, "The owner.").required()];
pub const KEY_ID: &[Field] = &[Field::new("keyId", Kind::ID, "The key.").required()];

const MAX_BATCH: usize = 500;

pub const NAME: Kind = Kind::text(1, 64);
pub const GROUP: Kind = Kind::text(0, 200);
pub const RESET_MODE: Kind = Kind::Choice(&["fixed", "rolling"]);
pub const RESET_TIME: Kind = Kind::Text { min: 4, max: 5, form: Form::TimeOfDay };
pub const CACHE_TTL: Kind = Kind::Choice(&["inherit", "5m", "1h"]);
pub const SESSIONS: Kind = Kind::Integer { min: 0, max: 1000 };

pub const EXPIRES_AT: Field = Field::new(
    "expiresAt",
    Kind::Moment(DayEdge::End),
    "A date (the end of that day in the gateway's time zone) or an ISO 8601 time; `null` = never expires; an empty text is as if not sent.",
)
.nullable();

const ENABLED: Field = Field::new("isEnabled", Kind::Boolean, "Whether the key works.").or_true();
const LOGIN: Field = Field::new(
    "canLoginWebUi",
    Kind::Boolean,
    "Whether the key opens the web UI and these actions; without it, it reads its own usage only.",
)
.or_true();
const LIMIT_5H: Field =
    Field::new("limit5hUsd", Kind::usd(10_000), "USD in any 5 hours; `null` = no limit, 0 = nothing.").nullable();
const LIMIT_DAILY: Field =
    Field::new("limitDailyUsd", Kind::usd(10_000), "USD a day; `null` = no limit, 0 = nothing.").nullable();
const LIMIT_WEEKLY: Field =
    Field::new("limitWeeklyUsd", Kind::usd(50_000), "USD a calendar week; `null` = no limit, 0 = nothing.").nullable();
const LIMIT_MONTHLY: Field =
    Field::new("limitMonthlyUsd", Kind::usd(200_000), "USD a calendar month; `null` = no limit, 0 = nothing.")
        .nullable();
const PROVIDER_GROUP: Field = Field::new(
    "providerGroup",
    GROUP,
    "Comma-separated provider groups; empty or `null` = the default group. Changed by administrators only.",
)
.nullable();

/// A key's own fields: of a new one, and of an edit.
pub const KEY: &[Field] = &[
    Field::new("name", NAME, "Unique among the user's keys.").required(),
    ENABLED,
    EXPIRES_AT,
    LOGIN,
    LIMIT_5H,
    LIMIT_DAILY,
    Field::new("dailyResetMode", RESET_MODE, "`fixed`: at `dailyResetTime`; `rolling`: the past 24 hours.")
        .or_text("fixed"),
    Field::new("dailyResetTime", RESET_TIME, "`HH:MM` in the gateway's time zone.").or_text("00:00"),
    LIMIT_WEEKLY,
    LIMIT_MONTHLY,
    Field::new("limitTotalUsd", Kind::usd(10_000_000), "USD ever; `null` = no limit, 0 = nothing.").nullable(),
    Field::new("limitConcurrentSessions", SESSIONS, "Conversations at once; 0 or `null` = no limit.").nullable(),
    PROVIDER_GROUP,
    Field::new("cacheTtlPreference", CACHE_TTL, "Lifetime that prompt caches are asked for.").or_text("inherit"),
];

pub const TOGGLE: &[Field] = &[Field::new("enabled", Kind::Boolean, "").required()];

pub const RENEW: &[Field] = &[
    Field { need: Need::Required, ..EXPIRES_AT },
    Field::new("enableKey", Kind::Boolean, "Also enables a disabled key.").or_false(),
];

/// The fields that a batch may change.
pub const UPDATES: &[Field] = &[
    PROVIDER_GROUP,
    LIMIT_5H,
    LIMIT_DAILY,
    LIMIT_WEEKLY,
    LIMIT_MONTHLY,
    Field { need: Need::Optional, ..LOGIN },
    Field { need: Need::Optional, ..ENABLED },
];

pub const BATCH: &[Field] = &[
    Field::new(
        "keyIds",
        Kind::List { item: &Kind::ID, min: 1, max: MAX_BATCH, excess: Code::BATCH_SIZE_EXCEEDED },
        "The keys to change.",
    )
    .required(),
    Field::new("updates", Kind::Object(UPDATES), "What changes on each of them.").required(),
];

pub const H5: Code = Code("KEY_LIMIT_5H_EXCEEDS_USER_LIMIT");
pub const DAILY: Code = Code("KEY_LIMIT_DAILY_EXCEEDS_USER_LIMIT");
pub const WEEKLY: Code = Code("KEY_LIMIT_WEEKLY_EXCEEDS_USER_LIMIT");
pub const MONTHLY: Code = Code("KEY_LIMIT_MONTHLY_EXCEEDS_USER_LIMIT");
pub const TOTAL: Code = Code("KEY_LIMIT_TOTAL_EXCEEDS_USER_LIMIT");
pub const CONCURRENT: Code = Code("KEY_LIMIT_CONCURRENT_EXCEEDS_USER_LIMIT");

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

pub const BATCH_ERRORS: &[Code] =
    &[Code::BATCH_SIZE_EXCEEDED, Code::NOT_FOUND, Code::CANNOT_DISABLE_LAST_KEY, H5, DAILY, WEEKLY, MONTHLY];

/// Sets every field that was sent.
pub fn apply(values: &Values, key: &mut Key) {
    values.text("name").apply_set(&mut key.name);
    values.moment("expiresAt").apply_option(&mut key.expires_at);
    values.word("cacheTtlPreference", CacheTtl::parse).apply_set(&mut key.cache_ttl);
    limits::apply(values, &limits::CAMEL, &mut key.limits);
    apply_shared(values, key);
}

/// Sets the fields that a batch may change.
pub fn apply_batch(updates: &Values, key: &mut Key) {
    updates.usd("limit5hUsd").apply_option(&mut key.limits.five_hours);
    updates.usd("limitDailyUsd").apply_option(&mut key.limits.daily);
    updates.usd("limitWeeklyUsd").apply_option(&mut key.limits.weekly);
    updates.usd("limitMonthlyUsd").apply_option(&mut key.limits.monthly);
    apply_shared(updates, key);
}

fn apply_shared(values: &Values, key: &mut Key) {
    values.boolean("isEnabled").apply_set(&mut key.is_enabled);
    values.boolean("canLoginWebUi").apply_set(&mut key.can_login_web_ui);
    values.text("providerGroup").map(|text| Groups::parse(&text)).apply(&mut key.provider_group);
}
