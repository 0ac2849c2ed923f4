//! The section `providers`.
//!
//! What the gateway itself disabled is not configuration: such a provider counts as enabled here,
//! and applying a document does not enable it again, unless its address, proxy, type or credential
//! changes.

use serde_json::{Value, json};

use super::form::{self, Form};
use super::names::{self, RecordNames};
use super::secrets::{self, Sealing, WithKey, Written};
use super::section::{self, Row, Section};
use super::work::Work;
use crate::admin::actions::providers::credentials::{SentSecret, SentSecrets};
use crate::admin::actions::providers::fields::{self, ProviderFields};
use crate::admin::actions::providers::several::WantedCredentials;
use crate::admin::actions::providers::{certificates, credentials, destination, is_another};
use crate::admin::bodies::{Patch, SEALED, Shape};
use crate::admin::envelope::{ApiError, Code};
use crate::admin::reasons::Reason;
use crate::admin::records::provider::ProviderRecord;
use crate::crypto::vault::{SealedFor, Vault};
use crate::domain::clock::Timestamp;
use crate::domain::credentials::{Credentials, CustomHeader};
use crate::domain::provider::Provider;
use crate::domain::proxy_address::{self, is_password};
use crate::domain::secret::{MASK, Secret};
use crate::state::reseal;
use crate::store::StoredProvider;

/// The upstream's credential.
pub(super) const CREDENTIAL: &str = "key";

/// Further credentials.
const CREDENTIALS: &str = "credentials";

/// The address of its proxy, which may have a password.
const PROXY: &str = "proxy_url";

/// The key of its client certificate.
const TLS_KEY: &str = "tls_client_key";

/// Its own headers, which may have secret parts.
const HEADERS: &str = "custom_headers";

/// What is secret of a provider; `None` if it cannot be opened.
fn credentials_of(provider: &WithKey<Provider>) -> Option<Credentials> {
    provider.key.clone().map(Credentials::read)
}

/// A stored provider, of which no other credential is written.
fn opened(vault: &Vault, stored: &StoredProvider) -> WithKey<Provider> {
    let key = vault.open(SealedFor::ProviderKey(stored.provider.id), &stored.key_cipher).ok();
    WithKey { record: stored.provider.clone(), key, is_another: false }
}

impl Section for WithKey<Provider> {
    const KIND: &'static str = "provider";

    fn form(&self) -> Result<Option<Form>, ApiError> {
        let mut shown = self.record.clone();
        shown.is_enabled |= shown.switched_off.is_some();
        for one in &mut shown.credentials {
            one.is_enabled |= one.refused.is_some();
        }
        let credentials = credentials_of(self);
        let record = ProviderRecord::new(&shown, credentials.as_ref());
        let mut form = form::of(&record, Shape::of::<ProviderFields>())?;
        let further = record
            .credentials
            .iter()
            .map(|one| json!({ "name": one.name, "key": one.key, "is_enabled": one.is_enabled }));
        form.insert(CREDENTIALS.to_owned(), further.collect());
        Ok(Some(form))
    }

    fn target(&self) -> String {
        format!("provider {}", self.record.id)
    }

    fn secret(&self, before: Option<&Self>) -> Option<&'static str> {
        match (credentials_of(self), before.and_then(credentials_of)) {
            _ if !self.is_another => None,
            (Some(new), Some(old)) if new.key == old.key => {
                let texts = |of: &Credentials| -> Vec<Secret> {
                    of.others.iter().map(|(_, text)| text.clone()).collect()
                };
                let differs = |is_other, field| if is_other { Some(field) } else { None };
                differs(texts(&new) != texts(&old), CREDENTIALS)
                    .or_else(|| differs(new.header_secrets() != old.header_secrets(), HEADERS))
                    .or_else(|| differs(new.proxy_password != old.proxy_password, PROXY))
                    .or_else(|| differs(new.tls_key != old.tls_key, TLS_KEY))
            }
            _ => Some(CREDENTIAL),
        }
    }

    fn defaults() -> Result<Form, ApiError> {
        Self::new(Provider::blank(Timestamp(0)), None, None).all_but(&["name", "url", CREDENTIAL])
    }
}

impl Row for WithKey<Provider> {
    async fn save(&mut self, work: &mut Work<'_>, is_new: bool) -> Result<(), ApiError> {
        if is_new {
            // The credential is sealed for the provider's id, which is not known before.
            self.record.id = work.tx.insert_provider(&self.record, "").await?;
        }
        let place = SealedFor::ProviderKey(self.record.id);
        let cipher = match self.key.as_ref().filter(|_| self.is_another) {
            Some(key) => Some(reseal::seal(work.desk.vault, work.tx, place, key).await?),
            None => None,
        };
        Ok(work.tx.update_provider(&self.record, cipher.as_deref()).await?)
    }

    async fn delete(&self, work: &mut Work<'_>) -> Result<(), ApiError> {
        let now = work.desk.now;
        let gone = Provider { deleted_at: Some(now), updated_at: now, ..self.record.clone() };
        // The row stays for the usage records; its credential does not.
        Ok(work.tx.update_provider(&gone, Some("")).await?)
    }
}

pub(super) async fn apply(work: &mut Work<'_>, section: Option<Value>) -> Result<(), ApiError> {
    let Some(entries) = work.list(section, "/providers") else { return Ok(()) };
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
            let gone = opened(work.desk.vault, &stored[place]);
            section::remove(work, label, &gone).await?;
        }
    }
    for (meant, (target, key)) in wanted {
        let before = meant.at.map(|place| opened(work.desk.vault, &stored[place]));
        let mut after = WithKey::new(target, key, before.as_ref());
        if let Some(before) = &before {
            carry_over(&before.record, &mut after.record, after.is_another, work.desk.now);
        }
        section::write(work, meant.label, before.as_ref(), after).await?;
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
    let mut target = Provider::blank(work.desk.now);
    sent.apply(&mut target);
    if let Err(refusal) = fields::check(&target) {
        work.faults.take(at, refusal)?;
    }
    let place = format!("{at}/{CREDENTIAL}");
    let Some(key) = written.opened(work, &secrets::purpose_of(&target), &place) else {
        return Ok(None);
    };
    match (&key, before) {
        (Some(key), _) => {
            if !work.accepts::<ProviderFields>(CREDENTIAL, key, at)? {
                return Ok(None);
            }
        }
        (None, Some(_)) => {}
        (None, None) => {
            let what = "is required for a new provider, and not masked: write it, or name it as \
                        ${NAME} or file:PATH";
            work.faults.add(Code::REQUIRED_FIELD, &place, what);
            return Ok(Some((target, None)));
        }
    }
    let purpose = secrets::purpose_of(&target);
    let secrets = SentSecrets { key, ..written_secrets(work, &sent, &target, at) };
    let mut further = WantedCredentials::of(&sent, true);
    if let Patch::Set(list) = &mut further.list {
        for (index, one) in list.iter_mut().enumerate() {
            let place = format!("{at}/{CREDENTIALS}/{index}/{CREDENTIAL}");
            let written = one.key.take().map(|key| Written::read(Some(key.expose().into())));
            one.key = written.and_then(|written| written.opened(work, &purpose, &place).flatten());
        }
    } else {
        further.list = Patch::Clear;
    }
    further.key_is_enabled = Some(further.key_is_enabled.unwrap_or(true));
    let now = work.desk.now;
    match merged(work.desk.vault, before, &mut target, secrets, further, now) {
        Ok(packed) => Ok(Some((target, packed))),
        Err(refusal) => {
            work.faults.take(at, refusal)?;
            Ok(Some((target, None)))
        }
    }
}

/// What is secret beside the credentials, opened where the document has it sealed.
fn written_secrets(
    work: &mut Work<'_>,
    sent: &ProviderFields,
    target: &Provider,
    at: &str,
) -> SentSecrets {
    let mut secrets = SentSecrets::of(sent);
    let headers = secrets.headers.take().unwrap_or_default();
    secrets.headers = Some(unsealed(work, headers, &secrets::purpose_of(target), at));
    for (secret, field) in [(&mut secrets.proxy_password, PROXY), (&mut secrets.tls_key, TLS_KEY)] {
        if let SentSecret::Set(text) = secret
            && let sealed @ Written::Sealed(_) = Written::read(Some(text.expose().into()))
        {
            let (purpose, place) =
                (secrets::purpose_of_field(target, field), format!("{at}/{field}"));
            let opened = sealed.opened(work, &purpose, &place).flatten();
            let is_fit = |text: &Secret| field != PROXY || is_password(text.expose());
            if !opened.as_ref().is_none_or(is_fit) {
                work.faults.add(Code::INVALID_FORMAT, &place, secrets::OTHER_PLACE);
            }
            *secret = opened.map_or(SentSecret::Kept, SentSecret::Set);
        }
    }
    if !sent.proxy_url.is_sent() {
        secrets.proxy_password = SentSecret::Cleared;
    }
    secrets
}

/// The secret parts of headers, opened where the document has them sealed.
fn unsealed(
    work: &mut Work<'_>,
    mut headers: Vec<CustomHeader>,
    purpose: &str,
    at: &str,
) -> Vec<CustomHeader> {
    for header in &mut headers {
        let opened = header.replaced(|part| {
            let place = format!("{at}/{HEADERS}/{}", header.name);
            let mut open = |part: &str| match Written::read(Some(part.into())) {
                sealed @ Written::Sealed(_) => sealed.opened(work, purpose, &place).flatten(),
                _ => None,
            };
            let opened = open(part);
            // A credential that is a JSON object would end at its first `}`, and the rest be shown.
            if opened.as_ref().is_some_and(|text| !is_part(text)) {
                work.faults.add(Code::INVALID_FORMAT, &place, secrets::OTHER_PLACE);
            }
            format!("${{{}}}", opened.as_ref().map_or(part, Secret::expose))
        });
        header.value = Secret::new(opened);
    }
    headers
}

/// Whether a secret can be a part of a header.
fn is_part(text: &Secret) -> bool {
    let is_printed = |byte: u8| byte != b'}' && (byte == b' ' || byte.is_ascii_graphic());
    !text.expose().is_empty() && text.expose().bytes().all(is_printed)
}

/// What is secret of the provider that is wanted, as one text; `None` if what is stored stays.
fn merged(
    vault: &Vault,
    before: Option<&StoredProvider>,
    target: &mut Provider,
    sent: SentSecrets,
    further: WantedCredentials,
    now: Timestamp,
) -> Result<Option<Secret>, ApiError> {
    let stored = before.and_then(|before| credentials_of(&opened(vault, before)));
    // What cannot be opened stays, unless it is written.
    let is_unknown = sent.key.is_none() && stored.is_none();
    if let (Some(_), None, Some(field)) = (before, &stored, sent.lost(target))
        && !is_unknown
    {
        return Err(ApiError::because(Code::REQUIRED_FIELD, Reason::IsRequired).field(field));
    }
    let stored = stored.unwrap_or_default();
    let old_key = stored.key.clone();
    let mut wanted = credentials::merge(stored, sent)?;
    certificates::check(before.map(|before| &before.provider), target, &mut wanted, now)?;
    target.credentials = before.map(|old| old.provider.credentials.clone()).unwrap_or_default();
    further.merge(target, &old_key, &mut wanted, now)?;
    if let Some(before) = before {
        destination::check(&before.provider, target, &wanted)?;
    }
    if !wanted.keeps_key {
        credentials::check_key(target, &wanted.credentials.key)?;
    }
    match (is_unknown, wanted.credentials.is_key_alone()) {
        (false, _) => Ok(Some(wanted.credentials.packed())),
        (true, true) => Ok(None),
        (true, false) => {
            Err(ApiError::because(Code::REQUIRED_FIELD, Reason::IsRequired).field(CREDENTIAL))
        }
    }
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

/// The providers as an export has them.
pub(super) fn exported(
    stored: &[StoredProvider],
    sealing: &Sealing<'_>,
) -> Result<Vec<Value>, ApiError> {
    let mut stored: Vec<&StoredProvider> = stored.iter().collect();
    stored.sort_by_key(|stored| stored.provider.id);
    let numbers = names::numbers(stored.iter().map(|stored| stored.provider.name.as_str()));
    let defaults = WithKey::<Provider>::defaults()?;
    let one = |(stored, nth): (&&StoredProvider, usize)| {
        let opened = opened(sealing.vault, stored);
        let purpose = secrets::purpose_of(&opened.record);
        let mut form = opened.short(&defaults)?;
        let credentials = credentials_of(&opened);
        let shown = |text: &Secret| sealing.shown(&purpose, text);
        let key = credentials.as_ref().map_or_else(|| Ok(MASK.into()), |one| shown(&one.key))?;
        form.insert(CREDENTIAL.to_owned(), key);
        let Credentials { headers, others, proxy_password, tls_key, .. } =
            credentials.unwrap_or_default();
        let sealed = |text: &Secret, field| {
            let purpose = secrets::purpose_of_field(&opened.record, field);
            let is_there = !text.expose().is_empty();
            let shown = is_there.then(|| sealing.shown(&purpose, text)).transpose()?;
            Ok::<_, ApiError>(shown.filter(|shown| shown.as_str().is_some_and(is_sealed)))
        };
        if let (Some(Value::String(password)), Some(url)) =
            (sealed(&proxy_password, PROXY)?, &stored.provider.proxy_url)
        {
            form.insert(PROXY.to_owned(), proxy_address::with_password(url, &password).into());
        }
        if let Some(key) = sealed(&tls_key, TLS_KEY)? {
            form.insert(TLS_KEY.to_owned(), key);
        }
        if let Some(Value::Array(list)) = form.get_mut(CREDENTIALS) {
            for (one, (_, text)) in list.iter_mut().zip(&others) {
                one[CREDENTIAL] = shown(text)?;
            }
        }
        if let Some(Value::Object(texts)) = form.get_mut(HEADERS) {
            for header in headers {
                let value = header.try_replaced(|part| {
                    let part = shown(&Secret::new(part))?;
                    Ok::<_, ApiError>(format!("${{{}}}", part.as_str().unwrap_or(MASK)))
                })?;
                texts.insert(header.name, value.into());
            }
        }
        Ok(numbered(form, nth))
    };
    stored.iter().zip(numbers).map(one).collect()
}

fn is_sealed(text: &str) -> bool {
    text.starts_with(SEALED)
}

/// The form of the `nth` record of its name.
pub(super) fn numbered(mut form: Form, nth: usize) -> Value {
    if nth > 1 {
        form.shift_insert(1, "nth".to_owned(), nth.into());
    }
    form.into()
}
