//! `circuit_breaker`: a provider's circuit opened. At most once in five minutes for each provider.

use serde::Serialize;

use super::delivery::{Outbox, Parcel};
use super::message::{self, MessageKind, Urgency};
use super::{Notifier, NotifyError};
use crate::state::events::CircuitChange;

const QUIET_MS: i64 = 5 * 60_000;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CircuitData<'a> {
    provider_id: i64,
    provider_name: &'a str,
    failure_count: u32,
    /// When it is tried again.
    retry_at: String,
    last_error: Option<&'a str>,
}

pub(super) async fn opened(
    notifier: &Notifier,
    outbox: &Outbox,
    change: &CircuitChange,
) -> Result<(), NotifyError> {
    let Some(open_until) = change.open_until else { return Ok(()) };
    let Some(stored) = notifier.settings().await? else { return Ok(()) };
    let settings = &stored.settings;
    let Some(address) =
        settings.circuit_breaker_webhook.clone().filter(|_| settings.circuit_breaker_enabled)
    else {
        return Ok(());
    };
    let now = notifier.now().await?;
    let name = format!("circuit:{}", change.provider_id);
    if !notifier.node.store.claim_notice(&name, now, now.plus_ms(QUIET_MS)).await? {
        return Ok(());
    }
    let data = CircuitData {
        provider_id: change.provider_id.0,
        provider_name: &change.provider_name,
        failure_count: change.failure_count,
        retry_at: open_until.to_iso(),
        last_error: change.last_error.as_deref(),
    };
    let title = format!(
        "Provider {} is taken out of use: it failed {} times",
        data.provider_name, data.failure_count
    );
    let body = message::text(MessageKind::CircuitBreaker, &title, Urgency::Error, change.at, &data);
    outbox.post(Parcel {
        kind: MessageKind::CircuitBreaker,
        address,
        body,
        secret: notifier.secret(&stored)?,
    });
    Ok(())
}
