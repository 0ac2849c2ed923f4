//! The vendor's web search in a converted request: its bounds are kept where the target has fields
//! for them, and a rule is noted where it has none.

use serde_json::{Value, json};
use tollgate::domain::format::WireFormat::{self, AltCli, Chat, Native, Responses};
use tollgate::formats::convert::{self, RequestOptions};

/// The converted tools, and whether fields of the search were left out.
fn converted(from: WireFormat, to: WireFormat, body: &Value) -> (Value, bool) {
    let options = RequestOptions::new("m", false);
    let done = convert::request(from, to, body.to_string().as_bytes(), &options).unwrap();
    let sent: Value = serde_json::from_slice(&done.body).unwrap();
    (sent["tools"].clone(), done.dropped.contains(&"web_search_fields"))
}

fn native(fields: &Value) -> Value {
    let mut tool = json!({"type": "web_search_20250305", "name": "web_search"});
    tool.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let messages = json!([{"role": "user", "content": "x"}]);
    json!({"model": "m", "max_tokens": 9, "messages": messages, "tools": [tool]})
}

fn responses(fields: &Value) -> Value {
    let mut tool = json!({"type": "web_search"});
    tool.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    json!({"model": "m", "input": "x", "tools": [tool]})
}

fn chat(options: &Value) -> Value {
    let messages = json!([{"role": "user", "content": "x"}]);
    json!({"model": "m", "messages": messages, "web_search_options": options})
}

fn alt_cli(options: &Value) -> Value {
    let contents = json!([{"role": "user", "parts": [{"text": "x"}]}]);
    json!({"contents": contents, "tools": [{"googleSearch": options}]})
}

#[test]
fn domains_and_places_are_kept() {
    let ulm = json!({"type": "approximate", "city": "Ulm"});
    let cases = [
        (
            native(&json!({"blocked_domains": ["a.test"], "user_location": ulm})),
            (Native, Responses),
            json!({"filters": {"blocked_domains": ["a.test"]}, "user_location": ulm}),
        ),
        (
            native(&json!({"allowed_domains": ["a.test"]})),
            (Native, Responses),
            json!({"filters": {"allowed_domains": ["a.test"]}}),
        ),
        (
            responses(&json!({"filters": {"blocked_domains": ["a.test"]}})),
            (Responses, Native),
            json!({"blocked_domains": ["a.test"]}),
        ),
        (
            chat(
                &json!({"user_location": {"type": "approximate", "approximate": {"city": "Ulm"}}}),
            ),
            (Chat, Native),
            json!({"user_location": ulm}),
        ),
        (
            chat(&json!({"user_location": {"type": "approximate", "approximate": {}}})),
            (Chat, Responses),
            json!({}),
        ),
    ];
    for (body, (from, to), fields) in cases {
        let (mut tools, left_out) = converted(from, to, &body);
        let tool = tools[0].as_object_mut().unwrap();
        tool.remove("type");
        tool.remove("name");
        assert_eq!((json!(tool), left_out), (fields, false), "{body}");
    }
}

#[test]
fn what_the_target_has_no_field_for_is_noted() {
    let both = json!({"filters": {"allowed_domains": ["a.test"], "blocked_domains": ["b.test"]}});
    let cases = [
        (native(&json!({"max_uses": 3})), (Native, Responses)),
        (native(&json!({"blocked_domains": ["a.test"]})), (Native, AltCli)),
        (responses(&both), (Responses, Native)),
        (responses(&json!({"search_context_size": "low"})), (Responses, Native)),
        (responses(&json!({"search_context_size": "low"})), (Responses, AltCli)),
        (chat(&json!({"search_context_size": "low"})), (Chat, Responses)),
        (alt_cli(&json!({"excludeDomains": ["a.test"]})), (AltCli, Native)),
    ];
    for (body, (from, to)) in cases {
        assert!(converted(from, to, &body).1, "{from:?} to {to:?}: {body}");
    }
    let (tools, _) = converted(Responses, Native, &responses(&both));
    assert_eq!(tools[0]["allowed_domains"], json!(["a.test"]), "the service takes one list");
    assert_eq!(tools[0]["blocked_domains"], Value::Null);
    assert!(!converted(AltCli, Native, &alt_cli(&json!({}))).1);
}
