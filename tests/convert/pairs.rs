//! Conversion in pairs of formats: tool choice, efforts and budgets in every pair, as in
//! docs/conversion.md; then rules of single pairs, errors, and wrapped alt-cli.

use serde_json::{Value, json};
use tollgate::domain::format::WireFormat::{self, AltCli, Chat, Native, Responses};
use tollgate::domain::key::CacheTtl;
use tollgate::domain::provider::InstructionsStrategy;
use tollgate::formats::convert::{
    self, ReplyContext, ReplyProblem, RequestOptions, StreamConverter,
};
use tollgate::formats::error::ErrorReply;
use tollgate::formats::responses::instructions::Official;

use super::converted_reply;

fn converted(from: WireFormat, to: WireFormat, body: &Value) -> Value {
    let options = RequestOptions::new("upstream-1", false);
    let done = convert::request(from, to, body.to_string().as_bytes(), &options).unwrap();
    serde_json::from_slice(&done.body).unwrap()
}

/// A request of a format with one tool and the tool choice `choice`.
fn with_choice(from: WireFormat, choice: &Value) -> Value {
    let schema = json!({"type": "object", "properties": {}});
    match from {
        Native => {
            json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}],
            "tools": [{"name": "f", "input_schema": schema}], "tool_choice": choice})
        }
        Chat => json!({"model": "m", "messages": [{"role": "user", "content": "x"}],
            "tools": [{"type": "function", "function": {"name": "f", "parameters": schema}}], "tool_choice": choice}),
        Responses => json!({"model": "m", "input": "x",
            "tools": [{"type": "function", "name": "f", "parameters": schema}], "tool_choice": choice}),
        AltCli => json!({"contents": [{"parts": [{"text": "x"}]}],
            "tools": [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": schema}]}],
            "toolConfig": {"functionCallingConfig": choice}}),
    }
}

fn choice_of(format: WireFormat, body: &Value) -> Value {
    match format {
        AltCli => body["toolConfig"]["functionCallingConfig"].clone(),
        _ => body["tool_choice"].clone(),
    }
}

#[test]
fn tool_choice_in_all_its_forms() {
    // In this order: any or no tool, at least one tool, no tool, the tool `f`.
    let choices: [(WireFormat, [Value; 4]); 4] = [
        (
            Native,
            [
                json!({"type": "auto"}),
                json!({"type": "any"}),
                json!({"type": "none"}),
                json!({"type": "tool", "name": "f"}),
            ],
        ),
        (
            Chat,
            [
                json!("auto"),
                json!("required"),
                json!("none"),
                json!({"type": "function", "function": {"name": "f"}}),
            ],
        ),
        (
            Responses,
            [
                json!("auto"),
                json!("required"),
                json!("none"),
                json!({"type": "function", "name": "f"}),
            ],
        ),
        (
            AltCli,
            [
                json!({"mode": "AUTO"}),
                json!({"mode": "ANY"}),
                json!({"mode": "NONE"}),
                json!({"mode": "ANY", "allowedFunctionNames": ["f"]}),
            ],
        ),
    ];
    for (from, given) in &choices {
        for (to, expected) in &choices {
            for (row, (given, expected)) in given.iter().zip(expected).enumerate() {
                let body = converted(*from, *to, &with_choice(*from, given));
                // The only exception: `none` removes `tool_choice`.
                let unset = (*from, *to, row) == (Chat, Native, 2);
                let expected = if unset { &Value::Null } else { expected };
                assert_eq!(&choice_of(*to, &body), expected, "{from} to {to}: {given}");
            }
        }
    }
}

fn with_effort(from: WireFormat, effort: &str, budget: u64) -> Value {
    match from {
        Native => {
            json!({"model": "m", "max_tokens": 64_000, "messages": [{"role": "user", "content": "x"}],
            "thinking": {"type": "enabled", "budget_tokens": budget}})
        }
        Chat => {
            json!({"model": "m", "max_tokens": 64_000, "messages": [{"role": "user", "content": "x"}], "reasoning_effort": effort})
        }
        Responses => {
            json!({"model": "m", "max_output_tokens": 64_000, "input": "x", "reasoning": {"effort": effort}})
        }
        AltCli => json!({"contents": [{"parts": [{"text": "x"}]}],
            "generationConfig": {"maxOutputTokens": 64_000, "thinkingConfig": {"thinkingBudget": budget}}}),
    }
}

#[test]
fn efforts_and_budgets_in_every_pair() {
    let table =
        [("minimal", 1024), ("low", 4096), ("medium", 8192), ("high", 24_576), ("xhigh", 32_768)];
    for from in WireFormat::ALL {
        for to in WireFormat::ALL {
            for (effort, budget) in table {
                let body = converted(from, to, &with_effort(from, effort, budget));
                let (given, expected) = match to {
                    Native => (&body["thinking"]["budget_tokens"], json!(budget)),
                    Chat => (&body["reasoning_effort"], json!(effort)),
                    Responses => (&body["reasoning"]["effort"], json!(effort)),
                    AltCli => (
                        &body["generationConfig"]["thinkingConfig"]["thinkingBudget"],
                        json!(budget.min(24_576)),
                    ),
                };
                assert_eq!(*given, expected, "{from} to {to}: {effort}");
            }
        }
    }
    let off = converted(Chat, Native, &with_effort(Chat, "none", 0));
    assert_eq!(off["thinking"], json!({"type": "disabled"}));
    let off = converted(AltCli, Responses, &with_effort(AltCli, "none", 0));
    assert_eq!(off["reasoning"], json!({"effort": "none"}));
}

#[test]
fn the_budget_stays_below_the_limit() {
    for (limit, expected) in [
        (64_000, json!(32_768)),
        (32_769, json!(32_768)),
        (8000, json!(6000)),
        (1200, json!(1024)),
        (1024, Value::Null),
    ] {
        let body = json!({"model": "m", "max_tokens": limit, "messages": [{"role": "user", "content": "x"}], "reasoning_effort": "xhigh"});
        let body = converted(Chat, Native, &body);
        assert_eq!(
            body["thinking"].get("budget_tokens").cloned().unwrap_or_default(),
            expected,
            "{limit}"
        );
    }
}

#[test]
fn a_chat_request_without_limit_gets_the_default() {
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "x"}]});
    assert_eq!(converted(Chat, Native, &body)["max_tokens"], 32_000);
    assert!(converted(Chat, Responses, &body).get("max_output_tokens").is_none());
}

#[test]
fn the_older_and_newer_chat_models_get_their_own_fields() {
    let body = json!({"model": "m", "max_output_tokens": 99, "input": "x", "text": {"verbosity": "low"}, "prompt_cache_key": "k"});
    let ask = |model: &str| -> Value {
        let options = RequestOptions::new(model, true);
        let done =
            convert::request(Responses, Chat, body.to_string().as_bytes(), &options).unwrap();
        serde_json::from_slice(&done.body).unwrap()
    };
    let messages = json!([{"role": "user", "content": "x"}]);
    let streamed = json!({"include_usage": true});
    let new = json!({"model": "gpt-5", "messages": messages, "max_completion_tokens": 99, "verbosity": "low", "prompt_cache_key": "k", "stream": true, "stream_options": streamed});
    let old = json!({"model": "other", "messages": messages, "max_tokens": 99, "stream": true, "stream_options": streamed});
    assert_eq!(ask("gpt-5"), new);
    assert_eq!(ask("other"), old);
}

#[test]
fn a_cache_preference_asks_for_automatic_caching_on_native_only() {
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "x"}]});
    for (to, ttl, expected) in [
        (Native, CacheTtl::OneHour, json!({"type": "ephemeral", "ttl": "1h"})),
        (Native, CacheTtl::FiveMinutes, json!({"type": "ephemeral", "ttl": "5m"})),
        (Native, CacheTtl::Inherit, Value::Null),
        (Responses, CacheTtl::OneHour, Value::Null),
    ] {
        let options = RequestOptions { cache_ttl: ttl, ..RequestOptions::new("m", false) };
        let done = convert::request(Chat, to, body.to_string().as_bytes(), &options).unwrap();
        let body: Value = serde_json::from_slice(&done.body).unwrap();
        assert_eq!(body["cache_control"], expected, "{to} {ttl:?}");
    }
}

#[test]
fn a_forced_instruction_text_goes_into_converted_requests() {
    let official = Official { short: None, long: Some("official") };
    let body = json!({"model": "m", "max_tokens": 9, "system": "mine", "messages": [{"role": "user", "content": "x"}]});
    for (strategy, expected) in
        [(InstructionsStrategy::ForceOfficial, "official"), (InstructionsStrategy::Auto, "mine")]
    {
        let options = RequestOptions {
            instructions: Some((strategy, official)),
            ..RequestOptions::new("m", false)
        };
        let done =
            convert::request(Native, Responses, body.to_string().as_bytes(), &options).unwrap();
        let body: Value = serde_json::from_slice(&done.body).unwrap();
        assert_eq!(body["instructions"], expected);
    }
}

/// Upstream errors keep their message.
#[test]
fn upstream_errors_and_bodies_that_are_no_reply_are_different_problems() {
    let context =
        convert::request(Chat, Native, br#"{"messages":[]}"#, &RequestOptions::new("m", false))
            .unwrap()
            .reply;
    let bodies: [(WireFormat, Value); 5] = [
        (
            Native,
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "Too busy"}}),
        ),
        (Chat, json!({"error": {"message": "Too busy", "type": "server_error"}})),
        (Chat, json!({"error": "Too busy"})),
        (
            Responses,
            json!({"status": "failed", "error": {"code": "server_error", "message": "Too busy"}, "output": []}),
        ),
        (AltCli, json!({"error": {"code": 503, "message": "Too busy", "status": "UNAVAILABLE"}})),
    ];
    for (from, body) in bodies {
        let problem =
            converted_reply(from, Native, body.to_string().as_bytes(), &context).unwrap_err();
        assert!(
            matches!(problem, ReplyProblem::Upstream { message, .. } if message == "Too busy"),
            "{from}"
        );
    }
    for from in WireFormat::ALL {
        for body in ["{}", "[]", "", "<html>", "null"] {
            let problem = converted_reply(from, Native, body.as_bytes(), &context).unwrap_err();
            assert!(matches!(problem, ReplyProblem::NotAReply { .. }), "{from}: {body}");
        }
    }
}

/// Wrapped alt-cli at a plain alt-cli provider: only the wrapper changes; vendor-specific members
/// stay.
#[test]
fn a_wrapped_request_is_unwrapped_and_its_reply_wrapped() {
    let inner = json!({"contents": [{"role": "user", "parts": [{"text": "x"}]}], "cachedContent": "c", "safetySettings": [1]});
    let mut given = inner.clone();
    given["session_id"] = json!("s");
    let body = json!({"model": "m", "project": "p", "request": given}).to_string();
    let done =
        convert::request(AltCli, AltCli, body.as_bytes(), &RequestOptions::new("m", true)).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&done.body).unwrap(), inner);
    let chunk = json!({"candidates": [{"content": {"parts": [{"text": "y"}]}, "finishReason": "STOP", "groundingMetadata": {"a": 1}}]});
    let whole = converted_reply(AltCli, AltCli, chunk.to_string().as_bytes(), &done.reply).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&whole).unwrap(), json!({"response": chunk}));
    for json_array in [false, true] {
        let context = ReplyContext { json_array, ..done.reply.clone() };
        let mut converter = StreamConverter::new(AltCli, AltCli, context);
        let mut out = Vec::new();
        converter
            .feed(format!("data: {chunk}\r\n\r\ndata: {chunk}\n\n").as_bytes(), &mut out)
            .unwrap();
        assert!(converter.has_content());
        converter.finish(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let wrapped = json!({"response": chunk});
        let expected = if json_array {
            format!("[{wrapped},\r\n{wrapped}]")
        } else {
            format!("data: {wrapped}\r\n\r\n").repeat(2)
        };
        assert_eq!(text, expected);
    }
}

/// Clients that do not request events get one JSON array, also if the stream breaks off.
#[test]
fn an_alt_cli_array_is_closed_in_every_case() {
    let body = br#"{"contents": [{"parts": [{"text": "x"}]}]}"#;
    let reply =
        convert::request(AltCli, Chat, body, &RequestOptions::new("m", true)).unwrap().reply;
    let context = ReplyContext { json_array: true, ..reply };
    let chunk = |text: &str| {
        format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": {"content": text}}]}))
    };
    for (ending, whole) in [("data: [DONE]\n\n", true), ("", false)] {
        for chunks in [0, 2] {
            let mut converter = StreamConverter::new(Chat, AltCli, context.clone());
            let mut out = Vec::new();
            converter.feed((chunk("a").repeat(chunks) + ending).as_bytes(), &mut out).unwrap();
            if converter.finish(&mut out).is_err() {
                let error = ErrorReply {
                    status: 502,
                    kind: "api_error",
                    message: "cut",
                    code: None,
                    extra: &[],
                };
                converter.fail(&error, &mut out);
            }
            let list: Vec<Value> = serde_json::from_slice(&out).unwrap();
            let last = list.last().unwrap();
            assert_eq!(last.get("error").is_none(), whole && chunks > 0, "{list:?}");
        }
    }
}
