//! Requests that the administration makes on behalf of a key: the proxy's real path, only for those
//! who are permitted.

mod endpoints;
mod streams;

use serde_json::{Value, json};

use super::fixture::{FORMATS, Fixture, path, request};
use crate::support::gateway::ADMIN_TOKEN;
use crate::support::wait;

const OPERATION: &str = "actions/playground/sendRequest";

/// A request of the playground.
fn ask(key: i64, format: &str, stream: bool) -> Value {
    let body = request(format, stream).to_string();
    match format {
        "alt-cli" => {
            json!({"keyId": key, "format": format, "body": body, "model": "m", "stream": stream})
        }
        _ => json!({"keyId": key, "format": format, "body": body}),
    }
}

async fn send(
    client: &reqwest::Client,
    url: &str,
    credential: &str,
    body: &Value,
) -> reqwest::Response {
    client
        .post(format!("{url}/api/{OPERATION}"))
        .bearer_auth(credential)
        .json(body)
        .send()
        .await
        .unwrap()
}

/// The response.
struct Played {
    lines: Vec<Value>,
}

impl Played {
    async fn of(answer: reqwest::Response) -> Self {
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["content-type"], "application/x-ndjson");
        let text = answer.text().await.unwrap();
        Self { lines: text.lines().map(|line| serde_json::from_str(line).unwrap()).collect() }
    }

    fn one(&self, kind: &str) -> &Value {
        let found: Vec<_> = self.lines.iter().filter(|line| line["type"] == kind).collect();
        assert_eq!(found.len(), 1, "{:?}", self.lines);
        found[0]
    }

    fn request_id(&self) -> &str {
        self.one("begin")["requestId"].as_str().unwrap()
    }

    fn status(&self) -> &Value {
        &self.one("head")["status"]
    }

    fn header(&self, name: &str) -> Option<&str> {
        let headers = self.one("head")["headers"].as_array().unwrap();
        headers.iter().find(|header| header["name"] == name)?["value"].as_str()
    }

    fn body(&self) -> String {
        self.lines.iter().filter_map(|line| line["text"].as_str()).collect()
    }

    /// A body that is not a text.
    fn bytes(&self) -> String {
        self.lines.iter().filter_map(|line| line["base64"].as_str()).collect()
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body()).unwrap()
    }
}

async fn play(fixture: &Fixture, body: &Value) -> Played {
    Played::of(send(&fixture.gateway.client, &fixture.gateway.admin, ADMIN_TOKEN, body).await).await
}

#[tokio::test(flavor = "multi_thread")]
async fn each_format_streamed_and_whole_takes_the_real_path_and_is_recorded_with_its_cost() {
    let fixture = Fixture::bare(&[]).await;
    for kind in FORMATS {
        fixture.gateway.provider(kind, &fixture.upstream.url, json!({})).await;
    }
    let said =
        json!({"text": "grüß dich, 漢字 🦀", "usage": {"input": 1000, "output": 500}, "events": 5});
    fixture.upstream.default(said).await;
    let mut asked = 0;
    for format in FORMATS {
        for stream in [false, true] {
            asked += 1;
            let played = play(&fixture, &ask(fixture.key_id, format, stream)).await;
            let case = format!("{format}, {stream}: {:?}", played.lines);
            assert_eq!(played.one("begin")["path"], path(format, stream), "{case}");
            assert_eq!(played.status(), 200, "{case}");
            assert_eq!(played.header("x-tollgate-request-id"), Some(played.request_id()), "{case}");
            assert_eq!(
                played.header("content-type").unwrap().starts_with("text/event-stream"),
                stream,
                "{case}"
            );
            let end = played.one("end");
            assert_eq!((&end["complete"], &end["error"]), (&json!(true), &Value::Null), "{case}");
            let body = played.body();
            if stream {
                assert!(body.contains("data: "), "{case}");
            } else {
                assert!(body.contains("grüß dich, 漢字 🦀"), "{case}");
            }
            let row = fixture.gateway.logs(asked).await[0].clone();
            assert_eq!(row["requestId"], played.request_id(), "{row}");
            assert_eq!(
                (&row["keyId"], &row["clientFormat"], &row["streamed"]),
                (&json!(fixture.key_id), &json!(format), &json!(stream)),
                "{row}"
            );
            assert_eq!(row["costUsd"], 0.002, "{row}");
            assert!(
                row["userAgent"].as_str().unwrap().starts_with("tollgate-playground/"),
                "{row}"
            );
            assert_eq!(row["clientAddress"], "127.0.0.1", "{row}");
            let detail = fixture
                .gateway
                .admin("usage-logs/getUsageLogDetail", json!({"requestId": row["requestId"]}))
                .await;
            let chain = detail["entry"]["decisionChain"].as_array().unwrap();
            assert!(chain.iter().any(|step| step["step"] == "succeeded"), "{detail}");
            assert_eq!(detail["costLines"].as_array().unwrap().len(), 2, "{detail}");
        }
    }
    let usage =
        fixture.gateway.admin("keys/getKeyLimitUsage", json!({"keyId": fixture.key_id})).await;
    assert_eq!(usage["costTotal"]["current"], 0.016, "it counts like any other request: {usage}");
}

/// Two requests per format with one request a minute allowed: a refusal comes through, complete.
async fn a_limit_refuses(fixture: &Fixture) {
    fixture
        .gateway
        .admin("users/editUser", json!({"userId": fixture.user_id, "allowedModels": [], "rpm": 1}))
        .await;
    let mut limited = None;
    for format in FORMATS.into_iter().chain(FORMATS) {
        let played = play(fixture, &ask(fixture.key_id, format, true)).await;
        if played.status() == 429 {
            assert_eq!(played.json()["error"]["limit_type"], "user_rpm", "{format}");
            assert!(played.header("retry-after").is_some());
            limited = Some(played);
        }
    }
    let limited = limited.expect("a second request within the minute");
    // The database has a record some time after the reply.
    let is_there = async || {
        let of = json!({"statusCode": 429});
        fixture.gateway.admin("usage-logs/getUsageLogs", of).await["total"] != 0
    };
    wait::until(|| fixture.gateway.log(), is_there).await;
    assert_eq!(limited.one("end")["complete"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_come_through_with_their_body() {
    let fixture = Fixture::full().await;
    let not_json =
        json!({"keyId": fixture.key_id, "format": "native", "body": "{\"model\": \"m\","});
    let played = play(&fixture, &not_json).await;
    assert_eq!(played.status(), 400);
    assert_eq!(played.json()["type"], "error");
    let traversal = json!({"keyId": fixture.key_id, "format": "alt-cli", "body": "{}", "model": "a/../../v1/messages"});
    assert_eq!(
        play(&fixture, &traversal).await.status(),
        400,
        "a model cannot lead to another path"
    );
    fixture
        .gateway
        .admin("users/editUser", json!({"userId": fixture.user_id, "allowedModels": ["other"]}))
        .await;
    for format in FORMATS {
        let played = play(&fixture, &ask(fixture.key_id, format, true)).await;
        assert_eq!(
            (played.status(), played.header("x-should-retry")),
            (&json!(403), Some("false")),
            "{format}"
        );
        assert!(played.json()["error"]["message"].as_str().unwrap().contains("model"), "{format}");
    }
    a_limit_refuses(&fixture).await;
    let (_, second, _) = fixture.gateway.user(json!({"name": "bob"})).await;
    fixture.gateway.admin("keys/addKey", json!({"userId": fixture.user_id, "name": "spare"})).await;
    fixture
        .gateway
        .admin("keys/editKey", json!({"keyId": fixture.key_id, "isEnabled": false}))
        .await;
    let played = play(&fixture, &ask(fixture.key_id, "native", false)).await;
    assert_eq!(played.status(), 401);
    let rejected = fixture.gateway.admin("usage-logs/getRejectedRequests", json!({})).await;
    assert_eq!(rejected["entries"][0]["keyId"], fixture.key_id, "{rejected}");
    assert_eq!(
        play(&fixture, &ask(second, "native", false)).await.status(),
        200,
        "other keys work on"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn users_ask_as_their_own_keys_and_administrators_as_anyones_on_the_record() {
    let fixture = Fixture::native().await;
    let (bob, bobs, bobs_text) = fixture.gateway.user(json!({"name": "bob"})).await;
    let made = json!({"userId": bob, "name": "reads only", "canLoginWebUi": false});
    let read_only = fixture.gateway.admin("keys/addKey", made).await["generatedKey"]
        .as_str()
        .unwrap()
        .to_owned();
    let audited = async || {
        fixture
            .gateway
            .admin("audit/getAuditLog", json!({"action": "playground.sendRequest"}))
            .await
    };
    let as_ada = ask(fixture.key_id, "native", false);
    let unknown = ask(9_999, "native", false);
    for (credential, body, status) in [
        (bobs_text.as_str(), &as_ada, 403),
        (read_only.as_str(), &ask(bobs, "native", false), 403),
        ("sk-00000000000000000000000000000000", &as_ada, 401),
        (bobs_text.as_str(), &unknown, 400),
        (ADMIN_TOKEN, &unknown, 400),
    ] {
        let answer = send(&fixture.gateway.client, &fixture.gateway.admin, credential, body).await;
        assert_eq!(answer.status(), status, "{credential} {body}");
    }
    assert_eq!(audited().await["entries"], json!([]));
    let own = send(
        &fixture.gateway.client,
        &fixture.gateway.admin,
        &bobs_text,
        &ask(bobs, "native", false),
    )
    .await;
    assert_eq!(Played::of(own).await.status(), 200);
    assert_eq!(audited().await["entries"], json!([]), "one's own is in the usage log");
    let played = play(&fixture, &as_ada).await;
    let entry = audited().await["entries"][0].clone();
    assert_eq!(
        (&entry["actor"], &entry["target"], &entry["after"]["requestId"]),
        (
            &json!("admin token"),
            &json!(format!("key {}", fixture.key_id)),
            &json!(played.request_id())
        ),
        "{entry}"
    );
    assert!(
        !entry.to_string().contains("say hello"),
        "what was asked is not in the audit: {entry}"
    );
    let rows = fixture.gateway.logs(2).await;
    assert_eq!((&rows[0]["keyId"], &rows[1]["keyId"]), (&json!(fixture.key_id), &json!(bobs)));
    assert_eq!(fixture.upstream.requests().await.len(), 2, "what was refused went nowhere");
}

/// There is no ticket to steal: nothing that a playground request shows is of any use at the
/// listener.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_it_shows_opens_the_proxy_from_outside() {
    let fixture = Fixture::native().await;
    let played = play(&fixture, &ask(fixture.key_id, "native", false)).await;
    let sent = fixture.upstream.requests().await[0].to_string();
    assert!(!sent.contains(&fixture.key) && !sent.contains(ADMIN_TOKEN), "{sent}");
    let url = format!("{}/v1/messages", fixture.gateway.proxy);
    for name in [
        "authorization",
        "x-api-key",
        "x-tollgate-request-id",
        "x-tollgate-key",
        "proxy-authorization",
    ] {
        for value in [played.request_id(), &fixture.key_id.to_string()] {
            let value = if name.ends_with("authorization") {
                format!("Bearer {value}")
            } else {
                value.to_owned()
            };
            let post =
                fixture.gateway.client.post(&url).header(name, value).header("host", "localhost");
            let post = post.header("user-agent", "tollgate-playground/0.1.0");
            assert_eq!(
                post.json(&request("native", false)).send().await.unwrap().status(),
                401,
                "{name}"
            );
        }
    }
    assert_eq!(fixture.gateway.logs(1).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_needs_no_address_of_the_proxy_which_may_speak_tls_only() {
    let file = |name: &str| format!("{}/tests/admin/tls/{name}", env!("CARGO_MANIFEST_DIR"));
    let (cert, key) = (file("cert.pem"), file("key.pem"));
    let env =
        [("TOLLGATE_PROXY_TLS_CERT", cert.as_str()), ("TOLLGATE_PROXY_TLS_KEY", key.as_str())];
    let fixture = Fixture::native_with(&env).await;
    let played = play(&fixture, &ask(fixture.key_id, "native", true)).await;
    assert_eq!((played.status(), &played.one("end")["complete"]), (&json!(200), &json!(true)));
}
