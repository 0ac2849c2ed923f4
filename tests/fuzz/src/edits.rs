//! Peeking into a request and editing it: the peek must agree with a parser, before and after an
//! edit.

use bytes::Bytes;
use serde_json::Value;

use crate::domain::key::CacheTtl;
use crate::formats::bad_request::BadRequest;
use crate::formats::edit;
use crate::formats::peek::{Peek, PeekLimits, peek};
use crate::input::Input;

const LIMITS: PeekLimits = PeekLimits { max_depth: 100 };
/// Needs escapes in JSON.
const MODEL: &str = "other \"model\"\\\u{1}";

/// All edits, on the body in one piece and in many.
pub fn peek_and_edit(input: &Input<'_>) {
    let whole = [Bytes::copy_from_slice(input.body)];
    let chunks: Vec<Bytes> = input.pieces().into_iter().map(Bytes::copy_from_slice).collect();
    let looked = peek(&chunks, LIMITS);
    // The position of an error in broken JSON may differ by one byte.
    let by_field = |looked: Result<Box<Peek>, BadRequest>| looked.map_err(|bad| bad.field);
    assert_eq!(by_field(looked.clone()), by_field(peek(&whole, LIMITS)), "in pieces and whole");
    // A number that is too large for the parser is still JSON, and so is half of a surrogate pair
    // (RFC 8259, 8.2), of which the parser says one or the other.
    let is_json = |text: &str| {
        ["out of range", "surrogate", "unexpected end of hex escape"].iter().any(|e| text.contains(e))
    };
    let parsed = match serde_json::from_slice::<Value>(input.body) {
        Err(error) if !error.is_data() && !is_json(&error.to_string()) => {
            assert!(looked.is_err(), "no JSON, but accepted: {error}");
            return;
        }
        parsed => parsed.ok(),
    };
    let Ok(looked) = looked else { return };
    let Some(parsed) = parsed else { return };
    must_agree(&looked, &parsed);
    assert_eq!(looked.first_messages_hash(&chunks), looked.first_messages_hash(&whole));
    exchange_the_model(&chunks, &looked, parsed.clone());
    ask_for_usage(&chunks, &looked, parsed);
    force_the_lifetime(&chunks);
}

fn must_agree(looked: &Peek, parsed: &Value) {
    assert_eq!(looked.model.as_deref(), parsed["model"].as_str(), "model");
    assert_eq!(looked.stream, parsed["stream"].as_bool(), "stream");
    assert_eq!(looked.has_messages, parsed["messages"].is_array(), "messages");
}

fn parse(chunks: &[Bytes]) -> Value {
    let body = chunks.concat();
    match serde_json::from_slice(&body) {
        Ok(value) => value,
        Err(error) => panic!("no JSON after the edit: {error}\n{}", String::from_utf8_lossy(&body)),
    }
}

fn exchange_the_model(chunks: &[Bytes], looked: &Peek, mut parsed: Value) {
    let edited = edit::set_model(chunks, looked, MODEL);
    parsed["model"] = MODEL.into();
    assert_eq!(parse(&edited), parsed, "only the model is another");
    // The new name contains a control character, which a client may not send, so it is replaced
    // once more.
    let plain = edit::set_model(chunks, looked, "plain");
    let again = peek(&plain, LIMITS);
    assert_eq!(again.map(|p| p.model), Ok(Some("plain".to_owned())));
}

fn ask_for_usage(chunks: &[Bytes], looked: &Peek, mut parsed: Value) {
    let Some(edited) = edit::ask_for_usage(chunks, looked) else {
        assert!(looked.wants_usage());
        return;
    };
    if parsed["stream_options"].is_null() {
        parsed["stream_options"] = serde_json::json!({});
    }
    parsed["stream_options"]["include_usage"] = true.into();
    assert_eq!(parse(&edited), parsed, "only usage is asked for");
    assert_eq!(peek(&edited, LIMITS).map(|p| p.wants_usage()), Ok(true));
}

fn force_the_lifetime(chunks: &[Bytes]) {
    for ttl in [CacheTtl::OneHour, CacheTtl::FiveMinutes] {
        let forced = edit::force_cache_ttl(chunks, ttl, LIMITS);
        let Ok(Some(edited)) = forced else {
            assert_eq!(forced, Ok(None), "a body that was peeked into");
            continue;
        };
        parse(&edited);
        assert_eq!(edit::force_cache_ttl(&edited, ttl, LIMITS), Ok(None), "forced once is forced");
    }
}
