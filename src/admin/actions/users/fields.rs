//! The bodies of `users/*`, and how they are applied to a user.

use crate::admin::actions::keys::fields::{EXPIRES_AT, GROUP, NAME, RESET_MODE, RESET_TIME, SESSIONS};
use crate::admin::envelope::{ApiError, Code};
use crate::admin::fields::{Field, Kind, Patch, Values};
use crate::admin::limits;
use crate::domain::group::Groups;
use crate::domain::user::{Role, User};

pub const USER_ID: &[Field] = &[Field::new("userId", Kind::ID, "The user.").required()];

const TAG: Kind = Kind::text(1, 32);
const PATTERN: Kind = Kind::text(1, 200);

/// A user's own fields: of a new one, and of an edit.
pub const USER: &[Field] = &[
    Field::new("name", NAME, "").required(),
    Field::new("note", Kind::text(0, 200), "").nullable(),
    Field::new("role", Kind::Choice(&["admin", "user"]), "`admin` manages everything, `user` their own.").or_text("user"),
    Field::new("isEnabled", Kind::Boolean, "A disabled user's keys do not work.").or_true(),
    EXPIRES_AT,
    Field::new(
        "providerGroup",
        GROUP,
        "Comma-separated provider groups. Of a new user: those of the key `default`. In an edit: groups that the user may \
         give to new keys, until a key's groups change and the union of the keys' groups takes their place.",
    )
    .nullable(),
    Field::new("tags", Kind::list(&TAG, 20), "").nullable(),
    Field::new("rpm", Kind::Integer { min: 0, max: 1_000_000 }, "Requests per minute; 0 or `null` = no limit.").nullable(),
    Field::new("dailyQuota", Kind::usd(100_000), "USD a day; `null` = no limit, 0 = nothing.").nullable(),
    Field::new("limitDailyUsd", Kind::usd(100_000), "The same as `dailyQuota`: send one of them.").nullable(),
    Field::new("limit5hUsd", Kind::usd(10_000), "USD in any 5 hours; `null` = no limit, 0 = nothing.").nullable(),
    Field::new("limitWeeklyUsd", Kind::usd(50_000), "USD a calendar week; `null` = no limit, 0 = nothing.").nullable(),
    Field::new("limitMonthlyUsd", Kind::usd(200_000), "USD a calendar month; `null` = no limit, 0 = nothing.").nullable(),
    Field::new("limitTotalUsd", Kind::usd(10_000_000), "USD ever; `null` = no limit, 0 = nothing.").nullable(),
    Field::new("dailyResetMode", RESET_MODE, "`fixed`: at `dailyResetTime`; `rolling`: the past 24 hours.").or_text("fixed"),
    Field::new("dailyResetTime", RESET_TIME, "`HH:MM` in the gateway's time zone.").or_text("00:00"),
    Field::new("limitConcurrentSessions", SESSIONS, "Conversations at once; 0 or `null` = no limit.").nullable(),
    Field::new("allowedModels", Kind::list(&PATTERN, 200), "A trailing `*` matches any suffix; empty = every model.")
        .nullable(),
    Field::new("allowedClients", Kind::list(&PATTERN, 50), "Parts of `User-Agent`; empty = every client.").nullable(),
    Field::new(
        "lockKeyLimits",
        Kind::Boolean,
        "Only administrators change the limits of the user's keys; a key that the user adds gets the tightest limits of \
         their other keys.",
    )
    .or_false(),
];

/// Sets every field that was sent.
///
/// # Errors
/// 400 when the two names of the daily limit are sent with different values.
pub fn apply(values: &Values, user: &mut User) -> Result<(), ApiError> {
    let (quota, daily) = (values.usd("dailyQuota"), values.usd("limitDailyUsd"));
    if quota != Patch::Keep && daily != Patch::Keep && quota != daily {
        let message = "dailyQuota and limitDailyUsd are the same limit: send one of them";
        return Err(ApiError::field(Code::INVALID_FORMAT, "limitDailyUsd", message));
    }
    values.text("name").apply_set(&mut user.name);
    values.text("note").apply(&mut user.note);
    values.word("role", Role::parse).apply_set(&mut user.role);
    values.boolean("isEnabled").apply_set(&mut user.is_enabled);
    values.moment("expiresAt").apply_option(&mut user.expires_at);
    values.text("providerGroup").map(|text| Groups::parse(&text)).apply(&mut user.provider_group);
    values.texts("tags").apply(&mut user.tags);
    values.count("rpm").apply(&mut user.rpm);
    limits::apply(values, &limits::CAMEL, &mut user.limits);
    quota.apply_option(&mut user.limits.daily);
    values.texts("allowedModels").apply(&mut user.allowed_models);
    values.texts("allowedClients").apply(&mut user.allowed_clients);
    values.boolean("lockKeyLimits").apply_set(&mut user.lock_key_limits);
    Ok(())
}
