//! Micro-benchmark of conversion: every pair of formats, without network or disk, in CPU time.
//!
//! Requests are measured in megabytes of the client's body per second, streams in nanoseconds per
//! event of the provider's. The inputs are made from one conversation, written in each format by
//! the converter itself. Each figure is a median over passes, with the best pass in brackets; all
//! pairs take turns, so that a busy moment of the machine does not fall on one of them alone.

use std::hint::black_box;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use clap::Parser;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use tollgate::domain::format::WireFormat;
use tollgate::formats::convert::{self, ReplyContext, RequestOptions, StreamConverter};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(about = "What conversion between formats costs")]
struct Args {
    /// Passes over all pairs.
    #[arg(long, default_value_t = 15)]
    passes: usize,
    /// Milliseconds of CPU time for each figure in each pass.
    #[arg(long, default_value_t = 12)]
    millis: u64,
}

/// Sizes of requests: name and approximate bytes.
const SIZES: [(&str, usize); 3] = [("2 KB", 2_000), ("200 KB", 200_000), ("5 MB", 5_000_000)];
/// Text events of a stream; a format adds its own at the beginning and the end.
const EVENTS: usize = 50;
/// Bytes of text in each message of a long conversation.
const TURN: usize = 4_000;
const PROSE: &str = "She said \"wait\", and the naïve reader waited.\n\tlet sum = 1 + 1; // 東京\n";

fn main() -> Result<()> {
    let args = Args::parse();
    let mut figures = Vec::new();
    for from in WireFormat::ALL {
        for to in WireFormat::ALL.into_iter().filter(|to| *to != from) {
            figures.push(Figures::of(from, to)?);
        }
    }
    let share = Duration::from_millis(args.millis);
    for _ in 0..args.passes.max(1) {
        for figure in &mut figures {
            figure.pass(share)?;
        }
    }
    print(&figures);
    Ok(())
}

/// One pair of formats: client and provider for requests, the other way round for streams.
struct Figures {
    from: WireFormat,
    to: WireFormat,
    bodies: Vec<Vec<u8>>,
    stream: Vec<Vec<u8>>,
    context: ReplyContext,
    /// Bytes per second, for each size, one per pass.
    rates: Vec<Vec<u128>>,
    /// Picoseconds per event, one per pass.
    per_event: Vec<u128>,
}

impl Figures {
    fn of(from: WireFormat, to: WireFormat) -> Result<Self> {
        let bodies = SIZES.iter().map(|(_, size)| body(from, *size)).collect::<Result<Vec<_>>>()?;
        let reply = request(from, to, &bodies[0])?.reply;
        let context = ReplyContext {
            seed: "0a1b".to_owned(),
            created: 1_700_000_000,
            include_usage: true,
            ..reply
        };
        let stream = stream(to)?;
        Ok(Self {
            from,
            to,
            bodies,
            stream,
            context,
            rates: vec![Vec::new(); SIZES.len()],
            per_event: Vec::new(),
        })
    }

    fn pass(&mut self, share: Duration) -> Result<()> {
        for (body, rates) in self.bodies.iter().zip(&mut self.rates) {
            let (times, took) = repeat(share, || {
                black_box(request(self.from, self.to, black_box(body))?);
                Ok(())
            })?;
            rates.push(body.len() as u128 * times * 1_000_000_000 / took);
        }
        let (times, took) = repeat(share, || {
            let mut converter = StreamConverter::new(self.to, self.from, self.context.clone());
            let mut out = Vec::new();
            for event in black_box(&self.stream) {
                converter.feed(event, &mut out)?;
                // Each event goes to the client at once.
                black_box(&out);
                out.clear();
            }
            converter.finish(&mut out)?;
            Ok(())
        })?;
        self.per_event.push(took * 1000 / (times * self.stream.len() as u128));
        Ok(())
    }
}

/// CPU time of this thread; the time of other programs is not included.
fn used() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Repeats a task until the time is used up, at least once. Returns the number of runs and the
/// nanoseconds.
fn repeat(share: Duration, mut work: impl FnMut() -> Result<()>) -> Result<(u128, u128)> {
    let start = used();
    let mut times = 0;
    loop {
        work()?;
        times += 1;
        let took = used().saturating_sub(start);
        if took >= share {
            return Ok((times, took.as_nanos().max(1)));
        }
    }
}

fn request(from: WireFormat, to: WireFormat, body: &[u8]) -> Result<convert::ConvertedRequest> {
    convert::request(from, to, body, &RequestOptions::new("upstream-1", true))
        .map_err(|problem| anyhow!("{from} to {to}: {}: {}", problem.field, problem.message))
}

/// A conversation with system text, a tool, calls and results, of about `size` bytes, in a format.
fn body(format: WireFormat, size: usize) -> Result<Vec<u8>> {
    let mut messages = vec![json!({"role": "user", "content": prose(size.min(TURN) / 4)})];
    let mut written = size.min(TURN) / 4 + 700;
    let mut call = 0;
    while written < size {
        let text = prose((size - written).min(TURN));
        written += text.len() + text.len() / 8 + 300;
        let id = format!("toolu_{call}");
        call += 1;
        messages.push(json!({"role": "assistant", "content": [{"type": "text", "text": "I look it up."},
            {"type": "tool_use", "id": id, "name": "look_up", "input": {"query": "naïve", "limit": 3}}]}));
        messages
            .push(json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": text}]}));
    }
    let native = json!({"model": "m-1", "max_tokens": 1024, "stream": true, "system": "Be brief.", "messages": messages,
        "tools": [{"name": "look_up", "description": "Looks something up.", "input_schema": {"type": "object",
            "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}}, "required": ["query"]}}]});
    let native = native.to_string().into_bytes();
    match format {
        WireFormat::Native => Ok(native),
        other => Ok(request(WireFormat::Native, other, &native)?.body),
    }
}

fn prose(bytes: usize) -> String {
    PROSE.chars().cycle().take(bytes * PROSE.chars().count() / PROSE.len()).collect()
}

/// A stream of [`EVENTS`] text events in a format, one event each.
fn stream(format: WireFormat) -> Result<Vec<Vec<u8>>> {
    let mut text = String::new();
    let mut event = |value: Value| {
        text.push_str(&format!(
            "event: {}\ndata: {value}\n\n",
            value["type"].as_str().unwrap_or("")
        ))
    };
    event(
        json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "m-1",
        "content": [], "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 500, "output_tokens": 1}}}),
    );
    event(
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
    );
    for number in 0..EVENTS {
        let delta = json!({"type": "text_delta", "text": format!(" some words, {number}")});
        event(json!({"type": "content_block_delta", "index": 0, "delta": delta}));
    }
    event(json!({"type": "content_block_stop", "index": 0}));
    event(
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null}, "usage": {"output_tokens": 150}}),
    );
    event(json!({"type": "message_stop"}));
    let mut bytes = text.into_bytes();
    if format != WireFormat::Native {
        let plain = body(format, 2_000)?;
        let context = request(format, WireFormat::Native, &plain)?.reply;
        let mut converter = StreamConverter::new(
            WireFormat::Native,
            format,
            ReplyContext { include_usage: true, ..context },
        );
        let mut out = Vec::new();
        converter.feed(&bytes, &mut out)?;
        converter.finish(&mut out)?;
        bytes = out;
    }
    let text = String::from_utf8(bytes).context("a stream is text")?.replace("\r\n", "\n");
    Ok(text.split_inclusive("\n\n").map(|event| event.as_bytes().to_vec()).collect())
}

/// The median, and the best pass in brackets.
fn median_and_best(figures: &[u128], unit: u128, more_is_better: bool) -> String {
    let mut sorted = figures.to_vec();
    sorted.sort_unstable();
    let best = if more_is_better { sorted.last() } else { sorted.first() };
    format!("{} ({})", sorted[sorted.len() / 2] / unit, best.copied().unwrap_or(0) / unit)
}

fn print(figures: &[Figures]) {
    let sizes: Vec<&str> = SIZES.iter().map(|(name, _)| *name).collect();
    println!(
        "| client → provider | request {}, MB/s | {}, MB/s | {}, MB/s |",
        sizes[0], sizes[1], sizes[2]
    );
    println!("|---|---|---|---|");
    for pair in figures {
        let rates: Vec<String> =
            pair.rates.iter().map(|rates| median_and_best(rates, 1_000_000, true)).collect();
        println!("| {} → {} | {} |", pair.from, pair.to, rates.join(" | "));
    }
    println!("\n| stream: provider → client | events | ns per event |");
    println!("|---|---|---|");
    for pair in figures {
        println!(
            "| {} → {} | {} | {} |",
            pair.to,
            pair.from,
            pair.stream.len(),
            median_and_best(&pair.per_event, 1000, false)
        );
    }
}
