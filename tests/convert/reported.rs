//! Inputs that users of such gateways reported, each with the request or reply that is right. The
//! strict mock takes every request.

use serde_json::{Value, json};
use tollgate::domain::format::WireFormat::{self, AltCli, Chat, Native, Responses};
use tollgate::formats::conversation::ReplyPart;
use tollgate::formats::convert::{self, ReplyContext, RequestOptions, StreamConverter};

use super::converted_reply;
use super::golden::targets;
use super::strict::{Pairs, taken};

fn roles(body: &Value) -> Vec<String> {
    let message = |message: &Value| {
        let calls = message["tool_calls"].as_array().map_or(0, Vec::len);
        let role = message["role"].as_str().unwrap();
        if calls > 0 { format!("{role} {calls}") } else { role.to_owned() }
    };
    body["messages"].as_array().unwrap().iter().map(message).collect()
}

/// The arguments' `n` of each call is its result.
fn assert_paired(to: WireFormat, body: &Value, calls: usize) {
    let pairs = Pairs::of(to, body);
    assert_eq!(pairs.len(), calls, "{to}: {body}");
    for (arguments, result) in pairs.all() {
        assert_eq!(arguments["n"].to_string(), result, "{to}: {body}");
    }
}

fn call(n: u8, id: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "f", "arguments": json!({"n": n}).to_string()})
}

fn output(n: u8, id: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": n.to_string()})
}

fn said(role: &str, text: &str) -> Value {
    json!({"type": "message", "role": role, "content": text})
}

/// The SDK keeps every chunk of a stream as a content of its own.
#[test]
fn parallel_calls_in_a_content_each_become_one_message() {
    let f = |n: u8| json!({"role": "model", "parts": [{"functionCall": {"name": format!("f{n}"), "args": {"n": n}}}]});
    let r = |n: u8| json!({"functionResponse": {"name": format!("f{n}"), "response": {"output": n.to_string()}}});
    let body = json!({"contents": [{"role": "user", "parts": [{"text": "x"}]},
        {"role": "model", "parts": [{"text": "I will "}]}, {"role": "model", "parts": [{"text": "look"}]},
        f(1), f(2), {"role": "user", "parts": [r(1), r(2)]}]});
    for to in targets(AltCli) {
        let sent = taken(AltCli, to, &body);
        assert_paired(to, &sent, 2);
        if to == Chat {
            assert_eq!(roles(&sent), ["user", "assistant 2", "tool", "tool"]);
            assert_eq!(sent["messages"][1]["content"], "I will look");
        }
    }
}

#[test]
fn messages_between_calls_and_outputs_come_after_the_outputs() {
    let cases: [(Vec<Value>, &[&str]); 5] = [
        (
            vec![call(1, "c1"), said("user", "wait"), output(1, "c1"), said("user", "on")],
            &["user", "assistant 1", "tool", "user", "user"],
        ),
        (
            vec![
                call(1, "c1"),
                call(2, "c2"),
                output(1, "c1"),
                said("user", "note"),
                output(2, "c2"),
            ],
            &["user", "assistant 2", "tool", "tool", "user"],
        ),
        (
            vec![
                call(1, "c1"),
                call(2, "c2"),
                output(1, "c1"),
                said("assistant", "then"),
                output(2, "c2"),
            ],
            &["user", "assistant 2", "tool", "tool", "assistant"],
        ),
        (
            vec![call(1, "c1"), said("developer", "d"), said("user", "u"), output(1, "c1")],
            &["user", "assistant 1", "tool", "system", "user"],
        ),
        (
            vec![
                call(1, "c1"),
                call(2, "c2"),
                output(2, "c2"),
                call(3, "c3"),
                output(3, "c3"),
                output(1, "c1"),
            ],
            &["user", "assistant 2", "tool", "tool", "assistant 1", "tool"],
        ),
    ];
    for (mut items, expected) in cases {
        items.insert(0, said("user", "go"));
        let body = json!({"model": "m", "input": items});
        let calls = expected.iter().filter(|role| **role == "tool").count();
        for to in targets(Responses) {
            let sent = taken(Responses, to, &body);
            assert_paired(to, &sent, calls);
            if to == Chat {
                assert_eq!(roles(&sent), expected);
            }
        }
    }
}

/// Services number calls anew in each reply.
fn repeating_history(from: WireFormat) -> Value {
    match from {
        Responses => {
            json!({"model": "m", "input": [said("user", "go"), call(1, "call_0"), output(1, "call_0"),
            call(2, "call_0"), output(2, "call_0"), said("user", "on")]})
        }
        Chat => {
            let call = |n: u8| {
                json!({"role": "assistant", "tool_calls": [{"id": "call_0", "type": "function",
                "function": {"name": "f", "arguments": json!({"n": n}).to_string()}}]})
            };
            let result =
                |n: u8| json!({"role": "tool", "tool_call_id": "call_0", "content": n.to_string()});
            json!({"model": "m", "messages": [{"role": "user", "content": "go"}, call(1), result(1), call(2), result(2)]})
        }
        Native => {
            let call = |n: u8| json!({"role": "assistant", "content": [{"type": "tool_use", "id": "call_0", "name": "f", "input": {"n": n}}]});
            let result = |n: u8| json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_0", "content": n.to_string()}]});
            json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}, call(1), result(1), call(2), result(2)]})
        }
        AltCli => {
            let call = |n: u8| json!({"role": "model", "parts": [{"functionCall": {"id": "call_0", "name": "f", "args": {"n": n}}}]});
            let result = |n: u8| json!({"role": "user", "parts": [{"functionResponse": {"id": "call_0", "name": "f", "response": {"output": n.to_string()}}}]});
            json!({"contents": [{"role": "user", "parts": [{"text": "go"}]}, call(1), result(1), call(2), result(2)]})
        }
    }
}

#[test]
fn ids_that_repeat_in_a_history_become_unique() {
    for from in WireFormat::ALL {
        for to in targets(from) {
            let sent = taken(from, to, &repeating_history(from));
            assert_paired(to, &sent, 2);
            let text = sent.to_string();
            assert_eq!(text.matches("\"call_0\"").count(), 2, "{from} to {to}: {text}");
            assert_eq!(text.matches("\"call_0_2\"").count(), 2, "{from} to {to}: {text}");
        }
    }
}

/// A reply with two calls, whose provider gives both the id `call_0`.
fn reply_of(provider: WireFormat) -> Value {
    match provider {
        Native => {
            json!({"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use",
            "content": [{"type": "tool_use", "id": "call_0", "name": "f", "input": {"n": 1}}, {"type": "tool_use", "id": "call_0", "name": "f", "input": {"n": 2}}],
            "usage": {"input_tokens": 1, "output_tokens": 1}})
        }
        Responses => {
            json!({"id": "r", "object": "response", "status": "completed", "output": [call(1, "call_0"), call(2, "call_0")]})
        }
        Chat => {
            let call = |n: u8| json!({"id": "call_0", "type": "function", "function": {"name": "f", "arguments": json!({"n": n}).to_string()}});
            json!({"id": "c", "object": "chat.completion", "choices": [{"index": 0, "finish_reason": "tool_calls",
                "message": {"role": "assistant", "content": null, "tool_calls": [call(1), call(2)]}}]})
        }
        AltCli => {
            let call =
                |n: u8| json!({"functionCall": {"id": "call_0", "name": "f", "args": {"n": n}}});
            json!({"candidates": [{"content": {"role": "model", "parts": [call(1), call(2)]}, "finishReason": "STOP"}]})
        }
    }
}

/// The same as a stream.
fn stream_of(provider: WireFormat) -> String {
    let data = |value: &Value| format!("data: {value}\n\n");
    match provider {
        Native => {
            let block = |index: u8| {
                [
                    json!({"type": "content_block_start", "index": index, "content_block": {"type": "tool_use", "id": "call_0", "name": "f", "input": {}}}),
                    json!({"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": json!({"n": index + 1}).to_string()}}),
                    json!({"type": "content_block_stop", "index": index}),
                ]
            };
            let start = json!({"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1}}});
            let end = [
                json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
                json!({"type": "message_stop"}),
            ];
            [start].iter().chain(&block(0)).chain(&block(1)).chain(&end).map(data).collect()
        }
        Responses => {
            let item = |n: u8| json!({"type": "response.output_item.done", "output_index": n - 1, "item": call(n, "call_0")});
            let end = json!({"type": "response.completed", "response": {"output": []}});
            [item(1), item(2), end].iter().map(data).collect()
        }
        Chat => {
            let chunk = |index: u8| {
                json!({"choices": [{"index": 0, "delta": {"tool_calls": [{"index": index, "id": "call_0", "type": "function",
                "function": {"name": "f", "arguments": json!({"n": index + 1}).to_string()}}]}}]})
            };
            let end =
                json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]});
            [chunk(0), chunk(1), end].iter().map(data).collect::<String>() + "data: [DONE]\n\n"
        }
        AltCli => data(&reply_of(AltCli)),
    }
}

fn context(client: WireFormat, provider: WireFormat, body: &Value) -> ReplyContext {
    let options = RequestOptions::new("m", false);
    let done = convert::request(client, provider, body.to_string().as_bytes(), &options).unwrap();
    ReplyContext { seed: "s".to_owned(), ..done.reply }
}

fn calls_of(format: WireFormat, reply: &[u8]) -> Vec<(String, String)> {
    let reply = convert::read_reply(format, reply).unwrap();
    let calls = reply.parts.into_iter().filter_map(|part| match part {
        ReplyPart::ToolCall(call) => Some((call.id.into_owned(), call.arguments.into_owned())),
        _ => None,
    });
    calls.collect()
}

/// As above, of a stream.
fn streamed_calls(format: WireFormat, stream: &[u8]) -> Vec<(String, String)> {
    use tollgate::formats::conversation::{Block, Event};
    let mut calls: Vec<(String, String)> = Vec::new();
    convert::read_events(format, stream, &mut |event| match event {
        Event::Open(Block::Tool { id, .. }) => calls.push((id.into_owned(), String::new())),
        Event::Delta(text) => calls.last_mut().unwrap().1.push_str(&text),
        _ => {}
    })
    .unwrap();
    calls
}

#[test]
fn calls_of_a_reply_get_ids_that_the_conversation_does_not_have() {
    for client in WireFormat::ALL {
        for provider in targets(client) {
            let context = context(client, provider, &repeating_history(client));
            let body = reply_of(provider).to_string();
            let whole = converted_reply(provider, client, body.as_bytes(), &context).unwrap();
            let mut converter = StreamConverter::new(provider, client, context);
            let mut stream = Vec::new();
            converter.feed(stream_of(provider).as_bytes(), &mut stream).unwrap();
            converter.finish(&mut stream).unwrap();
            for calls in [calls_of(client, &whole), streamed_calls(client, &stream)] {
                let ids: Vec<&str> = calls.iter().map(|(id, _)| &**id).collect();
                // A native client tells calls by their id alone, in the whole conversation.
                let expected = if client == Native {
                    ["call_0_2", "call_0_3"]
                } else {
                    ["call_0", "call_0_2"]
                };
                assert_eq!(ids, expected, "{provider} to {client}");
                let arguments: Vec<Value> =
                    calls.iter().map(|(_, text)| serde_json::from_str(text).unwrap()).collect();
                assert_eq!(arguments, [json!({"n": 1}), json!({"n": 2})], "{provider} to {client}");
            }
        }
    }
}

/// The first reply keeps the provider's id; one that would collide gets another, and the client
/// sends both back.
#[test]
fn a_session_goes_on_with_a_provider_that_always_says_call_0() {
    let mut messages = vec![json!({"role": "user", "content": "go"})];
    for turn in 1..5_u8 {
        let body = json!({"model": "m", "max_tokens": 9, "messages": messages});
        let sent = taken(Native, Chat, &body);
        assert_paired(Chat, &sent, usize::from(turn) - 1);
        let reply = json!({"choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant",
            "tool_calls": [{"id": "call_0", "type": "function", "function": {"name": "f", "arguments": json!({"n": turn}).to_string()}}]}}]});
        let context = context(Native, Chat, &body);
        let reply = converted_reply(Chat, Native, reply.to_string().as_bytes(), &context).unwrap();
        let reply: Value = serde_json::from_slice(&reply).unwrap();
        let id = reply["content"][0]["id"].as_str().unwrap();
        assert!(!json!(messages).to_string().contains(&format!("\"{id}\"")), "{id} came before");
        messages.push(json!({"role": "assistant", "content": reply["content"]}));
        messages.push(json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": turn.to_string()}]}));
    }
}

#[test]
fn names_that_one_service_refuses_are_replaced_for_it_and_restored() {
    let names = ["21st_magic_builder", "-dash", "read"];
    let tools: Vec<Value> = names
        .iter()
        .map(|name| json!({"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}))
        .collect();
    let calls = json!({"role": "assistant", "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": names[0], "arguments": "{\"n\":1}"}}]});
    let body = json!({"model": "m", "tools": tools, "tool_choice": {"type": "function", "function": {"name": "-dash"}},
        "messages": [{"role": "user", "content": "x"}, calls, {"role": "tool", "tool_call_id": "a", "content": "1"}]});
    for to in [Native, Responses] {
        let sent = taken(Chat, to, &body).to_string();
        assert_eq!(sent.matches("\"21st_magic_builder\"").count(), 2, "{to}");
    }
    let sent = taken(Chat, AltCli, &body);
    let declared = &sent["tools"][0]["functionDeclarations"];
    assert_eq!(declared[2]["name"], "read");
    let first = declared[0]["name"].as_str().unwrap();
    assert!(first.starts_with("_21st_magic_builder_"), "{first}");
    assert_eq!(sent["contents"][1]["parts"][0]["functionCall"]["name"], first);
    assert_eq!(sent["contents"][2]["parts"][0]["functionResponse"]["name"], first);
    let chosen = &sent["toolConfig"]["functionCallingConfig"]["allowedFunctionNames"];
    assert_eq!(*chosen, json!([declared[1]["name"]]));
    let context = context(Chat, AltCli, &body);
    for name in names.iter().enumerate() {
        let wire = &declared[name.0]["name"];
        let reply = json!({"candidates": [{"content": {"parts": [{"functionCall": {"name": wire, "args": {}}}]}, "finishReason": "STOP"}]});
        let whole = converted_reply(AltCli, Chat, reply.to_string().as_bytes(), &context).unwrap();
        let mut converter = StreamConverter::new(AltCli, Chat, context.clone());
        let mut stream = Vec::new();
        converter.feed(format!("data: {reply}\n\n").as_bytes(), &mut stream).unwrap();
        for text in [whole, stream] {
            let text = String::from_utf8(text).unwrap();
            assert!(text.contains(&format!("\"name\":\"{}\"", name.1)), "{text}");
        }
    }
}

/// Some clients and services have the arguments of a call as an object.
#[test]
fn arguments_that_are_an_object_are_read() {
    let arguments = json!({"n": 1});
    let chat =
        json!({"id": "a", "type": "function", "function": {"name": "f", "arguments": arguments}});
    let history = json!({"model": "m", "messages": [{"role": "user", "content": "x"},
        {"role": "assistant", "tool_calls": [chat]}, {"role": "tool", "tool_call_id": "a", "content": "1"}]});
    let item =
        json!({"type": "function_call", "call_id": "a", "name": "f", "arguments": arguments});
    let input = json!({"model": "m", "input": [said("user", "x"), item, output(1, "a")]});
    for (from, body) in [(Chat, history), (Responses, input)] {
        for to in targets(from) {
            assert_paired(to, &taken(from, to, &body), 1);
        }
    }
    let chunk = json!({"choices": [{"index": 0, "finish_reason": "tool_calls", "delta": {"tool_calls": [chat]}}]});
    let reply = json!({"choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"tool_calls": [chat]}}]});
    let responses = json!({"status": "completed", "output": [item]});
    for (from, reply) in [(Chat, &reply), (Responses, &responses)] {
        let call = calls_of(from, reply.to_string().as_bytes()).remove(0);
        assert_eq!(call, ("a".to_owned(), "{\"n\":1}".to_owned()), "{from}");
    }
    let calls = streamed_calls(Chat, format!("data: {chunk}\n\n").as_bytes());
    assert_eq!(calls, [("a".to_owned(), "{\"n\":1}".to_owned())]);
}

/// Providers' numbers may have a point, too; what cannot be read is told without the reader's
/// words.
#[test]
fn numbers_and_wrong_types_in_a_stream() {
    let chunk = |index: f64, text: &str| json!({"choices": [{"index": 0.0, "delta": {"tool_calls": [{"index": index, "id": text, "function": {"name": text, "arguments": "{}"}}]}}]});
    let end = json!({"choices": [{"index": 0.0, "delta": {}, "finish_reason": "tool_calls"}]});
    let stream: String = [chunk(0.0, "a"), chunk(1.0, "b"), end]
        .iter()
        .map(|value| format!("data: {value}\n\n"))
        .collect();
    let ids: Vec<String> =
        streamed_calls(Chat, stream.as_bytes()).into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, ["a", "b"]);
    for (provider, data, expected) in [
        (Chat, r#"{"choices":[{"delta":"SECRET"}]}"#, "delta: an object is expected"),
        (Native, r#"{"type":"content_block_delta","delta":7}"#, "delta: an object is expected"),
        (
            Responses,
            r#"{"type":"response.output_item.done","item":7}"#,
            "item: an object is expected",
        ),
        (AltCli, r#"{"candidates":{"x":"SECRET"}}"#, "candidates: an array is expected"),
    ] {
        let client = if provider == Native { Chat } else { Native };
        let context = context(client, provider, &repeating_history(client));
        let mut converter = StreamConverter::new(provider, client, context);
        let problem =
            converter.feed(format!("data: {data}\n\n").as_bytes(), &mut Vec::new()).unwrap_err();
        let problem = problem.to_string();
        assert!(problem.contains(expected), "{provider}: {problem}");
        assert!(
            !problem.contains("SECRET") && !problem.contains("struct"),
            "{provider}: {problem}"
        );
    }
}
