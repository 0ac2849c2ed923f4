//! Requests that are shorter than an HTTP/2 client's preface.

use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::attack::fixture;
use crate::resilience::raw;

/// Before, they waited until the connection's idle time was over, and were closed without an
/// answer.
#[tokio::test(flavor = "multi_thread")]
async fn with_h2c_a_short_request_is_answered_at_once() {
    let fixture = fixture(&[]).await;
    for request in [
        "GET / HTTP/1.1\r\n\r\n",
        "PRI / HTTP/1.1\r\n\r\n",
        "PUT /a HTTP/1.1\r\n\r\n",
        "PRO /a HTTP/1.1\r\n\r\n",
    ] {
        assert!(request.len() < 24);
        let mut tcp = TcpStream::connect(fixture.gateway.proxy_addr()).await.unwrap();
        let began = Instant::now();
        assert!(raw::write(&mut tcp, request.as_bytes()).await);
        let mut got = [0; 9];
        tokio::time::timeout(Duration::from_secs(40), tcp.read_exact(&mut got))
            .await
            .expect("no answer")
            .unwrap();
        assert_eq!(&got, b"HTTP/1.1 ", "{request}");
        assert!(began.elapsed() < Duration::from_secs(40), "{request}");
    }
}
