//! The load generator alone, against anything that speaks HTTP/1.1 on loopback.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Parser;
use tollgate_bench::load::{self, Load};
use tollgate_bench::payload::{self, New};

#[derive(Parser)]
#[command(about = "Sends native messages requests over kept connections and says how it went")]
struct Args {
    addr: SocketAddr,
    /// Connections.
    #[arg(short, long, default_value_t = 32)]
    connections: usize,
    /// Seconds.
    #[arg(short, long, default_value_t = 3)]
    seconds: u64,
    /// Size of the body in bytes.
    #[arg(short, long, default_value_t = 2000)]
    bytes: usize,
    #[arg(short, long, default_value = "bench-json")]
    model: String,
    #[arg(short, long, default_value = "/v1/messages")]
    path: String,
    #[arg(short, long, default_value = "bench")]
    key: String,
    #[arg(long)]
    stream: bool,
    /// Which part of each request is new.
    #[arg(long, value_enum, default_value = "last")]
    new: New,
}

fn main() -> Result<()> {
    let args = Args::parse();
    ensure!(
        args.addr.ip().is_loopback(),
        "only loopback: this is not a tool for other people's servers"
    );
    let body = payload::body(&args.model, args.bytes, args.stream);
    let request = payload::request(&args.path, &args.key, payload::ONE_SESSION, &body);
    let seen = load::run(&Load {
        addr: args.addr,
        numbers: args.new.places(&request),
        request,
        connections: args.connections,
        time: Duration::from_secs(args.seconds),
        most: u64::MAX,
    })?;
    let rate = seen.requests() * 1000 / u64::try_from(seen.took.as_millis())?.max(1);
    println!("{} requests in {:?}, {rate}/s, {} errors", seen.requests(), seen.took, seen.errors);
    for (name, histogram) in [("total", &seen.total), ("first byte", &seen.first_byte)] {
        let [p50, p99] = [50, 99].map(|percent| histogram.percentile(percent));
        println!("{name}: p50 {p50:?}, p99 {p99:?}");
    }
    if let Some(error) = seen.last_error {
        println!("last error: {error}");
    }
    Ok(())
}
