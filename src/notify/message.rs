//! The JSON of a message: `{event, title, level, timestamp, data}`.

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::domain::clock::Timestamp;
use crate::domain::money::NanoUsd;

/// How urgent a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Urgency {
    Info,
    Warning,
    Error,
}

/// The kinds of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(super) enum MessageKind {
    CircuitBreaker,
    ProviderFailing,
    ProviderRecovered,
    ProviderSwitchedOff,
    ProviderKeyRefused,
    DailyLeaderboard,
    CostAlert,
    ModelUnpriced,
    InvoiceDifference,
}

impl MessageKind {
    pub(super) fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Exact USD as a JSON number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Usd(pub NanoUsd);

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.0.to_string())
            .map_err(serde::ser::Error::custom)?
            .serialize(serializer)
    }
}

/// The text of a message.
pub(super) fn text<T: Serialize>(
    kind: MessageKind,
    title: &str,
    level: Urgency,
    at: Timestamp,
    data: &T,
) -> String {
    #[derive(Serialize)]
    struct WholeMessage<'a, T> {
        event: &'static str,
        title: &'a str,
        level: Urgency,
        timestamp: String,
        data: &'a T,
    }
    let whole = WholeMessage { event: kind.as_str(), title, level, timestamp: at.to_iso(), data };
    // The program's own types always serialise.
    serde_json::to_string(&whole).unwrap_or_default()
}
