//! Which strings are texts and which are not, form by form.

use bytes::Bytes;

use crate::formats::texts;

fn texts_of(body: &str, cut: usize) -> Vec<String> {
    let chunks: Vec<Bytes> = body.as_bytes().chunks(cut).map(Bytes::copy_from_slice).collect();
    let mut found = Vec::new();
    texts::each(&chunks, 64, std::slice::from_ref(&(0..body.len())), |_, text| {
        found.push(text.to_owned())
    })
    .unwrap();
    found
}

/// Bodies in which every text is `yes…`, and no other string or name is.
const BODIES: &[(usize, &str)] = &[
    (
        17,
        r#"{"model":"no","max_tokens":1,"context_management":{"edits":[{"type":"no","instructions":"yes13"}]},"metadata":{"user_id":"no"},"stop_sequences":["no"],
        "system":[{"type":"text","text":"yes1","cache_control":{"type":"no"}}],
        "messages":[{"role":"user","content":"yes2"},{"role":"assistant","content":[
            {"type":"thinking","thinking":"yes3","signature":"no"},{"type":"redacted_thinking","data":"no"},
            {"type":"tool_use","id":"no","name":"no","input":{"yes14":"yes4","yes15":[{"yes16":"yes5"}]}}]},
        {"role":"user","content":[
            {"type":"tool_result","tool_use_id":"no","content":[{"type":"text","text":"yes6"}]},
            {"type":"image","source":{"type":"base64","media_type":"no","data":"no"}},
            {"type":"document","title":"yes7","source":{"data":"yes8","type":"text","media_type":"no"}},
            {"type":"document","source":{"type":"content","content":[{"type":"image","source":{"type":"text","data":"yes9"}}],"data":"no"}},
            {"type":"not_known_yet","words":["yes10"]}]}],
        "tools":[{"name":"no","description":"yes11","input_schema":{"type":"no","properties":{"yes-description":{"type":"no","description":"yes12"}}}}]}"#,
    ),
    (
        10,
        r#"{"model":"no","user":"no","messages":[{"role":"developer","content":"yes1","name":"no"},
        {"role":"user","content":[{"type":"text","text":"yes2"},{"type":"image_url","image_url":{"url":"no","detail":"no"}},
            {"type":"input_audio","input_audio":{"data":"no","format":"no"}},{"type":"file","file":{"file_data":"no"}}]},
        {"role":"assistant","content":null,"refusal":"yes3","reasoning_content":"yes4","tool_calls":[
            {"id":"no","type":"no","function":{"name":"no","arguments":"{\"yes5\":1}"}},
            {"id":"no","type":"custom","custom":{"name":"no","input":"yes6"}}]},
        {"role":"tool","tool_call_id":"no","content":"yes7"}],
        "tools":[{"type":"function","function":{"name":"no","description":"yes8","parameters":{"enum":["yes9"],"type":"no"}}}],
        "response_format":{"type":"no","json_schema":{"name":"no","schema":{"items":{"title":"yes10"}}}}}"#,
    ),
    (
        10,
        r#"{"model":"no","instructions":"yes1","prompt_cache_key":"no","include":["no"],
        "input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"yes2"},
            {"type":"input_image","image_url":"no"},{"type":"input_file","file_data":"no","filename":"yes3"}]},
        {"type":"reasoning","id":"no","summary":[{"type":"summary_text","text":"yes4"}],"encrypted_content":"no"},
        {"type":"function_call","call_id":"no","name":"no","arguments":"yes5"},
        {"type":"function_call_output","call_id":"no","output":[{"type":"input_text","text":"yes6"}]},
        {"type":"custom_tool_call_output","call_id":"no","output":"yes7"}],
        "prompt":{"id":"no","variables":{"id":"yes8"}},
        "tools":[{"type":"namespace","name":"no","tools":[{"type":"custom","description":"yes9","format":{"type":"no","definition":"yes10"}}]}]}"#,
    ),
    (
        15,
        r#"{"model":"no","project":"no","request":{"session_id":"no","systemInstruction":{"role":"no","parts":[{"text":"yes1"}]},
        "contents":[{"role":"user","parts":[{"text":"yes2"},{"inlineData":{"mimeType":"no","data":"no"}},
            {"functionResponse":{"id":"no","name":"no","response":{"yes-a":"yes3","yes-b":"yes4"}}}]},
        {"role":"model","parts":[{"functionCall":{"id":"no","name":"no","args":{"yes-c":"yes5"}},"thoughtSignature":"no"},
            {"executableCode":{"code":"yes6"}}]}],
        "tools":[{"functionDeclarations":[{"name":"no","description":"yes7","parametersJsonSchema":{"default":"yes8"}}]}],
        "generationConfig":{"stopSequences":["no"],"responseMimeType":"no",
            "_responseJsonSchema":{"title":"yes9","properties":{"yes-d":{"title":"yes10"}}},"response_schema":{"title":"yes11"}}}}"#,
    ),
];

#[test]
fn texts_are_found_in_every_format_and_nothing_else_is() {
    for (count, body) in BODIES {
        for cut in [1, 7, body.len()] {
            let mut found = texts_of(body, cut);
            assert!(found.iter().all(|text| text.contains("yes")), "{found:?}");
            found.sort();
            found.dedup();
            assert_eq!(found.len(), *count, "{found:?}");
        }
    }
}

#[test]
fn texts_come_as_they_are_meant() {
    let body = r#"{"messages":[{"content":"caf\u00e9\nnoir \ud83d\ude00 \"q\""},
        {"function_call":{"arguments":"{\"a\":\"caf\\u00e9\"}"}}]}"#;
    let found = texts_of(body, 5);
    assert_eq!(found, ["café\nnoir 😀 \"q\"", r#"{"a":"caf\u00e9"}"#, r#"{"a":"café"}"#]);
}

#[test]
fn only_texts_that_touch_the_ranges_are_taken_out() {
    let body = r#"{"messages":[{"content":"one"},{"content":"tw\u006f"},{"content":"three"},{"content":"four"}]}"#;
    let at = |text: &str| body.find(text).unwrap();
    for (ranges, texts) in [
        (vec![], vec![]),
        (vec![at("one") + 1..at("one") + 2, at("three")..at("three") + 1], vec!["one", "three"]),
        (vec![0..at("tw") + 1, at("one")..at("tw") + 2], vec!["one", "two"]),
        (vec![at("four") - 1..at("four"), body.len() - 2..body.len()], vec!["four"]),
        (vec![0..at("one") - 1, at("four") + 5..body.len()], vec![]),
    ] {
        let mut found = Vec::new();
        let whole = [Bytes::from_static(body.as_bytes())];
        texts::each(&whole, 64, &ranges, |span, text| {
            assert_eq!((body.as_bytes()[span.start], body.as_bytes()[span.end - 1]), (b'"', b'"'));
            found.push(text.to_owned());
        })
        .unwrap();
        assert_eq!(found, texts, "{ranges:?}");
    }
}

#[test]
fn every_string_of_a_piece_is_reported_as_a_text() {
    let piece = r#","na\u006de":"one \"two\"","json":"{\"a\":\"b\\nc\"}",5,["","three"]}],"#;
    let from = 1000;
    let reported = |ranges: &[std::ops::Range<usize>]| {
        let mut found = Vec::new();
        texts::every_string(piece.as_bytes(), from, ranges, |span, text| {
            let raw = &piece[span.start - from..span.end - from];
            assert!(raw.starts_with('"') && raw.ends_with('"'), "{raw}");
            found.push(text.to_owned());
        });
        found
    };
    let all = ["name", "one \"two\"", "json", r#"{"a":"b\nc"}"#, "{\"a\":\"b\nc\"}", "", "three"];
    assert_eq!(reported(std::slice::from_ref(&(0..2000))), all);
    let three = from + piece.find("three").unwrap();
    assert_eq!(reported(&[0..from + 2, three..three + 1]), ["name", "three"]);
    assert!(reported(&[]).is_empty());
}
