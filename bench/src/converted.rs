//! Converted replies: every ordered pair of two different formats, beside a bare Pingora that
//! passes the same reply on.
//!
//! Each type of provider has its own gateway, with everything on, before the same mock. The floor
//! passes on what the mock sends in the *client's* format, so both give the client the same stream;
//! that it costs nearly the same in the provider's format can be seen beside it.

use std::time::Duration;

use anyhow::Result;
use tollgate::domain::format::WireFormat;

use crate::fixture::Target;
use crate::measure::{self, Aim, Sample};
use crate::payload;

/// Fewer than elsewhere: a conversion takes more CPU time.
const CONNECTIONS: usize = 16;
const BYTES: usize = 2_000;

/// What is converted.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    pub name: &'static str,
    stream: bool,
}

pub const KINDS: [Kind; 2] = [
    Kind { name: "converted stream, 50 events", stream: true },
    Kind { name: "converted JSON, 2 KB", stream: false },
];

/// A client format, and the target that serves it.
pub struct Row {
    pub client: WireFormat,
    /// `None` = the bare Pingora, which converts nothing.
    pub provider: Option<WireFormat>,
    pub samples: Vec<Sample>,
}

/// Gateways, each with one provider, of the type beside it.
pub type Converting = [(WireFormat, Target)];

/// The rows of one kind, without samples: for each client format the floor, then the other three
/// provider types.
pub fn rows(converting: &Converting) -> Vec<Row> {
    let mut rows = Vec::new();
    for client in WireFormat::ALL {
        rows.push(Row { client, provider: None, samples: Vec::new() });
        let others = converting.iter().filter(|(provider, _)| *provider != client);
        rows.extend(others.map(|(provider, _)| Row {
            client,
            provider: Some(*provider),
            samples: Vec::new(),
        }));
    }
    rows
}

/// One more sample for every row; each round begins with a different row.
///
/// # Errors
/// When a target does not answer.
pub fn round(
    kind: Kind,
    number: usize,
    rows: &mut [Row],
    (floor, converting): (&Target, &Converting),
    time: Duration,
) -> Result<()> {
    let count = rows.len();
    for turn in 0..count {
        let row = &mut rows[(turn + number * 5) % count];
        let found = converting.iter().find(|(provider, _)| Some(*provider) == row.provider);
        let target = found.map_or(floor, |(_, target)| target);
        let request = request(kind, row.client, &target.key);
        let aim = Aim { target, request, numbers: Vec::new(), connections: CONNECTIONS, parts: 1 };
        let sample = measure::sample(&aim, time)?;
        eprintln!(
            "round {}: {}, {} → {:?}: {sample:?}",
            number + 1,
            kind.name,
            row.client,
            row.provider
        );
        row.samples.push(sample);
    }
    Ok(())
}

fn request(kind: Kind, client: WireFormat, key: &str) -> Vec<u8> {
    let model = if kind.stream { "bench-stream" } else { "bench-json" };
    let body = payload::body_of(client, model, BYTES, kind.stream);
    payload::request(&payload::path_of(client, model, kind.stream), key, "", &body)
}
