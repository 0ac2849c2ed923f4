//! Endless HTTP/2 frames to the administration's listener, whose library bounds them: what it has
//! to answer is read only as fast as the answers are.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::attack::{
    Attack, CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, PREFACE, PRIORITY,
    RST_STREAM, SETTINGS, WINDOW_UPDATE, field, fixture, frame,
};

/// Frames of each kind.
const FLOOD: usize = 50_000;
/// A listener that has not taken a piece for this long reads no more.
const TAKEN: Duration = Duration::from_secs(1);

/// The fields of a request for the health page.
fn health() -> Vec<u8> {
    // GET and http are numbers of the static table.
    let fields = [field(":path", "/api/actions/health"), field(":authority", "x")];
    [vec![0x82, 0x86], fields.concat()].concat()
}

fn reset(n: usize) -> Vec<u8> {
    let stream = u32::try_from(n * 2 + 1).unwrap();
    let head = frame(HEADERS, END_HEADERS | END_STREAM, stream, &health());
    [head, frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes())].concat()
}

/// Sends the frames until they are not taken any more. With `reads`, the answers are read.
async fn flood(address: &str, reads: bool, frames: impl Iterator<Item = Vec<u8>>) {
    let tcp = TcpStream::connect(address).await.unwrap();
    let (mut reading, mut writing) = tcp.into_split();
    let reader = tokio::spawn(async move {
        let mut got = vec![0; 1 << 16];
        while reads && reading.read(&mut got).await.is_ok_and(|count| count > 0) {}
        reading
    });
    let mut pieces = Vec::new();
    for frame in
        [PREFACE.to_vec(), frame(SETTINGS, 0, 0, &[])].into_iter().chain(frames).chain([Vec::new()])
    {
        let is_last = frame.is_empty();
        pieces.extend(frame);
        if pieces.len() < 1 << 14 && !is_last {
            continue;
        }
        let taken = tokio::time::timeout(TAKEN, writing.write_all(&pieces)).await;
        pieces.clear();
        if !matches!(taken, Ok(Ok(()))) {
            break;
        }
    }
    reader.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn floods_of_frames_to_the_administration_take_no_memory() {
    let fixture = fixture(&[]).await;
    let address = fixture.gateway.admin.trim_start_matches("http://").to_owned();
    let begin = || frame(HEADERS, END_STREAM, 1, &health());
    let open = || frame(HEADERS, END_HEADERS, 1, &[vec![0x83], health()[1..].to_vec()].concat());
    let same = |one: Vec<u8>| std::iter::repeat_n(one, FLOOD).collect::<Vec<_>>();
    let after = |first: Vec<u8>, one: Vec<u8>| [vec![first], same(one)].concat();
    let floods = [
        ("ping", same(frame(PING, 0, 0, &[0; 8]))),
        ("settings", same(frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 100]))),
        ("priority", same(frame(PRIORITY, 0, 1, &[0, 0, 0, 3, 16]))),
        ("unknown", same(frame(0x42, 0, 0, &[7; 100]))),
        ("window updates", same(frame(WINDOW_UPDATE, 0, 0, &1_u32.to_be_bytes()))),
        ("resets", (0..FLOOD).map(reset).collect()),
        ("continuation", after(begin(), frame(CONTINUATION, 0, 1, &field("x", "y")))),
        ("empty continuation", after(begin(), frame(CONTINUATION, 0, 1, &[]))),
        ("empty data", after(open(), frame(DATA, 0, 1, &[]))),
    ];
    for (name, frames) in floods {
        for reads in [false, true] {
            let attack = Attack::begin(&fixture, name);
            flood(&address, reads, frames.iter().cloned()).await;
            let health = format!("{}/api/actions/health", fixture.gateway.admin);
            let answer = fixture.gateway.client.get(health).send().await.unwrap();
            assert_eq!(answer.status(), 200, "{name}");
            attack.end(&fixture, FLOOD, 32).await;
        }
    }
}
