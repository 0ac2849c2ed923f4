//! Proxies that refuse, lie, or never answer: each has its own words in the attempt and in a test of
//! the provider, and none shows a part of the login.

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::mock::{Kind, MockProxy};
use super::{ENCODED, PASSWORD, PROVIDER, tested};
use crate::proxy::fixture::Fixture;
use crate::support::gateway::free_port;

/// Sends this to every connection, and closes it; with nothing to send, it keeps it open.
async fn hostile(says: Vec<u8>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok((mut tcp, _)) = listener.accept().await {
            let _ = tcp.read(&mut [0; 4096]).await;
            let _ = tcp.write_all(&says).await;
            if says.is_empty() {
                kept.push(tcp);
            } else {
                let _ = tcp.shutdown().await;
            }
        }
    });
    port
}

/// The words of the last attempt.
async fn why(fixture: &Fixture, rows: usize) -> String {
    let row = fixture.gateway.logs(rows).await.remove(0);
    let detail = json!({"requestId": row["requestId"]});
    fixture.gateway.admin("usage-logs/getUsageLogDetail", detail).await.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_failure_has_its_own_words() {
    let fixture = Fixture::bare(&[]).await;
    let none = "http://127.0.0.1:1";
    let login = Some(("user", PASSWORD));
    let http = MockProxy::start(Kind::Http, login, none).await.port;
    let socks = MockProxy::start(Kind::Socks, login, none).await.port;
    let open = MockProxy::start(Kind::Http, None, none).await.port;
    let long = [b"HTTP/1.1 200 ".as_slice(), &[b'a'; 9000]].concat();
    let greets = |rest: &[u8]| [&[5, 0][..], rest].concat();
    let with = |scheme: &str, port: u16| format!("{scheme}://user:{ENCODED}@localhost:{port}");
    let mut cases = vec![
        (format!("http://localhost:{http}"), "proxy_login", "requires a login"),
        (format!("http://user:wrong-one@localhost:{http}"), "proxy_login", "refused the login"),
        (format!("socks5://localhost:{socks}"), "proxy_login", "requires a login"),
        (format!("socks5://user:wrong-one@localhost:{socks}"), "proxy_login", "refused the login"),
        (with("http", http), "proxy_refused", "did not connect: it answered 503"),
        (with("socks5", socks), "proxy_refused", "the target refused the connection"),
        (format!("http://localhost:{open}"), "proxy_refused", "it answered 503"),
        (with("http", free_port()), "proxy_unreachable", "cannot be reached"),
    ];
    for (scheme, says, words) in [
        ("http", b"SSH-2.0-OpenSSH\r\n".to_vec(), "does not speak HTTP"),
        ("http", b"HTTP/1.1 2000 OK\r\n\r\n".to_vec(), "does not speak HTTP"),
        ("http", long, "does not speak HTTP"),
        ("http", b"HTTP/1.1 200 OK\r\n".to_vec(), "closed the connection"),
        ("https", b"HTTP/1.1 400 no\r\n\r\n".to_vec(), "has no secure connection"),
        ("socks5", b"HTTP/1.1 400 no\r\n\r\n".to_vec(), "does not speak SOCKS5"),
        ("socks5", vec![5], "closed the connection"),
        ("socks5", greets(&[5, 4, 0, 1]), "its name does not resolve"),
        ("socks5", greets(&[5, 2, 0, 1]), "its rules do not allow this target"),
        ("socks5", greets(&[5, 99, 0, 1]), "an unknown reply"),
        ("socks5", greets(&[5, 0, 0, 9]), "does not speak SOCKS5"),
        ("socks5", greets(&[5, 0, 0, 3, 255, 1]), "closed the connection"),
    ] {
        let code = if words.starts_with("its ") || words.starts_with("an ") {
            "proxy_refused"
        } else {
            "proxy_unreachable"
        };
        cases.push((with(scheme, hostile(says).await), code, words));
    }
    let mut id = 0;
    for (row, (url, code, words)) in (1..).zip(cases) {
        if id != 0 {
            fixture.gateway.admin("providers/removeProvider", json!({"providerId": id})).await;
        }
        let fields = json!({"proxy_url": url, "max_retry_attempts": 1});
        id = fixture.gateway.provider("native", PROVIDER, fields).await;
        assert_eq!(fixture.ask().send().await.unwrap().status(), 502, "{url}");
        let attempt = why(&fixture, row).await;
        assert!(attempt.contains(words), "{url}: {words}: {attempt}");
        let result = tested(&fixture, id).await;
        assert_eq!(result["code"], code, "{url}: {result}");
        assert!(result["message"].as_str().unwrap().contains(words), "{url}: {result}");
        let health = fixture.gateway.admin("providers/getProvidersHealthStatus", json!({})).await;
        let texts = format!("{attempt}{result}{health}{}", fixture.gateway.log());
        for secret in [PASSWORD, ENCODED, "wrong-one"] {
            assert!(!texts.contains(secret), "{url} shows {secret}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_that_never_answers_is_given_up_in_time() {
    let times = [("TOLLGATE_TIMEOUTS_CONNECT", "300ms"), ("TOLLGATE_TIMEOUTS_TLS", "300ms")];
    let fixture = Fixture::bare(&times).await;
    for (row, scheme) in (1..).zip(["http", "https", "socks5"]) {
        let url = format!("{scheme}://127.0.0.1:{}", hostile(Vec::new()).await);
        let fields = json!({"proxy_url": url, "max_retry_attempts": 1, "priority": -row});
        let id = fixture.gateway.provider("native", PROVIDER, fields).await;
        assert_eq!(fixture.ask().send().await.unwrap().status(), 502, "{scheme}");
        let rows = usize::try_from(row).unwrap();
        let attempt = why(&fixture, rows).await;
        assert!(attempt.contains("made no connection within 300 ms"), "{scheme}: {attempt}");
        fixture.gateway.admin("providers/removeProvider", json!({"providerId": id})).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_name_of_a_proxy_that_does_not_resolve_is_reported_as_its_own() {
    let fixture = Fixture::bare(&[]).await;
    let url = format!("socks5://user:{ENCODED}@no-such-proxy.invalid:1080");
    let fields = json!({"proxy_url": url, "max_retry_attempts": 1});
    let id = fixture.gateway.provider("native", PROVIDER, fields).await;
    assert_eq!(fixture.ask().send().await.unwrap().status(), 502);
    let attempt = why(&fixture, 1).await;
    let is_named = attempt.contains("the proxy cannot be reached: the name no-such-proxy.invalid");
    assert!(is_named, "{attempt}");
    let result = tested(&fixture, id).await;
    assert_eq!(result["code"], "proxy_unreachable", "{result}");
    assert!(result["message"].as_str().unwrap().contains("does not resolve"), "{result}");
}
