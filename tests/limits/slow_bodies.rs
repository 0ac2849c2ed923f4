//! A client that sends its bodies slowly gets no more requests per minute than any other.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::proxy::fixture::{Fixture, request};
use crate::support::clock::SetClock;
use crate::support::unread::taken;

const RPM: usize = 3;
/// How long the bodies are held back, in seconds. Their heads would leave the minute soon after.
const DRIBBLED: i64 = 52;

/// A request whose body lacks its last byte.
async fn dribble(fixture: &Fixture) -> (TcpStream, u8) {
    let body = request("native", false).to_string();
    let mut connection = TcpStream::connect(fixture.gateway.proxy_addr()).await.unwrap();
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: gate\r\nx-api-key: {}\r\ncontent-type: application/json\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n",
        fixture.key,
        body.len()
    );
    let (all_but_one, last) = body.as_bytes().split_at(body.len() - 1);
    connection.write_all(head.as_bytes()).await.unwrap();
    connection.write_all(all_but_one).await.unwrap();
    (connection, last[0])
}

async fn status(connection: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer).split(' ').nth(1).unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_dribble_in_count_in_the_minute_in_which_they_are_admitted() {
    let clock = SetClock::new();
    let env = clock.env();
    let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let fixture = Fixture::bare(&env).await;
    fixture.gateway.provider("native", &fixture.upstream.url, json!({})).await;
    fixture.gateway.admin("users/editUser", json!({"userId": fixture.user_id, "rpm": RPM})).await;
    let mut slow = Vec::new();
    for _ in 0..RPM {
        slow.push(dribble(&fixture).await);
    }
    for (connection, _) in &slow {
        taken(connection).await;
    }
    clock.set(DRIBBLED);
    let admitted = Instant::now();
    for (connection, last) in &mut slow {
        connection.write_all(&[*last]).await.unwrap();
        assert_eq!(status(connection).await, "200");
    }
    let took = admitted.elapsed();
    assert!(took < Duration::from_secs(20), "too slow a machine for this test: {took:?}");
    // Counted by their heads they would have left the minute; counted by their admission they fill
    // it.
    clock.set(DRIBBLED + 12);
    let next = fixture.ask().send().await.unwrap();
    assert_eq!(next.status(), 429, "another one within a minute of {RPM} that the provider got");
    let reset: u64 = next.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((20..=48).contains(&reset), "until a minute after the admission: {reset}");
    assert_eq!(fixture.upstream.requests().await.len(), RPM);
}
