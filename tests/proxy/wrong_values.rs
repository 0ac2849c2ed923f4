//! Values of the wrong type in a request that is converted: the answer names the field and says
//! what is expected, in words that are not the JSON reader's, and without the value. Whole numbers
//! may have a point.

use serde_json::{Value, json};

use super::fixture::{FORMATS, Fixture, path, request};

async fn provider(format: &str) -> Fixture {
    let fixture = Fixture::bare(&[]).await;
    let never_opens = json!({"circuit_breaker_failure_threshold": 0});
    fixture.gateway.provider(format, &fixture.upstream.url, never_opens).await;
    fixture
}

/// Another format than the client's.
fn other(format: &str) -> &'static str {
    if format == "native" { "chat-compatible" } else { "native" }
}

/// Fields whose value is a whole number, with the place of the one that the native and the
/// chat-compatible service get.
fn whole_numbers(format: &str) -> Vec<(&'static str, Option<&'static str>)> {
    match format {
        "native" => vec![("/max_tokens", Some("/max_tokens")), ("/top_k", None)],
        "responses" => vec![("/max_output_tokens", Some("/max_tokens"))],
        "chat-compatible" => vec![
            ("/max_tokens", Some("/max_tokens")),
            ("/max_completion_tokens", Some("/max_tokens")),
            ("/n", None),
            ("/top_k", Some("/top_k")),
            ("/seed", None),
        ],
        _ => vec![
            ("/generationConfig/maxOutputTokens", Some("/max_tokens")),
            ("/generationConfig/candidateCount", None),
            ("/generationConfig/topK", Some("/top_k")),
            ("/generationConfig/seed", None),
            ("/generationConfig/thinkingConfig/thinkingBudget", None),
        ],
    }
}

fn with(mut body: Value, place: &str, value: &Value) -> Value {
    let mut at = &mut body;
    for key in place.split('/').skip(1) {
        at = match key.parse::<usize>() {
            Ok(index) => &mut at[index],
            Err(_) => &mut at[key],
        };
    }
    *at = value.clone();
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn whole_numbers_may_have_a_point() {
    for client in FORMATS {
        let fixture = provider(other(client)).await;
        for (field, sent) in whole_numbers(client) {
            let value = if field.ends_with("ount") || field == "/n" { 1.0 } else { 20.0 };
            let mut body = with(request(client, false), field, &json!(value));
            if field == "/generationConfig/thinkingConfig/thinkingBudget" {
                body["generationConfig"]["maxOutputTokens"] = json!(4e3);
            }
            let answer = fixture.post(path(client, false), &body).send().await.unwrap();
            let (status, text) = (answer.status(), answer.text().await.unwrap());
            assert_eq!(status, 200, "{client} {field}: {text}");
            let seen = fixture.upstream.requests().await.pop().unwrap();
            let sent = sent.map(|sent| seen["body"].pointer(sent).cloned());
            assert!(sent.is_none_or(|sent| sent == Some(json!(20))), "{client} {field}: {seen}");
        }
    }
}

/// The readers' own words.
const RAW: [&str; 10] = [
    "invalid type",
    "invalid value",
    "expected u64",
    "expected i64",
    " struct",
    "sequence",
    "JSON number",
    " at line ",
    "column",
    "SECRET",
];

/// The list of messages, and members of other types with what is said of them.
fn members(client: &str) -> (&'static str, &'static [(&'static str, &'static str)]) {
    match client {
        "native" => (
            "messages",
            &[
                ("/temperature", "a number is expected"),
                ("/messages/0/role", "a string is expected"),
                ("/tools", "an array is expected"),
                ("/metadata", "an object is expected"),
                ("/thinking", "an object is expected"),
            ],
        ),
        "responses" => (
            "input",
            &[
                ("/temperature", "a number is expected"),
                ("/instructions", "a string is expected"),
                ("/tools", "an array is expected"),
                ("/reasoning", "an object is expected"),
                ("/parallel_tool_calls", "a boolean is expected"),
            ],
        ),
        "chat-compatible" => (
            "messages",
            &[
                ("/temperature", "a number is expected"),
                ("/messages/0/role", "a string is expected"),
                ("/tools", "an array is expected"),
                ("/response_format", "an object is expected"),
                ("/parallel_tool_calls", "a boolean is expected"),
            ],
        ),
        _ => (
            "contents",
            &[
                ("/generationConfig/temperature", "a number is expected"),
                ("/tools", "an array is expected"),
                ("/generationConfig", "an object is expected"),
                ("/contents/0/parts/0/inlineData", "an object is expected"),
            ],
        ),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_types_are_told_in_the_programs_own_words() {
    let texts = [json!("SECRET at line 3"), json!(["SECRET"]), json!({"SECRET": 1}), json!(true)];
    for client in FORMATS {
        let fixture = provider(other(client)).await;
        let (list, others) = members(client);
        let counts = whole_numbers(client)
            .into_iter()
            .map(|(field, _)| field)
            .filter(|field| !field.ends_with("seed") && !field.to_ascii_lowercase().ends_with("k"));
        let fields = counts.map(|field| (field, "a whole number is expected"));
        for (field, expected) in fields.chain(others.iter().copied()) {
            let halves = [json!(1.5), json!(-1), json!(-0.5)];
            let is_count = expected.starts_with("a whole") && !field.ends_with("Budget");
            for value in texts.iter().chain(halves.iter().filter(|_| is_count)) {
                let fits = match expected {
                    "a boolean is expected" => value.is_boolean(),
                    "an array is expected" => value.is_array(),
                    "an object is expected" => value.is_object() || value.is_array(),
                    "a string is expected" => value.is_string(),
                    _ => false,
                };
                if fits {
                    continue;
                }
                let body = with(request(client, false), field, value);
                let answer = fixture.post(path(client, false), &body).send().await.unwrap();
                let (status, text) = (answer.status(), answer.text().await.unwrap());
                assert_eq!(status, 400, "{client} {field} {value}: {text}");
                assert!(text.contains(expected), "{client} {field} {value}: {text}");
                let name = field.rsplit('/').next().unwrap();
                assert!(text.contains(name), "{client} {field} {value}: {text}");
                let raw = RAW.iter().find(|raw| text.contains(**raw));
                assert_eq!(raw, None, "{client} {field} {value}: {text}");
            }
        }
        // The list of messages itself is checked before.
        let body = with(request(client, false), &format!("/{list}"), &json!(7));
        let answer = fixture.post(path(client, false), &body).send().await.unwrap();
        assert_eq!(answer.status(), 400);
        let text = answer.text().await.unwrap();
        assert!(text.contains(list) && !RAW.iter().any(|raw| text.contains(raw)), "{text}");
    }
}
