//! `model_unpriced`: a request asked for a model without a price. Once a day for each model, to the
//! webhook of `cost_alert`.

use serde::Serialize;

use super::delivery::{Outbox, Parcel};
use super::message::{self, MessageKind, Urgency};
use super::{Notifier, NotifyError};
use crate::policy::window::DAY_MS;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UnpricedData<'a> {
    model: &'a str,
    /// Requests of this node since the first one.
    served: u64,
    refused: u64,
}

pub(super) async fn if_any(notifier: &Notifier, outbox: &Outbox) -> Result<(), NotifyError> {
    let models = notifier.node.unpriced_models.still(&notifier.node.state.snapshot());
    if models.is_empty() {
        return Ok(());
    }
    let Some(stored) = notifier.settings().await? else { return Ok(()) };
    let address = stored.settings.cost_alert_webhook.clone();
    let Some(address) = address.filter(|_| stored.settings.cost_alert_enabled) else {
        return Ok(());
    };
    let now = notifier.now().await?;
    for one in models {
        let name = format!("unpriced:{}", one.model);
        if !notifier.node.store.claim_notice(&name, now, now.plus_ms(DAY_MS)).await? {
            continue;
        }
        let data = UnpricedData { model: &one.model, served: one.served, refused: one.refused };
        let title = format!("There is no price for the model {}, which was asked for", one.model);
        let (kind, address) = (MessageKind::ModelUnpriced, address.clone());
        let body = message::text(kind, &title, Urgency::Warning, now, &data);
        outbox.post(Parcel { kind, address, body, secret: notifier.secret(&stored)? });
    }
    Ok(())
}
