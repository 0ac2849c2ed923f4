//! The peek on bodies of all four formats, good and bad.

use bytes::Bytes;
use http::Method;
use proptest::prelude::{any, prop, proptest};

use crate::formats::bad_request::BadRequest;

use super::{Peek, PeekLimits, peek};
use crate::domain::feature::FEATURES;
use crate::domain::format::WireFormat;
use crate::formats::route::match_path;

fn cut(text: &str, size: usize) -> Vec<Bytes> {
    text.as_bytes().chunks(size).map(Bytes::copy_from_slice).collect()
}

fn look(text: &str) -> Result<Box<Peek>, BadRequest> {
    peek(&cut(text, 1 << 16), PeekLimits { max_depth: 16 })
}

fn hash(text: &str) -> Option<u64> {
    let chunks = cut(text, 1 << 16);
    peek(&chunks, PeekLimits { max_depth: 16 }).unwrap().first_messages_hash(&chunks)
}

const NATIVE: &str = r#"{"model":"m-1","max_tokens":64,"stream":true,"system":[{"type":"text","text":"be brief"}],
 "messages":[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image","source":{"type":"base64","data":"SHORT"}}]}],
 "metadata":{"user_id":"{\"session_id\":\"abc\"}"}}"#;
const CHAT: &str = r#"{"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hi"}],"stream":false,
 "model":"m-2","max_completion_tokens":7,"max_tokens":5,"stream_options":{"include_usage":true},"prompt_cache_key":"k"}"#;
const RESPONSES: &str = r#"{"model":"m-3","input":[{"type":"message","role":"developer","content":[{"type":"input_text","text":"be brief"}]},
 {"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}],"stream":true,"max_output_tokens":9,"previous_response_id":"resp_1"}"#;
const ALT: &str = r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"systemInstruction":{"parts":[{"text":"be brief"}]},
 "generationConfig":{"maxOutputTokens":11}}"#;

#[test]
fn a_reply_is_bounded_by_the_members_that_its_format_has() {
    let all = look(
        r#"{"model":"m","messages":[],"max_tokens":5,"max_completion_tokens":7,"max_output_tokens":9,"n":3,
            "generationConfig":{"maxOutputTokens":11,"candidateCount":2}}"#,
    )
    .unwrap();
    let formats = [WireFormat::Native, WireFormat::Responses, WireFormat::Chat, WireFormat::AltCli];
    assert_eq!(
        formats.map(|f| all.output_bound(f)),
        [(Some(5), 1), (Some(9), 1), (Some(7), 3), (Some(11), 2)]
    );
    let none = look(r#"{"model":"m","messages":[],"n":null,"max_tokens":null}"#).unwrap();
    assert_eq!(formats.map(|f| none.output_bound(f)), [(None, 1); 4]);
    let wrong = look(r#"{"model":"m","messages":[],"n":"8"}"#).unwrap_err();
    assert_eq!(wrong.field.as_deref(), Some("n"));
    assert!(
        look(r#"{"model":"m","messages":[],"n":1,"n":8}"#).is_err(),
        "the provider could take the other one"
    );
}

#[test]
fn each_formats_body_says_what_it_is() {
    let native = look(NATIVE).unwrap();
    assert_eq!(
        (native.model.as_deref(), native.stream, native.max_tokens),
        (Some("m-1"), Some(true), Some(64))
    );
    assert_eq!(native.model_span.map(|s| &NATIVE[s]), Some("\"m-1\""));
    assert_eq!(native.metadata_user_id.as_deref(), Some("{\"session_id\":\"abc\"}"));
    assert!(native.has_messages && !native.has_input && !native.has_contents && !native.wrapped);

    let chat = look(CHAT).unwrap();
    assert_eq!(
        (chat.stream, chat.max_tokens, chat.prompt_cache_key.as_deref()),
        (Some(false), Some(7), Some("k"))
    );
    assert!(chat.wants_usage() && chat.format(WireFormat::Chat) == WireFormat::Chat);

    let responses = look(RESPONSES).unwrap();
    assert_eq!(
        (responses.max_tokens, responses.previous_response_id.as_deref()),
        (Some(9), Some("resp_1"))
    );
    assert_eq!(
        responses.format(WireFormat::Chat),
        WireFormat::Responses,
        "a responses body on the chat path"
    );

    let alt = look(ALT).unwrap();
    assert_eq!(
        (alt.has_contents, alt.wrapped, alt.max_tokens, alt.model),
        (true, false, Some(11), None)
    );
    let wrapped = look(&format!(r#"{{"model":"m-4","project":"p","request":{ALT}}}"#)).unwrap();
    assert_eq!((wrapped.has_contents, wrapped.wrapped, wrapped.max_tokens), (true, true, Some(11)));
    assert_eq!(wrapped.model.as_deref(), Some("m-4"));
}

#[test]
fn an_input_may_be_a_text() {
    let text = r#"{"model":"m","input":"hi"}"#;
    let peeked = look(text).unwrap();
    assert!(peeked.has_input && peeked.input_is_text);
    assert!(hash(text).is_some());
}

#[test]
fn wrong_types_name_the_field() {
    for (text, field) in [
        (r#"{"model":7}"#, "model"),
        (r#"{"model":null}"#, "model"),
        (r#"{"model":" "}"#, "model"),
        (r#"{"model":"a\u0000b"}"#, "model"),
        (r#"{"model":["a"]}"#, "model"),
        (r#"{"model":"a","stream":"yes"}"#, "stream"),
        (r#"{"model":"a","stream":1}"#, "stream"),
        (r#"{"messages":{}}"#, "messages"),
        (r#"{"messages":"hi"}"#, "messages"),
        (r#"{"input":7}"#, "input"),
        (r#"{"contents":{"parts":[]}}"#, "contents"),
        (r#"{"request":{"contents":1}}"#, "contents"),
        (r#"{"max_tokens":"many"}"#, "max_tokens"),
        (r#"{"max_tokens":-1}"#, "max_tokens"),
        (r#"{"max_output_tokens":1.5}"#, "max_output_tokens"),
        (r#"{"stream_options":true}"#, "stream_options"),
        (r#"{"model":"a","model":"b"}"#, "model"),
        (r#"{"model":"a","\u006dodel":"b"}"#, "model"),
        (r#"{"model":"a","Model":"b"}"#, "model"),
        (r#"{"stream":true,"stream":false}"#, "stream"),
        (r#"{"messages":[],"messages":[]}"#, "messages"),
        (r#"{"contents":[],"request":{"contents":[]}}"#, "contents"),
        (r#"{"max_tokens":1,"max_tokens":2}"#, "max_tokens"),
        (r#"{"Stream":true}"#, "stream"),
        (r#"{"\u017ftream":true}"#, "stream"),
        ("{\"\u{17f}tream\":true}", "stream"),
        ("{\"stream_options\":{},\"\u{17f}tream_optıonſ\":{}}", "stream_options"),
        (
            r#"{"stream_options":{"include_usage":true,"INCLUDE_USAGE":false}}"#,
            "stream_options.include_usage",
        ),
        (r#"{"stream_options":{"Include_Usage":false}}"#, "stream_options.include_usage"),
        ("{\"max_to\u{212a}ens\":5}", "max_tokens"),
        (r#"{"Max_Completion_Tokens":5}"#, "max_completion_tokens"),
        (r#"{"generationConfig":{},"GenerationConfig":{}}"#, "generationConfig"),
        (
            r#"{"generationConfig":{"maxOutputTokens":1,"max_output_tokens":9}}"#,
            "generationConfig.maxOutputTokens",
        ),
        (r#"{"Request":{"contents":[]}}"#, "request"),
        (r#"{"Metadata":{}}"#, "metadata"),
        (r#"{"metadata":{"user_id":"a","User_ID":"b"}}"#, "metadata.user_id"),
        (r#"{"background":false,"Background":true}"#, "background"),
    ] {
        let error = look(text).unwrap_err();
        assert_eq!(error.field.as_deref(), Some(field), "{text}");
        assert!(error.message.contains(field), "{text}: {error}");
    }
    let long = format!(r#"{{"model":"{}"}}"#, "m".repeat(513));
    assert_eq!(look(&long).unwrap_err().field.as_deref(), Some("model"));
}

#[test]
fn what_is_no_json_object_is_refused_without_a_field() {
    for text in ["", "[]", "\"a\"", "{", "{\"a\":1}}", "null", &"[".repeat(17)] {
        assert_eq!(look(text).unwrap_err().field, None, "{text}");
    }
    let deep = |n: usize| format!(r#"{{"a":{}{}}}"#, "[".repeat(n), "]".repeat(n));
    assert!(look(&deep(15)).is_ok());
    assert!(look(&deep(16)).unwrap_err().message.contains("nested too deeply"));
}

#[test]
fn unimportant_members_of_odd_types_pass() {
    let text = r#"{"model":"m","stream":null,"max_tokens":null,"metadata":{"user_id":7},"prompt_cache_key":false,"system":{},"stream_options":null}"#;
    let peeked = look(text).unwrap();
    assert_eq!(
        (peeked.stream, peeked.max_tokens, peeked.metadata_user_id, peeked.prompt_cache_key),
        (None, None, None, None)
    );
    assert!(peeked.stream_options.unwrap().is_null);
}

#[test]
fn names_that_clients_choose_may_be_spelt_in_any_way() {
    let peeked = look(r#"{"model":"m","metadata":{"User_ID":"u"}}"#).unwrap();
    assert_eq!(peeked.metadata_user_id.as_deref(), Some("u"));
}

#[test]
fn required_members_are_missed_by_name() {
    let check = |path: &str, text: &str| {
        let route = match_path(&Method::POST, path).unwrap();
        let peeked = look(text).unwrap();
        let format = peeked.format(route.format);
        peeked.check(format, &route).map_err(|e| e.field.unwrap())
    };
    for (path, text, missing) in [
        ("/v1/messages", r#"{"messages":[],"max_tokens":1}"#, Some("model")),
        ("/v1/messages", r#"{"model":"m","max_tokens":1}"#, Some("messages")),
        ("/v1/messages", r#"{"model":"m","messages":[]}"#, Some("max_tokens")),
        ("/v1/messages/count_tokens", r#"{"model":"m","messages":[]}"#, None),
        ("/v1/chat/completions", r#"{"model":"m"}"#, Some("messages")),
        ("/v1/chat/completions", r#"{"model":"m","input":"x"}"#, Some("messages")),
        ("/v1/chat/completions", r#"{"model":"m","input":[]}"#, None),
        ("/v1/responses", r#"{"model":"m"}"#, Some("input")),
        ("/v1/responses", r#"{"model":"m","prompt":{"id":"p"}}"#, None),
        ("/v1/responses", r#"{"model":"m","input":"x","background":true}"#, None),
        ("/v1/responses", r#"{"model":"m","input":"x","background":1,"stream":false}"#, None),
        ("/v1/responses", r#"{"model":"m","input":"x","background":true,"stream":true}"#, None),
        ("/v1/responses", r#"{"model":"m","input":"x","background":false,"stream":true}"#, None),
        ("/v1/responses", r#"{"model":"m","input":"x","background":null,"stream":true}"#, None),
        (
            "/v1/chat/completions",
            r#"{"model":"m","input":[],"background":true,"stream":true}"#,
            None,
        ),
        ("/v1beta/models/m:generateContent", "{}", Some("contents")),
        ("/v1beta/models/m:generateContent", r#"{"contents":[]}"#, None),
        ("/v1internal:generateContent", r#"{"request":{"contents":[]}}"#, Some("model")),
    ] {
        assert_eq!(check(path, text).err().as_deref(), missing, "{path} {text}");
    }
}

#[test]
fn the_hash_stays_through_a_conversation_and_differs_between_conversations() {
    let first = hash(NATIVE).unwrap();
    let later = NATIVE.replace(r#""text":"hi"}"#, r#""text":"hi","cache_control":{"type":"ephemeral"}}"#).replace(
        "}],\n \"metadata\"",
        "},{\"role\":\"assistant\",\"content\":\"hello\"},{\"role\":\"user\",\"content\":\"more\"}],\n \"metadata\"",
    );
    assert_ne!(later, NATIVE);
    assert_eq!(hash(&later), Some(first), "a later turn");
    let as_text = r#"{"messages":[{"content":"hi","role":"user"}],"system":"be brief"}"#;
    assert_eq!(hash(as_text), Some(first), "the same texts in another spelling");
    assert_ne!(hash(&NATIVE.replace("\"hi\"", "\"ho\"")), Some(first));
    assert_ne!(hash(&NATIVE.replace("be brief", "be long")), Some(first));
    assert_ne!(
        hash(r#"{"messages":[{"role":"user","content":"ab"}],"system":"c"}"#),
        hash(r#"{"messages":[{"role":"user","content":"b"}],"system":"ca"}"#)
    );
    for text in [CHAT, RESPONSES, ALT] {
        assert!(hash(text).is_some());
    }
    assert_eq!(hash(r#"{"messages":[]}"#), None);
}

#[test]
fn inline_media_is_distinguished_from_text() {
    let data = "A".repeat(1000);
    for block in [
        format!(r#"{{"type":"image","source":{{"type":"base64","data":"{data}"}}}}"#),
        format!(r#"{{"type":"image_url","image_url":{{"url":"data:image/png;base64,{data}"}}}}"#),
        format!(r#"{{"type":"input_image","image_url":"data:image/png;base64,{data}"}}"#),
        format!(
            r#"{{"type":"tool_result","content":[{{"type":"image","source":{{"data":"{data}"}}}}]}}"#
        ),
    ] {
        let peeked =
            look(&format!(r#"{{"messages":[{{"role":"user","content":[{block}]}}]}}"#)).unwrap();
        assert!(
            peeked.media_count == 1 && peeked.media_len > 1000 && peeked.media_len < 1100,
            "{block}"
        );
    }
}

proptest! {
    #[test]
    fn chunks_make_no_difference(sizes in prop::collection::vec(1usize..90, 1..5), which in 0usize..4, seed in any::<u8>()) {
        let text = [NATIVE, CHAT, RESPONSES, ALT][which];
        let text = text.replace("hi", &"é\\n漢 ".repeat(usize::from(seed)));
        let whole = cut(&text, 1 << 16);
        let mut parts = Vec::new();
        let mut from = 0;
        for size in sizes.iter().cycle() {
            let to = text.len().min(from + size);
            parts.push(Bytes::copy_from_slice(&text.as_bytes()[from..to]));
            from = to;
            if from == text.len() {
                break;
            }
        }
        let limits = PeekLimits { max_depth: 16 };
        let (a, b) = (peek(&whole, limits).unwrap(), peek(&parts, limits).unwrap());
        assert_eq!(a, b);
        assert_eq!(a.first_messages_hash(&whole), b.first_messages_hash(&parts));
    }
}

#[test]
fn large_blocks_of_every_format_are_pieces_and_what_stands_around_them_changes_none() {
    let large = "x".repeat(1500);
    let block = format!(r#"{{"type":"text","text":"{large}"}}"#);
    for (shape, count) in [
        (
            r#"{"model":"m","system":[B,B],"messages":[{"role":"user","content":[B,S,B]},{"role":"user","content":S}],"tools":[B]}"#,
            5,
        ),
        (r#"{"messages":[{"role":"user","content":[B]}],"tools":[B,B],"model":"m"}"#, 3),
        (r#"{"model":"m","input":[{"role":"user","content":[B]},B],"tools":[B]}"#, 3),
        (
            r#"{"request":{"contents":[{"parts":[B,S]},{"parts":[B]}],"tools":[{"functionDeclarations":[B,B]}]}}"#,
            4,
        ),
    ] {
        let with = |small: &str| shape.replace('S', &format!("\"{small}\"")).replace('B', &block);
        let texts = [with("s"), with(&"s".repeat(300))].map(|text| {
            let chunks = cut(&text, 700);
            let pieces = peek(&chunks, PeekLimits { max_depth: 16 }).unwrap().pieces;
            let mut end = 0;
            let mut whole = Vec::new();
            for span in pieces.spans() {
                assert_eq!(span.start, end, "{shape}");
                end = span.end;
                whole.extend(text[span].contains(&large).then_some(()));
            }
            assert_eq!(end, text.len(), "{shape}");
            whole.len()
        });
        assert_eq!(texts, [count, count], "{shape}");
    }
}

#[test]
fn reasoning_with_a_foreign_mark_is_seen_where_each_format_has_it() {
    let bodies = [
        r#"{"model":"m","messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"PROOF"}]}]}"#,
        r#"{"model":"m","input":[{"type":"reasoning","encrypted_content":"PROOF"}]}"#,
        r#"{"contents":[{"role":"model","parts":[{"text":"x","thoughtSignature":"PROOF"}]}]}"#,
        r#"{"model":"m","request":{"contents":[{"parts":[{"thought_signature":"PROOF"}]}]}}"#,
    ];
    for body in bodies {
        for (proof, foreign) in [
            ("tg1.n.abcdefgh", true),
            ("dGcxLm4uYWJj", true),
            ("tg1", false),
            ("EqQBCgIYAhIM", false),
            ("", false),
        ] {
            let body = body.replace("PROOF", proof);
            for size in [1, 3, 1 << 16] {
                let found = peek(&cut(&body, size), PeekLimits { max_depth: 16 }).unwrap();
                assert_eq!(found.has_foreign_proof, foreign, "{proof} in {body}");
            }
        }
    }
}

/// Whatever the table of features says of bodies is found in them.
#[test]
fn every_row_of_the_features_is_found() {
    let found = |body: String| {
        look(&body).unwrap().features.iter().map(|one| one.feature).collect::<Vec<_>>()
    };
    for row in &FEATURES {
        for kind in row.types {
            let kind = kind.trim_end_matches('*');
            assert_eq!(
                found(format!(r#"{{"tools":[{{"type":"{kind}"}}]}}"#)),
                [row.feature],
                "{kind}"
            );
        }
        for member in row.tool_members.iter().filter(|name| !name.contains(['.', ':'])) {
            assert_eq!(
                found(format!(r#"{{"tools":[{{"{member}":{{}}}}]}}"#)),
                [row.feature],
                "{member}"
            );
        }
        for member in row.members.iter().filter(|name| !name.contains('[')) {
            assert_eq!(found(format!(r#"{{"{member}":"x"}}"#)), [row.feature], "{member}");
            let shouted = format!(r#"{{"{}":["x"]}}"#, member.to_uppercase());
            match look(&shouted) {
                Ok(_) => assert_eq!(found(shouted), [row.feature], "{member}"),
                // A member that the gateway itself reads.
                Err(refused) => assert!(refused.message.contains("letter case"), "{member}"),
            }
        }
    }
}
