//! The use of limits by keys, users and providers, from the counters that enforce them.

use super::{keys, providers, users};
use crate::admin::call::Call;
use crate::admin::envelope::{ApiError, Code};
use crate::admin::fields::Body;
use crate::admin::records::usage::{LimitUsage, UserLimitUsage};
use crate::admin::table::{Operation, Permission};
use crate::domain::ids::{KeyId, ProviderId, UserId};

pub fn operations() -> Vec<Operation> {
    vec![
        Operation::action(
            "actions/keys/getKeyLimitUsage",
            Permission::Own,
            Body::of(keys::fields::KEY_ID, &[]),
            of_key,
        )
        .doc("What a key has used of each of its limits.")
        .errors(&[Code::NOT_FOUND]),
        Operation::action(
            "actions/users/getUserLimitUsage",
            Permission::Own,
            Body::of(users::fields::USER_ID, &[]),
            of_user,
        )
        .doc("What a user has used of their limits, with all keys together.")
        .errors(&[Code::NOT_FOUND]),
        Operation::action(
            "actions/providers/getProviderLimitUsage",
            Permission::Admin,
            Body::of(providers::fields::PROVIDER_ID, &[]),
            of_provider,
        )
        .doc("What was spent at a provider, against its limits.")
        .errors(&[Code::NOT_FOUND]),
    ]
}

async fn of_key(call: Call) -> Result<LimitUsage, ApiError> {
    let id = KeyId(call.values.id("keyId"));
    let snapshot = call.ctx.state.snapshot();
    let caller = snapshot.key(id).ok_or_else(|| ApiError::missing("key", id.0))?;
    call.who()?.must_own(caller.key.user_id)?;
    Ok((&call.ctx.counters.key_usage(&caller.key, call.now).await).into())
}

async fn of_user(call: Call) -> Result<UserLimitUsage, ApiError> {
    let id = UserId(call.values.id("userId"));
    call.who()?.must_own(id)?;
    let snapshot = call.ctx.state.snapshot();
    let user = snapshot.user(id).ok_or_else(|| ApiError::missing("user", id.0))?;
    Ok((&call.ctx.counters.user_usage(user, call.now).await).into())
}

async fn of_provider(call: Call) -> Result<LimitUsage, ApiError> {
    let id = ProviderId(call.values.id("providerId"));
    let snapshot = call.ctx.state.snapshot();
    let provider = snapshot.provider(id).ok_or_else(|| ApiError::missing("provider", id.0))?;
    Ok((&call.ctx.counters.provider_usage(provider, call.now).await).into())
}
