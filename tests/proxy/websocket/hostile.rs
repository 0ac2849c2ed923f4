//! Frames that break the protocol or a bound.

use std::time::Duration;

use futures_util::SinkExt as _;
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;

use super::client::{Client, create};
use crate::hostile::attack::{Attack, SOON};
use crate::proxy::fixture::Fixture;
use crate::support::drip::drip;
use crate::support::wait;

const FIN: u8 = 0x80;
const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;

/// A frame with a mask of zeros.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = head(first, payload.len() as u64);
    frame.extend(payload);
    frame
}

/// Its head, with a length that need not be true.
fn head(first: u8, length: u64) -> Vec<u8> {
    let mut head = vec![first, 0x80 | 127];
    head.extend(length.to_be_bytes());
    head.extend([0; 4]);
    head
}

/// A connection after its handshake, for bytes of any kind.
async fn raw(fixture: &Fixture) -> TcpStream {
    let mut tcp = TcpStream::connect(fixture.gateway.proxy_addr()).await.unwrap();
    tcp.write_all(handshake(&fixture.key).as_bytes()).await.unwrap();
    let mut got = Vec::new();
    while !got.ends_with(b"\r\n\r\n") {
        got.push(tcp.read_u8().await.unwrap());
    }
    assert!(got.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&got));
    tcp
}

fn handshake(key: &str) -> String {
    format!(
        "GET /v1/responses HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         authorization: Bearer {key}\r\n\r\n"
    )
}

/// Sends bytes, and reads to the end: the code of the close.
async fn sent(fixture: &Fixture, bytes: &[u8]) -> Option<u16> {
    let mut tcp = raw(fixture).await;
    let (mut reading, mut writing) = tcp.split();
    let mut got = Vec::new();
    let write = async {
        // The gateway may close first.
        let _ = writing.write_all(bytes).await;
    };
    let (_, read) = tokio::join!(write, tokio::time::timeout(SOON, reading.read_to_end(&mut got)));
    let _ = read.expect("the connection is closed");
    code(&got)
}

/// The code of a close frame among a server's frames.
fn code(got: &[u8]) -> Option<u16> {
    let at = got.iter().position(|byte| *byte == 0x88)?;
    Some(u16::from_be_bytes(got.get(at + 2..at + 4)?.try_into().ok()?))
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_frames_close_the_connection() {
    let fixture = Fixture::native_with(&[("TOLLGATE_PROXY_MAX_BODY_BYTES", "64KiB")]).await;
    let attack = Attack::begin(&fixture, "websocket frames");
    let unmasked = [&[FIN | TEXT, 2][..], b"{}"].concat();
    let endless =
        [frame(TEXT, &[b'a'; 1000]), frame(CONTINUATION, &[b'a'; 1000]).repeat(100)].concat();
    let empty = [frame(TEXT, b"a"), frame(CONTINUATION, b"").repeat(40_000)].concat();
    let cases = [
        ("too large", head(FIN | TEXT, 65_537), 1009),
        ("enormous", head(FIN | TEXT, u64::MAX >> 1), 1009),
        ("in fragments without end", endless, 1009),
        ("in empty fragments without end", empty, 1013),
        ("binary", frame(FIN | 2, b"{}"), 1003),
        ("no UTF-8", frame(FIN | TEXT, b"\xff\xfe"), 1007),
        ("unmasked", unmasked, 1002),
        ("a reserved bit", frame(FIN | TEXT | 0x40, b"{}"), 1002),
        ("a reserved kind", frame(FIN | 3, b"{}"), 1002),
        ("a continuation of nothing", frame(FIN | CONTINUATION, b"{}"), 1002),
        ("a second beginning", [frame(TEXT, b"{"), frame(TEXT, b"{")].concat(), 1002),
        ("a ping in fragments", frame(9, b"x"), 1002),
    ];
    for (name, bytes, wanted) in &cases {
        assert_eq!(sent(&fixture, bytes).await, Some(*wanted), "{name}");
    }
    // In fragments with pings between them a message is whole.
    let text = create(json!({"input": "a"})).to_string();
    let (start, end) = text.as_bytes().split_at(20);
    let ping = frame(FIN | 9, b"are you there");
    let whole = [frame(TEXT, start), ping, frame(FIN | CONTINUATION, end)].concat();
    let mut tcp = raw(&fixture).await;
    tcp.write_all(&whole).await.unwrap();
    let mut got = Vec::new();
    while !String::from_utf8_lossy(&got).contains("response.completed") {
        assert_ne!(tcp.read_buf(&mut got).await.unwrap(), 0);
    }
    assert!(String::from_utf8_lossy(&got).contains("are you there"));
    fixture.gateway.logs(1).await;
    drop(tcp);
    attack.end(&fixture, cases.len(), 40).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_before_the_answer_are_refused() {
    let fixture = Fixture::native().await;
    let mut tcp = TcpStream::connect(fixture.gateway.proxy_addr()).await.unwrap();
    let early = [handshake(&fixture.key).into_bytes(), frame(FIN | TEXT, b"{}")].concat();
    tcp.write_all(&early).await.unwrap();
    let mut got = [0; 12];
    tcp.read_exact(&mut got).await.unwrap();
    assert_eq!(&got, b"HTTP/1.1 400");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_drips_ends_and_large_ones_share_the_budget() {
    let fixture = Fixture::native_with(&[
        ("TOLLGATE_PROXY_REQUEST_READ_TIMEOUT", "1s"),
        ("TOLLGATE_PROXY_KEEPALIVE", "500ms"),
        ("TOLLGATE_PROXY_MAX_BODY_BYTES", "2MiB"),
        ("TOLLGATE_PROXY_MAX_INFLIGHT_BODY_BYTES", "4MiB"),
    ])
    .await;
    let attack = Attack::begin(&fixture, "websocket messages without end");
    let mut dripping = raw(&fixture).await;
    dripping.write_all(&head(FIN | TEXT, 10_000)).await.unwrap();
    let (mut reading, mut writing) = dripping.into_split();
    let task = tokio::spawn(async move {
        drip(&mut writing, b"a", Duration::from_millis(100), usize::MAX).await;
    });
    let mut got = Vec::new();
    let read = tokio::time::timeout(SOON, reading.read_to_end(&mut got)).await;
    let _ = read.expect("the connection is closed");
    assert_eq!(code(&got), Some(1008));
    task.abort();
    // Each sends most of a message and no more.
    let part = [head(FIN | TEXT, 2 << 20), vec![b'a'; 3 << 19]].concat();
    let senders = (0..20).map(|_| sent(&fixture, &part));
    let codes = join_all(senders).await;
    let refused = codes.iter().filter(|code| **code == Some(1013)).count();
    let slow = codes.iter().filter(|code| **code == Some(1008)).count();
    assert!(refused >= 10 && refused + slow == 20, "{codes:?}");
    fixture.gateway.metric_shows("tollgate_request_body_bytes", |held| held == 0.0).await;
    attack.end(&fixture, 21, 40).await;
}

/// The gateway holds little of what the client does not read.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reads_nothing_slows_its_provider_and_is_cut_off() {
    let fixture = Fixture::native_with(&[("TOLLGATE_PROXY_REPLY_WRITE_TIMEOUT", "2s")]).await;
    let attack = Attack::begin(&fixture, "a websocket that is not read");
    let long = json!({"words": 200_000, "events": 200_000});
    fixture.upstream.script(json!([long])).await;
    let mut client = Client::open(&fixture).await;
    client.create(json!({"input": "a"})).await;
    fixture.upstream.stats("dropped=1").await;
    let row = &fixture.gateway.logs(1).await[0];
    assert_eq!(row["outcome"], "client_aborted", "{row}");
    fixture.gateway.metric_shows("tollgate_websockets", |open| open == 0.0).await;
    attack.end(&fixture, 1, 16).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_requests_at_once_wait_their_turn() {
    let fixture = Fixture::native().await;
    let mut client = Client::open(&fixture).await;
    let frames =
        (0..200).map(|n| Ok(Message::text(create(json!({"input": n.to_string()})).to_string())));
    client.0.send_all(&mut futures_util::stream::iter(frames)).await.unwrap();
    for _ in 0..200 {
        client.reply().await;
    }
    let asked = fixture.upstream.requests().await;
    let order = asked.iter().map(|request| request["body"]["messages"][0]["content"].to_string());
    let wanted = |(n, text): (usize, String)| text.contains(&format!("\"{n}\""));
    assert!(order.enumerate().all(wanted), "{asked:?}");
}

const IDLE: u32 = 1_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_idle_connections_take_little() {
    let fixture = Fixture::native().await;
    // Warms up what is made once.
    let mut first = Client::open(&fixture).await;
    first.create(json!({"input": "a"})).await;
    first.reply().await;
    let before = fixture.gateway.memory_mib("VmRSS");
    let mut held = Vec::new();
    for _ in 0..IDLE {
        held.push(raw(&fixture).await);
    }
    fixture.gateway.metric_shows("tollgate_websockets", |open| open > f64::from(IDLE)).await;
    let grown = fixture.gateway.memory_mib("VmRSS") - before;
    println!("{IDLE} idle websockets take {grown} MiB");
    // 40 KB each.
    assert!(grown <= 40, "{grown} MiB");
    first.create(json!({"input": "a"})).await;
    first.reply().await;
    drop((held, first));
    fixture.gateway.metric_shows("tollgate_websockets", |open| open == 0.0).await;
    wait::until(
        || "connections".to_owned(),
        async || fixture.gateway.metric("tollgate_connections").await <= 2.0,
    )
    .await;
    let _: Vec<Value> = fixture.gateway.logs(2).await;
}
