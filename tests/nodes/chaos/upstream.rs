//! Three providers that count: each is the scripted upstream, and notes every request that it
//! received and whether it sent the complete answer.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use http_body::{Frame, SizeHint};
use parking_lot::Mutex;
use tokio::net::TcpListener;

use super::load::now;

/// Before the request's number in the text of a request: it is the reported input, too.
pub const NUMBER: &str = r#"\"input\":"#;
/// One in so many requests fails at a provider that has a substitute.
const FAILS_ONE_IN: u64 = 23;

/// A request that a provider received.
#[derive(Debug, Clone)]
pub struct Visit {
    /// The request's number.
    pub number: u64,
    /// The provider's name.
    pub provider: &'static str,
    pub began: Duration,
    /// When the connection was done with it.
    pub ended: Option<Duration>,
    /// The complete answer was sent, with status 200.
    pub whole: bool,
}

/// All requests that all providers received.
pub type Visits = Arc<Mutex<Vec<Visit>>>;

/// A running provider.
pub struct Provider {
    pub url: String,
    /// While set, every request fails.
    pub fails: Arc<AtomicBool>,
}

#[derive(Clone)]
struct Door {
    name: &'static str,
    /// It fails now and then; requests must find another way.
    delicate: bool,
    fails: Arc<AtomicBool>,
    visits: Visits,
}

impl Provider {
    pub async fn start(name: &'static str, delicate: bool, visits: &Visits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let fails = Arc::new(AtomicBool::new(false));
        let door = Door { name, delicate, fails: Arc::clone(&fails), visits: Arc::clone(visits) };
        let app = tollgate_mock::router().layer(from_fn_with_state(door, count));
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { url, fails }
    }
}

/// The number in a request's text.
fn number(body: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(body).ok()?;
    let after = &text[text.find(NUMBER)? + NUMBER.len()..];
    after[..after.find(|c: char| !c.is_ascii_digit())?].parse().ok()
}

async fn count(State(door): State<Door>, request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    let Ok(bytes) = axum::body::to_bytes(body, 1 << 20).await else {
        return axum::http::StatusCode::BAD_REQUEST.into_response();
    };
    let Some(number) = number(&bytes) else {
        return next.run(Request::from_parts(head, Body::from(bytes))).await;
    };
    let visit = {
        let mut visits = door.visits.lock();
        let (began, provider) = (now(), door.name);
        visits.push(Visit { number, provider, began, ended: None, whole: false });
        visits.len() - 1
    };
    let mut guard = Guard { visits: Arc::clone(&door.visits), visit };
    if door.fails.load(Ordering::SeqCst) || (door.delicate && number.is_multiple_of(FAILS_ONE_IN)) {
        return axum::http::StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    let response = next.run(Request::from_parts(head, Body::from(bytes))).await;
    let (head, body) = response.into_parts();
    let good = head.status == 200;
    guard.note(good && http_body::Body::is_end_stream(&body));
    Response::from_parts(head, Body::new(Counted { body, good, guard }))
}

/// Notes the end of a visit when it is dropped.
struct Guard {
    visits: Visits,
    visit: usize,
}

impl Guard {
    fn note(&mut self, whole: bool) {
        self.visits.lock()[self.visit].whole |= whole;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.visits.lock()[self.visit].ended = Some(now());
    }
}

/// A body whose end is noted.
struct Counted {
    body: Body,
    good: bool,
    guard: Guard,
}

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(frame) = &polled {
            let ended = match frame {
                None => true,
                Some(Ok(_)) => http_body::Body::is_end_stream(&self.body),
                Some(Err(_)) => false,
            };
            let whole = ended && self.good;
            self.guard.note(whole);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        http_body::Body::is_end_stream(&self.body)
    }

    fn size_hint(&self) -> SizeHint {
        http_body::Body::size_hint(&self.body)
    }
}
