//! A request reaches its provider as one piece: the head is not sent ahead of the body.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpListener;

use serde_json::json;

use super::raw;
use crate::proxy::fixture::{Fixture, request};

/// Serves one connection: the length of the first read of each request, its head's, and its complete
/// body. It reads all the time, so that a head that is sent ahead is read alone.
fn first_reads(listener: &TcpListener, requests: usize) -> Vec<(usize, usize, Vec<u8>)> {
    let (mut tcp, _) = listener.accept().unwrap();
    tcp.set_nonblocking(true).unwrap();
    let mut seen = Vec::new();
    for _ in 0..requests {
        let (mut got, mut piece) = (Vec::new(), vec![0; 256 * 1024]);
        let mut first = None;
        let message = loop {
            match tcp.read(&mut piece) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => std::hint::spin_loop(),
                read => {
                    let n = read.unwrap();
                    assert!(n > 0, "the connection ended");
                    got.extend_from_slice(&piece[..n]);
                    first.get_or_insert(n);
                    if let Some(message) = raw::whole(&got) {
                        break message;
                    }
                }
            }
        };
        seen.push((first.unwrap(), message.0.len(), message.1));
        tcp.write_all(raw::reply().as_bytes()).unwrap();
    }
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn head_and_body_arrive_together_and_a_long_body_arrives_whole() {
    let fixture = Fixture::bare(&[]).await;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    fixture.gateway.provider("native", &url, json!({})).await;
    let (short, mut long) = (request("native", false), request("native", false));
    long["messages"][0]["content"] = json!("x".repeat(300_000));
    // Twice each: over a new connection, and over one from the pool.
    let bodies = [&short, &long, &short, &long];
    let reading = std::thread::spawn(move || first_reads(&listener, 4));
    for body in bodies {
        let answer = fixture.post("/v1/messages", body).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{}", answer.text().await.unwrap());
        answer.bytes().await.unwrap();
    }
    let seen = reading.join().unwrap();
    assert_eq!(seen.len(), bodies.len());
    for ((first, head, body), sent) in seen.iter().zip(bodies) {
        assert_eq!(*body, serde_json::to_vec(sent).unwrap());
        // A short request is one piece; a long one begins with more than its head.
        let together = if body.len() < 10_000 { head + body.len() } else { head + 10_000 };
        assert!(*first >= together, "{first} of {head} + {}", body.len());
    }
}
