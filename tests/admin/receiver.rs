//! A receiver of webhooks on this machine: it records messages, and answers as configured.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// One message as received.
#[derive(Debug, Clone)]
pub struct Got {
    pub headers: HeaderMap,
    pub text: String,
}

impl Got {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }
}

#[derive(Default)]
struct Inner {
    got: Mutex<Vec<Got>>,
    came: Notify,
    /// How many of the next messages are answered with 503.
    refuse: AtomicU32,
}

#[derive(Clone)]
pub struct Receiver {
    pub url: String,
    inner: Arc<Inner>,
}

impl Receiver {
    pub fn start(tasks: &mut JoinSet<()>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let inner = Arc::new(Inner::default());
        let kept = Arc::clone(&inner);
        let receive = move |headers: HeaderMap, body: Bytes| async move {
            kept.got.lock().push(Got { headers, text: String::from_utf8(body.to_vec()).unwrap() });
            kept.came.notify_waiters();
            let refused =
                kept.refuse.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
            if refused.is_ok() { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::NO_CONTENT }
        };
        let app = Router::new().route("/hook", post(receive));
        tasks.spawn(async move {
            axum::serve(tokio::net::TcpListener::from_std(listener).unwrap(), app).await.unwrap();
        });
        Self { url, inner }
    }

    /// Answers the next `n` messages with 503.
    pub fn refuse(&self, n: u32) {
        self.inner.refuse.store(n, Ordering::SeqCst);
    }

    /// Everything received so far.
    pub fn got(&self) -> Vec<Got> {
        self.inner.got.lock().clone()
    }

    /// Waits until `n` messages have arrived.
    pub async fn wait_for(&self, n: usize) -> Vec<Got> {
        let waiting = async {
            loop {
                let came = self.inner.came.notified();
                let got = self.got();
                if got.len() >= n {
                    return got;
                }
                came.await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), waiting).await.expect("the messages come")
    }
}
