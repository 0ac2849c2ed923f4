//! Streams that end anywhere: billed and judged as if they had passed through.

use super::StreamConverter;
use crate::domain::format::WireFormat::{self, AltCli, Chat, Native, Responses};
use crate::formats::conversation::ReplyContext;
use crate::formats::names::NameMap;
use crate::formats::usage::UsageReader;

const STREAMS: [(WireFormat, &[&str]); 4] = [
    (
        Native,
        &[
            r#"{"type":"message_start","message":{"usage":{"input_tokens":9,"output_tokens":1}}}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"w","input":{}}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":\"TEXT\"}"}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":7}}"#,
            r#"{"type":"message_stop"}"#,
        ],
    ),
    (
        Responses,
        &[
            r#"{"type":"response.created","response":{"status":"in_progress","output":[]}}"#,
            r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m","role":"assistant","content":[]}}"#,
            r#"{"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"TEXT"}"#,
            r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"TEXT"}]}}"#,
            r#"{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"TEXT"}]}],"usage":{"input_tokens":9,"output_tokens":7}}}"#,
        ],
    ),
    (
        Chat,
        &[
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","reasoning_content":"TEXT"},"finish_reason":null}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"TEXT"},"finish_reason":null}]}"#,
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":7}}"#,
            "[DONE]",
        ],
    ),
    (
        AltCli,
        &[
            r#"{"candidates":[{"content":{"parts":[{"text":"TEXT"}]},"index":0}],"usageMetadata":{"promptTokenCount":9,"totalTokenCount":9}}"#,
            r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"w","args":{"a":"TEXT"}}}]},"index":0}]}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":"TEXT"}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":7,"totalTokenCount":16}}"#,
            r#"{"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":7,"totalTokenCount":16}}"#,
        ],
    ),
];

fn context() -> ReplyContext {
    ReplyContext {
        names: NameMap::default(),
        model: "m".to_owned(),
        seed: "s".to_owned(),
        created: 0,
        include_usage: true,
        wrapped: false,
        json_array: false,
        hide_thinking: false,
        estimated_input: 77,
        parallel_tools: true,
    }
}

#[test]
fn a_stream_that_ends_anywhere_is_billed_and_judged_as_if_it_had_passed_through() {
    for (from, events) in STREAMS {
        let text = "x".repeat(72);
        let bytes: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        let bytes = bytes.replace("TEXT", &text);
        for end in 0..=bytes.len() {
            let bytes = &bytes[..end];
            for to in WireFormat::ALL.into_iter().filter(|to| *to != from) {
                let shown = || format!("{from} to {to}: ...{}", &bytes[end.saturating_sub(99)..]);
                let mut passed = UsageReader::new(from, true);
                let mut converter = StreamConverter::new(from, to, context());
                let mut out = Vec::new();
                for piece in bytes.as_bytes().chunks(50) {
                    passed.feed(piece);
                    assert_eq!(converter.feed(piece, &mut out), Ok(()), "{}", shown());
                }
                let bill = |reader: &UsageReader| reader.bill(77);
                assert_eq!(converter.bill(77), bill(&passed), "broken, {}", shown());
                let lacks_only_the_end = passed.seen_end() || passed.lacks_only_the_end();
                assert_eq!(converter.lacks_only_the_end(), lacks_only_the_end, "{}", shown());
                passed.finish();
                let finished = converter.finish(&mut out);
                assert_eq!(finished.is_ok(), passed.seen_end(), "{}", shown());
                assert_eq!(converter.bill(77), bill(&passed), "ended, {}", shown());
            }
        }
    }
}

/// Of a text of 36 000 bytes that never ends.
#[test]
fn the_text_of_an_event_that_never_ends_is_billed() {
    let cases = [
        (Native, r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":""#),
        (Native, r#"{"type":"content_block_delta","delta":{"partial_json":""#),
        (Responses, r#"{"type":"response.output_text.delta","delta":""#),
        (Chat, r#"{"choices":[{"index":0,"delta":{"content":""#),
        (Chat, r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"function":{"arguments":""#),
        (AltCli, r#"{"candidates":[{"content":{"parts":[{"text":""#),
    ];
    for (from, beginning) in cases {
        let bytes = format!("data: {beginning}{}", "y".repeat(36_000));
        let mut passed = UsageReader::new(from, true);
        passed.feed(bytes.as_bytes());
        assert_eq!(passed.estimate(77).output, 10_000, "{beginning}");
        passed.finish();
        assert_eq!(passed.estimate(77).output, 10_000, "{beginning}, ended");
    }
}
