//! One gateway under Callgrind, with everything on, and stretches of equal requests to it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};
use tollgate::domain::format::WireFormat;

use crate::callgrind::{self, Profiled};
use crate::fixture::{Gateway, Programs, Target};
use crate::load::{self, Load};
use crate::payload::{self, New};
use crate::process::pause;
use crate::profile::Profile;

/// Records in one transaction of the writer: each count of requests is a multiple, so that nearly
/// all batches are full.
pub const BATCH: u64 = 250;
const SETTLE: Duration = Duration::from_secs(60);
/// The writer also writes a batch that is not full when it looks for other journals, every five
/// seconds. Records that are still in the journal at the end of a stretch would count in the next.
const LAST_BATCH: Duration = Duration::from_secs(6);
const TIME_LIMIT: Duration = Duration::from_secs(300);
/// The folder in which Valgrind's launcher finds its tools.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// One kind of request.
pub struct Scenario {
    pub name: &'static str,
    client: WireFormat,
    pub provider: WireFormat,
    bytes: usize,
    stream: bool,
    /// Embeddings of one text, in place of a reply.
    embeds: bool,
    /// A fraction of the usual number of requests is enough.
    pub part: u64,
}

pub const SCENARIOS: [Scenario; 6] = [
    Scenario::new("2 KB JSON", WireFormat::Native, 2_000, false),
    Scenario { part: 2, ..Scenario::new("200 KB JSON", WireFormat::Native, 200_000, false) },
    Scenario::new("stream, 50 events at once", WireFormat::Native, 2_000, true),
    Scenario::new("converted JSON, native to chat", WireFormat::Chat, 2_000, false),
    Scenario::new("converted stream, native to chat", WireFormat::Chat, 2_000, true),
    Scenario { embeds: true, ..Scenario::new("embedding, 1 KB", WireFormat::Chat, 1_000, false) },
];

impl Scenario {
    const fn new(name: &'static str, provider: WireFormat, bytes: usize, stream: bool) -> Self {
        let client = WireFormat::Native;
        Self { name, client, provider, bytes, stream, embeds: false, part: 1 }
    }

    fn load(&self, target: &Target, most: u64) -> Load {
        let model = if self.stream { "bench-stream" } else { "bench-json" };
        let (path, body) = match self.embeds {
            true => ("/v1/embeddings".to_owned(), payload::embedding(model, self.bytes)),
            false => (
                payload::path_of(self.client, model, self.stream),
                payload::body(model, self.bytes, self.stream),
            ),
        };
        let request = payload::request(&path, &target.key, payload::ONE_SESSION, &body);
        let numbers = New::Last.places(&request);
        Load { addr: target.addr, request, numbers, connections: 1, time: TIME_LIMIT, most }
    }
}

/// A gateway that counts.
pub struct Started<'d> {
    target: Target,
    profiled: Profiled<'d>,
}

impl<'d> Started<'d> {
    /// Starts it, and then counting. `dir`: of its profiles. `env`: further variables of the
    /// gateway. `options`: further ones of Callgrind.
    ///
    /// # Errors
    /// When the gateway or Valgrind does not start.
    pub fn new(
        programs: &Programs,
        mock: &Target,
        dir: &'d Path,
        provider: WireFormat,
        env: &[(&str, &str)],
        options: &[String],
    ) -> Result<Self> {
        let batch = BATCH.to_string();
        let settings = [
            ("PATH", PATH),
            callgrind::GLIBC,
            ("TOLLGATE_PROXY_THREADS", "1"),
            ("TOLLGATE_LEDGER_BATCH_ROWS", batch.as_str()),
            // The longest interval, so that a batch is written when it is full.
            ("TOLLGATE_LEDGER_FLUSH_INTERVAL", "1m"),
            ("TOLLGATE_LEDGER_SYNC_INTERVAL", "10s"),
        ];
        let settings = [&settings, env].concat();
        let under = callgrind::command(dir, options);
        let gateway = Gateway {
            settings: &settings,
            under: &under,
            time_limit: TIME_LIMIT,
            ..Gateway::plain("tollgate under Callgrind", true, provider)
        };
        let target = gateway.start(programs, mock.addr, dir)?;
        let profiled = Profiled { process: target.program.id(), dir };
        target.program.settle(SETTLE);
        profiled.start()?;
        Ok(Self { target, profiled })
    }

    /// Sends this many requests, one after the other, and waits until their records are written.
    /// Returns a profile of each thread, and its file.
    ///
    /// # Errors
    /// When a request fails, or Valgrind does not answer.
    pub fn stretch(
        &self,
        scenario: &Scenario,
        requests: u64,
    ) -> Result<(Vec<Profile>, Vec<PathBuf>)> {
        let seen = load::run(&scenario.load(&self.target, requests))?;
        ensure!(
            seen.requests() == requests && seen.errors == 0,
            "{}: {:?}",
            scenario.name,
            seen.last_error
        );
        pause(LAST_BATCH);
        self.target.program.settle(SETTLE);
        self.profiled.take()
    }
}
