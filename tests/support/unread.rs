//! What has arrived at a loopback socket and was not read yet, by the kernel's own table.

use tokio::net::TcpStream;

use super::wait::{Looks, TIME_LIMIT};

/// Waits until the other side has read everything that was sent on a connection, or has closed it.
pub async fn taken(tcp: &TcpStream) {
    let (own, peer) = (tcp.local_addr().unwrap().port(), tcp.peer_addr().unwrap().port());
    let left = || {
        sockets()
            .into_iter()
            .map(|socket| match (socket.port, socket.peer) {
                ends if ends == (own, peer) => socket.unsent,
                ends if ends == (peer, own) => socket.unread,
                _ => 0,
            })
            .sum::<u64>()
    };
    let looks = Looks::begin(TIME_LIMIT);
    while left() != 0 {
        assert!(looks.again().await, "{} bytes are not read", left());
    }
}

struct Socket {
    port: u16,
    peer: u16,
    /// Bytes that the peer's kernel does not have yet.
    unsent: u64,
    unread: u64,
}

fn sockets() -> Vec<Socket> {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let hex = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let port = |address: &str| u16::try_from(hex(address.split_once(':').unwrap().1)).unwrap();
    let socket = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (unsent, unread) = fields[4].split_once(':').unwrap();
        Socket {
            port: port(fields[1]),
            peer: port(fields[2]),
            unsent: hex(unsent),
            unread: hex(unread),
        }
    };
    table.lines().skip(1).map(socket).collect()
}
