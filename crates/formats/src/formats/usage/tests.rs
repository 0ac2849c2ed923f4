//! The usage reader on replies of all formats, in the shapes that services send, with invented
//! texts.

use super::UsageReader;
use crate::domain::format::WireFormat::{self, AltCli, Chat, Native, Responses};
use crate::domain::usage::Usage;

/// The final findings of a reader.
#[derive(Debug, PartialEq)]
pub(super) struct ReadUsage {
    pub(super) usage: Option<Usage>,
    pub(super) content: bool,
    pub(super) end: bool,
    pub(super) error: Option<(Option<String>, Option<String>, String)>,
    pub(super) output: usize,
}

pub(super) fn read_parts<'a>(
    format: WireFormat,
    streaming: bool,
    parts: impl IntoIterator<Item = &'a [u8]>,
) -> ReadUsage {
    let mut reader = UsageReader::new(format, streaming);
    parts.into_iter().for_each(|p| reader.feed(p));
    reader.finish();
    ReadUsage {
        usage: reader.usage(),
        content: reader.seen_content(),
        end: reader.seen_end(),
        error: reader.seen_error().map(|e| (e.kind.clone(), e.code.clone(), e.message.clone())),
        output: reader.output_chars(),
    }
}

/// Reads the text as a whole, byte by byte and in odd pieces; the results must be equal.
pub(super) fn read(format: WireFormat, streaming: bool, text: &str) -> ReadUsage {
    let reported = read_parts(format, streaming, [text.as_bytes()]);
    for size in [1, 2, 7, 64] {
        assert_eq!(
            read_parts(format, streaming, text.as_bytes().chunks(size)),
            reported,
            "in pieces of {size}"
        );
    }
    reported
}

/// Events from JSON lines; a line may begin with its event's name and a tab.
pub(super) fn events(lines: &str) -> String {
    lines
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .map(|line| match line.split_once('\t') {
            Some((name, data)) => format!("event: {name}\ndata: {data}\n\n"),
            None => format!("data: {line}\n\n"),
        })
        .collect()
}

pub(super) const NATIVE: &str = r#"
message_start	{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":25,"cache_creation_input_tokens":100,"cache_read_input_tokens":7,"cache_creation":{"ephemeral_5m_input_tokens":60,"ephemeral_1h_input_tokens":40},"output_tokens":1,"service_tier":"standard"}}}
ping	{"type":"ping"}
content_block_start	{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}
content_block_delta	{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}
content_block_delta	{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2lnbmF0dXJl"}}
content_block_stop	{"type":"content_block_stop","index":0}
content_block_delta	{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"größer \"usage\":{\"output_tokens\":999}"}}
content_block_delta	{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}
message_delta	{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"input_tokens":25,"output_tokens":57,"cache_read_input_tokens":7,"output_tokens_details":{"thinking_tokens":20}}}
message_stop	{"type":"message_stop"}
"#;

#[test]
fn a_native_stream_is_read() {
    let reported = read(Native, true, &events(NATIVE));
    let expected = Usage {
        input: 25,
        output: 57,
        cache_write_5m: 60,
        cache_write_1h: 40,
        cache_read: 7,
        reasoning: 20,
        ..Usage::default()
    };
    assert_eq!(
        (reported.usage, reported.content, reported.end, reported.error),
        (Some(expected), true, true, None)
    );
    assert_eq!(
        reported.output,
        2 + "größer \\\"usage\\\":{\\\"output_tokens\\\":999}".len() + "{\\\"a\\\":1}".len()
    );
}

#[test]
fn a_native_stream_that_has_only_begun_is_neither_content_nor_end() {
    let begun: Vec<&str> = NATIVE.trim().lines().take(2).collect();
    let reported = read(Native, true, &events(&begun.join("\n")));
    assert_eq!((reported.content, reported.end, reported.usage.unwrap().output), (false, false, 1));
    let more: Vec<&str> = NATIVE.trim().lines().take(9).collect();
    let reported = read(Native, true, &events(&more.join("\n")));
    assert_eq!((reported.content, reported.end), (true, false));
}

#[test]
fn cache_writes_without_a_split_are_of_the_short_kind() {
    let body = r#"{"type":"message","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn",
        "usage":{"input_tokens":3,"cache_creation_input_tokens":50,"cache_read_input_tokens":0,"output_tokens":2}}"#;
    let reported = read(Native, false, body);
    assert_eq!(
        reported.usage,
        Some(Usage { input: 3, output: 2, cache_write_5m: 50, ..Usage::default() })
    );
    assert_eq!((reported.content, reported.end, reported.output), (true, true, 2));
}

#[test]
fn zeros_do_not_undo_figures() {
    let stream = events(
        r#"{"type":"message_start","message":{"usage":{"input_tokens":25,"output_tokens":0}}}
        {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":0,"output_tokens":9}}"#,
    );
    let usage = read(Native, true, &stream).usage.unwrap();
    assert_eq!((usage.input, usage.output), (25, 9));
}

pub(super) const CHAT: &str = r#"
{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null}
{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"hé"},"finish_reason":null}],"usage":null}
{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{}"}}]},"finish_reason":null}]}
{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}
{"id":"c","object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":30,"total_tokens":130,"prompt_tokens_details":{"cached_tokens":64,"image_tokens":10},"completion_tokens_details":{"reasoning_tokens":12}}}
[DONE]
"#;

#[test]
fn a_chat_stream_is_read() {
    let reported = read(Chat, true, &events(CHAT));
    let expected = Usage {
        input: 36,
        output: 30,
        cache_read: 64,
        reasoning: 12,
        image_input: 10,
        ..Usage::default()
    };
    assert_eq!(
        (reported.usage, reported.content, reported.end, reported.output),
        (Some(expected), true, true, 3 + 1 + 2)
    );
}

#[test]
fn a_chat_stream_ends_with_its_terminator_or_a_finish_reason() {
    let lines: Vec<&str> = CHAT.trim().lines().collect();
    let reported = |n: usize| read(Chat, true, &events(&lines[..n].join("\n")));
    assert_eq!((reported(1).content, reported(1).end), (false, false));
    assert_eq!((reported(3).content, reported(3).end, reported(3).usage), (true, false, None));
    assert!(reported(4).end);
    let mut reader = UsageReader::new(Chat, true);
    reader.feed(events(&lines[..4].join("\n")).as_bytes());
    assert!(!reader.seen_end(), "usage may still come");
}

#[test]
fn other_vendors_names_for_chat_usage_are_known() {
    let usage = |fields: &str| {
        read(
            Chat,
            false,
            &format!(r#"{{"choices":[{{"message":{{"content":"x"}}}}],"usage":{{{fields}}}}}"#),
        )
        .usage
        .unwrap()
    };
    let hit = usage(
        r#""prompt_tokens":50,"completion_tokens":5,"prompt_cache_hit_tokens":20,"prompt_cache_miss_tokens":30"#,
    );
    assert_eq!((hit.input, hit.cache_read), (30, 20));
    let flat = usage(r#""prompt_tokens":50,"completion_tokens":5,"cached_tokens":8"#);
    assert_eq!((flat.input, flat.cache_read), (42, 8));
    let written = usage(
        r#""prompt_tokens":50,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":10,"cache_write_tokens":15}"#,
    );
    assert_eq!((written.input, written.cache_read, written.cache_write_5m), (25, 10, 15));
    let apart = usage(
        r#""prompt_tokens":50,"completion_tokens":5,"total_tokens":95,"completion_tokens_details":{"reasoning_tokens":40}"#,
    );
    assert_eq!((apart.output, apart.reasoning), (45, 40));
    let absurd = usage(
        r#""prompt_tokens":5,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":10,"image_tokens":99}"#,
    );
    assert_eq!((absurd.input, absurd.cache_read, absurd.image_input), (0, 5, 0));
    let vendor = read(
        Chat,
        true,
        &events(
            r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"x_groq":{"usage":{"prompt_tokens":9,"completion_tokens":1}}}"#,
        ),
    );
    assert_eq!(vendor.usage.unwrap().input, 9);
}

pub(super) const RESPONSES: &str = r#"
response.created	{"type":"response.created","sequence_number":0,"response":{"id":"r","status":"in_progress","output":[],"usage":null,"error":null}}
response.in_progress	{"type":"response.in_progress","sequence_number":1,"response":{"id":"r","usage":null}}
response.output_item.added	{"type":"response.output_item.added","sequence_number":2,"item":{"type":"message","content":[]}}
response.output_text.delta	{"type":"response.output_text.delta","sequence_number":3,"delta":"hé"}
response.output_text.done	{"type":"response.output_text.done","sequence_number":4,"text":"hé"}
response.completed	{"type":"response.completed","sequence_number":5,"response":{"id":"r","status":"completed","error":null,"output":[{"type":"message","content":[{"type":"output_text","text":"hé \"usage\": {\"input_tokens\": 1}"}]}],"usage":{"input_tokens":90,"input_tokens_details":{"cached_tokens":40,"cache_write_tokens":30,"cache_write_tokens_details":{"ttl_12h_tokens":20,"ttl_30m_tokens":10}},"output_tokens":12,"output_tokens_details":{"reasoning_tokens":8},"total_tokens":102}}}
"#;

#[test]
fn a_responses_stream_is_read() {
    let reported = read(Responses, true, &events(RESPONSES));
    let expected = Usage {
        input: 20,
        output: 12,
        cache_write_5m: 10,
        cache_write_1h: 20,
        cache_read: 40,
        reasoning: 8,
        ..Usage::default()
    };
    assert_eq!(
        (reported.usage, reported.content, reported.end, reported.output),
        (Some(expected), true, true, 3)
    );
    let lines: Vec<&str> = RESPONSES.trim().lines().collect();
    let begun = read(Responses, true, &events(&lines[..2].join("\n")));
    assert_eq!((begun.content, begun.end, begun.usage), (false, false, None));
    let incomplete = RESPONSES
        .replace("response.completed", "response.incomplete")
        .replace("\"completed\"", "\"incomplete\"");
    assert!(read(Responses, true, &events(&incomplete)).end);
}

#[test]
fn a_responses_body_is_read() {
    let body = r#"{"id":"r","object":"response","status":"completed","error":null,"output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"ab"}]},
        {"type":"message","content":[{"type":"output_text","text":"cde"}]},{"type":"function_call","arguments":"{}"}],"usage":{"input_tokens":9,"output_tokens":4}}"#;
    let reported = read(Responses, false, body);
    assert_eq!(
        (reported.usage.unwrap().input, reported.content, reported.end, reported.output),
        (9, true, true, 7)
    );
    assert_eq!(
        read(Responses, true, body).usage,
        reported.usage,
        "a stream was asked for, a body came"
    );
    assert!(!read(Responses, false, &body.replace("completed", "failed")).end);
}

pub(super) const ALT: &str = r#"
{"candidates":[{"content":{"role":"model","parts":[{"text":"so","thought":true}]},"index":0}],"usageMetadata":{"promptTokenCount":100,"totalTokenCount":104,"thoughtsTokenCount":4},"modelVersion":"g"}
{"candidates":[{"content":{"role":"model","parts":[{"text":"hé"},{"functionCall":{"name":"f","args":{}}}]}}],"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":3,"thoughtsTokenCount":4}}
{"candidates":[{"content":{"role":"model","parts":[{"text":""}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":60,"candidatesTokenCount":11,"thoughtsTokenCount":4,"toolUsePromptTokenCount":5,"totalTokenCount":120,"promptTokensDetails":[{"modality":"TEXT","tokenCount":70},{"tokenCount":30,"modality":"IMAGE"}],"cacheTokensDetails":[{"modality":"IMAGE","tokenCount":10}],"candidatesTokensDetails":[{"modality":"IMAGE","tokenCount":6},{"modality":"TEXT","tokenCount":5}]}}
"#;

#[test]
fn an_alt_cli_stream_is_read_plain_wrapped_and_as_an_array() {
    let expected = Usage {
        input: 45,
        output: 15,
        cache_read: 60,
        reasoning: 4,
        image_input: 20,
        image_output: 6,
        image_cache_read: 10,
        ..Usage::default()
    };
    let lines: Vec<&str> = ALT.trim().lines().collect();
    let wrapped: String =
        lines.iter().map(|l| format!("{{\"response\":{l},\"traceId\":\"t\"}}\n")).collect();
    let array = format!("[{}\n]\n", lines.join("\n,\r\n"));
    for text in [events(ALT), events(&wrapped), array] {
        let reported = read(AltCli, true, &text);
        assert_eq!((reported.usage, reported.content, reported.end), (Some(expected), true, true));
        assert_eq!(reported.output, 2 + 3 + r#"{"name":"f","args":{}}"#.len());
    }
    let begun = read(AltCli, true, &events(lines[0]));
    assert_eq!((begun.content, begun.end, begun.usage.unwrap().output), (true, false, 4));
    assert!(read(AltCli, false, lines[2]).end);
    let blocked = read(
        AltCli,
        false,
        r#"{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":3}}"#,
    );
    assert_eq!((blocked.content, blocked.end, blocked.usage.unwrap().input), (true, true, 3));
}
