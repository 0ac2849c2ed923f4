//! The health of providers: read, and reset by hand.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::json;

use super::fields::OfProvider;
use crate::admin::bodies::Nothing;
use crate::admin::call::{AuditChange, Call, recorded};
use crate::admin::context::Context;
use crate::admin::envelope::{ApiError, Code};
use crate::admin::operation::{Operation, Permission};
use crate::admin::records::health::{
    CredentialHealth, LooksRecord, ProviderHealth, ProviderHistory,
};
use crate::domain::clock::Timestamp;
use crate::domain::ids::ProviderId;
use crate::domain::provider::Provider;
use crate::state::credential_uses::used_here;

/// The operations of this file, for the table of all.
pub fn operations() -> Vec<Operation> {
    vec![
        Operation::action(
            "actions/providers/getProvidersHealthStatus",
            Permission::Admin,
            get_providers_health_status,
        )
        .reads()
        .doc(
            "How every provider does: its circuit, its last error, and how often attempts failed \
              in the last five minutes.",
        ),
        Operation::action(
            "actions/providers/resetProviderCircuit",
            Permission::Admin,
            reset_provider_circuit,
        )
        .doc("Closes a provider's circuit, sets all its counts to zero and ends its cooldown and those of its keys.")
        .errors(&[Code::NOT_FOUND]),
        Operation::action(
            "actions/providers/getProvidersHistory",
            Permission::Admin,
            get_providers_history,
        )
        .reads()
        .doc("How every provider was in the last 24 hours, and on each of the last 90 days."),
    ]
}

/// The present health of one provider.
pub fn of(ctx: &Context, provider: &Arc<Provider>, now: Timestamp) -> ProviderHealth {
    let here = used_here(&ctx.node.health, &ctx.node.credentials, provider, now);
    let credential = |one: &Provider| {
        let here = here.iter().find(|used| used.credential == one.credential_id());
        let stored = ctx.node.credential_uses.last((one.id, one.credential_id()));
        let used = stored.max(here.and_then(|used| used.used_at));
        CredentialHealth::new(one, ctx.node.credentials.seen(one, now), used)
    };
    let credentials = provider.with_each_credential().iter().map(|one| credential(one)).collect();
    let (circuit, seen) =
        (ctx.node.health.figures(provider, now), ctx.node.health.seen(provider, now));
    ProviderHealth::new(provider, &circuit, &seen, credentials)
}

async fn get_providers_health_status(
    call: Call,
    _: Nothing,
) -> Result<Vec<ProviderHealth>, ApiError> {
    let snapshot = call.ctx.node.state.snapshot();
    Ok(snapshot
        .providers
        .iter()
        .map(|provider| of(&call.ctx, provider, call.ctx.node.clock.now()))
        .collect())
}

async fn get_providers_history(call: Call, _: Nothing) -> Result<Vec<ProviderHistory>, ApiError> {
    let mut all: HashMap<(ProviderId, bool), Vec<LooksRecord>> = HashMap::new();
    for one in call.ctx.node.store.provider_states().await? {
        all.entry((one.provider, one.is_day)).or_default().push(LooksRecord::from(&one));
    }
    let snapshot = call.ctx.node.state.snapshot();
    let of = |provider: &Arc<Provider>| {
        let mut looks = |is_day: bool| all.remove(&(provider.id, is_day)).unwrap_or_default();
        ProviderHistory { provider_id: provider.id.0, looks: looks(false), days: looks(true) }
    };
    Ok(snapshot.providers.iter().map(of).collect())
}

async fn reset_provider_circuit(call: Call, body: OfProvider) -> Result<(), ApiError> {
    let id = ProviderId(body.provider_id.0);
    let snapshot = call.ctx.node.state.snapshot();
    let provider = snapshot.provider(id).ok_or_else(|| ApiError::missing("provider", id.0))?;
    let mut tx = call.ctx.node.store.begin().await?;
    let change = AuditChange {
        action: "providers.resetProviderCircuit",
        target: format!("provider {id}"),
        before: recorded(&of(&call.ctx, provider, call.ctx.node.clock.now()))?,
        after: Some(json!({ "state": "CLOSED" })),
    };
    call.audit(&mut tx, change).await?;
    call.commit(tx).await?;
    let now = call.ctx.node.clock.now();
    call.ctx.node.health.reset(provider, now);
    call.ctx.node.credentials.reset(provider, now);
    Ok(())
}
