//! What the stream of events carries: each event's name and data. The document's schema of the
//! stream is made from it.

use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::{Value, json};

use super::Iso;
use super::health::ProviderHealth;
use super::log::LogEntry;
use super::overview::OverviewRecord;
use super::session::ActiveSession;

/// One server-sent event, by its fields: `event` is the name, `data` a text that holds JSON.
/// Comment lines keep the connection open.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "event", content = "data", rename_all = "camelCase")]
#[schemars(transform = data_is_text)]
pub enum LiveEvent {
    /// The first event.
    Hello(Hello),
    /// Whether the database answers: the second event, and again when that changes. While it does
    /// not, figures stand still.
    Status(LiveStatus),
    /// The day's figures, when they change, at most once a second: what `overview/getOverviewData`
    /// gives.
    Overview(OverviewRecord),
    /// The live sessions, when they change, at most once a second: what
    /// `active-sessions/getActiveSessions` gives, at most 200, the newest.
    Sessions(Vec<ActiveSession>),
    /// The circuit of a provider opened, closed or was reset, or its attempts began or stopped
    /// failing. For administrators.
    Breaker(ProviderHealth),
    /// A request ended: its entry of the usage log.
    Log(Box<LogEntry>),
    /// A new configuration is in effect: keys, users, providers, prices or settings may have
    /// changed.
    Configuration(NewConfiguration),
    /// So many events were left out, because there were too many or this client was too slow: read
    /// again what you show.
    Missed(Missed),
}

/// The data of an event is a text on the wire, and JSON in that text.
fn data_is_text(schema: &mut Schema) {
    let Some(Value::Array(events)) = schema.get_mut("oneOf") else { return };
    for data in events.iter_mut().filter_map(|event| event.pointer_mut("/properties/data")) {
        let content = data.take();
        *data = json!({
            "type": "string",
            "contentMediaType": "application/json",
            "contentSchema": content,
        });
    }
}

/// What a client needs to know about the gateway before the events that follow.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hello {
    /// The gateway's version.
    pub version: &'static str,
    /// IANA name of the gateway's time zone.
    pub time_zone: &'static str,
    /// The gateway's clock when the connection was opened.
    pub now: Iso,
}

/// Whether what is shown is up to date.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LiveStatus {
    /// The database answered the last check.
    pub database_up: bool,
    /// `null` while the database answers.
    pub database_down_since: Option<Iso>,
    /// What is wrong, as `/readyz` says it; `null` while the database answers.
    pub message: Option<String>,
    /// While the database does not answer: when the figures shown were last read from it. `null`
    /// otherwise, and where none are shown.
    pub figures_at: Option<Iso>,
}

/// Says that the configuration changed. What changed is to be read again.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NewConfiguration {
    /// The version that is in effect now; later ones are greater.
    pub version: i64,
}

/// Says that events were left out.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Missed {
    /// How many events were left out.
    pub count: u64,
}
