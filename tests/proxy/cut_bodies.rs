//! Replies that are not streams and end before their JSON does.

use futures_util::StreamExt as _;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::fixture::Fixture;

const BEGINNING: &str =
    r#"{"type":"message","role":"assistant","content":[{"type":"text","text":""#;
/// More than is held back while a reply may still turn out to be none.
const LEN: usize = 72_000;

/// A provider that sends the beginning of a reply without telling its length, and then closes the
/// connection or waits.
async fn provider(closes: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut request = vec![0; 64 * 1024];
                let _ = socket.read(&mut request).await;
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n";
                let body = format!("{head}{BEGINNING}{}", "x".repeat(LEN));
                let _ = socket.write_all(body.as_bytes()).await;
                if !closes {
                    let _ = socket.read(&mut request).await;
                }
            });
        }
    });
    url
}

async fn fixture(closes: bool) -> Fixture {
    let fixture = Fixture::bare(&[]).await;
    fixture.gateway.provider("native", &provider(closes).await, json!({})).await;
    fixture
}

/// A character weighs about 0.28 tokens.
const TOKENS: std::ops::RangeInclusive<u64> = 15_000..=20_000;

#[tokio::test(flavor = "multi_thread")]
async fn leaving_within_a_long_text_costs_what_had_come_of_it() {
    let fixture = fixture(false).await;
    let answer = fixture.ask().send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let (mut body, mut seen) = (answer.bytes_stream(), 0);
    while seen < 60_000 {
        seen += body.next().await.unwrap().unwrap().len();
    }
    drop(body);
    let row = &fixture.gateway.logs(1).await[0];
    assert_eq!((&row["outcome"], &row["estimated"]), (&json!("client_aborted"), &json!(true)));
    assert!(TOKENS.contains(&row["outputTokens"].as_u64().unwrap()), "{row}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_closes_within_its_json_has_broken_off() {
    let fixture = fixture(true).await;
    let answer = fixture.ask().send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert!(answer.bytes().await.is_err(), "the client sees that its reply is not complete");
    let row = &fixture.gateway.logs(1).await[0];
    assert_eq!((&row["outcome"], &row["estimated"]), (&json!("broken_off"), &json!(true)), "{row}");
    assert!(TOKENS.contains(&row["outputTokens"].as_u64().unwrap()), "{row}");
}

#[tokio::test(flavor = "multi_thread")]
async fn head_has_no_body_over_either_protocol() {
    let fixture = Fixture::bare(&[("TOLLGATE_PROXY_H2C", "true")]).await;
    let http2 = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().unwrap();
    for client in [&fixture.gateway.client, &http2] {
        for (key, status) in [(fixture.key.as_str(), 200), ("wrong", 401)] {
            let url = format!("{}/v1/models", fixture.gateway.proxy);
            let answer = client.head(url).header("x-api-key", key).send().await.unwrap();
            assert_eq!(answer.status(), status);
            assert!(answer.bytes().await.unwrap().is_empty());
        }
    }
}
