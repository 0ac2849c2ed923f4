//! The scripted upstream on a separate loopback port.

use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// A running mock; it ends when dropped.
pub struct Upstream {
    pub url: String,
    client: reqwest::Client,
    _stop: oneshot::Sender<()>,
}

impl Upstream {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel::<()>();
        #[expect(clippy::disallowed_methods, reason = "the test's runtime outlives its mock")]
        tokio::spawn(tollgate_mock::serve(listener, async {
            let _ = stopped.await;
        }));
        Self { url, client: super::gateway::client(), _stop: stop }
    }

    /// The directive for every following request.
    pub async fn default(&self, directive: Value) {
        self.post("/mock/default", directive).await;
    }

    /// The directive for every following request with this credential.
    pub async fn default_for(&self, key: &str, directive: Value) {
        self.post(&format!("/mock/default?key={key}"), directive).await;
    }

    /// Directives, each for one of the following requests.
    pub async fn script(&self, directives: Value) {
        self.post("/mock/script", directives).await;
    }

    /// The requests that were received, oldest first.
    pub async fn requests(&self) -> Vec<Value> {
        let got: Value = self.get("/mock/requests").await;
        got["requests"].as_array().or(got.as_array()).unwrap().clone()
    }

    /// Counts of requests, once `query` holds (for example `dropped=1`).
    pub async fn stats(&self, query: &str) -> Value {
        let answer = self
            .client
            .get(format!("{}/mock/stats?timeout_ms=50000&{query}", self.url))
            .send()
            .await
            .unwrap();
        let (status, counts) = (answer.status(), answer.json().await.unwrap());
        assert!(status.is_success(), "{query} does not come: {counts}");
        counts
    }

    /// Continues this many held streams (`hold_after`).
    pub async fn go_on(&self, streams: usize) {
        self.post(&format!("/mock/go?streams={streams}"), Value::Null).await;
    }

    async fn post(&self, path: &str, body: Value) {
        let sent =
            self.client.post(format!("{}{path}", self.url)).json(&body).send().await.unwrap();
        assert!(sent.status().is_success(), "{}", sent.text().await.unwrap());
    }

    async fn get(&self, path: &str) -> Value {
        self.client.get(format!("{}{path}", self.url)).send().await.unwrap().json().await.unwrap()
    }
}
