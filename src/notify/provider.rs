//! `provider_failing` and `provider_recovered`: several attempts at a provider in a row failed, and the first success
//! after that. They go where `circuit_breaker` goes, each at most once in five minutes for each provider.

use serde::Serialize;

use super::delivery::{Outbox, Parcel};
use super::message::{self, Kind, Level};
use super::{Bell, Fault};
use crate::state::ProviderChange;

const QUIET_MS: i64 = 5 * 60_000;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    provider_id: i64,
    provider_name: &'a str,
    /// Failed attempts in a row; 0 when it works again.
    failures_in_a_row: u32,
    last_error: Option<&'a str>,
}

pub(super) async fn changed(bell: &Bell, outbox: &Outbox, change: &ProviderChange) -> Result<(), Fault> {
    let Some(stored) = bell.settings().await? else { return Ok(()) };
    let settings = &stored.settings;
    let Some(address) = settings.circuit_breaker_webhook.clone().filter(|_| settings.circuit_breaker_enabled) else {
        return Ok(());
    };
    let name = &change.provider_name;
    let (kind, level, title) = match change.failures {
        0 => (Kind::ProviderRecovered, Level::Info, format!("Provider {name} works again")),
        n => (Kind::ProviderFailing, Level::Warning, format!("Provider {name} is failing: {n} attempts in a row")),
    };
    let now = bell.clock.now();
    let notice = format!("{}:{}", kind.as_str(), change.provider_id);
    if !bell.store.claim_notice(&notice, now, now.plus_ms(QUIET_MS)).await? {
        return Ok(());
    }
    let data = Data {
        provider_id: change.provider_id.0,
        provider_name: name,
        failures_in_a_row: change.failures,
        last_error: change.last_error.as_deref(),
    };
    let body = message::text(kind, &title, level, change.at, &data);
    outbox.post(Parcel { kind, address, body, secret: bell.secret(&stored)? });
    Ok(())
}
