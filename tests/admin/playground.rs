//! A proxy that gives every request of the playground one answer. The real one is in
//! `tests/proxy/playground.rs`.

use std::pin::Pin;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tollgate::http_client::in_process::{AsKey, InProcessProxy};

pub struct OneAnswer;

impl InProcessProxy for OneAnswer {
    fn connect(&self, _: AsKey) -> Option<DuplexStream> {
        let (mut ours, theirs) = duplex(1 << 20);
        #[expect(clippy::disallowed_methods, reason = "the test's runtime outlives its gate")]
        tokio::spawn(async move {
            let mut head = vec![0; 1 << 16];
            let _ = ours.read(&mut head).await;
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
            let _ = ours.write_all(answer).await;
        });
        Some(theirs)
    }

    fn until_stopping(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::pending())
    }
}
