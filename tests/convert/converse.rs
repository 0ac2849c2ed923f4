//! `Converse` against recorded texts: `tests/golden/<case>/request.<format>.json` becomes
//! `converse/<model>.request.<format>.json` beside it; `tests/golden_converse/reply.<case>.json` and
//! `stream.<case>.jsonl` (one event in each line) become `expected/…`. `UPDATE=1` writes them again.
//! tests/sdk/test_converse.py judges the requests.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use tollgate::domain::format::WireFormat;
use tollgate::formats::conversation::Unsupported;
use tollgate::formats::convert::{self, ConvertedRequest, RequestOptions};
use tollgate::formats::event_stream::{EventStreamDecoder, converse_event};
use tollgate::formats::native::converse::{ConverseOptions, reply};
use tollgate::formats::usage::UsageReader;

use super::golden::updates;

const NOVA: &str = "us.amazon.nova-pro-v1:0";
const CLAUDE: &str = "anthropic.claude-sonnet-4-20250514-v1:0";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

fn compare(path: &Path, made: &str) {
    if updates() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, made).unwrap();
    }
    let recorded = fs::read_to_string(path).unwrap_or_default();
    assert_eq!(made, recorded, "{}: run with UPDATE=1 and read the difference", path.display());
}

fn files(dir: &Path, kind: &str) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> =
        fs::read_dir(dir).unwrap().map(|file| file.unwrap().path()).collect();
    all.retain(|path| {
        path.is_file() && path.file_name().unwrap().to_str().unwrap().starts_with(kind)
    });
    all.sort();
    all
}

fn converted(
    from: WireFormat,
    body: &str,
    model: &str,
    converse: ConverseOptions<'_>,
) -> Result<ConvertedRequest, Unsupported> {
    let options = RequestOptions { converse: Some(converse), ..RequestOptions::new(model, false) };
    convert::request(from, WireFormat::Native, body.as_bytes(), &options)
}

fn made(body: &str, model: &str) -> (Value, ConvertedRequest) {
    let request = converted(WireFormat::Native, body, model, ConverseOptions::default()).unwrap();
    (serde_json::from_slice(&request.body).unwrap(), request)
}

#[test]
fn requests_of_every_format_are_written_as_recorded() {
    let mut count = 0;
    let mut dirs: Vec<PathBuf> =
        fs::read_dir(root().join("golden")).unwrap().map(|dir| dir.unwrap().path()).collect();
    dirs.sort();
    for dir in dirs {
        for file in files(&dir, "request.") {
            let name = file.file_name().unwrap().to_str().unwrap().to_owned();
            let from = WireFormat::parse(name.split('.').nth(1).unwrap()).unwrap();
            let body = fs::read_to_string(&file).unwrap();
            for (model, short) in [(NOVA, "nova"), (CLAUDE, "claude")] {
                let text = match converted(from, &body, model, ConverseOptions::default()) {
                    Ok(request) => {
                        let body: Value = serde_json::from_slice(&request.body).unwrap();
                        let rules = [request.dropped, request.changed].concat();
                        let note = serde_json::json!({"rules": rules, "body": body});
                        serde_json::to_string_pretty(&note).unwrap()
                    }
                    Err(refused) => format!("refused: {refused}"),
                };
                compare(&dir.join(format!("converse/{short}.{name}")), &(text + "\n"));
                count += 1;
            }
        }
    }
    assert!(count > 100, "{count}");
}

#[test]
fn replies_become_native_ones() {
    let dir = root().join("golden_converse");
    for file in files(&dir, "reply.") {
        let native = reply::native(&fs::read(&file).unwrap()).unwrap();
        let text = String::from_utf8(native).unwrap() + "\n";
        compare(&dir.join("expected").join(file.file_name().unwrap()), &text);
    }
    for bad in ["{}", "[]", "x", r#"{"output":{}}"#, r#"{"output":{"message":{"content":[1]}}}"#] {
        assert!(reply::native(bad.as_bytes()).is_err(), "{bad}");
    }
}

fn frames(file: &Path) -> Vec<u8> {
    let text = fs::read_to_string(file).unwrap();
    let framed = text.lines().flat_map(|line| {
        let (name, payload) = line.split_once(' ').unwrap();
        converse_event(name, payload)
    });
    framed.collect()
}

#[test]
fn streams_become_native_ones_however_they_are_cut() {
    let dir = root().join("golden_converse");
    for file in files(&dir, "stream.") {
        let bytes = frames(&file);
        for size in [bytes.len(), 1, 17] {
            let mut decoder = EventStreamDecoder::of_converse();
            let pieces = bytes.chunks(size).map(|piece| decoder.push(piece).unwrap());
            let native = String::from_utf8(pieces.collect::<Vec<_>>().concat()).unwrap();
            let name = file.file_stem().unwrap().to_str().unwrap();
            compare(&dir.join(format!("expected/{name}.sse")), &native);
        }
    }
}

#[test]
fn the_figures_are_billed_as_they_are() {
    let dir = root().join("golden_converse");
    let body = reply::native(&fs::read(dir.join("reply.cached.json")).unwrap()).unwrap();
    let mut decoder = EventStreamDecoder::of_converse();
    let stream = decoder.push(&frames(&dir.join("stream.cached.jsonl"))).unwrap();
    for (bytes, streamed) in [(body, false), (stream, true)] {
        let mut reader = UsageReader::new(WireFormat::Native, streamed);
        reader.feed(&bytes);
        reader.finish();
        let usage = reader.usage().unwrap();
        let cached = (usage.cache_read, usage.cache_write_5m, usage.cache_write_1h);
        assert_eq!((usage.input, usage.output, cached), (9, 234, (1000, 404, 1000)), "{streamed}");
        assert!(reader.seen_end());
    }
}

const CACHED: &str = r#"{"model":"m","max_tokens":9,
    "system":[{"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":"1h"}},{"type":"text","text":"b"}],
    "tools":[{"name":"f","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}],
    "messages":[{"role":"user","content":[{"type":"text","text":"long","cache_control":{"type":"ephemeral"}},
        {"type":"text","text":"short"}]}]}"#;

#[test]
fn marks_of_the_prompt_cache_are_cache_points_where_the_model_takes_them() {
    let point = serde_json::json!({"cachePoint": {"type": "default"}});
    let hour = serde_json::json!({"cachePoint": {"type": "default", "ttl": "1h"}});
    for (model, in_tools, dropped) in [(CLAUDE, true, false), (NOVA, false, true)] {
        let (body, request) = made(CACHED, model);
        let first = if model == CLAUDE { &hour } else { &point };
        assert_eq!(body["system"][1], *first, "{body}");
        assert_eq!(body["system"].as_array().unwrap().len(), 3);
        let content = &body["messages"][0]["content"];
        assert_eq!(content[1], point, "{body}");
        assert_eq!(content[2]["text"], "short");
        assert_eq!(body["toolConfig"]["tools"][1] == point, in_tools, "{body}");
        assert_eq!(request.dropped.contains(&"cache_marks"), dropped, "{model}");
    }
    let (body, request) = made(CACHED, "meta.llama3-8b-instruct-v1:0");
    assert!(!body.to_string().contains("cachePoint"), "{body}");
    assert!(request.dropped.contains(&"cache_marks"));
    // Asked for by the operator: at the end of each part, if the client marked nothing.
    let plain =
        r#"{"model":"m","max_tokens":9,"system":"s","messages":[{"role":"user","content":"q"}]}"#;
    for (text, points) in [(plain, 2), (CACHED, 3)] {
        let options = RequestOptions {
            converse: Some(ConverseOptions::default()),
            cache_ttl: tollgate::domain::key::CacheTtl::OneHour,
            ..RequestOptions::new(CLAUDE, false)
        };
        let native = WireFormat::Native;
        let body = convert::request(native, native, text.as_bytes(), &options).unwrap().body;
        let body = String::from_utf8(body).unwrap();
        assert_eq!(body.matches("cachePoint").count(), points, "{body}");
        assert_eq!(body.matches("\"1h\"").count(), points, "{body}");
    }
}

#[test]
fn what_a_model_would_refuse_is_not_sent() {
    let text = r#"{"model":"m","max_tokens":9,"temperature":1.5,"top_k":5,
        "tools":[{"name":"f","input_schema":{"type":"object","additionalProperties":false,"properties":{}}}],
        "tool_choice":{"type":"any"},
        "messages":[{"role":"user","content":"q"},{"role":"assistant","content":[
            {"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":"half "}]}]}"#;
    let (body, request) = made(text, "meta.llama3-8b-instruct-v1:0");
    assert_eq!(body["inferenceConfig"], serde_json::json!({"maxTokens": 9, "temperature": 1}));
    assert!(
        body["toolConfig"]["toolChoice"].is_null()
            && body["additionalModelRequestFields"].is_null()
    );
    assert_eq!(body["messages"][2]["content"][0]["text"], "(continue)");
    assert!(!body.to_string().contains("reasoningContent"));
    assert_eq!(request.dropped, ["top_k", "foreign_reasoning"]);
    assert_eq!(request.changed, ["forced_tool", "high_temperature", "last_turn"]);
    let (body, _) = made(text, NOVA);
    assert_eq!(body["toolConfig"]["toolChoice"], serde_json::json!({"any": {}}));
    let schema = &body["toolConfig"]["tools"][0]["toolSpec"]["inputSchema"]["json"];
    assert_eq!(*schema, serde_json::json!({"type": "object", "properties": {}}));
    assert_eq!(body["additionalModelRequestFields"]["inferenceConfig"]["topK"], 5);
    assert_eq!(body["messages"].as_array().unwrap().len(), 2);
    let (body, _) = made(text, CLAUDE);
    let reasoning = &body["messages"][1]["content"][0]["reasoningContent"]["reasoningText"];
    assert_eq!(*reasoning, serde_json::json!({"text": "t", "signature": "s"}));
    assert_eq!(body["additionalModelRequestFields"]["top_k"], 5);
    let without = ConverseOptions { without_reasoning: true, ..ConverseOptions::default() };
    let body = converted(WireFormat::Native, text, CLAUDE, without).unwrap().body;
    assert!(!String::from_utf8(body).unwrap().contains("reasoningContent"));
}

#[test]
fn attachments_without_bytes_or_of_other_types_are_refused_by_rule() {
    for (source, rule) in [
        (r#"{"type":"url","url":"https://x.test/a.png"}"#, "by address"),
        (r#"{"type":"base64","media_type":"image/tiff","data":"AAAA"}"#, "does not know"),
        (r#"{"type":"base64","media_type":"image/png","data":"A*AA"}"#, "not Base64"),
    ] {
        for around in [
            r#"{"type":"image","source":SOURCE}"#,
            r#"{"type":"tool_result","tool_use_id":"1","content":[{"type":"image","source":SOURCE}]}"#,
        ] {
            let block = around.replace("SOURCE", source);
            let text = format!(
                r#"{{"model":"m","max_tokens":9,"messages":[{{"role":"user","content":[{block}]}}]}}"#
            );
            let refused = converted(WireFormat::Native, &text, NOVA, ConverseOptions::default());
            let refused = refused.unwrap_err();
            assert!(refused.message.contains(rule), "{source}: {refused}");
        }
    }
}

#[test]
fn calls_in_the_history_need_a_list_of_tools() {
    let text = r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"q"},
        {"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"1","is_error":true}]}]}"#;
    let (body, request) = made(text, NOVA);
    let tools = body["toolConfig"]["tools"].as_array().unwrap();
    assert_eq!((tools.len(), &tools[0]["toolSpec"]["name"]), (1, &Value::from("f")));
    assert_eq!(request.changed, ["called_tools"]);
    let result = &body["messages"][2]["content"][0]["toolResult"];
    assert_eq!(
        *result,
        serde_json::json!({"toolUseId": "1", "content": [{"text": "(no output)"}], "status": "error"})
    );
    let (body, _) = made(text, "mistral.mistral-large-2407-v1:0");
    let result = &body["messages"][2]["content"][0]["toolResult"];
    assert_eq!(*result, serde_json::json!({"toolUseId": "1", "content": [{"text": "Error:"}]}));
}

#[test]
fn a_token_count_has_the_request_without_what_only_generation_needs() {
    let counts = ConverseOptions { counts: true, ..ConverseOptions::default() };
    let body = converted(WireFormat::Native, CACHED, CLAUDE, counts).unwrap().body;
    let body: Value = serde_json::from_slice(&body).unwrap();
    let inner = body["input"]["converse"].as_object().unwrap();
    assert_eq!(inner.keys().collect::<Vec<_>>(), ["messages", "system", "toolConfig"]);
}
