//! A converted request as its target service reads it: taken or refused by the strict mock, and
//! which result it finds for each call.

use serde_json::Value;
use tollgate::domain::format::WireFormat::{self, AltCli, Chat, Native, Responses};
use tollgate::formats::convert::{self, RequestOptions};
use tower::ServiceExt as _;

use super::checks;
use super::golden::upstream_model;
use super::services::ask;

/// The converted request, which the strict mock of its service has taken.
pub fn taken(from: WireFormat, to: WireFormat, body: &Value) -> Value {
    let options = RequestOptions::new(upstream_model(to), false);
    let done = convert::request(from, to, body.to_string().as_bytes(), &options)
        .unwrap_or_else(|fault| panic!("{from} to {to}: {fault}\n{body:#}"));
    let sent: Value = serde_json::from_slice(&done.body).unwrap();
    if let Err(fault) = checks::request(to, &sent) {
        panic!("{from} to {to}: {fault}\n{body:#}\n{sent:#}");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (status, answer) = runtime.block_on(async {
        let mock = tollgate_mock::router();
        let reply = mock.oneshot(ask(to, false, done.body)).await.unwrap();
        let status = reply.status();
        (status, axum::body::to_bytes(reply.into_body(), 1 << 24).await.unwrap())
    });
    let answer = String::from_utf8_lossy(&answer);
    assert!(status.is_success(), "{from} to {to}: {answer}\n{body:#}\n{sent:#}");
    sent
}

/// The calls of a request with their results, in order.
pub struct Pairs(Vec<(Value, String)>);

impl Pairs {
    pub fn of(format: WireFormat, body: &Value) -> Self {
        let (calls, results) = match format {
            Native => (
                blocks(&body["messages"], "content", "type", "tool_use", ["id", "input"]),
                blocks(
                    &body["messages"],
                    "content",
                    "type",
                    "tool_result",
                    ["tool_use_id", "content"],
                ),
            ),
            Chat => chat(&body["messages"]),
            Responses => (
                items(&body["input"], "type", "function_call", ["call_id", "arguments"]),
                items(&body["input"], "type", "function_call_output", ["call_id", "output"]),
            ),
            AltCli => (
                parts(&body["contents"], "functionCall", "args"),
                parts(&body["contents"], "functionResponse", "response"),
            ),
        };
        let mut results = results;
        let pairs = calls.into_iter().map(|(id, arguments)| {
            let at = results.iter().position(|(other, _)| *other == id);
            let (_, result) = results.remove(at.unwrap_or_else(|| panic!("no result for {id}")));
            let result = result["output"].as_str().or(result.as_str()).unwrap_or_default();
            (parsed(arguments), result.to_owned())
        });
        let all = pairs.collect();
        assert!(results.is_empty(), "results without calls: {results:?}");
        Self(all)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn all(&self) -> impl Iterator<Item = (&Value, &str)> {
        self.0.iter().map(|(arguments, result)| (arguments, &**result))
    }
}

fn parsed(arguments: Value) -> Value {
    match arguments.as_str() {
        Some(text) => serde_json::from_str(text).unwrap(),
        None => arguments,
    }
}

type Found = Vec<(String, Value)>;

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn items(all: &Value, key: &str, kind: &str, [id, content]: [&str; 2]) -> Found {
    list(all)
        .filter(|item| item[key] == kind)
        .map(|item| (item[id].as_str().unwrap().to_owned(), item[content].clone()))
        .collect()
}

fn blocks(messages: &Value, inside: &str, key: &str, kind: &str, fields: [&str; 2]) -> Found {
    list(messages).flat_map(|message| items(&message[inside], key, kind, fields)).collect()
}

/// Ids may repeat from turn to turn here: each gets the number of its turn.
fn chat(messages: &Value) -> (Found, Found) {
    let (mut calls, mut results, mut turn) = (Vec::new(), Vec::new(), 0);
    for message in list(messages) {
        if message["tool_calls"].is_array() {
            turn += 1;
        }
        for call in list(&message["tool_calls"]) {
            let id = format!("{turn} {}", call["id"].as_str().unwrap());
            calls.push((id, call["function"]["arguments"].clone()));
        }
        if message["role"] == "tool" {
            let id = format!("{turn} {}", message["tool_call_id"].as_str().unwrap());
            results.push((id, message["content"].clone()));
        }
    }
    (calls, results)
}

fn parts(contents: &Value, kind: &str, content: &str) -> Found {
    list(contents)
        .flat_map(|message| list(&message["parts"]))
        .filter(|part| part[kind].is_object())
        .map(|part| (part[kind]["id"].as_str().unwrap().to_owned(), part[kind][content].clone()))
        .collect()
}
