//! The section `notifications`: what is sent where, whole.
//!
//! A webhook's address holds what its receiver is written to with, so it is treated as a secret: an
//! export masks it, and a masked one leaves what is stored.

use serde_json::Value;

use super::form::{self, Form};
use super::secrets::Written;
use super::section::{self, Section};
use super::work::Work;
use crate::admin::actions::notifications::NotificationFields;
use crate::admin::bodies::Shape;
use crate::admin::envelope::{ApiError, Code};
use crate::admin::records::notifications::NotificationsRecord;
use crate::crypto::vault::SealedFor;
use crate::domain::secret::{MASK, Secret, is_masked};
use crate::state::reseal;
use crate::store::StoredNotifications;

const AT: &str = "/notifications";
/// The key that messages are signed with.
pub(super) const SIGNING: &str = "webhook_secret";
const NOTHING_STORED: &str = "is masked, and nothing is stored that the mask could stand for: \
    write it, or name it as ${NAME} or file:PATH";

/// The fields of a document: the key that messages are signed with stands apart.
pub(super) fn shape() -> Shape {
    Shape::of::<NotificationFields>().without("webhookSecret")
}

impl Section for StoredNotifications {
    const KIND: &'static str = "notifications";

    /// Without the whole of anything secret.
    fn form(&self) -> Result<Option<Form>, ApiError> {
        let mut form = form::of(&NotificationsRecord::masked(self), &shape())?;
        let key = if self.secret_cipher.is_some() { MASK.into() } else { Value::Null };
        form.insert(SIGNING.to_owned(), key);
        Ok(Some(form))
    }

    fn target(&self) -> String {
        "notification settings".to_owned()
    }

    fn secret(&self, before: Option<&Self>) -> Option<&'static str> {
        let old = before.and_then(|before| before.secret_cipher.as_ref());
        (old != self.secret_cipher.as_ref()).then_some(SIGNING)
    }
}

/// What a sealed address, or the key, is sealed for.
pub(super) fn purpose_of(field: &str) -> String {
    format!("notifications {field}")
}

pub(super) async fn apply(work: &mut Work<'_>, section: Option<Value>) -> Result<(), ApiError> {
    let Some(mut entry) = work.map(section, AT) else { return Ok(()) };
    let signing = Written::read(entry.remove(SIGNING));
    let kept = webhooks(work, &mut entry);
    let Some(fields) = work.read_as::<NotificationFields>(&shape(), &entry, AT)? else {
        return Ok(());
    };
    let stored = work.stored_notifications.clone();
    let mut wanted =
        StoredNotifications { secret_cipher: stored.secret_cipher.clone(), ..Default::default() };
    fields.apply(&mut wanted.settings);
    for (field, address) in fields.webhooks() {
        if let Some(address) = address
            && let Err(error) = work.desk.webhooks.check(&address)
        {
            work.faults.add(
                Code::INVALID_FORMAT,
                &format!("{AT}/{}", form::snake(field)),
                &error.to_string(),
            );
        }
    }
    for field in kept {
        let of = |stored: &StoredNotifications| match field {
            "circuitBreakerWebhook" => stored.settings.circuit_breaker_webhook.clone(),
            "dailyLeaderboardWebhook" => stored.settings.daily_leaderboard_webhook.clone(),
            _ => stored.settings.cost_alert_webhook.clone(),
        };
        match (of(&stored), field) {
            (None, _) => work.faults.add(
                Code::REQUIRED_FIELD,
                &format!("{AT}/{}", form::snake(field)),
                NOTHING_STORED,
            ),
            (address, "circuitBreakerWebhook") => wanted.settings.circuit_breaker_webhook = address,
            (address, "dailyLeaderboardWebhook") => {
                wanted.settings.daily_leaderboard_webhook = address
            }
            (address, _) => wanted.settings.cost_alert_webhook = address,
        }
    }
    sign_with(work, &mut wanted, signing).await?;
    if wanted == stored {
        return Ok(());
    }
    if work.is_sound() {
        work.tx.save_notifications(&wanted).await?;
    }
    section::note(work, String::new(), Some(&stored), Some(&wanted))
}

/// Opens sealed addresses, and takes masked ones out: those stay as they are stored.
fn webhooks(work: &mut Work<'_>, entry: &mut Form) -> Vec<&'static str> {
    let mut kept = Vec::new();
    for (field, _) in NotificationFields::default().webhooks() {
        let name = form::snake(field);
        let Some(value) = entry.remove(&name) else { continue };
        let written = match &value {
            Value::String(text) if is_masked(text) || text.starts_with("sealed:") => {
                Written::read(Some(value))
            }
            _ => {
                entry.insert(name, value);
                continue;
            }
        };
        match written.opened(work, &purpose_of(&name), &format!("{AT}/{name}")) {
            Some(None) => kept.push(field),
            Some(Some(address)) => drop(entry.insert(name, address.expose().into())),
            None => {}
        }
    }
    kept
}

/// Puts the key that messages are signed with into the settings.
async fn sign_with(
    work: &mut Work<'_>,
    wanted: &mut StoredNotifications,
    written: Written,
) -> Result<(), ApiError> {
    let at = format!("{AT}/{SIGNING}");
    match written {
        Written::Kept { masked } => {
            if masked && wanted.secret_cipher.is_none() {
                work.faults.add(Code::REQUIRED_FIELD, &at, NOTHING_STORED);
            }
            return Ok(());
        }
        Written::Cleared => {
            wanted.secret_cipher = None;
            return Ok(());
        }
        _ => {}
    }
    let Some(secret) = written.opened(work, &purpose_of(SIGNING), &at) else { return Ok(()) };
    let secret = secret.unwrap_or_default();
    if !work.accepts::<NotificationFields>("webhookSecret", &secret, AT)?
        || is_stored(work, wanted, &secret)
    {
        return Ok(());
    }
    if work.is_sound() {
        let sealed =
            reseal::seal(work.desk.vault, work.tx, SealedFor::WebhookSecret, &secret).await?;
        wanted.secret_cipher = Some(sealed);
    }
    Ok(())
}

fn is_stored(work: &Work<'_>, stored: &StoredNotifications, secret: &Secret) -> bool {
    let open = |cipher: &String| work.desk.vault.open(SealedFor::WebhookSecret, cipher).ok();
    stored.secret_cipher.as_ref().and_then(open).is_some_and(|old| old == *secret)
}
