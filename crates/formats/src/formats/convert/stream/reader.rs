//! Reads a provider's events, whatever the format, and decides which of them are ignored.

use crate::domain::format::WireFormat;
use crate::formats::conversation::{Sink, Str, StreamProblem, surrogates};
use crate::formats::json_read;
use crate::formats::sse::Event as SseEvent;
use crate::formats::{alt_cli, chat, native, responses};

/// Names of events without content, in formats whose events have none.
pub(super) const KEEP_ALIVE: [&str; 4] = ["ping", "heartbeat", "keepalive", "keep-alive"];

/// Reads the events of one format's stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StreamReader {
    Native(native::stream_read::Reader),
    Responses(responses::stream_read::Reader),
    Chat(chat::stream_read::Reader),
    AltCli(alt_cli::stream_read::Reader),
}

impl StreamReader {
    pub(super) fn new(format: WireFormat) -> Self {
        match format {
            WireFormat::Native => Self::Native(native::stream_read::Reader::default()),
            WireFormat::Responses => Self::Responses(responses::stream_read::Reader::default()),
            WireFormat::Chat => Self::Chat(chat::stream_read::Reader::default()),
            WireFormat::AltCli => Self::AltCli(alt_cli::stream_read::Reader::default()),
        }
    }

    /// Takes one event. U+FFFD replaces half a surrogate pair: a relay that cuts text into pieces
    /// may cut a pair. What cannot be read of a kind that is not read otherwise is ignored.
    pub(super) fn event(
        &mut self,
        SseEvent { name, data }: SseEvent<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<(), StreamProblem> {
        let mut given = false;
        let result = self.event_without_halves(data, &mut |event| {
            given = true;
            sink(event);
        });
        let result = match result.is_err().then(|| surrogates::replaced(data)).flatten() {
            Some(data) if !given => self.event_without_halves(&data, &mut |event| {
                given = true;
                sink(event);
            }),
            _ => result,
        };
        match result {
            Err(StreamProblem::Malformed { .. }) if !given && !self.reads(name, data) => Ok(()),
            result => result,
        }
    }

    /// Whether events of this kind are read: of this name, or else of this type.
    fn reads(&self, name: &str, data: &[u8]) -> bool {
        #[derive(serde::Deserialize)]
        struct NativeKind<'a> {
            #[serde(borrow, rename = "type")]
            kind: Str<'a>,
        }
        let reads = match self {
            Self::Native(_) => native::stream_read::reads,
            Self::Responses(_) => responses::stream_read::reads,
            // Their events have no kinds.
            Self::Chat(_) | Self::AltCli(_) => return !KEEP_ALIVE.contains(&name),
        };
        match name {
            // The second is the standard's name for events without one.
            "" | "message" => {
                json_read::read::<NativeKind<'_>>(data).map_or(true, |event| reads(&event.kind))
            }
            name => reads(name),
        }
    }

    fn event_without_halves(
        &mut self,
        data: &[u8],
        sink: &mut Sink<'_>,
    ) -> Result<(), StreamProblem> {
        match self {
            Self::Native(reader) => reader.event(data, sink),
            Self::Responses(reader) => reader.event(data, sink),
            Self::Chat(reader) => reader.event(data, sink),
            Self::AltCli(reader) => reader.event(data, sink),
        }
    }

    pub(super) fn finish(&mut self, sink: &mut Sink<'_>) -> Result<(), StreamProblem> {
        match self {
            Self::Native(reader) => reader.finish(sink),
            Self::Responses(reader) => reader.finish(sink),
            Self::Chat(reader) => reader.finish(sink),
            Self::AltCli(reader) => reader.finish(sink),
        }
    }
}
