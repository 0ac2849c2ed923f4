//! A peer that sends slowly.

use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt};

/// Sends a piece after each pause, at most `times` times; whether the other side took them all.
pub async fn drip(
    to: &mut (impl AsyncWrite + Unpin),
    piece: &[u8],
    pause: Duration,
    times: usize,
) -> bool {
    for _ in 0..times {
        // Sleeps: the pace of the peer is the subject, and the gateway's real clock measures it.
        tokio::time::sleep(pause).await;
        if to.write_all(piece).await.is_err() {
            return false;
        }
    }
    true
}
