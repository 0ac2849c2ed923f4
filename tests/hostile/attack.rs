//! The required state after every attack: a gateway that did not panic, answers other clients at
//! once, and did not grow; and an HTTP/2 client that can send any frames.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::proxy::fixture::Fixture;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;
pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;
/// Error codes of HTTP/2.
pub const FLOW_CONTROL_ERROR: u32 = 3;
pub const ENHANCE_YOUR_CALM: u32 = 11;

pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Everything that must end does so long before this.
pub const SOON: Duration = Duration::from_secs(45);

/// One class of attack, from its start to its end.
pub struct Attack {
    class: &'static str,
    memory: u64,
    began: Instant,
}

impl Attack {
    pub fn begin(fixture: &Fixture, class: &'static str) -> Self {
        Self { class, memory: fixture.gateway.memory_mib("VmHWM"), began: Instant::now() }
    }

    /// The gateway still answers, has not panicked, and has not grown by more than `growth` MiB.
    pub async fn end(self, fixture: &Fixture, inputs: usize, growth: u64) {
        let asked = Instant::now();
        let answer = fixture.ask().send().await.expect("the gateway answers others");
        assert_eq!(answer.status(), 200, "{}", self.class);
        assert!(asked.elapsed() < SOON, "{}: others wait {:?}", self.class, asked.elapsed());
        let log = fixture.gateway.log();
        let panics = log.matches("panicked at").count();
        let most = fixture.gateway.memory_mib("VmHWM");
        println!(
            "hostile: {}: {inputs} inputs, {panics} panics, 0 hangs, {most} MiB at \
             most (+{}), {:.1} s",
            self.class,
            most.saturating_sub(self.memory),
            self.began.elapsed().as_secs_f32()
        );
        assert_eq!(panics, 0, "{}: {log}", self.class);
        assert!(
            most < self.memory + growth,
            "{}: it grew from {} to {most} MiB",
            self.class,
            self.memory
        );
    }
}

/// A gateway with one native provider that speaks HTTP/2 without TLS.
pub async fn fixture(env: &[(&str, &str)]) -> Fixture {
    let env: Vec<_> =
        [("TOLLGATE_PROXY_H2C", "true")].into_iter().chain(env.iter().copied()).collect();
    Fixture::native_with(&env).await
}

/// A metric's sum, 0 before it was ever counted.
pub async fn count(fixture: &Fixture, name: &str) -> f64 {
    let url = format!("{}/metrics", fixture.gateway.metrics);
    let text = fixture.gateway.client.get(url).send().await.unwrap().text().await.unwrap();
    let samples = text.lines().filter(|line| line.split([' ', '{']).next() == Some(name));
    samples.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
}

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// A header field that is added to no table.
pub fn field(name: &str, value: &str) -> Vec<u8> {
    let mut field = vec![0];
    for text in [name, value] {
        // An integer with a prefix of seven bits.
        let mut left = text.len();
        if left < 127 {
            field.push(u8::try_from(left).unwrap());
        } else {
            field.push(127);
            left -= 127;
            while left >= 128 {
                field.push(u8::try_from(left % 128 + 128).unwrap());
                left /= 128;
            }
            field.push(u8::try_from(left).unwrap());
        }
        field.extend(text.as_bytes());
    }
    field
}

/// The fields of a request to the native endpoint.
pub fn request_fields(key: &str) -> Vec<u8> {
    // POST and http are numbers of the static table.
    let fields =
        [field(":path", "/v1/messages"), field(":authority", "x"), field("x-api-key", key)];
    [vec![0x83, 0x86], fields.concat()].concat()
}

/// A new HTTP/2 connection, with the client's settings.
pub async fn connect(fixture: &Fixture, settings: &[u8]) -> TcpStream {
    let mut tcp = TcpStream::connect(fixture.gateway.proxy_addr()).await.unwrap();
    tcp.write_all(&[PREFACE.to_vec(), frame(SETTINGS, 0, 0, settings)].concat()).await.unwrap();
    tcp
}

/// How a connection ended, and what was received before.
#[derive(Debug)]
pub struct Ended {
    /// Kind, flags, stream and payload of each complete frame.
    pub frames: Vec<(u8, u8, u32, Vec<u8>)>,
}

impl Ended {
    /// Reads to the end of the connection, which must come soon.
    pub async fn of(tcp: &mut (impl AsyncReadExt + Unpin)) -> Self {
        let mut got = Vec::new();
        // A reset ends it as well.
        let _ = tokio::time::timeout(SOON, tcp.read_to_end(&mut got))
            .await
            .expect("the connection is still open");
        Self { frames: frames(&got) }
    }

    /// The error code of the GOAWAY, if one was sent.
    pub fn goaway(&self) -> Option<u32> {
        let mut goaways = self.frames.iter().filter(|(kind, ..)| *kind == GOAWAY);
        goaways
            .next_back()
            .map(|(.., payload)| u32::from_be_bytes(payload[4..8].try_into().unwrap()))
    }
}

/// The complete frames in the received bytes.
pub fn frames(mut bytes: &[u8]) -> Vec<(u8, u8, u32, Vec<u8>)> {
    let mut frames = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<9>() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        if rest.len() < length {
            break;
        }
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        frames.push((head[3], head[4], stream, rest[..length].to_vec()));
        bytes = &rest[length..];
    }
    frames
}

/// Writes until all is written, or the peer has closed. A connection that is being closed is read
/// for up to five seconds more, and the bytes are discarded.
pub async fn pour(tcp: &mut (impl AsyncWriteExt + Unpin), pieces: impl Iterator<Item = Vec<u8>>) {
    for piece in pieces {
        let written = tokio::time::timeout(SOON, tcp.write_all(&piece))
            .await
            .expect("it is neither read nor closed");
        if written.is_err() {
            return;
        }
    }
}
