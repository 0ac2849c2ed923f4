//! A WebSocket as one stream of an HTTP/2 connection (RFC 8441).

use bytes::Bytes;
use h2::client::{SendRequest, handshake};
use h2::ext::Protocol;
use h2::{RecvStream, SendStream};
use http::{Method, Request, StatusCode};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::client::{Client, user};
use crate::proxy::fixture::Fixture;

/// An HTTP/2 connection. Dropping it ends it.
struct Connection {
    requests: SendRequest<Bytes>,
    tasks: JoinSet<()>,
}

impl Connection {
    /// After the gateway's settings have come.
    async fn open(fixture: &Fixture) -> Self {
        let tcp = TcpStream::connect(fixture.gateway.proxy_addr()).await.unwrap();
        let (requests, connection) = handshake(tcp).await.unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let _ = connection.await;
        });
        let mut requests = requests.ready().await.unwrap();
        while !requests.is_extended_connect_protocol_enabled() {
            tokio::task::yield_now().await;
            requests = requests.ready().await.unwrap();
        }
        Self { requests, tasks }
    }

    /// Asks for a protocol at a path.
    async fn connect(
        &mut self,
        fixture: &Fixture,
        (path, protocol): (&str, Option<&str>),
    ) -> (http::Response<RecvStream>, SendStream<Bytes>) {
        let authority = fixture.gateway.proxy_addr();
        let mut request = Request::builder()
            .method(Method::CONNECT)
            .header("authorization", format!("Bearer {}", fixture.key))
            .header("session_id", "over-http2")
            .header("sec-websocket-version", "13");
        request = match protocol {
            Some(protocol) => {
                request.uri(format!("http://{authority}{path}")).extension(Protocol::from(protocol))
            }
            None => request.uri(authority),
        };
        let (answer, out) = self.requests.send_request(request.body(()).unwrap(), false).unwrap();
        (answer.await.unwrap(), out)
    }

    /// A WebSocket.
    async fn websocket(&mut self, fixture: &Fixture) -> Client<DuplexStream> {
        let (answer, out) = self.connect(fixture, ("/v1/responses", Some("websocket"))).await;
        assert_eq!(answer.status(), StatusCode::OK);
        assert!(answer.headers().contains_key("x-tollgate-request-id"));
        let (ours, theirs) = tokio::io::duplex(16 * 1024);
        let (reads, writes) = tokio::io::split(theirs);
        self.tasks.spawn(sends(out, reads));
        self.tasks.spawn(receives(answer.into_body(), writes));
        Client(WebSocketStream::from_raw_socket(ours, Role::Client, None).await)
    }
}

async fn sends(mut out: SendStream<Bytes>, mut from: ReadHalf<DuplexStream>) {
    let mut piece = vec![0; 16 * 1024];
    while let Ok(read) = from.read(&mut piece).await {
        if out.send_data(Bytes::copy_from_slice(&piece[..read]), read == 0).is_err() || read == 0 {
            return;
        }
    }
}

async fn receives(mut from: RecvStream, mut to: WriteHalf<DuplexStream>) {
    while let Some(Ok(bytes)) = from.data().await {
        let _ = from.flow_control().release_capacity(bytes.len());
        if to.write_all(&bytes).await.is_err() {
            return;
        }
    }
    let _ = to.shutdown().await;
}

async fn fixture() -> Fixture {
    Fixture::native_with(&[("TOLLGATE_PROXY_H2C", "true")]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_and_replies_share_the_connection_with_others() {
    let fixture = fixture().await;
    let usage = json!({"usage": {"input": 1000, "output": 500}});
    fixture.upstream.default(usage).await;
    let mut connection = Connection::open(&fixture).await;
    let mut one = connection.websocket(&fixture).await;
    let mut two = connection.websocket(&fixture).await;
    // More than the stream's window.
    let long = "a long text ".repeat(20_000);
    one.create(json!({"input": [user(&long)]})).await;
    let (_, first) = one.reply().await;
    two.create(json!({"input": [user("b")]})).await;
    two.reply().await;
    one.create(json!({"input": [user("and on")], "previous_response_id": first})).await;
    one.reply().await;
    let last = fixture.upstream.requests().await.pop().unwrap()["body"].to_string();
    assert!(last.contains(&long) && last.contains("and on"));
    for row in fixture.gateway.logs(3).await {
        let facts = ["endpoint", "sessionId"].map(|name| row[name].as_str().unwrap());
        assert_eq!(facts, ["/v1/responses#websocket", "over-http2"], "{row}");
        assert_eq!(row["costUsd"].as_f64(), Some(0.002), "{row}");
    }
    fixture.gateway.metric_shows("tollgate_websockets", |open| open == 2.0).await;
    two.0.close(None).await.unwrap();
    fixture.gateway.metric_shows("tollgate_websockets", |open| open == 1.0).await;
    // A reply in flight ends with the connection.
    fixture.upstream.script(json!([{"hold_after": 5, "events": 10}])).await;
    one.create(json!({"input": "c"})).await;
    one.until("response.created").await;
    drop(connection);
    fixture.upstream.stats("dropped=1").await;
    fixture.gateway.metric_shows("tollgate_websockets", |open| open == 0.0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_closes_it_like_any_other() {
    let mut fixture = fixture().await;
    let mut connection = Connection::open(&fixture).await;
    let mut client = connection.websocket(&fixture).await;
    fixture.gateway.signal("TERM");
    assert_eq!(client.next().await, Err(Some(1001)));
    drop((client, connection));
    assert_eq!(fixture.gateway.exit_code().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn other_protocols_paths_and_tunnels_are_refused() {
    let fixture = fixture().await;
    let mut connection = Connection::open(&fixture).await;
    for (asked, status) in [
        (("/v1/responses", Some("connect-udp")), 426),
        (("/v1/messages", Some("websocket")), 426),
        (("/nothing", Some("websocket")), 404),
        (("", None), 405),
    ] {
        let (answer, _out) = connection.connect(&fixture, asked).await;
        assert_eq!(answer.status(), status, "{asked:?}");
    }
    let off = [("TOLLGATE_PROXY_H2C", "true"), ("TOLLGATE_PROXY_WEBSOCKETS", "false")];
    let off = Fixture::native_with(&off).await;
    let mut connection = Connection::open(&off).await;
    let (answer, _out) = connection.connect(&off, ("/v1/responses", Some("websocket"))).await;
    assert_eq!(answer.status(), 426);
    // The tunnel of HTTP/1.
    let mut tcp = TcpStream::connect(fixture.gateway.proxy_addr()).await.unwrap();
    tcp.write_all(b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n")
        .await
        .unwrap();
    let mut head = [0; 12];
    tcp.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 405");
}
