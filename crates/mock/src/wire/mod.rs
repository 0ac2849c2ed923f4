//! The four writers: each converts a [`MockReply`] into its format's complete body and its stream
//! events, and a [`WireFault`] into its error shapes, as the real services and their official
//! clients use them.

mod alt_cli;
mod chat;
mod fault;
pub(super) mod models;
mod native;
mod responses;

pub(super) use fault::WireFault;
use serde_json::Value;

use super::reply::MockReply;
use tollgate_formats::domain::format::WireFormat;

/// The creation time of every reply: fixed, so that replies can be compared. Seconds since the
/// epoch.
pub(super) const CREATED: u64 = 1_700_000_000;

/// The complete body of a reply that is not streamed.
pub(super) fn whole(format: WireFormat, reply: &MockReply) -> Value {
    match format {
        WireFormat::Native => native::whole(reply),
        WireFormat::Responses => responses::whole(reply),
        WireFormat::Chat => chat::whole(reply),
        WireFormat::AltCli => alt_cli::whole(reply),
    }
}

/// The events of a streamed reply, each complete with its line ends.
pub(super) fn events(format: WireFormat, reply: &MockReply) -> Vec<String> {
    match format {
        WireFormat::Native => native::events(reply),
        WireFormat::Responses => responses::events(reply),
        WireFormat::Chat => chat::events(reply),
        WireFormat::AltCli => alt_cli::events(reply),
    }
}

/// The event of an error inside a stream. `sequence` is its number among the stream's events.
pub(super) fn stream_error(format: WireFormat, fault: &WireFault, sequence: usize) -> String {
    match format {
        WireFormat::Native => sse("error", &fault.body(format)),
        WireFormat::Responses => sse("error", &fault.responses_event(sequence)),
        WireFormat::Chat => data(&fault.body(format)),
        WireFormat::AltCli => alt_cli::sse_line(&fault.body(format)),
    }
}

/// An event with its name line.
pub(super) fn sse(event: &str, value: &Value) -> String {
    format!("event: {event}\ndata: {value}\n\n")
}

/// An event that has only data.
fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}
