//! The section `invoice_sources`: where providers' invoices are read from, by the provider's name.

use serde_json::Value;

use super::form::{self, Form};
use super::names::{self, RecordNames};
use super::secrets::{self, Sealing, WithKey, Written};
use super::section::{self, Row, Section};
use super::work::Work;
use crate::admin::actions::reconciliation::{InvoiceSourceFields, blank, keeps_key, key};
use crate::admin::bodies::Shape;
use crate::admin::envelope::{ApiError, Code};
use crate::admin::records::reconciliation::InvoiceSourceRecord;
use crate::crypto::vault::{SealedFor, Vault};
use crate::domain::clock::Timestamp;
use crate::domain::ids::ProviderId;
use crate::domain::invoice::InvoiceSource;
use crate::domain::secret::MASK;
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

/// A stored source, of which no other key is written.
fn opened(vault: &Vault, stored: &StoredInvoiceSource) -> WithKey<StoredInvoiceSource> {
    WithKey { record: stored.clone(), key: key(vault, stored), is_another: false }
}

impl Section for WithKey<StoredInvoiceSource> {
    const KIND: &'static str = "invoice source";

    fn form(&self) -> Result<Option<Form>, ApiError> {
        let record = InvoiceSourceRecord::new(&self.record, self.masked());
        form::of(&record, Shape::of::<InvoiceSourceFields>()).map(Some)
    }

    fn target(&self) -> String {
        format!("invoice source of provider {}", self.record.source.provider_id)
    }

    fn secret(&self, _: Option<&Self>) -> Option<&'static str> {
        self.is_another.then_some(KEY)
    }

    fn defaults() -> Result<Form, ApiError> {
        let source = blank(ProviderId(0), Timestamp(0));
        let stored = StoredInvoiceSource { source, key_cipher: String::new() };
        Self::new(stored, None, None).all_but(&["kind", "url", KEY])
    }
}

impl Row for WithKey<StoredInvoiceSource> {
    async fn save(&mut self, work: &mut Work<'_>, _: bool) -> Result<(), ApiError> {
        if let Some(key) = self.key.as_ref().filter(|_| self.is_another) {
            let place = SealedFor::InvoiceKey(self.record.source.provider_id);
            self.record.key_cipher = reseal::seal(work.desk.vault, work.tx, place, key).await?;
        }
        Ok(work.tx.save_invoice_source(&self.record).await?)
    }

    async fn delete(&self, work: &mut Work<'_>) -> Result<(), ApiError> {
        work.tx.delete_invoice_source(self.record.source.provider_id).await?;
        Ok(())
    }
}

/// What a sealed key is for: the address that it may be sent to.
fn purpose_of(source: &InvoiceSource) -> String {
    format!("invoice key for {}", secrets::origin_of(&source.url))
}

pub(super) async fn apply(work: &mut Work<'_>, section: Option<Value>) -> Result<(), ApiError> {
    let Some(entries) = work.list(section, "/invoice_sources") else { return Ok(()) };
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
                one(work, meant.label, id, before, entry, &at).await?;
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
                let gone = opened(work.desk.vault, gone);
                section::remove(work, label, &gone).await?;
            }
        }
    }
    Ok(())
}

async fn one(
    work: &mut Work<'_>,
    label: String,
    id: ProviderId,
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
    let Some(new_key) = written.opened(work, &purpose_of(&wanted.source), &place) else {
        return Ok(());
    };
    if let Some(key) = &new_key {
        if !work.accepts::<InvoiceSourceFields>("adminKey", key, at)? {
            return Ok(());
        }
    } else if !before.is_some_and(|before| keeps_key(&before.source, &wanted.source)) {
        work.faults.add(Code::REQUIRED_FIELD, &place, NEEDED);
        return Ok(());
    }
    let before = before.map(|stored| opened(work.desk.vault, stored));
    let after = WithKey::new(wanted, new_key, before.as_ref());
    section::write(work, label, before.as_ref(), after).await?;
    Ok(())
}

/// The sources as an export has them.
pub(super) fn exported(
    stored: &[StoredInvoiceSource],
    providers: &[StoredProvider],
    sealing: &Sealing<'_>,
) -> Result<Vec<Value>, ApiError> {
    let mut providers: Vec<&StoredProvider> = providers.iter().collect();
    providers.sort_by_key(|stored| stored.provider.id);
    let numbers = names::numbers(providers.iter().map(|stored| stored.provider.name.as_str()));
    let defaults = WithKey::<StoredInvoiceSource>::defaults()?;
    let mut sources = Vec::new();
    for (provider, nth) in providers.iter().zip(numbers) {
        let id = provider.provider.id;
        let Some(stored) = stored.iter().find(|stored| stored.source.provider_id == id) else {
            continue;
        };
        let name = Value::from(provider.provider.name.as_str());
        let mut form = Form::from_iter([(PROVIDER.to_owned(), name)]);
        let opened = opened(sealing.vault, stored);
        form.extend(opened.short(&defaults)?);
        let purpose = purpose_of(&stored.source);
        let shown =
            opened.key.map_or_else(|| Ok(MASK.into()), |key| sealing.shown(&purpose, &key))?;
        form.insert(KEY.to_owned(), shown);
        sources.push(super::providers::numbered(form, nth));
    }
    Ok(sources)
}
