//! Events that only bring another text are not read as JSON: a stream converts as if they were.

use std::fmt::Write as _;

use fastrand::Rng;

use super::StreamConverter;
use crate::domain::format::WireFormat::{self, AltCli, Chat, Native, Responses};
use crate::formats::conversation::ReplyContext;
use crate::formats::names::NameMap;
use crate::formats::usage::UsageReader;

/// Texts as JSON has them. Some readers refuse the last four.
const TEXTS: &[&str] = &[
    "a",
    "Some words ",
    r"a line\n",
    r#"\"quoted\" and \\"#,
    "über 日本 😀",
    r"\ud83d\ude00",
    "a text of more than sixty-four bytes, which is more than one block of the scanner reads",
    "",
    r"\ud83d",
    r"\x",
    "a\u{1}b",
    "un\"even",
];

/// Events of a provider. `T` is a text, `N` a number that grows, `O` noise.
const EVENTS: &[(WireFormat, &[&str])] = &[
    (
        Native,
        &[
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"T"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"T"}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"T"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"T"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"text":"T","thinking":"T"}}"#,
            r#"{"type":"ping"}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"T"}}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":N}}"#,
            r#"{"type":"message_start","message":{"usage":{"input_tokens":N,"output_tokens":1}}}"#,
        ],
    ),
    (
        Responses,
        &[
            r#"{"type":"response.output_text.delta","sequence_number":N,"delta":"T","logprobs":[],"obfuscation":"O"}"#,
            r#"{"type":"response.output_text.delta","sequence_number":N,"delta":"T"}"#,
            r#"{"type":"response.refusal.delta","sequence_number":N,"delta":"T"}"#,
            r#"{"type":"response.reasoning_summary_text.delta","sequence_number":N,"delta":"T"}"#,
            r#"{"type":"response.reasoning_text.delta","delta":"T"}"#,
            r#"{"type":"response.function_call_arguments.delta","sequence_number":N,"delta":"T"}"#,
            r#"{"type":"response.audio.delta","delta":"T"}"#,
            r#"{"type":"response.reasoning_summary_part.added","summary_index":1}"#,
            r#"{"type":"response.output_item.added","item":{"type":"message"}}"#,
            r#"{"type":"response.output_item.added","item":{"type":"function_call","call_id":"c","name":"f"}}"#,
            r#"{"type":"response.output_item.done","item":{"type":"message","content":[{"type":"output_text","text":"T"}]}}"#,
            r#"{"type":"response.content_part.done"}"#,
            r#"{"type":"response.output_item.done","delta":"abc","item":{"type":"message","content":[{"type":"output_text","text":"xyz"}]}}"#,
            r#"{"type":"response.output_item.done","delta":"T","item":{"type":"message","content":[{"type":"output_text","text":"xyz"}]}}"#,
        ],
    ),
    (
        Chat,
        &[
            r#"{"id":"c","choices":[{"index":0,"delta":{"content":"T"},"finish_reason":null}],"usage":null,"obfuscation":"O"}"#,
            r#"{"id":"c","choices":[{"index":0,"delta":{"content":"T"}}]}"#,
            r#"{"id":"c","choices":[{"index":1,"delta":{"content":"T"}}]}"#,
            r#"{"choices":[{"delta":{"reasoning_content":"T"}}]}"#,
            r#"{"choices":[{"delta":{"reasoning":"T","reasoning_content":"T"}}]}"#,
            r#"{"choices":[{"delta":{"refusal":"T"}}]}"#,
            r#"{"choices":[{"delta":{"content":[{"type":"text","text":"T"}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":N,"id":"t","function":{"name":"f","arguments":"T"}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"T"}}]}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"T"},"finish_reason":"length"}]}"#,
            r#"{"choices":[{"delta":{"content":"T"}}],"usage":{"prompt_tokens":3,"completion_tokens":N}}"#,
            r#"{"choices":[{"delta":{"content":"T"}}],"usage":{"prompt_tokens":3,"completion_tokens":4}}"#,
        ],
    ),
    (
        AltCli,
        &[
            r#"{"candidates":[{"content":{"parts":[{"text":"T"}]},"index":0}]}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":"T","thought":true}]}}]}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":"T"},{"text":"T"}]}}]}"#,
            r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"a":"T"}}}]}}]}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":"T"}]},"finishReason":"STOP"}]}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":"T"}]}}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":N}}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":"T"}]},"groundingMetadata":{"webSearchQueries":["q"]}}]}"#,
            r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#,
        ],
    ),
];

fn context(rng: &mut Rng) -> ReplyContext {
    ReplyContext {
        names: NameMap::default(),
        model: "m".to_owned(),
        seed: "s".to_owned(),
        created: 0,
        include_usage: true,
        wrapped: false,
        json_array: false,
        hide_thinking: rng.bool(),
        estimated_input: 0,
        parallel_tools: true,
    }
}

/// A stream's events: each is drawn, and repeated a few times with other texts.
fn stream(events: &[&str], rng: &mut Rng) -> Vec<String> {
    let mut number = 0;
    let texts = if rng.bool() { TEXTS } else { &TEXTS[..7] };
    let mut stream = Vec::new();
    for _ in 0..rng.usize(1..8) {
        let event = events[rng.usize(..events.len())];
        for _ in 0..rng.usize(1..6) {
            let mut drawn = String::new();
            for c in event.chars() {
                match c {
                    'T' => drawn.push_str(texts[rng.usize(..texts.len())]),
                    'N' => {
                        number += rng.u32(1..4);
                        let _infallible = write!(drawn, "{number}");
                    }
                    'O' => drawn.push_str(&"x".repeat(rng.usize(..4))),
                    c => drawn.push(c),
                }
            }
            stream.push(drawn);
        }
    }
    stream
}

fn findings(reader: &UsageReader) -> impl PartialEq + std::fmt::Debug + use<> {
    let text = |error: &crate::formats::error::UpstreamError| format!("{error:?}");
    (
        (reader.usage(), reader.estimate(77), reader.final_figures(), reader.progress()),
        (reader.seen_content(), reader.seen_end(), reader.output_chars()),
        reader.seen_error().map(text),
    )
}

#[test]
fn a_stream_is_converted_as_if_each_event_was_read() {
    let mut rng = Rng::with_seed(20_261_125);
    let mut repeated = 0;
    for turn in 0..10_000 {
        let (from, events) = EVENTS[turn % EVENTS.len()];
        let to = WireFormat::ALL[rng.usize(..4)];
        let context = context(&mut rng);
        let mut fast = StreamConverter::new(from, to, context.clone());
        let mut slow = StreamConverter::new(from, to, context);
        let (mut fast_out, mut slow_out) = (Vec::new(), Vec::new());
        for event in stream(events, &mut rng) {
            let event = format!("data: {event}\n\n");
            // Each of its events is read.
            slow.path.repeats = false;
            let results = [
                fast.feed(event.as_bytes(), &mut fast_out),
                slow.feed(event.as_bytes(), &mut slow_out),
            ];
            repeated += usize::from(fast.path.repeats);
            assert_eq!(results[0], results[1], "{event}");
        }
        assert_eq!(fast.finish(&mut fast_out), slow.finish(&mut slow_out));
        assert_eq!(String::from_utf8(fast_out), String::from_utf8(slow_out), "{from:?} to {to:?}");
        assert_eq!(fast.path.reader, slow.path.reader);
        assert_eq!(fast.seen_content(), slow.seen_content());
    }
    assert!(repeated > 10_000, "{repeated} of the events repeat the one before");
}

#[test]
fn usage_is_read_as_if_each_event_was_read() {
    let mut rng = Rng::with_seed(20_261_126);
    let mut repeated = 0;
    for turn in 0..10_000 {
        let (format, events) = EVENTS[turn % EVENTS.len()];
        let end = if rng.bool() { "\n\n" } else { "\r\n\r\n" };
        let mut bytes = String::new();
        let mut single = UsageReader::of_events(format);
        for event in stream(events, &mut rng) {
            repeated += usize::from(single.event(event.as_bytes()).is_some());
            let _infallible = write!(bytes, "data: {event}{end}");
        }
        let (mut whole, mut pieces) =
            (UsageReader::new(format, true), UsageReader::new(format, true));
        whole.feed(bytes.as_bytes());
        // No event arrives as a whole, so none can repeat another one.
        for byte in bytes.as_bytes().chunks(1) {
            pieces.feed(byte);
        }
        let expected = findings(&pieces);
        assert_eq!(findings(&whole), expected, "{bytes}");
        assert_eq!(findings(&single), expected, "{bytes}");
        for reader in [&mut whole, &mut pieces, &mut single] {
            reader.finish();
        }
        assert_eq!(findings(&whole), findings(&pieces), "{bytes}");
        assert_eq!(findings(&single), findings(&pieces), "{bytes}");
    }
    assert!(repeated > 10_000, "{repeated} of the events repeat the one before");
}

#[test]
fn events_that_are_no_json_are_left_out_like_other_pings() {
    let streams: [(WireFormat, &[&str]); 4] = [
        (
            Native,
            &[
                r#"{"type":"message_start","message":{"usage":{"input_tokens":1}}}"#,
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}"#,
                r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}"#,
                r#"{"type":"message_stop"}"#,
            ],
        ),
        (
            Responses,
            &[
                r#"{"type":"response.output_item.added","item":{"type":"message"}}"#,
                r#"{"type":"response.output_text.delta","delta":"a"}"#,
                r#"{"type":"response.completed","response":{"status":"completed","output":[]}}"#,
            ],
        ),
        (
            Chat,
            &[
                r#"{"choices":[{"index":0,"delta":{"content":"a"}}]}"#,
                r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
            ],
        ),
        (
            AltCli,
            &[r#"{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}"#],
        ),
    ];
    let mut rng = Rng::with_seed(1);
    for (from, events) in streams {
        let to = if from == Native { Chat } else { Native };
        let context = context(&mut rng);
        let convert = |noise: &str| {
            let mut converter = StreamConverter::new(from, to, context.clone());
            let mut out = Vec::new();
            for event in events {
                let text = format!("{noise}data: {event}\n\n");
                converter.feed(text.as_bytes(), &mut out).unwrap();
            }
            converter.finish(&mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let quiet = convert("");
        assert!(quiet.contains("\"a\""), "{quiet}");
        let noises = [
            "event: ping\ndata: keep-alive\n\n",
            "event: ping\ndata: {now}\n\n",
            "event: ping\ndata: [1\n\n",
            "data: \"x\"\n\n",
            "data: null\n\n",
        ];
        for noise in noises {
            assert_eq!(convert(noise), quiet, "{from:?} {noise:?}");
        }
    }
}
