//! Reported inputs as in `reported`: null members of schemas, media types and addresses.

use serde_json::json;
use tollgate::domain::format::WireFormat::{self, AltCli, Chat, Native, Responses};

use super::golden::targets;
use super::strict::taken;

#[test]
fn members_of_a_schema_that_are_null_are_left_out() {
    let nulls = json!({"type": "object", "properties": null, "required": null});
    let wanted = json!({"type": "object", "properties": {}});
    let deep = json!({"type": "object", "properties": {"a": {"type": "array", "items": null, "default": null}}, "additionalProperties": null});
    let deep_wanted =
        json!({"type": "object", "properties": {"a": {"type": "array", "default": null}}});
    for (schema, wanted) in [(nulls, wanted), (deep, deep_wanted)] {
        for from in WireFormat::ALL {
            let mut body = match from {
                Native => {
                    json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}],
                    "tools": [{"name": "f", "input_schema": schema}], "output_config": {"format": {"type": "json_schema", "schema": schema}}})
                }
                Chat => json!({"model": "m", "messages": [{"role": "user", "content": "x"}],
                    "tools": [{"type": "function", "function": {"name": "f", "parameters": schema}}],
                    "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}}),
                Responses => {
                    json!({"model": "m", "input": "x", "tools": [{"type": "function", "name": "f", "parameters": schema}],
                    "text": {"format": {"type": "json_schema", "name": "x", "schema": schema}}})
                }
                AltCli => json!({"contents": [{"parts": [{"text": "x"}]}],
                    "tools": [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": schema}]}],
                    "generationConfig": {"responseJsonSchema": schema}}),
            };
            for older in [false, true] {
                if older && from == AltCli {
                    let function = &mut body["tools"][0]["functionDeclarations"][0];
                    function["parameters"] = function["parametersJsonSchema"].take();
                }
                for to in targets(from) {
                    let sent = taken(from, to, &body);
                    let found = match to {
                        Native => &sent["tools"][0]["input_schema"],
                        Chat => &sent["tools"][0]["function"]["parameters"],
                        Responses => &sent["tools"][0]["parameters"],
                        AltCli => {
                            &sent["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"]
                        }
                    };
                    assert_eq!(*found, wanted, "{from} to {to}");
                }
            }
        }
    }
}

#[test]
fn nulls_in_the_place_of_a_search_are_left_out() {
    let place = json!({"type": "approximate", "city": "Zürich", "region": null, "timezone": null});
    let bodies = [
        (
            Native,
            json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}],
            "tools": [{"type": "web_search_20250305", "name": "web_search", "user_location": place}]}),
        ),
        (
            Responses,
            json!({"model": "m", "input": "x", "tools": [{"type": "web_search", "user_location": place}]}),
        ),
        (
            Chat,
            json!({"model": "m", "messages": [{"role": "user", "content": "x"}],
            "web_search_options": {"user_location": {"type": "approximate", "approximate": {"city": "Zürich", "region": null}}}}),
        ),
    ];
    for (from, body) in bodies {
        for to in [Native, Responses].into_iter().filter(|to| *to != from) {
            let sent = taken(from, to, &body);
            let expected = json!({"type": "approximate", "city": "Zürich"});
            assert_eq!(sent["tools"][0]["user_location"], expected, "{from} to {to}");
        }
    }
}

#[test]
fn schemes_and_media_types_have_no_case() {
    let chat = |url: &str| json!({"model": "m", "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]});
    let responses = |url: &str| json!({"model": "m", "input": [{"role": "user", "content": [{"type": "input_image", "image_url": url}]}]});
    for (url, expected) in [
        ("data:image/JPEG;base64,AAAA", "image/jpeg"),
        ("DATA:image/jpeg;BASE64,AAAA", "image/jpeg"),
        ("Data:Image/JPG;Charset=x;Base64,AAAA", "image/jpeg"),
        ("data:IMAGE/WEBP;base64,AAAA", "image/webp"),
    ] {
        for (from, body) in [(Chat, chat(url)), (Responses, responses(url))] {
            for to in targets(from) {
                let sent = taken(from, to, &body).to_string();
                let marked =
                    [format!("\"{expected}\""), format!("\"data:{expected};base64,AAAA\"")];
                assert!(marked.iter().any(|mark| sent.contains(mark)), "{from} to {to}: {sent}");
            }
        }
    }
    let native = json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": [
        {"type": "image", "source": {"type": "base64", "media_type": "IMAGE/PNG", "data": "AAAA"}},
        {"type": "document", "source": {"type": "base64", "media_type": "Application/PDF", "data": "AAAA"}},
        {"type": "document", "source": {"type": "base64", "media_type": "TEXT/PLAIN", "data": "aGVsbG8="}},
        {"type": "image", "source": {"type": "url", "url": "HTTPS://Host/A.png"}}]}]});
    for to in targets(Native) {
        let sent = taken(Native, to, &native).to_string();
        assert!(sent.contains("image/png") && sent.contains("application/pdf"), "{sent}");
        assert!(sent.contains("\"https://Host/A.png\""), "{sent}");
        // Gemini takes plain text as it is.
        assert!(sent.contains(if to == AltCli { "text/plain" } else { "\"hello\"" }), "{sent}");
    }
    let alt = json!({"contents": [{"parts": [{"inlineData": {"mimeType": "Image/PNG", "data": "AAAA"}},
        {"fileData": {"mimeType": "IMAGE/GIF", "fileUri": "HTTPS://host/a"}}]}]});
    for to in targets(AltCli) {
        let sent = taken(AltCli, to, &alt).to_string();
        assert!(sent.contains("image/png") && sent.contains("\"https://host/a\""), "{sent}");
    }
    let sound = json!({"model": "m", "messages": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AAAA", "format": "WAV"}}]}]});
    assert!(taken(Chat, AltCli, &sound).to_string().contains("audio/wav"));
    let file = |data: &str| json!({"model": "m", "messages": [{"role": "user", "content": [{"type": "file", "file": {"file_data": data}}]}]});
    for to in targets(Chat) {
        let sent = taken(Chat, to, &file("DATA:Application/PDF;Base64,AAAA")).to_string();
        assert!(sent.contains("application/pdf") && !sent.contains("DATA"), "{sent}");
    }
}
