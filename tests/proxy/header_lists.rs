//! Which headers go on, in both directions: those on a list, and nothing else.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::fixture::{FORMATS, Fixture, path, saying};

/// What real clients send, and the formats define.
const OF_CLIENTS: [&str; 27] = [
    "accept",
    "accept-language",
    "anthropic-beta",
    "anthropic-dangerous-direct-browser-access",
    "anthropic-version",
    "idempotency-key",
    "openai-beta",
    "originator",
    "session-id",
    "session_id",
    "thread-id",
    "traceparent",
    "tracestate",
    "user-agent",
    "version",
    "x-app",
    "x-claude-code-session-id",
    "x-client-request-id",
    "x-codex-turn-metadata",
    "x-goog-api-client",
    "x-openai-subagent",
    "x-server-timeout",
    "x-session-affinity",
    "x-session-id",
    "x-stainless-lang",
    "x-stainless-retry-count",
    "x-stainless-timeout",
];

/// Those that choose an account, an address, a key or another reply; and others that no format has.
/// (`anthropic-workspace-id` and `anthropic-user-profile-id` are refused: see `features.rs`.)
const OF_NO_FORMAT: [&str; 32] = [
    "openai-organization",
    "openai-project",
    "x-goog-user-project",
    "anthropic-organization-id",
    "chatgpt-account-id",
    "helicone-auth",
    "helicone-target-url",
    "x-portkey-config",
    "x-portkey-provider",
    "cf-aig-authorization",
    "cf-aig-custom-cost",
    "x-litellm-api-key",
    "x-litellm-tags",
    "x-goog-request-params",
    "x-goog-fieldmask",
    "x-http-method-override",
    "x-original-url",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-real-ip",
    "x-amz-security-token",
    "x-ms-client-request-id",
    "azureml-model-deployment",
    "cookie",
    "referer",
    "origin",
    "proxy-authorization",
    "range",
    "prefer",
    "baggage",
    "x-initiator",
    "copilot-integration-id",
];

/// Names that nobody has heard of.
fn generated(rng: &mut fastrand::Rng) -> BTreeSet<String> {
    const STARTS: [&str; 12] = [
        "x-",
        "x-anthropic-",
        "anthropic-",
        "openai-",
        "x-openai-",
        "x-goog-",
        "cf-",
        "helicone-",
        "x-portkey-",
        "x-litellm-",
        "gemini-",
        "",
    ];
    let one = |start: &&str, rng: &mut fastrand::Rng| {
        let word: String = (0..rng.usize(4..12)).map(|_| rng.lowercase()).collect();
        format!("{start}{word}-q")
    };
    (0..15).flat_map(|_| STARTS.iter().map(|start| one(start, rng)).collect::<Vec<_>>()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn request_headers_go_on_by_a_list() {
    let fixture = Fixture::full().await;
    let unknown = generated(&mut fastrand::Rng::with_seed(13));
    for format in FORMATS {
        let text = format!("hello in {format}");
        let mut asked = fixture.post(path(format, false), &saying(format, false, &text));
        // Each format is a session of its own: a session would stay with its provider.
        let own = format!("planted-{format}");
        for name in OF_CLIENTS {
            asked = asked.header(name, if name == "accept" { "*/*" } else { &own });
        }
        for name in OF_NO_FORMAT.into_iter().chain(unknown.iter().map(String::as_str)) {
            asked = asked.header(name, "stays");
        }
        assert_eq!(asked.send().await.unwrap().status(), 200, "{format}");
        let sent = fixture.upstream.requests().await.pop().unwrap()["headers"].clone();
        let names: BTreeSet<&str> = sent.as_object().unwrap().keys().map(String::as_str).collect();
        let own = [
            "authorization",
            "content-length",
            "content-type",
            "host",
            "x-api-key",
            "x-goog-api-key",
        ];
        for name in OF_CLIENTS {
            assert!(names.contains(name), "{format}: {name} does not go on: {sent}");
        }
        let others: Vec<_> =
            names.iter().filter(|name| !OF_CLIENTS.contains(name) && !own.contains(name)).collect();
        assert!(others.is_empty() && !sent.to_string().contains("stays"), "{format}: {others:?}");
        assert!(sent["content-type"].to_string().contains("application/json"), "{format}: {sent}");
    }
}

/// What describes one reply.
const OF_REPLIES: [&str; 6] = [
    "request-id",
    "x-request-id",
    "openai-processing-ms",
    "openai-version",
    "warning",
    "deprecation",
];

/// What a browser or a proxy would obey, and what describes the operator's account.
const COMMANDS: [&str; 38] = [
    "x-accel-redirect",
    "x-accel-buffering",
    "x-accel-expires",
    "x-sendfile",
    "x-lighttpd-send-file",
    "x-reproxy-url",
    "refresh",
    "location",
    "link",
    "set-cookie",
    "set-cookie2",
    "access-control-allow-origin",
    "access-control-allow-credentials",
    "access-control-expose-headers",
    "clear-site-data",
    "content-disposition",
    "content-security-policy",
    "content-location",
    "cross-origin-opener-policy",
    "cross-origin-resource-policy",
    "permissions-policy",
    "referrer-policy",
    "alt-svc",
    "strict-transport-security",
    "service-worker-allowed",
    "sourcemap",
    "origin-trial",
    "nel",
    "report-to",
    "reporting-endpoints",
    "expect-ct",
    "www-authenticate",
    "proxy-authenticate",
    "surrogate-control",
    "cdn-cache-control",
    "x-envoy-immediate-health-check-fail",
    "x-frame-options",
    "x-tollgate-session-id",
];

fn with_headers(mut directive: Value, unknown: &BTreeSet<String>) -> Value {
    let names = OF_REPLIES.iter().map(|name| (*name).to_owned());
    let obeyed = COMMANDS.iter().map(|name| (*name).to_owned()).chain(unknown.iter().cloned());
    let all = names.map(|name| (name, json!("told"))).chain(obeyed.map(|n| (n, json!("obey"))));
    directive["headers"] = Value::Object(all.collect());
    directive
}

/// The names of a reply's headers beside the gateway's own; its type is the format's.
fn checked(answer: &reqwest::Response, kind: &str, what: &str) -> BTreeSet<String> {
    let headers = answer.headers();
    assert_eq!(headers["content-type"], kind, "{what}: {headers:?}");
    assert_eq!(headers["x-content-type-options"], "nosniff", "{what}: {headers:?}");
    let is_own = |name: &str| {
        let own = [
            "content-type",
            "content-length",
            "transfer-encoding",
            "x-content-type-options",
            "connection",
            "cache-control",
            "date",
        ];
        own.contains(&name) || name.starts_with("x-tollgate-") || name.contains("ratelimit")
    };
    let foreign = headers.iter().filter(|(_, value)| *value == "obey");
    assert_eq!(foreign.count(), 0, "{what}: {headers:?}");
    headers.keys().map(|name| name.as_str().to_owned()).filter(|name| !is_own(name)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn reply_headers_go_on_by_a_list_and_the_type_is_the_formats() {
    let unknown = generated(&mut fastrand::Rng::with_seed(11));
    let told: BTreeSet<String> = OF_REPLIES.iter().map(|name| (*name).to_owned()).collect();
    for (mode, kinds) in [
        ("hide", &["image/svg+xml", "application/xhtml+xml", "text/xml"][..]),
        ("pass", &["application/javascript", "application/json; charset=utf-7"]),
    ] {
        let fixture = Fixture::bare(&[("TOLLGATE_PROXY_PROVIDER_HEADERS", mode)]).await;
        for format in FORMATS {
            fixture.gateway.provider(format, &fixture.upstream.url, json!({})).await;
        }
        for kind in kinds {
            let directive = json!({"content_type": kind});
            fixture.upstream.default(with_headers(directive, &unknown)).await;
            for format in FORMATS {
                for stream in [false, true] {
                    let what = format!("{mode} {kind} {format} {stream}");
                    let text = format!("hello in {format}");
                    let asked = fixture.post(path(format, stream), &saying(format, stream, &text));
                    let answer = asked.send().await.unwrap();
                    assert_eq!(answer.status(), 200, "{what}");
                    let own = if stream { "text/event-stream" } else { "application/json" };
                    assert_eq!(checked(&answer, own, &what), told, "{what}");
                    assert!(answer.text().await.unwrap().len() > 10, "{what}");
                }
            }
        }
    }
}

/// Errors, refusals, lists and counts.
#[tokio::test(flavor = "multi_thread")]
async fn every_other_answer_has_the_formats_type_too() {
    let unknown = generated(&mut fastrand::Rng::with_seed(12));
    let fixture = Fixture::bare(&[("TOLLGATE_PROXY_PROVIDER_HEADERS", "pass")]).await;
    for format in FORMATS {
        let fields = json!({"circuit_breaker_failure_threshold": 0, "max_retry_attempts": 1});
        fixture.gateway.provider(format, &fixture.upstream.url, fields).await;
    }
    for error in [
        json!({"status": 400, "error": {"type": "invalid_request_error", "message": "as told",
            "code": "prompt_too_long"}, "content_type": "text/html"}),
        json!({"status": 400, "body": "<html><script>1</script></html>",
            "content_type": "text/html"}),
        json!({"status": 500, "body": "<svg/>", "content_type": "image/svg+xml"}),
        json!({"status": 302, "body": "", "content_type": "text/html"}),
    ] {
        fixture.upstream.default(with_headers(error.clone(), &unknown)).await;
        for format in FORMATS {
            let text = format!("hello in {format}");
            let asked = fixture.post(path(format, false), &saying(format, false, &text));
            let answer = asked.send().await.unwrap();
            assert!(answer.status().as_u16() >= 400, "{error}");
            checked(&answer, "application/json", &format!("{error} {format}"));
            let body: Value = answer.json().await.unwrap();
            assert!(body["error"].is_object(), "{error} {format}: {body}");
        }
    }
    fixture.upstream.default(with_headers(json!({"content_type": "text/html"}), &unknown)).await;
    let counted = fixture.post("/v1/messages/count_tokens", &saying("native", false, "count"));
    checked(&counted.send().await.unwrap(), "application/json", "a count");
    for listed in ["/v1/models", "/v1beta/models", "/v1/models/m", "/nowhere"] {
        let url = format!("{}{listed}", fixture.gateway.proxy);
        let asked = fixture.gateway.client.get(url).bearer_auth(&fixture.key);
        checked(&asked.send().await.unwrap(), "application/json", listed);
    }
}
