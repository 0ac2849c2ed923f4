//! The section `invoice_sources`: where providers' invoices are read from, by the provider's name.

use serde_json::Value;

use super::form::{self, Form};
use super::names::{self, RecordNames};
use super::plan::PlanStep;
use super::secrets::{self, Secrets, Written};
use super::work::Work;
use crate::admin::actions::reconciliation::{InvoiceSourceFields, blank, keeps_key, key};
use crate::admin::bodies::Shape;
use crate::admin::envelope::{ApiError, Code};
use crate::admin::records::reconciliation::InvoiceSourceRecord;
use crate::crypto::vault::{SealedFor, Vault};
use crate::domain::clock::Timestamp;
use crate::domain::ids::ProviderId;
use crate::domain::invoice::InvoiceSource;
use crate::domain::secret::{MASK, Secret};
use crate::state::reseal;
use crate::store::{StoredInvoiceSource, StoredProvider};

/// The vendor's administration key.
pub(super) const KEY: &str = "admin_key";
/// The provider's name.
const PROVIDER: &str = "provider";
const NEEDED: &str = "is required for a new source and for another address, and not masked: write \
    it, or name it as ${NAME} or file:PATH";

/// The fields of a document: the key stands apart.
pub(super) fn shape() -> Shape {
    Shape::of::<InvoiceSourceFields>().without("adminKey")
}

fn form_of(stored: &StoredInvoiceSource, masked: String) -> Result<Form, ApiError> {
    form::of(&InvoiceSourceRecord::new(stored, masked), Shape::of::<InvoiceSourceFields>())
}

fn masked(key: Option<&Secret>) -> String {
    key.map_or_else(|| MASK.to_owned(), Secret::masked)
}

/// What a sealed key is for: the address that it may be sent to.
fn purpose_of(source: &InvoiceSource) -> String {
    format!("invoice key for {}", secrets::origin_of(&source.url))
}

pub(super) async fn apply(
    work: &mut Work<'_>,
    entries: Vec<(String, Form)>,
) -> Result<(), ApiError> {
    // As the section of the providers has left them.
    let providers = work.tx.providers().await?;
    let stored = work.tx.invoice_sources().await?;
    let mut known = RecordNames::of(providers.iter().map(|stored| stored.provider.name.as_str()));
    for (at, mut entry) in entries {
        let Some(name) = work.text(&entry, PROVIDER, &at) else { continue };
        entry.remove(PROVIDER);
        let Some(meant) = known.claim(&name, &mut entry, &at, &mut work.faults) else { continue };
        match meant.at.and_then(|place| providers.get(place)) {
            Some(provider) => {
                let id = provider.provider.id;
                let before = stored.iter().find(|stored| stored.source.provider_id == id);
                one(work, (meant.label, id), before, entry, &at).await?;
            }
            // After a fault, new providers are not written.
            None if work.is_sound() => {
                let what = format!("there is no provider {name:?}");
                work.faults.add(Code::NOT_FOUND, &format!("{at}/{PROVIDER}"), &what);
            }
            None => {}
        }
    }
    if work.prune {
        for (place, label) in known.unclaimed() {
            let id = providers.get(place).map(|stored| stored.provider.id);
            if let Some(gone) = stored.iter().find(|stored| Some(stored.source.provider_id) == id) {
                remove(work, gone, label).await?;
            }
        }
    }
    Ok(())
}

async fn one(
    work: &mut Work<'_>,
    (label, id): (String, ProviderId),
    before: Option<&StoredInvoiceSource>,
    mut entry: Form,
    at: &str,
) -> Result<(), ApiError> {
    let written = Written::read(entry.remove(KEY));
    if !entry.contains_key("kind") {
        work.faults.add(Code::REQUIRED_FIELD, &format!("{at}/kind"), "is required");
        return Ok(());
    }
    let Some(sent) = work.read_as::<InvoiceSourceFields>(&shape(), &entry, at)? else {
        return Ok(());
    };
    let mut wanted = StoredInvoiceSource {
        source: blank(id, work.desk.now),
        key_cipher: before.map(|stored| stored.key_cipher.clone()).unwrap_or_default(),
    };
    sent.apply(&mut wanted.source);
    let place = format!("{at}/{KEY}");
    let new_key = match written.open(&work.desk, &purpose_of(&wanted.source)) {
        Ok(key) => key,
        Err(what) => {
            work.faults.add(Code::INVALID_FORMAT, &place, &what);
            return Ok(());
        }
    };
    if let Some(key) = &new_key {
        let shape = Shape::of::<InvoiceSourceFields>().only("adminKey");
        let entry = Form::from_iter([(KEY.to_owned(), Value::from(key.expose()))]);
        if work.read_as::<InvoiceSourceFields>(&shape, &entry, at)?.is_none() {
            return Ok(());
        }
    } else if !before.is_some_and(|before| keeps_key(&before.source, &wanted.source)) {
        work.faults.add(Code::REQUIRED_FIELD, &place, NEEDED);
        return Ok(());
    }
    write(work, label, before, wanted, new_key).await
}

async fn write(
    work: &mut Work<'_>,
    label: String,
    before: Option<&StoredInvoiceSource>,
    mut wanted: StoredInvoiceSource,
    new_key: Option<Secret>,
) -> Result<(), ApiError> {
    let id = wanted.source.provider_id;
    let old = before.and_then(|stored| key(work.desk.vault, stored));
    let new_key = new_key.filter(|key| old.as_ref() != Some(key));
    let form_before = before.map(|stored| form_of(stored, masked(old.as_ref()))).transpose()?;
    let form_after = form_of(&wanted, masked(new_key.as_ref().or(old.as_ref())))?;
    if new_key.is_none() && form_before.as_ref() == Some(&form_after) {
        return Ok(());
    }
    if work.is_sound() {
        if let Some(key) = &new_key {
            let place = SealedFor::InvoiceKey(id);
            wanted.key_cipher = reseal::seal(work.desk.vault, work.tx, place, key).await?;
        }
        work.tx.save_invoice_source(&wanted).await?;
    }
    let step = PlanStep {
        kind: "invoice source",
        name: label,
        target: format!("invoice source of provider {id}"),
        before: form_before,
        after: Some(form_after),
        secret: new_key.is_some().then_some(KEY),
    };
    work.note(step, &defaults()?);
    Ok(())
}

async fn remove(
    work: &mut Work<'_>,
    stored: &StoredInvoiceSource,
    label: String,
) -> Result<(), ApiError> {
    let id = stored.source.provider_id;
    if work.is_sound() {
        work.tx.delete_invoice_source(id).await?;
    }
    let key = key(work.desk.vault, stored);
    let step = PlanStep {
        kind: "invoice source",
        name: label,
        target: format!("invoice source of provider {id}"),
        before: Some(form_of(stored, masked(key.as_ref()))?),
        after: None,
        secret: None,
    };
    work.note(step, &Form::new());
    Ok(())
}

/// What need not be written.
fn defaults() -> Result<Form, ApiError> {
    let source = blank(ProviderId(0), Timestamp(0));
    let mut form =
        form_of(&StoredInvoiceSource { source, key_cipher: String::new() }, String::new())?;
    for name in ["kind", "url", KEY] {
        form.remove(name);
    }
    Ok(form)
}

/// The sources as an export has them.
pub(super) fn exported(
    stored: &[StoredInvoiceSource],
    providers: &[StoredProvider],
    vault: &Vault,
    how: (Secrets, Option<&str>),
) -> Result<Vec<Value>, ApiError> {
    let mut providers: Vec<&StoredProvider> = providers.iter().collect();
    providers.sort_by_key(|stored| stored.provider.id);
    let numbers = names::numbers(providers.iter().map(|stored| stored.provider.name.as_str()));
    let defaults = defaults()?;
    let mut sources = Vec::new();
    for (provider, nth) in providers.iter().zip(numbers) {
        let id = provider.provider.id;
        let Some(stored) = stored.iter().find(|stored| stored.source.provider_id == id) else {
            continue;
        };
        let name = Value::from(provider.provider.name.as_str());
        let mut form = Form::from_iter([(PROVIDER.to_owned(), name)]);
        form.extend(form::shortened(form_of(stored, String::new())?, &defaults));
        let purpose = purpose_of(&stored.source);
        let shown = key(vault, stored)
            .map_or_else(|| Ok(MASK.into()), |key| secrets::shown(vault, how, &purpose, &key))?;
        form.insert(KEY.to_owned(), shown);
        sources.push(super::providers::numbered(form, nth));
    }
    Ok(sources)
}
