//! A manual HTTP/2 client, frame by frame: it sends when a test says so, and shows the received
//! frames and how the connection ended.
//!
//! It implements only what these tests need: small requests, no dynamic table, no windows.

use std::io::ErrorKind;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
/// No frame of the protocol: receivers must ignore it.
pub const UNKNOWN: u8 = 0x42;
/// For SETTINGS and PING.
pub const ACK: u8 = 1;
/// For HEADERS and DATA.
pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;
/// The last stream of a GOAWAY that only announces the end.
pub const ANY_STREAM: u32 = (1 << 31) - 1;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Time-out of any single step.
const TIME_LIMIT: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

impl Frame {
    /// Of a GOAWAY: the last stream that was, or may be, processed.
    pub fn last_stream(&self) -> Option<u32> {
        let last = self.payload.first_chunk::<4>().filter(|_| self.kind == GOAWAY)?;
        Some(u32::from_be_bytes(*last) & ANY_STREAM)
    }

    /// Whether its stream's reply is complete with it.
    pub fn is_end(&self) -> bool {
        matches!(self.kind, DATA | HEADERS) && self.flags & END_STREAM != 0
    }
}

pub struct Wire {
    tcp: TcpStream,
    addr: String,
    /// All received frames.
    pub came: Vec<Frame>,
}

impl Wire {
    /// A connection without any frame so far.
    pub async fn connect(addr: &str) -> Self {
        Self {
            tcp: TcpStream::connect(addr).await.unwrap(),
            addr: addr.to_owned(),
            came: Vec::new(),
        }
    }

    pub async fn begin(&mut self) {
        self.tcp.write_all(PREFACE).await.unwrap();
        self.send(SETTINGS, 0, 0, &[]).await;
    }

    pub async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let mut frame = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        self.tcp.write_all(&frame).await.unwrap();
    }

    /// A request to the native endpoint.
    pub async fn ask(&mut self, stream: u32, key: &str, body: &Value) {
        // POST and http by their numbers in the static table; then fields that go into no table.
        let mut head = vec![0x83, 0x86];
        let mut field = |name: &[u8], value: &str| {
            head.extend(name);
            head.push(u8::try_from(value.len()).unwrap());
            head.extend(value.as_bytes());
        };
        field(&[0x04], "/v1/messages");
        field(&[0x01], &self.addr);
        field(b"\x00\x09x-api-key", key);
        field(b"\x00\x0ccontent-type", "application/json");
        self.send(HEADERS, END_HEADERS, stream, &head).await;
        self.send(DATA, END_STREAM, stream, body.to_string().as_bytes()).await;
    }

    /// Reads one frame; `None` if the connection has ended. It must not be reset.
    async fn next(&mut self) -> Option<Frame> {
        let reading = async {
            let mut head = [0; 9];
            if let Err(e) = self.tcp.read_exact(&mut head).await {
                assert_eq!(e.kind(), ErrorKind::UnexpectedEof, "after {:?}", self.came);
                return None;
            }
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; usize::try_from(length).unwrap()];
            self.tcp.read_exact(&mut payload).await.expect("a frame is whole");
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            Some(Frame { kind: head[3], flags: head[4], stream, payload })
        };
        tokio::time::timeout(TIME_LIMIT, reading).await.expect("a frame, or the connection's end")
    }

    /// Reads until a frame meets a condition; answers settings meanwhile.
    pub async fn until(&mut self, wanted: impl Fn(&Frame) -> bool) -> Frame {
        loop {
            let next = self.next().await;
            let frame = next.unwrap_or_else(|| panic!("the connection ended: {:?}", self.came));
            if frame.kind == SETTINGS && frame.flags & ACK == 0 {
                self.send(SETTINGS, ACK, 0, &[]).await;
            }
            self.came.push(frame.clone());
            if wanted(&frame) {
                return frame;
            }
        }
    }

    /// Reads all remaining frames.
    pub async fn rest(&mut self) {
        while let Some(frame) = self.next().await {
            self.came.push(frame);
        }
    }

    /// The text of a reply with status 200, if it is complete.
    pub fn reply(&self, stream: u32) -> Option<String> {
        let of = |kind: u8| self.came.iter().filter(move |f| f.stream == stream && f.kind == kind);
        // Status 200 is a number of the static table.
        let good = of(HEADERS).next()?.payload.first() == Some(&0x88);
        let whole = self.came.iter().any(|f| f.stream == stream && f.is_end());
        let said: Vec<u8> = of(DATA).flat_map(|f| f.payload.clone()).collect();
        (good && whole).then(|| String::from_utf8(said).unwrap())
    }

    /// Whether any frame arrived for a stream.
    pub fn is_touched(&self, stream: u32) -> bool {
        self.came.iter().any(|f| f.stream == stream)
    }
}
