//! The document of what is stored. Applied to the same gateway, it changes nothing.

use serde_json::{Map, Value};

use super::form::Form;
use super::secrets::{Sealing, Secrets};
use super::section::Section as _;
use super::{VERSION, error_rules, invoices, notifications, prices, providers, users, words};
use crate::admin::envelope::ApiError;
use crate::crypto::vault::{SealedFor, Vault};
use crate::domain::secret::Secret;
use crate::store::{StoredNotifications, WholeDatabase};

/// The whole configuration as a document.
///
/// # Errors
/// A secret cannot be sealed.
pub fn export(
    vault: &Vault,
    whole: &WholeDatabase,
    how: Secrets,
) -> Result<Map<String, Value>, ApiError> {
    let stored = &whole.everything;
    let sealing = Sealing { vault, secrets: how, key: whole.sealing_key.as_deref() };
    let mut document = Form::new();
    document.insert("version".to_owned(), VERSION.into());
    document.insert("settings".to_owned(), stored.settings.short(&Form::new())?.into());
    document.insert("notifications".to_owned(), reported(&whole.notifications, &sealing)?.into());
    let providers = providers::exported(&stored.providers, &sealing)?;
    document.insert("providers".to_owned(), providers.into());
    let sources = invoices::exported(&whole.invoice_sources, &stored.providers, &sealing)?;
    if !sources.is_empty() {
        document.insert("invoice_sources".to_owned(), sources.into());
    }
    document.insert("users".to_owned(), users::exported(&stored.users, &stored.keys)?.into());
    let (usual, forced) = prices::exported(&stored.prices);
    document.insert("prices".to_owned(), usual.into());
    if !forced.is_empty() {
        document.insert("forced_prices".to_owned(), forced.into());
    }
    document.insert("words".to_owned(), words::exported(&stored.words)?.into());
    document.insert("error_rules".to_owned(), error_rules::exported(&whole.error_rules)?.into());
    Ok(document)
}

/// The settings of notifications, their addresses and their key as secrets are shown.
fn reported(stored: &StoredNotifications, sealing: &Sealing<'_>) -> Result<Form, ApiError> {
    let mut form = stored.short(&Form::new())?;
    form.retain(|_, value| !value.is_null());
    if sealing.secrets == Secrets::Masked {
        return Ok(form);
    }
    let open = |cipher: &String| sealing.vault.open(SealedFor::WebhookSecret, cipher).ok();
    let settings = &stored.settings;
    let address = |address: &Option<String>| address.clone().map(Secret::new);
    for (name, secret) in [
        ("circuit_breaker_webhook", address(&settings.circuit_breaker_webhook)),
        ("daily_leaderboard_webhook", address(&settings.daily_leaderboard_webhook)),
        ("cost_alert_webhook", address(&settings.cost_alert_webhook)),
        (notifications::SIGNING, stored.secret_cipher.as_ref().and_then(open)),
    ] {
        if let Some(secret) = secret {
            let shown = sealing.shown(&notifications::purpose_of(name), &secret)?;
            form.insert(name.to_owned(), shown);
        }
    }
    Ok(form)
}
