//! A field that a conversion needs and the request lacks is named, in place of a request with
//! something left out.

use serde_json::{Value, json};
use tollgate::domain::format::WireFormat::{self, AltCli, Chat, Native, Responses};
use tollgate::formats::convert::{self, RequestOptions};

#[test]
fn a_missing_field_is_named() {
    let ask = json!([{"role": "user", "content": "a"}]);
    let cases: [(WireFormat, Value, &str); 9] = [
        (Native, json!({"messages": [{"role": "user"}]}), "messages.0.content"),
        (Native, json!({"messages": ask, "tools": [{"input_schema": {}}]}), "tools.0.name"),
        (Chat, json!({"messages": [{"role": "user", "content": null}]}), "messages.0.content"),
        (Chat, json!({"messages": ask, "tools": [{"type": "function"}]}), "tools.0.function"),
        (Chat, json!({"messages": ask, "tools": [{"type": "custom"}]}), "tools.0.custom"),
        (Responses, json!({"input": "a", "tools": [{"type": "function"}]}), "tools.0.name"),
        (
            Responses,
            json!({"input": "a", "tools": [{"type": "namespace", "name": "n", "tools": [{"type": "function"}]}]}),
            "tools.0.tools.0.name",
        ),
        (
            AltCli,
            json!({"contents": [{"role": "user", "parts": [{"text": "a"}]}, {"role": "model"}]}),
            "contents.1.parts",
        ),
        (AltCli, json!({"contents": [{"functionCall": {"name": "f"}}]}), "contents.0.parts"),
    ];
    for (from, mut body, field) in cases {
        body["model"] = json!("m");
        if from == Native {
            body["max_tokens"] = json!(9);
        }
        let body = body.to_string();
        for to in WireFormat::ALL.into_iter().filter(|to| *to != from) {
            let options = RequestOptions::new("m", false);
            let refused = convert::request(from, to, body.as_bytes(), &options)
                .err()
                .unwrap_or_else(|| panic!("{from} to {to}: {body} is accepted"));
            assert_eq!(
                (refused.field.as_str(), refused.message.as_str()),
                (field, "this field is required"),
                "{from} to {to}"
            );
        }
    }
}
