//! Directives: instructions to the mock from a request, a test or a script, and how their layers
//! merge.
//!
//! A directive is a flat JSON object. Layers, the later wins field by field: the instance's
//! default, the next entry of the script, the marker in the user's text, the `mock` query
//! parameter, the `x-mock` header. An unknown field is an error, so that a typing error in a test
//! is detected.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use tollgate_formats::domain::usage::Usage;

/// Longest pause of a directive, in milliseconds.
const MAX_PAUSE_MS: u64 = 600_000;
/// Maximum words or events of one reply.
const MAX_COUNT: usize = 200_000;
const MARKER_START: &str = "[[mock";
const MARKER_END: &str = "]]";

/// All instructions for one reply. Absent fields keep the default behaviour.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Directive {
    /// Milliseconds before the response head.
    pub delay_ms: u64,
    /// Milliseconds between the head and the first byte of the body.
    pub first_byte_ms: u64,
    /// Milliseconds between two stream events.
    pub between_events_ms: u64,
    /// HTTP status; 400 and above make an error reply.
    pub status: Option<u16>,
    /// The content of the error; without a status it has 500.
    pub error: Option<ErrorSpec>,
    /// Raw body in place of everything: a string is sent as it is, other JSON is serialised.
    pub body: Option<Value>,
    /// The `content-type` header of the reply, in place of the format's own.
    pub content_type: Option<String>,
    /// Further response headers, for example `retry-after`.
    pub headers: BTreeMap<String, String>,
    /// Reply text.
    pub text: Option<String>,
    /// Reply with this many generated words (some with multi-byte letters).
    pub words: Option<usize>,
    /// Number of text deltas in a stream.
    pub events: Option<usize>,
    /// Thinking text before the answer.
    pub thinking: Option<String>,
    /// Tool calls to make, all in one turn.
    pub tools: Vec<CallSpec>,
    /// Why the reply ends; absent: tool calls if there are any, else a normal stop.
    pub finish: Option<Finish>,
    /// Usage to report instead of the computed one.
    pub usage: Option<UsageSpec>,
    /// How the body is cut into writes.
    pub chunking: Chunking,
    /// Send the body gzip-encoded, whether accepted or not.
    pub gzip: bool,
    /// Keep-alive events before the first content of a stream.
    pub pings: usize,
    /// Break the connection after this many stream events (half a body if not streaming).
    pub cut_after: Option<usize>,
    /// Send nothing more after this many stream events, until the peer closes.
    pub stall_after: Option<usize>,
    /// Send nothing after this many stream events until the operator continues the stream (`POST
    /// /mock/go`).
    pub hold_after: Option<usize>,
    /// The format's error event after this many stream events.
    pub error_after: Option<usize>,
    /// Break the connection without a response.
    pub hang_up: bool,
    /// Reply with 200 and an empty body.
    pub empty: bool,
    /// Reply with an HTML page in place of JSON.
    pub html: bool,
    /// 200 with an error object in place of the reply (as first event of a stream).
    pub error_in_200: bool,
    /// Leave usage out of the reply.
    pub no_usage: bool,
    /// Chat-compatible streams: Azure's first chunk, with the result of its content filter.
    pub prompt_filter: bool,
    /// The reply contains the user's last text.
    pub echo: bool,
    /// `false`: accept any request that can be answered at all.
    pub strict: Option<bool>,
    /// Calls about a response in the background until it is complete; absent: 2.
    pub background_calls: Option<usize>,
    /// A response in the background ends in an error.
    pub background_fails: bool,
    /// Serve the Responses API over a WebSocket; otherwise the upgrade is refused.
    pub websocket: bool,
    /// Names of the models in the listing.
    pub models: Option<Vec<String>>,
    /// Native: what the check of tool calls answers to a request with `safeguards`.
    pub safeguards: Verdict,
}

/// What the native service's check of tool calls (`safeguards`) says of the calls of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Each call is harmless.
    #[default]
    NotFlagged,
    /// Each call is dangerous.
    Flagged,
    /// No call could be checked.
    Unavailable,
    /// The service does not check this session.
    Unsupported,
    /// The reply says nothing of a check.
    Absent,
}

/// An error to report; fields that are absent follow from the status.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ErrorSpec {
    /// The error's type in the words of the request's format.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// The error's message.
    pub message: Option<String>,
    /// The error's code, in formats that have one.
    pub code: Option<String>,
    /// The parameter at fault, in formats that name one.
    pub param: Option<String>,
}

/// A tool call to make. Arguments that are a JSON string are sent raw where the wire has text,
/// valid or not.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallSpec {
    /// Name of the tool.
    pub name: String,
    /// The arguments; absent: none.
    #[serde(default)]
    pub arguments: Value,
    /// The call's id; absent: one that is unique within the mock.
    #[serde(default)]
    pub id: Option<String>,
}

/// Token counts as the domain splits them: input kinds are disjoint, reasoning is part of output.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UsageSpec {
    /// Text input that was neither read from nor written to a cache.
    pub input: u64,
    /// All output, reasoning and image tokens included.
    pub output: u64,
    /// Input written to the five-minute prompt cache.
    pub cache_write_5m: u64,
    /// Input written to the one-hour prompt cache.
    pub cache_write_1h: u64,
    /// Input read from a prompt cache.
    pub cache_read: u64,
    /// The part of `output` that was reasoning.
    pub reasoning: u64,
    /// The part of `input` that was image tokens.
    pub image_input: u64,
    /// The part of `output` that was image tokens.
    pub image_output: u64,
}

impl From<UsageSpec> for Usage {
    fn from(spec: UsageSpec) -> Self {
        Self {
            input: spec.input,
            output: spec.output,
            cache_write_5m: spec.cache_write_5m,
            cache_write_1h: spec.cache_write_1h,
            cache_read: spec.cache_read,
            reasoning: spec.reasoning,
            image_input: spec.image_input,
            image_output: spec.image_output,
            ..Self::default()
        }
    }
}

/// Why a reply ended, independent of formats; each format's own values are accepted too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The model was finished.
    #[serde(alias = "end_turn", alias = "STOP")]
    Stop,
    /// The limit on output tokens was reached.
    #[serde(alias = "max_tokens", alias = "MAX_TOKENS", alias = "max_output_tokens")]
    Length,
    /// The model calls tools and waits for their results.
    #[serde(alias = "tool_use")]
    ToolCalls,
    /// The model, or the provider's filter, declined.
    #[serde(alias = "content_filter", alias = "SAFETY")]
    Refusal,
    /// One of the request's stop sequences came. Only the native format reports it as such.
    StopSequence,
}

/// How a body is cut into writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Chunking {
    /// One write per stream event.
    #[default]
    Event,
    /// Everything in one write.
    Whole,
    /// This many bytes per write.
    Bytes(usize),
    /// Inside each multi-byte letter, and between the two line ends of each event.
    Split,
}

/// Why a directive is invalid.
#[derive(Debug, thiserror::Error)]
pub enum DirectiveError {
    /// The text is not JSON, or a field is unknown or of another type.
    #[error("mock directive in {place}: {source}")]
    Json {
        /// The layer it came from.
        place: &'static str,
        /// The parser's error.
        source: serde_json::Error,
    },
    /// JSON, but not an object, or a marker without its end. The value names the layer.
    #[error("mock directive in {0}: not a JSON object")]
    NotAnObject(&'static str),
    /// A figure is above its maximum, or a status is not 200–599. The value names the field.
    #[error("mock directive: {0} is out of bounds")]
    Bounds(&'static str),
}

/// One layer as it arrived: merged by field before it is read as a [`Directive`].
pub type Layer = Map<String, Value>;

/// Reads one layer from JSON text; `place` names its source in the error.
///
/// # Errors
/// When the text is not a JSON object.
pub fn layer(text: &str, place: &'static str) -> Result<Layer, DirectiveError> {
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(DirectiveError::NotAnObject(place)),
        Err(source) => Err(DirectiveError::Json { place, source }),
    }
}

/// Merges layers, the later wins, and checks the result.
///
/// # Errors
/// An unknown field, a value of the wrong type, or a figure out of bounds.
pub fn merge(layers: impl IntoIterator<Item = Layer>) -> Result<Directive, DirectiveError> {
    let mut merged = Map::new();
    for layer in layers {
        merged.extend(layer);
    }
    let directive: Directive = serde_json::from_value(Value::Object(merged))
        .map_err(|source| DirectiveError::Json { place: "the merged layers", source })?;
    directive.check()?;
    Ok(directive)
}

impl Directive {
    fn check(&self) -> Result<(), DirectiveError> {
        for (name, ms) in [
            ("delay_ms", self.delay_ms),
            ("first_byte_ms", self.first_byte_ms),
            ("between_events_ms", self.between_events_ms),
        ] {
            if ms > MAX_PAUSE_MS {
                return Err(DirectiveError::Bounds(name));
            }
        }
        for (name, count) in [
            ("words", self.words.unwrap_or(0)),
            ("events", self.events.unwrap_or(0)),
            ("pings", self.pings),
        ] {
            if count > MAX_COUNT {
                return Err(DirectiveError::Bounds(name));
            }
        }
        if self.status.is_some_and(|status| !(200..=599).contains(&status)) {
            return Err(DirectiveError::Bounds("status"));
        }
        if self.chunking == Chunking::Bytes(0) {
            return Err(DirectiveError::Bounds("chunking"));
        }
        Ok(())
    }
}

/// The directive between the markers in a user's text, and the text without it.
///
/// # Errors
/// When a marker opens and no JSON object with the end marker follows.
pub fn from_text(text: &str) -> Result<(Option<Layer>, String), DirectiveError> {
    let Some(at) = text.find(MARKER_START) else { return Ok((None, text.to_owned())) };
    let place = "the user's text";
    let json = &text[at + MARKER_START.len()..];
    let mut values = serde_json::Deserializer::from_str(json).into_iter::<Value>();
    let layer = match values.next() {
        Some(Ok(Value::Object(map))) => map,
        Some(Err(source)) => return Err(DirectiveError::Json { place, source }),
        Some(Ok(_)) | None => return Err(DirectiveError::NotAnObject(place)),
    };
    let rest = json[values.byte_offset()..].trim_start();
    let Some(rest) = rest.strip_prefix(MARKER_END) else {
        return Err(DirectiveError::NotAnObject(place));
    };
    let before = text[..at].trim_end();
    let after = rest.trim_start();
    let gap = if before.is_empty() || after.is_empty() { "" } else { " " };
    Ok((Some(layer), format!("{before}{gap}{after}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_layers_win_field_by_field() {
        let low = layer(r#"{"text":"a","words":3}"#, "t").unwrap();
        let high = layer(r#"{"text":"b"}"#, "t").unwrap();
        let merged = merge([low, high]).unwrap();
        assert_eq!(merged.text.as_deref(), Some("b"));
        assert_eq!(merged.words, Some(3));
    }

    #[test]
    fn unknown_fields_and_wild_values_are_refused() {
        for text in [
            r#"{"txet":"a"}"#,
            r#"{"status":99}"#,
            r#"{"delay_ms":9999999}"#,
            r#"{"chunking":{"bytes":0}}"#,
            "[]",
            "{",
        ] {
            assert!(layer(text, "t").and_then(|l| merge([l])).is_err(), "{text}");
        }
    }

    #[test]
    fn the_marker_is_found_and_taken_out() {
        let (layer, text) = from_text("say [[mock {\"text\":\"]] } x\"} ]] please").unwrap();
        assert_eq!(layer.unwrap()["text"], "]] } x");
        assert_eq!(text, "say please");
        assert!(from_text("[[mock nonsense").is_err());
        assert!(from_text("nothing").unwrap().0.is_none());
    }

    #[test]
    fn finish_takes_each_formats_words() {
        for (word, want) in [
            ("end_turn", Finish::Stop),
            ("MAX_TOKENS", Finish::Length),
            ("tool_use", Finish::ToolCalls),
            ("content_filter", Finish::Refusal),
            ("stop_sequence", Finish::StopSequence),
        ] {
            let got: Finish = serde_json::from_value(Value::from(word)).unwrap();
            assert_eq!(got, want);
        }
    }
}
