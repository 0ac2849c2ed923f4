//! Oversized heads: many small fields, one large field, and heads that are small only while
//! compressed.

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::attack::{
    Attack, CONTINUATION, END_HEADERS, END_STREAM, Ended, HEADERS, SOON, connect, field, fixture,
    frame, request_fields,
};
use crate::proxy::fixture::Fixture;

/// Concurrent attacking connections.
const AT_ONCE: usize = 20;

/// A head block as HEADERS and CONTINUATION frames.
fn block(fields: &[u8]) -> Vec<u8> {
    let pieces: Vec<&[u8]> = fields.chunks(16_384).collect();
    let mut frames = Vec::new();
    for (n, piece) in pieces.iter().enumerate() {
        let kind = if n == 0 { HEADERS } else { CONTINUATION };
        let last = if n + 1 == pieces.len() { END_HEADERS } else { 0 };
        frames.extend(frame(kind, last | if n == 0 { END_STREAM } else { 0 }, 1, piece));
    }
    frames
}

/// Each is answered 431, or its connection is closed; none becomes a request.
#[tokio::test(flavor = "multi_thread")]
async fn http2_heads_that_unpack_to_too_much_are_refused() {
    let fixture = fixture(&[]).await;
    let attack = Attack::begin(&fixture, "HTTP/2 header bombs");
    let many: Vec<u8> = (0..20_000).flat_map(|n| field(&format!("x-{n}"), "y")).collect();
    let large = field("x-large", &"y".repeat(200_000));
    // An entry of the dynamic table that is named 30,000 times: 90 MB when unpacked.
    let mut packed = field("x-bomb", &"y".repeat(3_000));
    packed[0] = 0x40;
    packed.extend(vec![0xbe; 30_000]);
    // A table that changes its size for each field.
    let resized: Vec<u8> = (0..10_000)
        .flat_map(|_| [vec![0x20, 0x3f, 0xe1, 0x1f], field("x", "y")].concat())
        .collect();
    let cookies: Vec<u8> = (0..15_000).flat_map(|_| field("cookie", "a=b")).collect();
    let mut tried = 0;
    for (name, more) in [
        ("many", many),
        ("large", large),
        ("packed", packed),
        ("resized", resized),
        ("cookies", cookies),
    ] {
        let bytes = block(&[request_fields(&fixture.key), more].concat());
        let mut waiting = Vec::new();
        for _ in 0..AT_ONCE {
            let (mut tcp, bytes) = (connect(&fixture, &[]).await, bytes.clone());
            waiting.push(tokio::spawn(async move {
                let _ = tcp.write_all(&bytes).await;
                let _ = tcp.shutdown().await;
                Ended::of(&mut tcp).await
            }));
        }
        for one in waiting {
            let ended = one.await.unwrap();
            // A literal 431, or the end of the connection or of the stream.
            let status = ended
                .frames
                .iter()
                .find(|(kind, ..)| *kind == HEADERS)
                .map(|(.., head)| head.clone());
            let refused = status
                .is_none_or(|head| head.windows(3).any(|w| w == b"431") || head.contains(&0x48));
            assert!(refused, "{name}: {ended:?}");
        }
        tried += AT_ONCE;
    }
    assert!(fixture.upstream.requests().await.is_empty(), "no provider was asked");
    attack.end(&fixture, tried, 48).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn http1_heads_of_too_much_are_refused() {
    let fixture = Fixture::native().await;
    let attack = Attack::begin(&fixture, "HTTP/1 header bombs");
    let line = |rest: &str| {
        format!("POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {}\r\n{rest}", fixture.key)
    };
    let bombs = [
        ("many small fields", line(&"a:b\r\n".repeat(5_000)) + "content-length: 0\r\n\r\n"),
        (
            "more bytes than a head may have",
            line(&"x-padding: yyyyyyyyyyyyyyyyyyyyy\r\n".repeat(10_000)),
        ),
        ("one field without end", line("x-padding: ") + &"y".repeat(1 << 20)),
        ("a path without end", format!("GET /{}", "v".repeat(1 << 20))),
        ("a name without end", line(&"n".repeat(1 << 20))),
        ("folded lines", line(&"x: y\r\n  z\r\n".repeat(300)) + "\r\n"),
        ("no end of a line", "\r\n".repeat(1 << 17)),
    ];
    let tried = bombs.len() * AT_ONCE;
    for (name, bomb) in &bombs {
        let mut waiting = Vec::new();
        for _ in 0..AT_ONCE {
            let (mut tcp, bomb) =
                (TcpStream::connect(fixture.gateway.proxy_addr()).await.unwrap(), bomb.clone());
            waiting.push(tokio::spawn(async move {
                let _ = tokio::time::timeout(SOON, tcp.write_all(bomb.as_bytes()))
                    .await
                    .expect("it is not closed");
                let mut got = Vec::new();
                let reading = tokio::io::AsyncReadExt::read_to_end(&mut tcp, &mut got);
                let _ = tokio::time::timeout(SOON, reading).await.expect("it is not closed");
                got
            }));
        }
        for one in waiting {
            let got = one.await.unwrap();
            // Nothing, if the reset for unread bytes overtakes the answer.
            let refused = got.is_empty()
                || got.starts_with(b"HTTP/1.1 431")
                || got.starts_with(b"HTTP/1.1 400");
            assert!(refused, "{name}: {}", got.escape_ascii());
        }
    }
    assert!(fixture.upstream.requests().await.is_empty(), "no provider was asked");
    attack.end(&fixture, tried, 48).await;
}
