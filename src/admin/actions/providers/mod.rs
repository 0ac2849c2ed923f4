//! `providers/*`: the upstreams.
//!
//! The upstream credential is sealed before it is stored and shown masked; what the data plane uses is unsealed once,
//! when the snapshot is made.

pub mod fields;
pub mod health;
mod outcome;
mod test;

use rust_decimal::Decimal;

use crate::admin::call::{Call, Change, recorded};
use crate::admin::envelope::{Code, Refusal};
use crate::admin::fields::{Body, Patch};
use crate::admin::records::provider::{Created, ProviderRecord};
use crate::admin::table::{Operation, Permission};
use crate::domain::clock::Timestamp;
use crate::domain::group::Groups;
use crate::domain::ids::ProviderId;
use crate::domain::key::CacheTtl;
use crate::domain::limits::Limits;
use crate::domain::provider::{BreakerSettings, InstructionsStrategy, Provider, ProviderTimeouts, ProviderType};
use crate::domain::secret::Secret;
use crate::store::StoredProvider;

pub fn operations() -> Vec<Operation> {
    let mut operations = records();
    operations.extend(health::operations());
    operations
}

fn records() -> Vec<Operation> {
    vec![
        Operation::action("actions/providers/getProviders", Permission::Admin, Body::EMPTY, get_providers)
            .doc("All providers, their credentials masked."),
        Operation::action(
            "actions/providers/addProvider",
            Permission::Admin,
            Body::of(&[], fields::PROVIDER),
            add_provider,
        )
        .doc("Adds an upstream provider."),
        Operation::action(
            "actions/providers/editProvider",
            Permission::Admin,
            Body::edit(fields::PROVIDER_ID, fields::PROVIDER),
            edit_provider,
        )
        .doc("Changes what is sent and leaves the rest, the credential too.")
        .errors(&[Code::NOT_FOUND]),
        Operation::action(
            "actions/providers/removeProvider",
            Permission::Admin,
            Body::of(fields::PROVIDER_ID, &[]),
            remove_provider,
        )
        .doc("Removes a provider; requests that it is answering end properly.")
        .errors(&[Code::NOT_FOUND]),
        Operation::action(
            "actions/providers/testProvider",
            Permission::Admin,
            Body::of(&[], test::FIELDS),
            test::test_provider,
        )
        .doc("Sends one small real request to a provider, stored or not yet, and tells what came back.")
        .errors(&[Code::NOT_FOUND]),
    ]
}

fn blank(now: Timestamp) -> Provider {
    Provider {
        id: ProviderId(0),
        name: String::new(),
        url: String::new(),
        key: Secret::default(),
        kind: ProviderType::Native,
        is_enabled: true,
        weight: 1,
        priority: 0,
        cost_multiplier: Decimal::ONE,
        group_tag: Groups::default(),
        allowed_models: Vec::new(),
        model_redirects: Vec::new(),
        limits: Limits::default(),
        max_retry_attempts: 2,
        breaker: BreakerSettings::default(),
        timeouts: ProviderTimeouts::default(),
        cache_ttl: CacheTtl::Inherit,
        instructions: InstructionsStrategy::default(),
        preserve_client_ip: false,
        proxy_url: None,
        note: String::new(),
        created_at: now,
        updated_at: now,
        deleted_at: None,
    }
}

/// The record with its credential masked; one that cannot be opened shows no part of it.
fn shown(call: &Call, stored: &StoredProvider) -> ProviderRecord {
    let key = call.ctx.state.vault().open(&stored.key_cipher);
    let masked = key.map_or_else(|_| "***".to_owned(), |key| key.masked());
    ProviderRecord::new(&stored.provider, masked)
}

/// From the store, not the snapshot: a provider whose credential cannot be opened is listed too, or nobody could mend it.
async fn get_providers(call: Call) -> Result<Vec<ProviderRecord>, Refusal> {
    let everything = call.ctx.store.load_all().await?;
    let mut providers = everything.providers;
    providers.sort_by_key(|stored| stored.provider.id);
    Ok(providers.iter().map(|stored| shown(&call, stored)).collect())
}

async fn add_provider(call: Call) -> Result<Created, Refusal> {
    let mut provider = blank(call.now);
    fields::apply(&call.values, &mut provider);
    fields::check_redirects(&provider)?;
    let key_cipher = sealed(&call)?.unwrap_or_default();
    let mut tx = call.ctx.store.begin().await?;
    provider.id = tx.insert_provider(&provider, &key_cipher).await?;
    let id = provider.id.0;
    let after = recorded(&shown(&call, &StoredProvider { provider, key_cipher }))?;
    let change = Change { action: "providers.addProvider", target: format!("provider {id}"), before: None, after };
    call.audit(&mut tx, change).await?;
    call.commit(tx).await?;
    Ok(Created { id })
}

async fn edit_provider(call: Call) -> Result<(), Refusal> {
    let id = ProviderId(call.values.id("providerId"));
    let cipher = sealed(&call)?;
    let mut tx = call.ctx.store.begin().await?;
    let before = tx.provider(id).await?.ok_or_else(|| Refusal::missing("provider", id.0))?;
    let mut after = before.clone();
    fields::apply(&call.values, &mut after.provider);
    fields::check_redirects(&after.provider)?;
    after.provider.updated_at = call.now;
    tx.update_provider(&after.provider, cipher.as_deref()).await?;
    after.key_cipher = cipher.unwrap_or(after.key_cipher);
    let change = Change {
        action: "providers.editProvider",
        target: format!("provider {id}"),
        before: recorded(&shown(&call, &before))?,
        after: recorded(&shown(&call, &after))?,
    };
    call.audit(&mut tx, change).await?;
    call.commit(tx).await
}

async fn remove_provider(call: Call) -> Result<(), Refusal> {
    let id = ProviderId(call.values.id("providerId"));
    let mut tx = call.ctx.store.begin().await?;
    let before = tx.provider(id).await?.ok_or_else(|| Refusal::missing("provider", id.0))?;
    let gone = Provider { deleted_at: Some(call.now), updated_at: call.now, ..before.provider.clone() };
    tx.update_provider(&gone, None).await?;
    let change = Change {
        action: "providers.removeProvider",
        target: format!("provider {id}"),
        before: recorded(&shown(&call, &before))?,
        after: None,
    };
    call.audit(&mut tx, change).await?;
    call.commit(tx).await
}

/// The credential that was sent, sealed for the store.
fn sealed(call: &Call) -> Result<Option<String>, Refusal> {
    match call.values.text("key") {
        Patch::Set(key) => call.ctx.state.vault().seal(&Secret::new(key)).map(Some).map_err(Refusal::internal),
        Patch::Keep | Patch::Clear => Ok(None),
    }
}
