//! The configuration changes while a request's body is still on its way.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::fixture::{Fixture, request};

/// A request whose head has arrived, and the rest of its body.
struct Slow {
    connection: TcpStream,
    rest: Vec<u8>,
}

impl Slow {
    async fn begin(fixture: &Fixture) -> Self {
        let body = request("native", false).to_string();
        let mut connection = TcpStream::connect(fixture.gateway.proxy_addr()).await.unwrap();
        let head = format!(
            "POST /v1/messages HTTP/1.1\r\nhost: gate\r\nx-api-key: {}\r\nexpect: 100-continue\r\n\
             content-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            fixture.key,
            body.len()
        );
        connection.write_all(head.as_bytes()).await.unwrap();
        // The gateway asks for the body once the caller is known.
        let mut answer = [0; 25];
        connection.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 100 Continue\r\n\r\n");
        let (part, rest) = body.as_bytes().split_at(50);
        connection.write_all(part).await.unwrap();
        Self { connection, rest: rest.to_vec() }
    }

    /// Sends the rest. Returns the status and the body of the answer.
    async fn end(mut self) -> (u16, String) {
        self.connection.write_all(&self.rest).await.unwrap();
        let mut answer = Vec::new();
        self.connection.read_to_end(&mut answer).await.unwrap();
        let answer = String::from_utf8(answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_counts_for_a_request_whose_body_arrives_after_it() {
    for (action, change, status, text) in [
        ("keys/removeKey", json!({"keyId": "KEY"}), 401, "not known"),
        ("users/editUser", json!({"userId": "USER", "isEnabled": false}), 401, "disabled"),
        ("users/editUser", json!({"userId": "USER", "limitTotalUsd": 0}), 429, "limit"),
        ("users/editUser", json!({"userId": "USER", "allowedModels": ["other"]}), 403, "model"),
        (
            "sensitive-words/createSensitiveWordAction",
            json!({"word": "say hello", "matchType": "contains"}),
            403,
            "content",
        ),
        (
            "providers/editProvider",
            json!({"providerId": 1, "is_enabled": false}),
            404,
            "no provider",
        ),
    ] {
        let fixture = Fixture::native().await;
        // A user must have one key.
        fixture
            .gateway
            .admin("keys/addKey", json!({"userId": fixture.user_id, "name": "spare"}))
            .await;
        let slow = Slow::begin(&fixture).await;
        let untouched = Slow::begin(&fixture).await;
        assert_eq!(untouched.end().await.0, 200, "nothing has changed");
        let mut change: Value = change;
        for (member, id) in [("keyId", fixture.key_id), ("userId", fixture.user_id)] {
            if change.get(member).is_some() {
                change[member] = json!(id);
            }
        }
        fixture.gateway.admin(action, change.clone()).await;
        let next = fixture.ask().send().await.unwrap().status().as_u16();
        let (slow_status, answer) = slow.end().await;
        assert_eq!(next, status, "{action} {change}");
        assert_eq!(slow_status, status, "{action} {change}: {answer}");
        assert!(answer.to_lowercase().contains(text), "{action} {change}: {answer}");
        assert_eq!(fixture.upstream.requests().await.len(), 1, "{action} {change}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_request_whose_key_was_deleted_meanwhile_is_recorded_and_frees_its_place() {
    let fixture = Fixture::native().await;
    let user = fixture.user_id;
    fixture.gateway.admin("keys/addKey", json!({"userId": user, "name": "spare"})).await;
    let slow = Slow::begin(&fixture).await;
    fixture.gateway.admin("keys/removeKey", json!({"keyId": fixture.key_id})).await;
    assert_eq!(slow.end().await.0, 401);
    let row = &fixture.gateway.logs(1).await[0];
    assert_eq!(row["outcome"], "refused", "{row}");
    assert_eq!((&row["statusCode"], &row["costUsd"]), (&json!(401), &json!(0)), "{row}");
    fixture.gateway.metric_shows("tollgate_requests_in_flight", |live| live == 0.0).await;
}
