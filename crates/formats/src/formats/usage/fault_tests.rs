//! The usage reader on errors, damaged streams and arbitrary bytes.

use proptest::prelude::{any, prop, proptest};

use super::UsageReader;
use super::tests::{ALT, CHAT, NATIVE, RESPONSES, events, read, read_parts};
use crate::domain::format::WireFormat::{self, AltCli, Chat, Native, Responses};

/// A reply, or the line of an event, and the kind, code and message that it must contain.
type Fault<'a> = (WireFormat, bool, &'a str, (Option<&'a str>, Option<&'a str>, &'a str));

fn check_faults(table: &[Fault<'_>]) {
    for (format, streaming, text, (kind, code, message)) in table {
        let text = if *streaming { events(text) } else { (*text).to_owned() };
        let reported = read(*format, *streaming, &text);
        let expected = (kind.map(str::to_owned), code.map(str::to_owned), (*message).to_owned());
        assert_eq!(reported.error, Some(expected), "{text}");
        assert!(!reported.content && !reported.end, "{text}");
    }
}

#[test]
fn errors_within_a_stream_are_recognised() {
    check_faults(&[
        (
            Native,
            true,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#,
            (Some("overloaded_error"), None, "busy"),
        ),
        (
            Chat,
            true,
            r#"{"error":{"message":"slow","type":"tokens","code":"rate_limit_exceeded"}}"#,
            (Some("tokens"), Some("rate_limit_exceeded"), "slow"),
        ),
        (Chat, true, r#"{"error":{"message":"m","code":500}}"#, (None, Some("500"), "m")),
        (
            Chat,
            true,
            r#"{"choices":[{"index":0,"finish_reason":"error","error":{"message":"m","code":502}}]}"#,
            (None, Some("502"), "m"),
        ),
        (
            Chat,
            true,
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"error"}]}"#,
            (None, None, "the answer has the finish reason `error`"),
        ),
        (
            Chat,
            false,
            r#"{"choices":[{"message":{"content":null},"finish_reason":"error"}]}"#,
            (None, None, "the answer has the finish reason `error`"),
        ),
        (
            Responses,
            true,
            r#"{"type":"error","code":"server_error","message":"oops","param":null}"#,
            (None, Some("server_error"), "oops"),
        ),
        (
            Responses,
            true,
            r#"{"type":"error","error":{"type":"invalid","code":null,"message":"bad"}}"#,
            (Some("invalid"), None, "bad"),
        ),
        (
            Responses,
            true,
            r#"{"type":"response.failed","response":{"error":{"code":"server_error","message":"died"}}}"#,
            (None, Some("server_error"), "died"),
        ),
        (
            AltCli,
            true,
            r#"{"error":{"code":503,"message":"later","status":"UNAVAILABLE"}}"#,
            (Some("UNAVAILABLE"), Some("503"), "later"),
        ),
    ]);
}

#[test]
fn errors_in_place_of_a_body_are_recognised() {
    check_faults(&[
        (
            Native,
            false,
            r#"{"type":"error","error":{"type":"api_error","message":"x"}}"#,
            (Some("api_error"), None, "x"),
        ),
        (Chat, false, r#"{"error":"no such model"}"#, (None, None, "no such model")),
        (
            Responses,
            false,
            r#"{"status":"failed","output":[],"error":{"code":"server_error","message":"died"}}"#,
            (None, Some("server_error"), "died"),
        ),
        (
            AltCli,
            false,
            r#"[{"error":{"code":429,"message":"much","status":"RESOURCE_EXHAUSTED"}}]"#,
            (Some("RESOURCE_EXHAUSTED"), Some("429"), "much"),
        ),
    ]);
    let empty = read(Chat, true, &events(r#"{"error":{},"choices":[]}"#));
    assert_eq!((empty.error, empty.content, empty.end), (None, false, false));
}

#[test]
fn a_body_that_is_no_reply_is_no_end() {
    for text in ["", "{}", "<html>", "[]", "null", "{\"choices\":", "{\"ok\":true}"] {
        for format in WireFormat::ALL {
            for streaming in [false, true] {
                let reported = read(format, streaming, text);
                assert!(
                    !reported.content && !reported.end && reported.usage.is_none(),
                    "{format} {text}"
                );
            }
        }
    }
}

#[test]
fn memory_stays_small_however_large_an_event_is() {
    let mut reader = UsageReader::new(Responses, true);
    reader.feed(b"data: {\"type\":\"response.completed\",\"response\":{\"output\":[{\"content\":[{\"text\":\"");
    for _ in 0..500 {
        reader.feed(&[b'x'; 10_000]);
    }
    reader.feed(b"\"}]}],\"usage\":{\"input_tokens\":1,\"output_tokens\":2}}}\n\n");
    assert_eq!(
        (reader.usage().unwrap().output, reader.seen_end(), reader.output_chars()),
        (2, true, 0)
    );
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), cut in any::<prop::sample::Index>(), streaming in any::<bool>()) {
        for format in WireFormat::ALL {
            let (a, b) = bytes.split_at(cut.index(bytes.len() + 1));
            read_parts(format, streaming, [a, b]);
        }
    }

    #[test]
    fn damaged_streams_are_read_the_same_in_any_pieces(
        which in 0usize..4, at in any::<prop::sample::Index>(), byte in any::<u8>(), cuts in prop::collection::vec(1usize..200, 1..6),
    ) {
        let (format, text) = [(Native, NATIVE), (Chat, CHAT), (Responses, RESPONSES), (AltCli, ALT)][which];
        let mut bytes = events(text).into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let whole = read_parts(format, true, [&bytes[..]]);
        let mut parts = Vec::new();
        let mut rest = &bytes[..];
        for size in cuts.iter().cycle() {
            let (part, tail) = rest.split_at((*size).min(rest.len()));
            parts.push(part);
            rest = tail;
            if rest.is_empty() {
                break;
            }
        }
        assert_eq!(read_parts(format, true, parts), whole);
    }
}

#[test]
fn behind_a_form_feed_there_is_no_json_however_the_bytes_come() {
    let reply = r#"{"usage":{"input_tokens":5,"output_tokens":1},"model":"m"}"#;
    for format in [Native, Responses, Chat] {
        assert_eq!(read(format, true, &format!("\u{c}\n\u{c}{reply}")).usage, None);
        assert_eq!(
            read(format, true, &format!("\n \t\r{reply}")).usage,
            read(format, true, reply).usage
        );
    }
}

/// A line that begins with a space is not a data line, also if the stream is cut after that space.
#[test]
fn white_space_that_comes_first_is_part_of_its_line() {
    let stream = b" data:.\ndata:{\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    for pieces in [stream.len(), 1] {
        let mut reader = UsageReader::new(WireFormat::Chat, true);
        stream.chunks(pieces).for_each(|piece| reader.feed(piece));
        reader.finish();
        assert_eq!(
            (reader.output_chars(), reader.seen_content()),
            (1, true),
            "in pieces of {pieces}"
        );
    }
}
