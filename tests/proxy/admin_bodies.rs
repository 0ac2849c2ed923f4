//! The administration on the proxy's listener: answered from the head, bodies within separate
//! bounds.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::fixture::Fixture;
use crate::resilience::raw::read_message;
use crate::support::gateway::ADMIN_TOKEN;
use crate::support::unread::taken;

const EXPOSED: (&str, &str) = ("TOLLGATE_PROXY_EXPOSE_ADMIN", "true");

/// A POST's head; `fields` end each with a line break.
fn head(path: &str, fields: &str) -> String {
    format!(
        "POST /api/{path} HTTP/1.1\r\nhost: gate\r\ncontent-type: application/json\r\n{fields}\r\n"
    )
}

fn as_admin(fields: &str) -> String {
    format!("authorization: Bearer {ADMIN_TOKEN}\r\n{fields}")
}

/// Sends these bytes and reads one answer: its status and its body.
async fn ask(tcp: &mut TcpStream, bytes: &str) -> (u16, Value) {
    tcp.write_all(bytes.as_bytes()).await.unwrap();
    let (head, body) = read_message(tcp).await.expect("an answer, and not a closed connection");
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

/// Both listeners' addresses.
fn listeners(fixture: &Fixture) -> [String; 2] {
    [&fixture.gateway.proxy, &fixture.gateway.admin]
        .map(|url| url.trim_start_matches("http://").to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_is_answered_from_the_head_whatever_body_is_announced() {
    let fixture = Fixture::bare(&[EXPOSED]).await;
    let gigabyte = "content-length: 1073741824\r\n";
    let foreign =
        format!("origin: https://evil.example\r\ncookie: auth-token={ADMIN_TOKEN}\r\n{gigabyte}");
    for listener in listeners(&fixture) {
        let cases = [
            ("anonymous", head("actions/users/addUser", gigabyte), 401, "UNAUTHORIZED"),
            (
                "anonymous, in chunks",
                head("actions/users/addUser", "transfer-encoding: chunked\r\n"),
                401,
                "UNAUTHORIZED",
            ),
            (
                "a wrong cookie",
                head("actions/users/addUser", &format!("cookie: auth-token=x\r\n{gigabyte}")),
                401,
                "UNAUTHORIZED",
            ),
            ("another origin", head("actions/users/addUser", &foreign), 403, "PERMISSION_DENIED"),
            ("no such operation", head("actions/nobody/knows", gigabyte), 404, "NOT_FOUND"),
            (
                "an operation that is read",
                head("actions/health", gigabyte),
                405,
                "METHOD_NOT_ALLOWED",
            ),
            (
                "an administrator",
                head("actions/users/addUser", &as_admin(gigabyte)),
                413,
                "PAYLOAD_TOO_LARGE",
            ),
            ("a login", head("auth/login", "content-length: 5000\r\n"), 413, "PAYLOAD_TOO_LARGE"),
        ];
        for (who, request, status, code) in cases {
            let mut tcp = TcpStream::connect(&listener).await.unwrap();
            let (got, body) = ask(&mut tcp, &request).await;
            assert_eq!(
                (got, &body["errorCode"]),
                (status, &json!(code)),
                "{who} at {listener}: {body}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_request_keeps_its_connection_and_trickled_bodies_do_not_wait() {
    let fixture = Fixture::bare(&[EXPOSED]).await;
    let whoami = head("auth/whoami", &as_admin("content-length: 2\r\n")) + "{}";
    for listener in listeners(&fixture) {
        let mut tcp = TcpStream::connect(&listener).await.unwrap();
        let refused =
            head("actions/users/addUser", "cookie: auth-token=wrong\r\ncontent-length: 12\r\n");
        assert_eq!(ask(&mut tcp, &refused).await.0, 401, "{listener}");
        for byte in ["{\"name\":", "\"a\"", "}"] {
            tcp.write_all(byte.as_bytes()).await.unwrap();
            taken(&tcp).await;
        }
        let (status, body) = ask(&mut tcp, &whoami).await;
        assert_eq!((status, &body["data"]["role"]), (200, &json!("admin")), "{listener}: {body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_is_bounded_at_one_mebibyte_however_it_comes() {
    let fixture = Fixture::bare(&[EXPOSED]).await;
    for listener in listeners(&fixture) {
        let tcp = TcpStream::connect(&listener).await.unwrap();
        let (mut reading, mut writing) = tcp.into_split();
        let request = head("actions/users/addUser", &as_admin("transfer-encoding: chunked\r\n"));
        let sending = tokio::spawn(async move {
            writing.write_all(request.as_bytes()).await.unwrap();
            let piece = format!("10000\r\n{}\r\n", "x".repeat(65_536));
            // The gateway reads the rest for some seconds, so that its answer is read.
            for _ in 0..64 {
                if writing.write_all(piece.as_bytes()).await.is_err() {
                    break;
                }
            }
            writing
        });
        let mut got = vec![0; 12];
        reading.read_exact(&mut got).await.unwrap();
        assert_eq!(got.escape_ascii().to_string(), "HTTP/1.1 413", "{listener}");
        sending.await.unwrap();
    }
    let mut tcp = TcpStream::connect(fixture.gateway.proxy_addr()).await.unwrap();
    let waits =
        head("actions/users/addUser", &as_admin("expect: 100-continue\r\ncontent-length: 14\r\n"));
    assert_eq!(ask(&mut tcp, &waits).await.0, 100);
    assert_eq!(ask(&mut tcp, "{\"name\":\"bob\"}").await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn administration_bodies_take_nothing_of_the_data_planes_budget() {
    let bounds = [
        EXPOSED,
        ("TOLLGATE_PROXY_MAX_BODY_BYTES", "64KiB"),
        ("TOLLGATE_PROXY_MAX_INFLIGHT_BODY_BYTES", "64KiB"),
    ];
    let fixture = Fixture::bare(&bounds).await;
    fixture.gateway.provider("native", &fixture.upstream.url, json!({})).await;
    let mut held = Vec::new();
    for _ in 0..4 {
        let mut tcp = TcpStream::connect(fixture.gateway.proxy_addr()).await.unwrap();
        let request = head("actions/users/addUser", &as_admin("content-length: 60000\r\n"));
        tcp.write_all(format!("{request}{{\"name\":\"{}", "x".repeat(50_000)).as_bytes())
            .await
            .unwrap();
        held.push(tcp);
    }
    // Requests on the same listener later than those bodies.
    for _ in 0..5 {
        assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
        assert_eq!(fixture.gateway.metric("tollgate_request_body_bytes").await, 0.0);
    }
    // Larger than the data plane's bound for one body, which does not apply.
    let note =
        format!("{}{{\"name\":\"ann\",\"note\":\"{}\"}}", " ".repeat(100_000), "n".repeat(100));
    let mut tcp = TcpStream::connect(fixture.gateway.proxy_addr()).await.unwrap();
    let fields = as_admin(&format!("content-length: {}\r\n", note.len()));
    assert_eq!(ask(&mut tcp, &(head("actions/users/addUser", &fields) + &note)).await.0, 200);
    drop(held);
}
