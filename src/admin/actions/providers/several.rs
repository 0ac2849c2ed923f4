//! Several credentials of a provider: what a body makes of those that are stored.
//!
//! They are known by their names. One that is sent without its text, or with a mask, keeps the
//! stored text.

use super::credentials::{Merged, check_key};
use super::fields::ProviderFields;
use crate::admin::bodies::{CredentialEntry, Patch};
use crate::admin::envelope::{ApiError, Code};
use crate::admin::reasons::Reason;
use crate::domain::clock::Timestamp;
use crate::domain::ids::CredentialId;
use crate::domain::provider::Provider;
use crate::domain::provider_credential::{KEY_NAME, ProviderCredential};
use crate::domain::secret::Secret;

/// What is wanted of a provider's credentials.
pub(in crate::admin) struct WantedCredentials {
    /// Those beside `key`.
    pub list: Patch<Vec<CredentialEntry>>,
    /// Whether `key` is used beside them; `None` = as before.
    pub key_is_enabled: Option<bool>,
    /// By a document, which is applied again and again: it enables no credential that the gateway
    /// disabled, unless its text is another one.
    pub by_document: bool,
}

impl WantedCredentials {
    /// As a body has them.
    pub(in crate::admin) fn of(body: &ProviderFields, by_document: bool) -> Self {
        let (list, key_is_enabled) = (body.credentials.plain(), body.key_is_enabled.plain());
        Self { list, key_is_enabled, by_document }
    }

    /// Whether anything is sent.
    pub(super) const fn is_sent(&self) -> bool {
        self.list.is_sent() || self.key_is_enabled.is_some()
    }

    /// Sets the provider's list and the texts. On entry both are as stored, and `merged` has the
    /// `key` that is wanted.
    ///
    /// # Errors
    /// A name stands twice, or a text is missing or of the wrong kind.
    pub(in crate::admin) fn merge(
        self,
        provider: &mut Provider,
        old_key: &Secret,
        merged: &mut Merged,
        now: Timestamp,
    ) -> Result<(), ApiError> {
        let stored = std::mem::take(&mut provider.credentials);
        let texts = std::mem::take(&mut merged.credentials.others);
        let entries = match &self.list {
            Patch::Set(entries) => entries.clone(),
            Patch::Clear => Vec::new(),
            Patch::Keep => stored.iter().skip(1).map(CredentialEntry::kept).collect(),
        };
        if entries.is_empty() {
            return Ok(());
        }
        let newest = stored.iter().map(|one| one.id.0).max().unwrap_or_default();
        let mut next = now.0.max(newest);
        let mut fresh = || {
            next += 1;
            CredentialId(next)
        };
        let first = self.first(&stored, old_key, merged, &mut fresh);
        provider.credentials.push(first);
        for (index, entry) in entries.into_iter().enumerate() {
            let CredentialEntry { name, key, is_enabled } = entry;
            let refused = |code, reason, member: &str| {
                ApiError::because(code, reason).field(&format!("credentials[{index}].{member}"))
            };
            let is_taken = |one: &ProviderCredential| one.name == name;
            if name == KEY_NAME || provider.credentials.iter().any(is_taken) {
                return Err(refused(Code::INVALID_FORMAT, Reason::NamedTwice, "name"));
            }
            let old = stored.iter().skip(1).find(|one| one.name == name);
            let old_text = old.and_then(|old| texts.iter().find(|(id, _)| *id == old.id));
            let old_text = old_text.map(|(_, text)| text);
            let Some(text) = key.as_ref().or(old_text) else {
                return Err(refused(Code::REQUIRED_FIELD, Reason::IsRequired, "key"));
            };
            merged.keeps_credential |= key.is_none();
            if let Some(key) = &key {
                check_key(provider, key)
                    .map_err(|error| error.field(&format!("credentials[{index}].key")))?;
            }
            let renews =
                old.is_none() || key.as_ref().is_some_and(|key| self.is_new(old_text, key));
            let mut one = old.cloned().unwrap_or_else(ProviderCredential::of_key);
            one.name = name;
            set(&mut one, renews, is_enabled, self.by_document, &mut fresh);
            merged.credentials.others.push((one.id, text.clone()));
            provider.credentials.push(one);
        }
        Ok(())
    }

    /// The credential in `key`.
    fn first(
        &self,
        stored: &[ProviderCredential],
        old_key: &Secret,
        merged: &Merged,
        fresh: &mut impl FnMut() -> CredentialId,
    ) -> ProviderCredential {
        let mut first = stored.first().cloned().unwrap_or_else(ProviderCredential::of_key);
        let key_is_new = !merged.keeps_key && self.is_new(Some(old_key), &merged.credentials.key);
        let is_enabled = self.key_is_enabled.unwrap_or(first.is_enabled || key_is_new);
        // The first list leaves the credential as it is: its account is known by this number.
        let renews = key_is_new && !stored.is_empty();
        set(&mut first, renews, is_enabled, self.by_document, fresh);
        first
    }

    /// Whether a text that was sent is another one, or is entered again by an administrator.
    fn is_new(&self, old: Option<&Secret>, sent: &Secret) -> bool {
        !self.by_document || old != Some(sent)
    }
}

/// Sets the switch of a credential. One that has another text, or that an administrator enables
/// after a refusal, gets a number of its own: what is known of the old one says nothing of it.
fn set(
    one: &mut ProviderCredential,
    renews: bool,
    is_enabled: bool,
    by_document: bool,
    fresh: &mut impl FnMut() -> CredentialId,
) {
    if renews || (one.refused.is_some() && is_enabled && !by_document) {
        (one.id, one.refused) = (fresh(), None);
    }
    if one.refused.is_none() {
        one.is_enabled = is_enabled;
    }
}
