//! The section `providers`.
//!
//! What the gateway itself disabled is not configuration: such a provider counts as enabled here,
//! and applying a document does not enable it again, unless its address, proxy, type or credential
//! changes.

use super::form::{self, Form};
use super::names::{self, Meant, RecordNames};
use super::plan::PlanStep;
use super::secrets::{self, Written};
use super::work::Work;
use crate::admin::actions::providers::fields::{self, ProviderFields};
use crate::admin::actions::providers::{blank, destination, is_another};
use crate::admin::bodies::Shape;
use crate::admin::envelope::{ApiError, Code};
use crate::admin::records::provider::ProviderRecord;
use crate::crypto::vault::{SealedFor, Vault};
use crate::domain::clock::Timestamp;
use crate::domain::provider::Provider;
use crate::domain::secret::{MASK, Secret};
use crate::state::reseal;
use crate::store::StoredProvider;

/// The upstream's credential.
pub(super) const CREDENTIAL: &str = "key";

/// With the credential masked.
pub(super) fn form_of(provider: &Provider, masked_key: String) -> Result<Form, ApiError> {
    let mut shown = provider.clone();
    shown.is_enabled |= shown.switched_off.is_some();
    form::of(&ProviderRecord::new(&shown, masked_key), Shape::of::<ProviderFields>())
}

/// What a provider is of which nothing but name, address and credential is written.
pub(super) fn defaults() -> Result<Form, ApiError> {
    let mut form = form_of(&blank(Timestamp(0)), String::new())?;
    for name in ["name", "url", CREDENTIAL] {
        form.remove(name);
    }
    Ok(form)
}

/// The stored credential; `None` where it cannot be opened.
pub(super) fn credential(vault: &Vault, stored: &StoredProvider) -> Option<Secret> {
    vault.open(SealedFor::ProviderKey(stored.provider.id), &stored.key_cipher).ok()
}

fn masked(key: Option<&Secret>) -> String {
    key.map_or_else(|| MASK.to_owned(), Secret::masked)
}

pub(super) async fn apply(
    work: &mut Work<'_>,
    entries: Vec<(String, Form)>,
) -> Result<(), ApiError> {
    let mut stored = std::mem::take(&mut work.stored.providers);
    stored.sort_by_key(|stored| stored.provider.id);
    let mut known = RecordNames::of(stored.iter().map(|stored| stored.provider.name.as_str()));
    let mut wanted = Vec::with_capacity(entries.len());
    for (at, mut entry) in entries {
        let Some(name) = work.text(&entry, "name", &at) else { continue };
        let Some(meant) = known.claim(&name, &mut entry, &at, &mut work.faults) else { continue };
        let before = meant.at.map(|place| &stored[place]);
        if let Some(target) = read(work, entry, before, &at)? {
            wanted.push((meant, target));
        }
    }
    if work.prune {
        for (place, label) in known.unclaimed() {
            remove(work, &stored[place], label).await?;
        }
    }
    for (meant, (target, key)) in wanted {
        let before = meant.at.map(|place| &stored[place]);
        write(work, meant, before, target, key).await?;
    }
    Ok(())
}

/// The provider that is wanted, and its credential where one is written.
fn read(
    work: &mut Work<'_>,
    mut entry: Form,
    before: Option<&StoredProvider>,
    at: &str,
) -> Result<Option<(Provider, Option<Secret>)>, ApiError> {
    let written = Written::read(entry.remove(CREDENTIAL));
    // A credential that is not written stays as it is stored.
    let shape = Shape::of::<ProviderFields>().without(CREDENTIAL);
    let Some(sent) = work.read_as::<ProviderFields>(&shape, &entry, at)? else { return Ok(None) };
    let mut target = blank(work.desk.now);
    sent.apply(&mut target);
    if let Err(refusal) = fields::check_redirects(&target) {
        work.faults.take(at, refusal)?;
    }
    let place = format!("{at}/{CREDENTIAL}");
    let key = match written.open(&work.desk, &secrets::purpose_of(&target)) {
        Ok(key) => key,
        Err(what) => {
            work.faults.add(Code::INVALID_FORMAT, &place, &what);
            return Ok(None);
        }
    };
    match (&key, before) {
        (Some(key), _) => {
            if !is_credential(work, key, at)? {
                return Ok(None);
            }
        }
        (None, Some(before)) => {
            if let Err(refusal) = destination::check(&before.provider, &target) {
                work.faults.take(at, refusal)?;
            }
        }
        (None, None) => {
            let what = "is required for a new provider, and not masked: write it, or name it as \
                        ${NAME} or file:PATH";
            work.faults.add(Code::REQUIRED_FIELD, &place, what);
        }
    }
    Ok(Some((target, key)))
}

fn is_credential(work: &mut Work<'_>, key: &Secret, at: &str) -> Result<bool, ApiError> {
    let shape = Shape::of::<ProviderFields>().only(CREDENTIAL);
    let entry = Form::from_iter([(CREDENTIAL.to_owned(), key.expose().into())]);
    Ok(work.read_as::<ProviderFields>(&shape, &entry, at)?.is_some())
}

async fn write(
    work: &mut Work<'_>,
    meant: Meant,
    before: Option<&StoredProvider>,
    mut target: Provider,
    key: Option<Secret>,
) -> Result<(), ApiError> {
    let old = before.and_then(|stored| credential(work.desk.vault, stored));
    let new_key = key.filter(|key| old.as_ref() != Some(key));
    let shown = masked(new_key.as_ref().or(old.as_ref()));
    let form_before =
        before.map(|stored| form_of(&stored.provider, masked(old.as_ref()))).transpose()?;
    let form_after = form_of(&target, shown)?;
    if new_key.is_none() && form_before.as_ref() == Some(&form_after) {
        return Ok(());
    }
    if let Some(before) = before {
        carry_over(&before.provider, &mut target, new_key.is_some(), work.desk.now);
    }
    if work.is_sound() {
        store(work, &mut target, before.is_none(), new_key.as_ref()).await?;
    }
    let step = PlanStep {
        kind: "provider",
        name: meant.label,
        target: format!("provider {}", target.id),
        before: form_before,
        after: Some(form_after),
        secret: new_key.is_some().then_some(CREDENTIAL),
    };
    work.note(step, &defaults()?);
    Ok(())
}

/// What a document does not say of a provider that is there.
fn carry_over(before: &Provider, target: &mut Provider, new_key: bool, now: Timestamp) {
    target.id = before.id;
    target.created_at = before.created_at;
    target.health_since = before.health_since;
    let renewed = is_another(before, target, new_key);
    if renewed {
        target.health_since = now;
    } else if target.is_enabled && before.switched_off.is_some() {
        target.is_enabled = false;
        target.switched_off = before.switched_off.clone();
    }
}

async fn store(
    work: &mut Work<'_>,
    target: &mut Provider,
    is_new: bool,
    key: Option<&Secret>,
) -> Result<(), ApiError> {
    if is_new {
        // The credential is sealed for the provider's id, which is not known before.
        target.id = work.tx.insert_provider(target, "").await?;
    }
    let place = SealedFor::ProviderKey(target.id);
    let cipher = match key {
        Some(key) => Some(reseal::seal(work.desk.vault, work.tx, place, key).await?),
        None => None,
    };
    Ok(work.tx.update_provider(target, cipher.as_deref()).await?)
}

async fn remove(
    work: &mut Work<'_>,
    stored: &StoredProvider,
    label: String,
) -> Result<(), ApiError> {
    let now = work.desk.now;
    let gone = Provider { deleted_at: Some(now), updated_at: now, ..stored.provider.clone() };
    if work.is_sound() {
        // The row stays for the usage records; its credential does not.
        work.tx.update_provider(&gone, Some("")).await?;
    }
    let key = credential(work.desk.vault, stored);
    let step = PlanStep {
        kind: "provider",
        name: label,
        target: format!("provider {}", stored.provider.id),
        before: Some(form_of(&stored.provider, masked(key.as_ref()))?),
        after: None,
        secret: None,
    };
    work.note(step, &Form::new());
    Ok(())
}

/// The providers as an export has them: `secret` shows a credential.
pub(super) fn exported(
    stored: &[StoredProvider],
    vault: &Vault,
    secret: impl Fn(&Provider, &Secret) -> Result<serde_json::Value, ApiError>,
) -> Result<Vec<serde_json::Value>, ApiError> {
    let mut stored: Vec<&StoredProvider> = stored.iter().collect();
    stored.sort_by_key(|stored| stored.provider.id);
    let numbers = names::numbers(stored.iter().map(|stored| stored.provider.name.as_str()));
    let defaults = defaults()?;
    let one = |(stored, nth): (&&StoredProvider, usize)| {
        let provider = &stored.provider;
        let mut form = form::shortened(form_of(provider, String::new())?, &defaults);
        let key = credential(vault, stored);
        let shown = key.map_or_else(|| Ok(MASK.into()), |key| secret(provider, &key))?;
        form.insert(CREDENTIAL.to_owned(), shown);
        Ok(numbered(form, nth))
    };
    stored.iter().zip(numbers).map(one).collect()
}

/// The form of the `nth` record of its name.
pub(super) fn numbered(mut form: Form, nth: usize) -> serde_json::Value {
    if nth > 1 {
        form.shift_insert(1, "nth".to_owned(), nth.into());
    }
    form.into()
}
