//! A request reaches its provider as one piece: the head is not sent ahead of the body.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use serde_json::json;

use super::raw;
use crate::proxy::fixture::{Fixture, request};

/// One request as it arrived: the length of its first read, of its head, and its body.
type Arrived = (usize, usize, Vec<u8>);

/// A connection, and what has arrived of its present request.
struct Open {
    tcp: TcpStream,
    first: Option<usize>,
    got: Vec<u8>,
}

impl Open {
    /// Reads what is there; answers a request that is complete. `false`: the connection has ended.
    fn serve(&mut self, piece: &mut [u8], seen: &mut Vec<Arrived>) -> bool {
        let n = match self.tcp.read(piece) {
            Err(e) if e.kind() == ErrorKind::WouldBlock => return true,
            Err(_) | Ok(0) => return false,
            Ok(n) => n,
        };
        self.got.extend_from_slice(&piece[..n]);
        let first = *self.first.get_or_insert(n);
        if let Some((head, body)) = raw::whole(&self.got) {
            seen.push((first, head.len(), body));
            (self.first, self.got) = (None, Vec::new());
            self.tcp.write_all(raw::reply().as_bytes()).unwrap();
        }
        true
    }
}

/// Serves this many requests, over any number of connections. It reads all the time, so that a head
/// that is sent ahead is read alone.
fn serve(listener: &TcpListener, requests: usize) -> Vec<Arrived> {
    listener.set_nonblocking(true).unwrap();
    let (mut open, mut seen, mut piece) = (Vec::<Open>::new(), Vec::new(), vec![0; 256 * 1024]);
    while seen.len() < requests {
        if let Ok((tcp, _)) = listener.accept() {
            tcp.set_nonblocking(true).unwrap();
            open.push(Open { tcp, first: None, got: Vec::new() });
        }
        open.retain_mut(|one| one.serve(&mut piece, &mut seen));
        std::hint::spin_loop();
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
    // Over a new connection, and as a rule over one from the pool.
    let bodies = [&short, &long, &short, &long];
    let reading = std::thread::spawn(move || serve(&listener, 4));
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
