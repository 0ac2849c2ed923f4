//! Heads of replies: what belongs to the connection of the provider, and its status.

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::fixture::Fixture;

/// A provider that answers each request on a connection with these bytes and closes it.
async fn answering(answer: &'static [u8]) -> Fixture {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 64 * 1024];
            let _ = socket.read(&mut request).await;
            let _ = socket.write_all(answer).await;
        }
    });
    let fixture = Fixture::bare(&[]).await;
    fixture.gateway.provider("native", &url, json!({})).await;
    fixture
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_that_the_providers_connection_header_names_are_not_forwarded() {
    let fixture = answering(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close, X-Model\r\n\
          x-model: 1\r\nx-request-id: 1\r\n\r\n{\"type\":\"message\",\"role\":\"assistant\",\
          \"content\":[{\"type\":\"text\",\"text\":\"a\"}],\"stop_reason\":\"end_turn\",\
          \"usage\":{\"input_tokens\":1,\"output_tokens\":1}}",
    )
    .await;
    let answer = fixture.ask().send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert!(answer.headers().contains_key("x-request-id"), "{:?}", answer.headers());
    assert!(!answer.headers().contains_key("x-model"), "{:?}", answer.headers());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_decision_chain_shows_the_status_that_the_provider_sent() {
    let fixture = answering(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").await;
    assert!(fixture.ask().send().await.unwrap().status().is_server_error());
    let row = &fixture.gateway.logs(1).await[0];
    let chain = row["decisionChain"].as_array().unwrap();
    let statuses: Vec<_> = chain.iter().filter_map(|d| d["status"].as_u64()).collect();
    assert!(statuses.contains(&204) && !statuses.contains(&200), "{row}");
}
