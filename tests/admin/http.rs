//! Properties of every request: envelope, statuses, size, headers.

use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::gate::{Gate, NOON, Reply, TOKEN};

#[tokio::test]
async fn what_is_not_there_is_404_in_the_envelope() {
    let gate = Gate::start().await;
    for path in [
        "/api/actions/keys/nothing",
        "/api/actions",
        "/api/",
        "/api/nothing",
        "/nothing",
        "/api/actions/keys",
    ] {
        let reply =
            Reply::of(gate.http.post(format!("{}{path}", gate.url)).bearer_auth(TOKEN)).await;
        assert_eq!(reply.failure(), (404, "NOT_FOUND"), "{path}");
    }
}

#[tokio::test]
async fn a_body_must_be_a_json_object() {
    let gate = Gate::start().await;
    for body in ["[]", "1", "null", "\"x\"", "{", "{\"name\":}", "name=x", "\u{feff}{}"] {
        let request = gate.post("actions/users/getUsers").bearer_auth(TOKEN).body(body);
        assert_eq!(Reply::of(request).await.failure(), (400, "INVALID_FORMAT"), "{body}");
    }
    let invalid = gate.post("actions/users/getUsers").bearer_auth(TOKEN).body(vec![0xff, 0xfe]);
    assert_eq!(Reply::of(invalid).await.failure(), (400, "INVALID_FORMAT"));
    let deep = "[".repeat(100_000);
    let request = gate.post("actions/users/getUsers").bearer_auth(TOKEN).body(deep);
    assert_eq!(Reply::of(request).await.failure(), (400, "INVALID_FORMAT"));
    for body in ["", "  ", "{}", " {} "] {
        assert!(
            Reply::of(gate.post("actions/users/getUsers").bearer_auth(TOKEN).body(body))
                .await
                .data()
                .is_array()
        );
    }
}

#[tokio::test]
async fn the_caller_is_checked_before_the_body() {
    let gate = Gate::start().await;
    let reply = Reply::of(gate.post("actions/users/addUser").body("not json")).await;
    assert_eq!(reply.failure(), (401, "UNAUTHORIZED"));
    assert_eq!(reply.headers["www-authenticate"], "Bearer");
    let huge = Reply::of(gate.post("actions/users/addUser").body("x".repeat(2 << 20))).await;
    assert_eq!(huge.failure(), (401, "UNAUTHORIZED"));
}

#[tokio::test]
async fn bodies_are_bounded_with_and_without_an_announced_length() {
    let gate = Gate::start().await;
    let large = format!("{{\"name\":\"{}\"}}", "x".repeat(1 << 20));
    let announced = gate.post("actions/users/addUser").bearer_auth(TOKEN).body(large.clone());
    assert_eq!(Reply::of(announced).await.failure(), (413, "PAYLOAD_TOO_LARGE"));
    assert_eq!(chunked(&gate, large.as_bytes()).await, "HTTP/1.1 413 Payload Too Large");
    assert_eq!(gate.admin("users/getUsers", json!({})).await.data(), json!([]));
}

#[tokio::test]
async fn every_reply_has_the_security_headers_and_health_is_plain() {
    let gate = Gate::start().await;
    let health = Reply::of(gate.http.get(format!("{}/api/actions/health", gate.url))).await;
    assert_eq!(
        health.body,
        json!({ "status": "ok", "timestamp": NOON.to_iso(), "version": "1.2.3" })
    );
    let missing = Reply::of(gate.http.get(format!("{}/api/nothing", gate.url))).await;
    for reply in [health, missing, gate.admin("users/getUsers", json!({})).await] {
        let headers = reply.headers;
        assert_eq!(headers["x-content-type-options"], "nosniff");
        assert_eq!(headers["x-frame-options"], "DENY");
        assert_eq!(headers["referrer-policy"], "no-referrer");
        assert_eq!(headers["cache-control"], "no-store");
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert!(policy.contains("default-src 'self'") && policy.contains("frame-ancestors 'none'"));
        assert!(!policy.contains("unsafe"));
    }
}

#[tokio::test]
async fn a_database_that_is_away_is_named_with_a_request_id_and_nothing_else() {
    let gate = Gate::start().await;
    gate.store.close().await;
    let reply = gate.admin("users/addUser", json!({ "name": "x" })).await;
    assert_eq!(reply.failure(), (503, "CREATE_FAILED"));
    let cause = format!("the database cannot be reached since {}", super::gate::NOON.to_iso());
    assert_eq!(
        reply.body["error"],
        format!("{cause}. Unless it broke off in the very moment of saving, nothing was changed")
    );
    assert_eq!(reply.body["errorParams"]["reason"], "database_unreachable");
    assert_eq!(reply.headers["retry-after"], "5");
    assert_eq!(reply.body["errorParams"]["requestId"].as_str().unwrap().len(), 36);
    let read = gate.admin("providers/getProviders", json!({})).await;
    assert_eq!((read.failure(), &read.body["error"]), ((503, "OPERATION_FAILED"), &json!(cause)));
}

/// Sends a body of unannounced length; returns the status line.
async fn chunked(gate: &Gate, body: &[u8]) -> String {
    let address = gate.url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /api/actions/users/addUser HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\n\
         Transfer-Encoding: chunked\r\n\r\n{:x}\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let (mut reading, mut writing) = stream.split();
    let mut line = String::new();
    // The gateway may answer, and close, before it has read everything.
    let send = async {
        let _ = writing.write_all(body).await;
        let _ = writing.write_all(b"\r\n0\r\n\r\n").await;
    };
    let mut reader = BufReader::new(&mut reading);
    let (_, read) = tokio::join!(send, reader.read_line(&mut line));
    read.unwrap();
    line.trim_end().to_owned()
}
