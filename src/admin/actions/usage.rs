//! The use of limits by keys, users and providers, from the counters that enforce them.

use super::keys::fields::OfKey;
use super::providers::fields::OfProvider;
use super::users::fields::OfUser;
use crate::admin::call::Call;
use crate::admin::envelope::{ApiError, Code};
use crate::admin::operation::{Operation, Permission};
use crate::admin::records::usage::{LimitUsage, UserLimitUsage};
use crate::domain::ids::{KeyId, ProviderId, UserId};

/// The operations of this file, for the table of all.
pub fn operations() -> Vec<Operation> {
    vec![
        Operation::action("actions/keys/getKeyLimitUsage", Permission::Own, of_key)
            .reads()
            .doc("What a key has used of each of its limits.")
            .errors(&[Code::NOT_FOUND]),
        Operation::action("actions/users/getUserLimitUsage", Permission::Own, of_user)
            .reads()
            .doc("What a user has used of their limits, with all keys together.")
            .errors(&[Code::NOT_FOUND]),
        Operation::action(
            "actions/providers/getProviderLimitUsage",
            Permission::Admin,
            of_provider,
        )
        .reads()
        .doc("What was spent at a provider, against its limits.")
        .errors(&[Code::NOT_FOUND]),
    ]
}

async fn of_key(call: Call, body: OfKey) -> Result<LimitUsage, ApiError> {
    let id = KeyId(body.key_id.0);
    let snapshot = call.ctx.node.state.snapshot();
    let caller = snapshot.key(id).ok_or_else(|| ApiError::missing("key", id.0))?;
    call.who()?.must_own(caller.key.user_id)?;
    Ok((&call.ctx.node.counters.key_usage(&caller.key, call.now).await).into())
}

async fn of_user(call: Call, body: OfUser) -> Result<UserLimitUsage, ApiError> {
    let id = UserId(body.user_id.0);
    call.who()?.must_own(id)?;
    let snapshot = call.ctx.node.state.snapshot();
    let user = snapshot.user(id).ok_or_else(|| ApiError::missing("user", id.0))?;
    Ok((&call.ctx.node.counters.user_usage(user, call.now).await).into())
}

async fn of_provider(call: Call, body: OfProvider) -> Result<LimitUsage, ApiError> {
    let id = ProviderId(body.provider_id.0);
    let snapshot = call.ctx.node.state.snapshot();
    let provider = snapshot.provider(id).ok_or_else(|| ApiError::missing("provider", id.0))?;
    Ok((&call.ctx.node.counters.provider_usage(provider, call.now).await).into())
}
