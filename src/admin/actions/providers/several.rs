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
            let is_unused = self.key_is_enabled == Some(false);
            let refusal = || ApiError::because(Code::INVALID_FORMAT, Reason::OnlyKey);
            return if is_unused { Err(refusal().field("key_is_enabled")) } else { Ok(()) };
        }
        let newest = stored.iter().map(|one| one.id.0).max().unwrap_or_default();
        let mut next = now.0.max(newest);
        let mut fresh = || {
            next += 1;
            CredentialId(next)
        };
        let first = self.first(&stored, old_key, merged, now, &mut fresh);
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
            let is_another = key.as_ref().is_some_and(|key| old_text != Some(key));
            let is_entered = key.is_some() && (is_another || !self.by_document);
            let mut one = old.cloned().unwrap_or_else(ProviderCredential::of_key);
            one.name = name;
            if old.is_none() || is_another {
                one.id = fresh();
            }
            let is_enabled = is_enabled.unwrap_or(one.is_enabled || is_entered || self.by_document);
            self.switch(&mut one, is_entered, is_enabled, now);
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
        now: Timestamp,
        fresh: &mut impl FnMut() -> CredentialId,
    ) -> ProviderCredential {
        let mut first = stored.first().cloned().unwrap_or_else(ProviderCredential::of_key);
        let is_another = !merged.keeps_key && *old_key != merged.credentials.key;
        let is_entered = !merged.keeps_key && (is_another || !self.by_document);
        // The first list leaves the credential as it is: its account is known by this number.
        if is_another && !stored.is_empty() {
            first.id = fresh();
        }
        let is_enabled = self.key_is_enabled.unwrap_or(first.is_enabled || is_entered);
        self.switch(&mut first, is_entered, is_enabled, now);
        first
    }

    /// Sets the switch of a credential. If its text was entered, or an administrator enables it
    /// after a refusal, what is known of it from before says nothing any more. It keeps its number,
    /// which names its account, unless its text is another one.
    fn switch(
        &self,
        one: &mut ProviderCredential,
        is_entered: bool,
        is_enabled: bool,
        now: Timestamp,
    ) {
        if is_entered || (one.refused.is_some() && is_enabled && !self.by_document) {
            (one.refused, one.since) = (None, now);
        }
        if one.refused.is_none() {
            one.is_enabled = is_enabled;
        }
    }
}
