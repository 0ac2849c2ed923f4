//! Endless HTTP/2 frames: requests that are reset, PING, SETTINGS, PRIORITY, CONTINUATION, empty
//! DATA, streams.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::attack::{
    Attack, CONTINUATION, DATA, END_HEADERS, END_STREAM, ENHANCE_YOUR_CALM, Ended, HEADERS, PING,
    PRIORITY, RST_STREAM, SETTINGS, SOON, connect, count, field, fixture, frame, frames, pour,
    request_fields,
};

/// Frames that one connection may send without requests, and those that come while it is being
/// closed.
const BUDGET: usize = 1_000;

fn open_and_reset(n: usize) -> Vec<u8> {
    let stream = u32::try_from(n * 2 + 1).unwrap();
    let head = frame(HEADERS, END_HEADERS | END_STREAM, stream, &request_fields("sk-unknown"));
    [head, frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes())].concat()
}

/// A client opens a request and resets it, repeatedly, faster than the gateway accepts them.
#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_reset_before_they_are_seen_end_their_connection() {
    const FLOOD: usize = 100_000;
    let fixture = fixture(&[]).await;
    let attack = Attack::begin(&fixture, "HTTP/2 rapid reset, at once");
    let (mut reading, mut writing) = connect(&fixture, &[]).await.into_split();
    let pouring = tokio::spawn(async move {
        let pieces = (0..FLOOD / 1_000)
            .map(|n| (n * 1_000..(n + 1) * 1_000).flat_map(open_and_reset).collect());
        pour(&mut writing, pieces).await
    });
    let ended = Ended::of(&mut reading).await;
    pouring.await.unwrap();
    // The library sends the reason; if the budget of frames was used up first, the connection is
    // closed.
    assert!(matches!(ended.goaway(), Some(ENHANCE_YOUR_CALM) | None), "{ended:?}");
    let looked_at = count(&fixture, "tollgate_unauthenticated_total").await;
    assert!(looked_at < (2 * BUDGET) as f64, "{looked_at} requests were looked at");
    attack.end(&fixture, FLOOD, 32).await;
}

/// The same, slowly enough that the gateway accepts each.
#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_seen_and_reset_use_up_a_budget() {
    const FLOOD: usize = 20_000;
    let fixture = fixture(&[]).await;
    let attack = Attack::begin(&fixture, "HTTP/2 rapid reset, one by one");
    let mut tcp = connect(&fixture, &[]).await;
    let mut sent = 0;
    'flood: while sent < FLOOD {
        // One at a time: the gateway accepts one on each read, so none accumulate. Of those that
        // are not accepted the library allows few, and then closes the connection itself: several
        // at once were faster than a busy gateway.
        let begun =
            tcp.write_all(&[open_and_reset(sent), frame(PING, 0, 0, &[0; 8])].concat()).await;
        sent += 1;
        let mut got = Vec::new();
        // The answer to the ping: everything before it has been read.
        while begun.is_ok()
            && !frames(&got).iter().any(|(kind, flags, ..)| (*kind, *flags) == (PING, 1))
        {
            match tokio::time::timeout(SOON, tcp.read_buf(&mut got)).await.expect("no answer") {
                Ok(0) | Err(_) => break 'flood,
                Ok(_) => {}
            }
        }
        if begun.is_err() {
            break;
        }
    }
    assert!(sent < FLOOD, "all {sent} were taken");
    fixture.gateway.metric_shows("tollgate_http2_floods_total", |floods| floods == 1.0).await;
    attack.end(&fixture, sent, 32).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_that_ask_for_nothing_have_a_budget() {
    const FLOOD: usize = 50_000;
    let fixture = fixture(&[]).await;
    let attack = Attack::begin(&fixture, "PING, SETTINGS, PRIORITY and unknown frames");
    let floods = [
        ("ping", frame(PING, 0, 0, &[0; 8])),
        ("settings", frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 100])),
        ("empty settings", frame(SETTINGS, 0, 0, &[])),
        ("priority", frame(PRIORITY, 0, 1, &[0, 0, 0, 3, 16])),
        ("unknown", frame(0x42, 0, 0, &[7; 100])),
    ];
    for (n, (name, one)) in floods.iter().enumerate() {
        // Nothing is read: answers must not accumulate in the gateway.
        let mut tcp = connect(&fixture, &[]).await;
        let pieces = (0..FLOOD / 100).map(|_| one.repeat(100));
        pour(&mut tcp, pieces).await;
        // By name: one after the other.
        let floods = n as f64 + 1.0;
        fixture.gateway.metric_shows("tollgate_http2_floods_total", |now| now >= floods).await;
        assert_eq!(count(&fixture, "tollgate_http2_floods_total").await, floods, "{name}");
        Ended::of(&mut tcp).await;
    }
    attack.end(&fixture, floods.len() * FLOOD, 32).await;
}

/// A connection with typical use stays far below the budget.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_resets_and_pings_now_and_then_is_served() {
    let fixture = fixture(&[]).await;
    let mut tcp = connect(&fixture, &[]).await;
    for n in 0..200_u32 {
        let head =
            frame(HEADERS, END_HEADERS | END_STREAM, n * 2 + 1, &request_fields("sk-unknown"));
        let reset = frame(RST_STREAM, 0, n * 2 + 1, &8_u32.to_be_bytes());
        tcp.write_all(&[head, reset, frame(PING, 0, 0, &[0; 8])].concat()).await.unwrap();
        // The answer to the ping: everything before it has been read.
        let mut got = Vec::new();
        while !frames(&got).iter().any(|(kind, flags, ..)| (*kind, *flags) == (PING, 1)) {
            assert!(tcp.read_buf(&mut got).await.unwrap() > 0, "closed after {n}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_is_continued_without_end_is_cut() {
    const FLOOD: usize = 100_000;
    let fixture = fixture(&[]).await;
    let attack = Attack::begin(&fixture, "CONTINUATION flood");
    for payload in [Vec::new(), field("x", ""), field("x-more", &"y".repeat(1_000))] {
        let (mut reading, mut writing) = connect(&fixture, &[]).await.into_split();
        let pouring = tokio::spawn(async move {
            let begin = frame(HEADERS, END_STREAM, 1, &request_fields("sk-unknown"));
            let more = frame(CONTINUATION, 0, 1, &payload);
            pour(&mut writing, std::iter::once(begin).chain(std::iter::repeat_n(more, FLOOD))).await
        });
        let ended = Ended::of(&mut reading).await;
        pouring.await.unwrap();
        assert_eq!(ended.goaway(), Some(ENHANCE_YOUR_CALM), "{ended:?}");
    }
    assert_eq!(count(&fixture, "tollgate_unauthenticated_total").await, 0.0, "no head was whole");
    attack.end(&fixture, 3 * FLOOD, 16).await;
}

/// Frames of a body with no or nearly no content.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_of_empty_frames_is_cut() {
    const FLOOD: usize = 50_000;
    let fixture = fixture(&[]).await;
    let attack = Attack::begin(&fixture, "empty and one-byte DATA frames");
    for payload in [&b""[..], b" "] {
        let (mut reading, mut writing) = connect(&fixture, &[]).await.into_split();
        let head = frame(HEADERS, END_HEADERS, 1, &request_fields(&fixture.key));
        let more = frame(DATA, 0, 1, payload);
        let pouring = tokio::spawn(async move {
            pour(&mut writing, std::iter::once(head).chain(std::iter::repeat_n(more, FLOOD))).await
        });
        let ended = Ended::of(&mut reading).await;
        pouring.await.unwrap();
        assert_eq!(ended.goaway(), Some(ENHANCE_YOUR_CALM), "{ended:?}");
    }
    attack.end(&fixture, 2 * FLOOD, 16).await;
}

/// More concurrent requests than a connection may have: the others are refused unprocessed.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_has_so_many_requests_at_once_and_no_more() {
    const FLOOD: u32 = 500;
    let fixture = fixture(&[("TOLLGATE_PROXY_REQUEST_READ_TIMEOUT", "5s")]).await;
    let attack = Attack::begin(&fixture, "streams at once");
    let mut tcp = connect(&fixture, &[]).await;
    // Their bodies never come.
    let open = (0..FLOOD)
        .flat_map(|n| frame(HEADERS, END_HEADERS, n * 2 + 1, &request_fields(&fixture.key)));
    tcp.write_all(&open.collect::<Vec<_>>()).await.unwrap();
    let mut got = Vec::new();
    let refused = |got: &[u8]| {
        frames(got).iter().filter(|(kind, .., why)| *kind == RST_STREAM && why[3] == 7).count()
    };
    while refused(&got) < FLOOD as usize - 100 {
        let read =
            tokio::time::timeout(SOON, tcp.read_buf(&mut got)).await.expect("they are not refused");
        assert!(read.unwrap() > 0, "closed: {:?}", frames(&got));
    }
    assert_eq!(refused(&got), FLOOD as usize - 100);
    drop(tcp);
    attack.end(&fixture, FLOOD as usize, 32).await;
}
