//! Anything that would remove the usage from a reply never reaches a provider, and a request that
//! cannot be billed is refused.

use serde_json::{Value, json};

use super::with;
use crate::proxy::fixture::{FORMATS, Fixture, path, request, saying};

const ALT: &str = "/v1beta/models/m:streamGenerateContent";

#[tokio::test(flavor = "multi_thread")]
async fn an_alt_cli_query_is_an_allow_list() {
    let fixture = with("alt-cli").await;
    let variants = [
        "fields=candidates",
        "$fields=candidates",
        "%66ields=candidates",
        "%24fields=candidates",
        "%24%66ields=candidates",
        "FIELDS=candidates",
        "prettyPrint=false",
        "$alt=proto",
        "callback=f",
        "quotaUser=x",
    ];
    for variant in variants {
        for query in
            [format!("alt=sse&{variant}"), format!("{variant}&key={}&alt=sse", fixture.key)]
        {
            let answer = fixture
                .post(&format!("{ALT}?{query}"), &request("alt-cli", true))
                .send()
                .await
                .unwrap();
            assert_eq!(answer.status(), 200, "{query}");
            assert!(answer.text().await.unwrap().starts_with("data: "), "{query}");
            let seen = fixture.upstream.requests().await.pop().unwrap();
            let text = seen.to_string();
            let path = text.split(":streamGenerateContent").nth(1).unwrap();
            assert!(
                path.starts_with("?alt=sse\"") || seen["query"] == "alt=sse",
                "{query}: {seen}"
            );
        }
    }
    for query in ["alt=proto", "alt=media", "alt=sse&alt=json", "alt=sse%26fields=candidates"] {
        let sent = fixture.upstream.requests().await.len();
        let answer = fixture
            .post(&format!("{ALT}?{query}"), &request("alt-cli", true))
            .send()
            .await
            .unwrap();
        let (status, body) = (answer.status(), answer.text().await.unwrap());
        assert!(status == 400 && body.contains("alt"), "{query}: {status} {body}");
        assert_eq!(fixture.upstream.requests().await.len(), sent, "{query} went on");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_that_change_a_replys_form_do_not_go_on() {
    let fixture = Fixture::full().await;
    for format in FORMATS {
        let mut asked = fixture
            .post(path(format, false), &saying(format, false, &format!("hello in {format}")));
        for name in [
            "X-Goog-FieldMask",
            "x-goog-fieldmask",
            "X_Goog_FieldMask",
            "X-HTTP-Method-Override",
            "Prefer",
            "Range",
        ] {
            asked = asked.header(name, "candidates");
        }
        let answer = asked.header("accept", "application/x-protobuf").send().await.unwrap();
        assert_eq!(answer.status(), 200, "{format}");
        let headers = fixture.upstream.requests().await.pop().unwrap()["headers"].to_string();
        assert!(
            !headers.contains("candidates") && !headers.contains("protobuf"),
            "{format}: {headers}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_in_another_spelling_is_refused_by_name() {
    let fixture = Fixture::full().await;
    for (format, member, name) in [
        (
            "chat-compatible",
            r#""stream_options":{},"Stream_Options":{"include_usage":false}"#,
            "stream_options",
        ),
        ("chat-compatible", "\"\u{17f}tream_options\":{\"include_usage\":false}", "stream_options"),
        ("chat-compatible", r#""\u017ftream_options":{"include_usage":false}"#, "stream_options"),
        ("chat-compatible", r#""\u0073tream_options":{},"stream_options":{}"#, "stream_options"),
        (
            "chat-compatible",
            r#""stream_options":{"include_usage":true,"Include_Usage":false}"#,
            "include_usage",
        ),
        ("chat-compatible", "\"max_to\u{212a}ens\":5", "max_tokens"),
        ("chat-compatible", r#""Stream":false"#, "stream"),
        ("chat-compatible", r#""MODEL":"other""#, "model"),
        ("native", r#""Metadata":{}"#, "metadata"),
        ("native", r#""Max_Tokens":5"#, "max_tokens"),
        ("responses", r#""Max_Output_Tokens":5"#, "max_output_tokens"),
        ("alt-cli", r#""GenerationConfig":{"maxOutputTokens":5}"#, "generationConfig"),
    ] {
        let whole = request(format, true).to_string();
        let body = format!("{},{member}}}", &whole[..whole.len() - 1]);
        let answer =
            fixture.post(path(format, true), &Value::Null).body(body).send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert!(status == 400 && text.contains(name), "{member}: {status} {text}");
    }
    assert!(fixture.upstream.requests().await.is_empty(), "none of them went on");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_in_the_background_is_refused_by_default_in_pass_through_as_in_conversion() {
    for provider in FORMATS {
        let fixture = with(provider).await;
        for (name, value, refused) in [
            ("background", json!(true), 403),
            ("background", json!("true"), 403),
            ("Background", json!(true), 400),
        ] {
            let mut body = request("responses", false);
            body[name] = value;
            for path in ["/v1/responses", "/v1/chat/completions"] {
                if path.ends_with("completions") {
                    body["input"] = json!([{"role": "user", "content": "hello"}]);
                }
                let answer = fixture.post(path, &body).send().await.unwrap();
                let (status, text) = (answer.status(), answer.text().await.unwrap());
                assert!(
                    status == refused && text.contains("background"),
                    "{provider} {path} {name}: {status} {text}"
                );
            }
        }
        assert!(fixture.upstream.requests().await.is_empty(), "{provider}");
        let mut body = request("responses", false);
        body["background"] = json!(false);
        assert_eq!(
            fixture.post("/v1/responses", &body).send().await.unwrap().status(),
            200,
            "{provider}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn media_by_address_are_estimated_as_more_than_nothing() {
    let fixture = Fixture::full().await;
    fixture.upstream.default(json!({"no_usage": true, "strict": false, "text": "hello"})).await;
    let turn = |block: Value| json!([{"role": "user", "content": [block]}]);
    let bodies = [
        (
            "alt-cli",
            json!({"contents": [{"role": "user", "parts": [{"fileData": {"mimeType": "video/mp4", "fileUri": "https://x/y"}}]}]}),
        ),
        (
            "native",
            json!({"model": "m", "max_tokens": 100, "messages": turn(json!({"type": "document", "source": {"type": "url", "url": "https://x/y"}}))}),
        ),
        (
            "responses",
            json!({"model": "m", "input": turn(json!({"type": "input_file", "file_id": "file_1"}))}),
        ),
        (
            "chat-compatible",
            json!({"model": "m", "messages": turn(json!({"type": "file", "file": {"file_id": "file_1"}}))}),
        ),
    ];
    for (format, body) in &bodies {
        let answer = fixture.post(path(format, false), body).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{format}: {}", answer.text().await.unwrap());
    }
    for row in fixture.gateway.logs(bodies.len()).await {
        assert!(
            row["inputTokens"].as_u64().unwrap() >= 20_000 && row["estimated"] == true,
            "{row}"
        );
    }
}
