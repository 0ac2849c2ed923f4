//! A WebSocket client.

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::proxy::fixture::Fixture;
use crate::support::wait::TIME_LIMIT;

/// A connection after its handshake.
pub struct Client<S = TcpStream>(pub WebSocketStream<S>);

impl Client {
    pub async fn open(fixture: &Fixture) -> Self {
        Self::with(fixture, &[]).await
    }

    /// With further headers of the handshake.
    pub async fn with(fixture: &Fixture, headers: &[(&'static str, &str)]) -> Self {
        handshake(fixture, &fixture.key, headers).await.expect("101")
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    pub async fn say(&mut self, frame: &Value) {
        self.0.send(Message::text(frame.to_string())).await.unwrap();
    }

    /// A `response.create` for the model `m`, with more members.
    pub async fn create(&mut self, more: Value) {
        self.say(&create(more)).await;
    }

    /// The next frame: the JSON of a text; the code of a close, and `null` without one.
    pub async fn next(&mut self) -> Result<Value, Option<u16>> {
        loop {
            let next = timeout(TIME_LIMIT, self.0.next()).await.expect("a frame");
            match next {
                Some(Ok(Message::Text(text))) => return Ok(serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Close(frame))) => return Err(frame.map(|it| it.code.into())),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(other)) => panic!("{other:?}"),
                Some(Err(_)) | None => return Err(None),
            }
        }
    }

    /// The frames up to one of a type, which is the last.
    pub async fn until(&mut self, kind: &str) -> Vec<Value> {
        let mut frames = Vec::new();
        loop {
            let frame =
                self.next().await.unwrap_or_else(|code| panic!("{code:?} after {frames:?}"));
            let is_refusal = frame["type"] == "error" && frame["status"].is_u64();
            assert!(!is_refusal || kind == "response.steer.failed", "{frame}");
            frames.push(frame);
            if frames[frames.len() - 1]["type"] == kind {
                return frames;
            }
        }
    }

    /// The text and the id of a reply that is complete.
    pub async fn reply(&mut self) -> (String, String) {
        let frames = self.until("response.completed").await;
        let numbers: Vec<u64> =
            frames.iter().map(|frame| frame["sequence_number"].as_u64().unwrap()).collect();
        assert_eq!(numbers, (0..frames.len() as u64).collect::<Vec<_>>());
        let id = frames[0]["response"]["id"].as_str().unwrap().to_owned();
        assert_eq!(frames[frames.len() - 1]["response"]["id"], *id);
        (text(&frames), id)
    }

    /// An error frame: its status and its error.
    pub async fn error(&mut self) -> (u64, Value) {
        let frame = self.next().await.unwrap();
        assert_eq!(frame["type"], "error", "{frame}");
        (frame["status"].as_u64().unwrap(), frame["error"].clone())
    }
}

pub fn create(more: Value) -> Value {
    let mut frame = json!({"type": "response.create", "model": "m", "store": false});
    frame.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    frame
}

/// A message of the user.
pub fn user(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": text})
}

/// The text of a reply's frames.
pub fn text(frames: &[Value]) -> String {
    let deltas = frames.iter().filter(|frame| frame["type"] == "response.output_text.delta");
    deltas.map(|frame| frame["delta"].as_str().unwrap()).collect()
}

/// Opens a connection. An error is the status and the body of the answer.
pub async fn handshake(
    fixture: &Fixture,
    key: &str,
    headers: &[(&'static str, &str)],
) -> Result<Client, (u16, String)> {
    let address = fixture.gateway.proxy_addr();
    let mut request = format!("ws://{address}/v1/responses").into_client_request().unwrap();
    request.headers_mut().insert("authorization", format!("Bearer {key}").parse().unwrap());
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    let tcp = TcpStream::connect(address).await.unwrap();
    match client_async(request, tcp).await {
        Ok((stream, answer)) => {
            assert!(answer.headers().contains_key("x-tollgate-request-id"));
            assert!(!answer.headers().contains_key("sec-websocket-extensions"));
            Ok(Client(stream))
        }
        Err(Error::Http(answer)) => {
            let status = answer.status().as_u16();
            let body = answer.into_body().unwrap_or_default();
            Err((status, String::from_utf8(body).unwrap()))
        }
        Err(error) => panic!("{error}"),
    }
}
