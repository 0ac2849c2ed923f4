//! Ports for servers that need theirs before they start, or keep it over a restart.

use std::net::TcpListener;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// A port without a listener that no test was given before. It is below those that the system uses
/// for outgoing connections, so that none of them can take it before it is used, or while its
/// server is down.
pub fn free_port() -> u16 {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    let (first, many) = range();
    // A concurrent run of the tests begins elsewhere.
    let begin = std::process::id().wrapping_mul(257) % many;
    loop {
        let offset = (begin + GIVEN.fetch_add(1, Ordering::Relaxed)) % many;
        let port = u16::try_from(first + offset).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// The first of the ports, and how many there are.
fn range() -> (u32, u32) {
    static RANGE: OnceLock<(u32, u32)> = OnceLock::new();
    *RANGE.get_or_init(|| {
        let range =
            std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
        let outgoing =
            range.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(32_768);
        // If the range below is too small, ports in the middle are equally good.
        let end = if outgoing > 8_000 { u32::min(outgoing, 32_000) } else { 32_000 };
        let first = end.saturating_sub(20_000).max(4_000);
        (first, end - first)
    })
}
