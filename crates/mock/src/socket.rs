//! The Responses API over a WebSocket: each `response.create` is judged and answered as a POST with
//! the head of the handshake, and the events of its stream are sent as frames.
//!
//! A reply can be continued (`previous_response_id`) only over the socket that it came from.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::http::header::{
    CONNECTION, CONTENT_TYPE, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, UPGRADE,
};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::Response;
use futures_util::{SinkExt as _, StreamExt as _};
use http::request::Parts;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;
use tollgate_formats::formats::sse::Assembler;

use super::directive;
use super::exchange::{self, MAX_BODY};
use super::instance::Mock;

type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// The sockets of a mock.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    /// How many were opened.
    opened: AtomicU64,
    tasks: Mutex<JoinSet<()>>,
}

/// Answers a request for a WebSocket; `None`: it is another one, or is refused.
pub(super) fn upgrade(mock: &Arc<Mock>, request: &mut Request) -> Option<Response> {
    let key = request.headers().get(SEC_WEBSOCKET_KEY).cloned()?;
    let (mut parts, ()) = http::Request::new(()).into_parts();
    parts.uri.clone_from(request.uri());
    parts.headers.clone_from(request.headers());
    let credential = exchange::credential(&parts).unwrap_or_default();
    let directive = directive::merge(mock.layers(&credential, false).0).unwrap_or_default();
    if !directive.websocket || credential.is_empty() || !parts.uri.path().ends_with("/responses") {
        return None;
    }
    let upgrade = hyper::upgrade::on(request);
    let number = mock.sockets.opened.fetch_add(1, Ordering::Relaxed) + 1;
    parts.headers.insert("x-mock-socket", number.into());
    parts.headers.remove(SEC_WEBSOCKET_KEY);
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    parts.method = Method::POST;
    let serving = Arc::clone(mock);
    mock.sockets.tasks.lock().spawn(async move {
        let Ok(upgraded) = upgrade.await else { return };
        let io = TokioIo::new(upgraded);
        let socket = WebSocketStream::from_raw_socket(io, Role::Server, None).await;
        serve(serving, &parts, socket).await;
    });
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let accept = HeaderValue::try_from(derive_accept_key(key.as_bytes()));
    let headers = answer.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert("x-request-id", HeaderValue::from_static("req_mock_socket"));
    headers.extend(accept.map(|accept| (SEC_WEBSOCKET_ACCEPT, accept)));
    Some(answer)
}

/// Serves a socket to its end.
async fn serve(mock: Arc<Mock>, parts: &Parts, mut socket: Socket) {
    let mut last = String::new();
    while let Some(Ok(message)) = socket.next().await {
        let Message::Text(text) = message else { continue };
        let Ok(Value::Object(mut body)) = serde_json::from_str(&text) else { return };
        if body.remove("type").is_none_or(|kind| kind != "response.create") {
            return;
        }
        let previous = body.get("previous_response_id").and_then(Value::as_str);
        if previous.is_some_and(|previous| previous != last) {
            let error = json!({"type": "invalid_request_error",
                "code": "previous_response_not_found", "param": "previous_response_id",
                "message": "Previous response not found."});
            let frame = json!({"type": "error", "status": 400, "error": error});
            if say(&mut socket, frame.to_string()).await.is_none() {
                return;
            }
            continue;
        }
        body.insert("stream".to_owned(), json!(true));
        let body = Body::from(Value::Object(body).to_string());
        let request = Request::from_parts(parts.clone(), body);
        // Boxed: the two call each other.
        let answer = Box::pin(exchange::handle(State(Arc::clone(&mock)), request)).await;
        match play(&mut socket, answer).await {
            Some(id) => last = id,
            None => return,
        }
    }
}

async fn say(socket: &mut Socket, text: String) -> Option<()> {
    socket.send(Message::text(text)).await.ok()
}

/// Sends an answer as frames. Returns the id of the reply; `None`: the socket has ended.
async fn play(socket: &mut Socket, answer: Response) -> Option<String> {
    let (head, mut body) = answer.into_parts();
    let (mut assembler, mut id, mut whole) = (Assembler::new(MAX_BODY), String::new(), Vec::new());
    loop {
        let next = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx));
        let piece = tokio::select! {
            piece = next => match piece {
                Some(piece) => piece.ok()?.into_data().unwrap_or_default(),
                None => break,
            },
            // The peer leaves; it says nothing else meanwhile.
            message = socket.next() => match message {
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
                _ => return None,
            },
        };
        if head.status != 200 {
            whole.extend_from_slice(&piece);
            continue;
        }
        let mut frames = Vec::new();
        let fed = assembler.feed(&piece, |event| {
            frames.push(String::from_utf8_lossy(event.data).into_owned());
        });
        fed.ok()?;
        for frame in frames {
            if let Ok(event) = serde_json::from_str::<Value>(&frame)
                && let Some(of) = event["response"]["id"].as_str()
            {
                of.clone_into(&mut id);
            }
            say(socket, frame).await?;
        }
    }
    if head.status != 200 {
        let error = serde_json::from_slice::<Value>(&whole).unwrap_or_default();
        let mut frame = json!({"type": "error", "status": head.status.as_u16(),
            "error": error["error"]});
        if let Some(after) = head.headers.get("retry-after").and_then(|it| it.to_str().ok()) {
            frame["headers"] = json!({"retry-after": after});
        }
        say(socket, frame.to_string()).await?;
    }
    Some(id)
}
