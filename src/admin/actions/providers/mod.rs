//! `providers/*`: the upstreams.
//!
//! The upstream credential is sealed before it is stored and shown masked; for the data plane it is
//! opened once, when the snapshot is made.

pub(in crate::admin) mod certificates;
pub(in crate::admin) mod credentials;
pub(in crate::admin) mod destination;
mod explain;
pub mod fields;
pub mod health;
mod outcome;
pub(in crate::admin) mod several;
mod test;

use self::credentials::{SentSecrets, check_key};
use self::fields::{OfProvider, ProviderFields};
use self::several::WantedCredentials;
use crate::admin::bodies::{Edit, Nothing};
use crate::admin::call::{AuditChange, Call, is_unchanged, recorded};
use crate::admin::envelope::{ApiError, Code};
use crate::admin::operation::{Operation, Permission};
use crate::admin::reasons::Reason;
use crate::admin::records::provider::{Created, ProviderRecord};
use crate::crypto::vault::SealedFor;
use crate::domain::credentials::Credentials;
use crate::domain::ids::ProviderId;
use crate::domain::provider::Provider;
use crate::domain::secret::Secret;
use crate::state::reseal::{self, SealError};
use crate::store::{StoredProvider, Tx};

/// The operations of this file, for the table of all.
pub fn operations() -> Vec<Operation> {
    let mut operations = records();
    operations.extend(health::operations());
    operations.extend(explain::operations());
    operations
}

fn records() -> Vec<Operation> {
    vec![
        Operation::action("actions/providers/getProviders", Permission::Admin, get_providers)
            .reads()
            .doc("All providers, their credentials masked."),
        Operation::action("actions/providers/addProvider", Permission::Admin, add_provider)
            .creates()
            .doc("Adds an upstream provider.")
            .errors(&[Code::OPERATION_FAILED]),
        Operation::action("actions/providers/editProvider", Permission::Admin, edit_provider)
            .updates()
            .doc(
                "Changes what is sent and leaves the rest, the credential too. Another `url`, \
                 `provider_type`, `auth`, `query`, `path_template`, `proxy_url` or certificate, or a `key`, \
                 closes the circuit and clears the provider's health, which described what was there before; so does enabling a \
                 provider that the gateway itself disabled. Where `url` gets another origin \
                 (scheme, host, port), `proxy_url` changes, or `tls_ca` is added or replaced, `key`, the keys of \
                 `credentials`, secret parts of `custom_headers`, the password in `proxy_url` (for another proxy) \
                 and `tls_client_key` (for another origin) must be sent again: else `REQUIRED_FIELD`. A change of `auth` \
                 to another kind of credential also needs the `key`. Where the stored secrets cannot be \
                 opened any more, a new `key` also needs `tls_client_key` (with a client certificate) and \
                 `proxy_url` (with a user).",
            )
            .errors(&[Code::NOT_FOUND, Code::OPERATION_FAILED]),
        Operation::action("actions/providers/removeProvider", Permission::Admin, remove_provider)
            .deletes()
            .doc(
                "Removes a provider and its stored credential; requests that it is answering end \
                 properly.",
            )
            .errors(&[Code::NOT_FOUND]),
        Operation::action("actions/providers/testProvider", Permission::Admin, test::test_provider)
            .reads()
            .doc(
                "Sends one small real request to a provider, stored or not yet, and reports the \
                 result. Leaves an audit record.",
            )
            .errors(&[Code::NOT_FOUND]),
    ]
}

/// The record with its secrets masked; those that cannot be opened show no part.
fn shown(call: &Call, stored: &StoredProvider) -> ProviderRecord {
    ProviderRecord::new(&stored.provider, opened(call, stored).ok().as_ref())
}

fn opened(call: &Call, stored: &StoredProvider) -> Result<Credentials, ApiError> {
    let place = SealedFor::ProviderKey(stored.provider.id);
    let text = call.ctx.node.state.vault().open(place, &stored.key_cipher);
    text.map(Credentials::read).map_err(|error| {
        let refusal = ApiError::because(Code::INVALID_FORMAT, Reason::StoredKeyUnreadable);
        refusal.field("key").with("detail", error.to_string().into())
    })
}

/// From the store, not the snapshot: a provider whose credential cannot be opened must be listed
/// too, so that it can be fixed.
async fn get_providers(call: Call, _: Nothing) -> Result<Vec<ProviderRecord>, ApiError> {
    let everything = call.ctx.node.store.load_all().await?;
    let mut providers = everything.providers;
    providers.sort_by_key(|stored| stored.provider.id);
    Ok(providers.iter().map(|stored| shown(&call, stored)).collect())
}

async fn add_provider(call: Call, body: ProviderFields) -> Result<Created, ApiError> {
    let mut provider = Provider::blank(call.now);
    body.apply(&mut provider);
    fields::check(&provider)?;
    let mut wanted = credentials::merge(Credentials::default(), SentSecrets::of(&body))?;
    check_key(&provider, &wanted.credentials.key)?;
    certificates::check(None, &provider, &mut wanted, call.now)?;
    let further = WantedCredentials::of(&body, false);
    further.merge(&mut provider, &Secret::default(), &mut wanted, call.now)?;
    let wanted = wanted.credentials;
    let mut tx = call.ctx.node.store.begin().await?;
    // The credential is sealed for the provider's id, which is not known before.
    provider.id = tx.insert_provider(&provider, "").await?;
    let key_cipher = sealed(&call, &mut tx, provider.id, &wanted).await?;
    tx.set_provider_key(provider.id, &key_cipher).await?;
    let id = provider.id.0;
    let after = recorded(&shown(&call, &StoredProvider { provider, key_cipher }))?;
    let change = AuditChange {
        action: "providers.addProvider",
        target: format!("provider {id}"),
        before: None,
        after,
    };
    call.audit(&mut tx, change).await?;
    call.commit(tx).await?;
    Ok(Created { id })
}

async fn edit_provider(call: Call, body: Edit<OfProvider, ProviderFields>) -> Result<(), ApiError> {
    let id = ProviderId(body.target.provider_id.0);
    let mut tx = call.ctx.node.store.begin().await?;
    let before = tx.provider(id).await?.ok_or_else(|| ApiError::missing("provider", id.0))?;
    let mut after = before.clone();
    body.change.apply(&mut after.provider);
    fields::check(&after.provider)?;
    let sent = SentSecrets::of(&body.change);
    let further = WantedCredentials::of(&body.change, false);
    let (has_key, is_sent) =
        (sent.key.is_some(), sent.key.is_some() || sent.headers.is_some() || further.is_sent());
    let (known, lost) = (opened(&call, &before), sent.lost(&after.provider));
    let stored = known.as_ref().ok().cloned().unwrap_or_default();
    let mut wanted = credentials::merge(stored.clone(), sent)?;
    certificates::check(Some(&before.provider), &after.provider, &mut wanted, call.now)?;
    let renews = is_sent || wanted.credentials != stored;
    if !renews && is_unchanged(&before.provider, &after.provider)? {
        return Ok(());
    }
    after.provider.updated_at = call.now;
    // New secrets replace those that cannot be opened any more.
    if let (true, Err(refusal), Some(field)) = (renews, known, lost) {
        return Err(refusal.field(field));
    }
    if renews {
        further.merge(&mut after.provider, &stored.key, &mut wanted, call.now)?;
    }
    destination::check(&before.provider, &after.provider, &wanted)?;
    if !wanted.keeps_key {
        check_key(&after.provider, &wanted.credentials.key)?;
    }
    let cipher = match renews {
        true => Some(sealed(&call, &mut tx, id, &wanted.credentials).await?),
        false => None,
    };
    let of_way = |of: &Credentials| (of.proxy_password.clone(), of.tls_key.clone());
    let new_secret = has_key || of_way(&stored) != of_way(&wanted.credentials);
    if is_another(&before.provider, &after.provider, new_secret) {
        after.provider.health_since = call.now;
    }
    if after.provider.is_enabled && after.provider.switched_off.take().is_some() {
        after.provider.health_since = call.now;
    }
    tx.update_provider(&after.provider, cipher.as_deref()).await?;
    after.key_cipher = cipher.unwrap_or(after.key_cipher);
    let change = AuditChange {
        action: "providers.editProvider",
        target: format!("provider {id}"),
        before: recorded(&shown(&call, &before))?,
        after: recorded(&shown(&call, &after))?,
    };
    call.audit(&mut tx, change).await?;
    call.commit(tx).await
}

/// Whether requests go somewhere else, by another way or with another credential from now on, so
/// that earlier failures say nothing any more.
pub(in crate::admin) fn is_another(before: &Provider, after: &Provider, new_secret: bool) -> bool {
    let of = |provider: &Provider| {
        let (url, proxy) = (provider.url.clone(), provider.proxy_url.clone());
        let (template, query) = (provider.path_template.clone(), provider.query.clone());
        (url, proxy, provider.kind, provider.auth, template, query, provider.tls.clone())
    };
    new_secret || of(before) != of(after)
}

async fn remove_provider(call: Call, body: OfProvider) -> Result<(), ApiError> {
    let id = ProviderId(body.provider_id.0);
    let mut tx = call.ctx.node.store.begin().await?;
    let before = tx.provider(id).await?.ok_or_else(|| ApiError::missing("provider", id.0))?;
    let gone =
        Provider { deleted_at: Some(call.now), updated_at: call.now, ..before.provider.clone() };
    // The row stays for the usage records; its credential does not.
    tx.update_provider(&gone, Some("")).await?;
    let change = AuditChange {
        action: "providers.removeProvider",
        target: format!("provider {id}"),
        before: recorded(&shown(&call, &before))?,
        after: None,
    };
    call.audit(&mut tx, change).await?;
    call.commit(tx).await
}

/// What is secret of the provider, sealed for it.
async fn sealed(
    call: &Call,
    tx: &mut Tx,
    id: ProviderId,
    credentials: &Credentials,
) -> Result<String, ApiError> {
    let (vault, place) = (call.ctx.node.state.vault(), SealedFor::ProviderKey(id));
    Ok(reseal::seal(vault, tx, place, &credentials.packed()).await?)
}

impl From<SealError> for ApiError {
    fn from(error: SealError) -> Self {
        match error {
            SealError::Store(error) => error.into(),
            SealError::OtherKey { sealing, known } => {
                let refusal = Self::because(Code::OPERATION_FAILED, Reason::SealedWithOtherKey);
                refusal.with("sealing", sealing.into()).with("known", known.into())
            }
            SealError::Vault(error) => Self::internal(error),
        }
    }
}
