//! `provider_failing` and `provider_recovered`: several attempts at a provider in a row failed, and
//! the first success after that. Each at most once in five minutes for each provider.
//! `provider_switched_off`: the gateway disabled it; sent by the node that did so. They use the
//! webhook of `circuit_breaker`, as does `provider_key_refused`: one of several keys was disabled.

use serde::Serialize;

use super::delivery::{Outbox, Parcel};
use super::message::{self, MessageKind, Urgency};
use super::{Notifier, NotifyError};
use crate::state::{ProviderChange, ProviderNews};

const QUIET_MS: i64 = 5 * 60_000;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProviderData<'a> {
    provider_id: i64,
    provider_name: &'a str,
    /// Failed attempts in a row; 0 if it works again.
    #[serde(skip_serializing_if = "Option::is_none")]
    failures_in_a_row: Option<u32>,
    /// Probes of its circuit in a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_probes: Option<u32>,
    /// The name of the key that the provider refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    last_error: Option<&'a str>,
}

pub(super) async fn changed(
    notifier: &Notifier,
    outbox: &Outbox,
    change: &ProviderChange,
) -> Result<(), NotifyError> {
    let Some(stored) = notifier.settings().await? else { return Ok(()) };
    let settings = &stored.settings;
    let Some(address) =
        settings.circuit_breaker_webhook.clone().filter(|_| settings.circuit_breaker_enabled)
    else {
        return Ok(());
    };
    let name = &change.provider_name;
    let (kind, level, title) = match &change.news {
        ProviderNews::Recovered => {
            (MessageKind::ProviderRecovered, Urgency::Info, format!("Provider {name} works again"))
        }
        ProviderNews::Failing { in_a_row } => {
            let title = format!("Provider {name} is failing: {in_a_row} attempts in a row");
            (MessageKind::ProviderFailing, Urgency::Warning, title)
        }
        ProviderNews::KeyRefused { name: key } => {
            let title = format!("Provider {name} refused its key “{key}”, which was disabled");
            (MessageKind::ProviderKeyRefused, Urgency::Error, title)
        }
        ProviderNews::SwitchedOff { failed_probes } => {
            let title =
                format!("Provider {name} was disabled: {failed_probes} probes in a row failed");
            (MessageKind::ProviderSwitchedOff, Urgency::Error, title)
        }
    };
    let now = notifier.now().await?;
    let notice = format!("{}:{}", kind.as_str(), change.provider_id);
    let is_once =
        matches!(kind, MessageKind::ProviderSwitchedOff | MessageKind::ProviderKeyRefused);
    let claimed =
        is_once || notifier.node.store.claim_notice(&notice, now, now.plus_ms(QUIET_MS)).await?;
    if !claimed {
        return Ok(());
    }
    let (mut failures_in_a_row, mut failed_probes, mut key) = (None, None, None);
    match &change.news {
        ProviderNews::Recovered => failures_in_a_row = Some(0),
        ProviderNews::Failing { in_a_row } => failures_in_a_row = Some(*in_a_row),
        ProviderNews::KeyRefused { name } => key = Some(&**name),
        ProviderNews::SwitchedOff { failed_probes: probes } => failed_probes = Some(*probes),
    }
    let data = ProviderData {
        provider_id: change.provider_id.0,
        provider_name: name,
        failures_in_a_row,
        failed_probes,
        key,
        last_error: change.last_error.as_deref(),
    };
    let body = message::text(kind, &title, level, change.at, &data);
    outbox.post(Parcel { kind, address, body, secret: notifier.secret(&stored)? });
    Ok(())
}
