//! Golden cases × pairs, as one table.
//!
//! `tests/golden/<case>/<kind>.<format>.<ending>` is what a client or a provider of that format
//! sends; kinds are `request`, `reply` and `stream`. Each is converted to the three other formats
//! and compared with `expected/<kind>.<from>.to.<to>.<ending>` beside it. `UPDATE=1` writes those
//! files again: read the difference. The output must also meet the target's rules, whatever the
//! file contains (see `checks`).

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde_json::{Value, json};
use tollgate::domain::format::WireFormat;
use tollgate::formats::convert::{
    self, ReplyContext, RequestOptions, StreamConverter, StreamProblem,
};
use tollgate::formats::error::ErrorReply;
use tollgate::formats::names::NameMap;

use super::{checks, checks_stream, converted_reply};

/// One file of a case.
pub struct Source {
    pub case: String,
    pub dir: PathBuf,
    pub kind: String,
    pub format: WireFormat,
    pub bytes: Vec<u8>,
}

/// Every source of every case, in order; read once.
pub fn sources() -> &'static [Source] {
    static ALL: LazyLock<Vec<Source>> = LazyLock::new(read_sources);
    &ALL
}

fn read_sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut all = Vec::new();
    let mut dirs: Vec<PathBuf> =
        fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    dirs.sort();
    for dir in dirs {
        let case = dir.file_name().unwrap().to_string_lossy().into_owned();
        let mut files: Vec<PathBuf> =
            fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        for file in files.into_iter().filter(|file| file.is_file()) {
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            let [kind, format, _ending] = name.split('.').collect::<Vec<_>>()[..] else {
                panic!("{name}")
            };
            let format = WireFormat::parse(format).unwrap_or_else(|| panic!("{name}"));
            let bytes = fs::read(&file).unwrap();
            all.push(Source {
                case: case.clone(),
                dir: dir.clone(),
                kind: kind.to_owned(),
                format,
                bytes,
            });
        }
    }
    all
}

/// Pairs of a source's format with the others.
pub fn targets(format: WireFormat) -> impl Iterator<Item = WireFormat> {
    WireFormat::ALL.into_iter().filter(move |to| *to != format)
}

/// The model name of conversions: one that gets every field.
pub fn upstream_model(to: WireFormat) -> &'static str {
    match to {
        WireFormat::AltCli => "gemini-3-pro",
        _ => "upstream-1",
    }
}

/// The context of a reply to a client of format `client`: from the case's request in that format,
/// if it has one.
pub fn reply_context(dir: &Path, client: WireFormat, provider: WireFormat) -> ReplyContext {
    let request = fs::read(dir.join(format!("request.{client}.json"))).ok().and_then(|body| {
        convert::request(client, provider, &body, &RequestOptions::new("upstream-1", true)).ok()
    });
    let plain = ReplyContext {
        names: NameMap::default(),
        model: "m-1".to_owned(),
        seed: String::new(),
        created: 0,
        include_usage: true,
        wrapped: false,
        json_array: false,
        hide_thinking: false,
        estimated_input: 0,
        parallel_tools: true,
    };
    let known = request.map_or(plain, |request| request.reply);
    ReplyContext { seed: "0a1b".to_owned(), created: 1_700_000_000, ..known }
}

/// A complete stream, converted in one piece; a problem becomes the client's error event.
pub fn convert_stream(
    from: WireFormat,
    to: WireFormat,
    bytes: &[u8],
    context: ReplyContext,
) -> Vec<u8> {
    let mut out = Vec::new();
    let mut converter = StreamConverter::new(from, to, context);
    let result = converter.feed(bytes, &mut out).and_then(|()| converter.finish(&mut out));
    if let Err(problem) = result {
        fail(&mut converter, &problem, &mut out);
    }
    out
}

/// Sends a problem to the client, as the proxy does.
pub fn fail(converter: &mut StreamConverter, problem: &StreamProblem, out: &mut Vec<u8>) {
    let message = problem.to_string();
    converter.fail(
        &ErrorReply { status: 502, kind: "api_error", message: &message, code: None, extra: &[] },
        out,
    );
}

fn convert_request(source: &Source, to: WireFormat) -> Vec<u8> {
    let stream = source.bytes.windows(14).any(|text| text == b"\"stream\": true");
    let options = RequestOptions {
        cache_key: Some("session-1"),
        ..RequestOptions::new(upstream_model(to), stream)
    };
    let value = match convert::request(source.format, to, &source.bytes, &options) {
        Err(problem) => json!({"refused": {"field": problem.field, "message": problem.message}}),
        Ok(converted) => {
            let body: Value = serde_json::from_slice(&converted.body).unwrap();
            checks::request(to, &body)
                .unwrap_or_else(|fault| panic!("{} to {to}: {fault}\n{body:#}", source.case));
            json!({"body": body, "left_out": converted.dropped, "changed": converted.changed})
        }
    };
    pretty(&value)
}

fn convert_reply(source: &Source, to: WireFormat) -> Vec<u8> {
    let context = reply_context(&source.dir, to, source.format);
    let reply = converted_reply(source.format, to, &source.bytes, &context).unwrap();
    let value: Value = serde_json::from_slice(&reply).unwrap();
    checks::reply(to, &value)
        .unwrap_or_else(|fault| panic!("{} to {to}: {fault}\n{value:#}", source.case));
    pretty(&value)
}

fn pretty(value: &Value) -> Vec<u8> {
    let mut text = serde_json::to_string_pretty(value).unwrap();
    text.push('\n');
    text.into_bytes()
}

#[expect(
    clippy::disallowed_methods,
    reason = "a switch for whoever runs the tests, not a setting of the program"
)]
pub fn updates() -> bool {
    std::env::var("UPDATE").is_ok_and(|value| value == "1")
}

#[test]
fn every_case_converts_as_recorded() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for source in sources() {
        for to in targets(source.format) {
            let (ending, made) = match source.kind.as_str() {
                "request" => ("json", convert_request(source, to)),
                "reply" => ("json", convert_reply(source, to)),
                "stream" => {
                    let context = reply_context(&source.dir, to, source.format);
                    let out = convert_stream(source.format, to, &source.bytes, context);
                    checks_stream::stream(to, &out, source.case != "stream_error").unwrap_or_else(
                        |fault| panic!("{} {} to {to}: {fault}", source.case, source.format),
                    );
                    ("sse", out)
                }
                other => panic!("{}: what is a {other}?", source.case),
            };
            let name = format!("{}.{}.to.{to}.{ending}", source.kind, source.format);
            let path = source.dir.join("expected").join(&name);
            count += 1;
            if updates() {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(&path, &made).unwrap();
            } else if fs::read(&path).unwrap_or_default() != made {
                wrong.push(format!("{}/{name}:\n{}", source.case, String::from_utf8_lossy(&made)));
            }
        }
    }
    assert!(count >= 300, "only {count} conversions: were the cases found?");
    assert!(
        wrong.is_empty(),
        "{} of {count} differ (UPDATE=1 rewrites):\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn every_expected_file_has_its_source() {
    let names: Vec<String> = sources()
        .iter()
        .flat_map(|source| {
            let ending = if source.kind == "stream" { "sse" } else { "json" };
            let name =
                |to| format!("{}/{}.{}.to.{to}.{ending}", source.case, source.kind, source.format);
            targets(source.format).map(name).collect::<Vec<_>>()
        })
        .collect();
    for source in sources() {
        for entry in fs::read_dir(source.dir.join("expected")).unwrap() {
            let file = entry.unwrap().file_name().to_string_lossy().into_owned();
            let name = format!("{}/{file}", source.case);
            assert!(names.contains(&name), "{name} is left over");
        }
    }
}
