//! How quickly the administration answers with a year of use behind it.
//!
//! For each back end: a private database is filled with a log, a ledger and their sums (made by the
//! database itself, all sums from the ledger by the gateway's own rule), the gateway is started on
//! it, and each query is sent many times over HTTP. The output is the time to the complete reply:
//! median, 95th percentile, worst.

mod ask;
mod fill;
mod plans;
#[path = "../../../../tests/support/postgres.rs"]
#[expect(dead_code, reason = "the tests kill and freeze their servers; here one only runs")]
mod postgres;

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Parser;
use postgres::Server;
use tollgate_bench::admin;
use tollgate_bench::process::{Program, pause};

#[derive(Parser)]
#[command(about = "How quickly the administration answers with a year of use behind it")]
struct Args {
    /// Rows of the request log on PostgreSQL; 0 skips it.
    #[arg(long, default_value_t = 10_000_000)]
    postgres_rows: i64,
    /// Rows of the request log on SQLite; 0 skips it.
    #[arg(long, default_value_t = 1_000_000)]
    sqlite_rows: i64,
    /// How often each query is sent.
    #[arg(long, default_value_t = 20)]
    repeats: usize,
    /// A PostgreSQL database to use instead of a private one. Rows of an earlier run are reused.
    #[arg(long)]
    postgres: Option<String>,
    /// Write the plans of the reports' statements on the private PostgreSQL to this page.
    #[arg(long)]
    plans: Option<PathBuf>,
    /// The gateway's program; else the one beside this.
    #[arg(long)]
    tollgate: Option<PathBuf>,
}

/// Options of the private PostgreSQL. Nothing is synced: only filling writes much.
const SERVER: &str = "-c fsync=off -c full_page_writes=off -c shared_buffers=4GB \
    -c maintenance_work_mem=1GB -c max_wal_size=4GB";

pub const TOKEN: &str = "bench-admin-token-0123456789";
const TIME_LIMIT: Duration = Duration::from_secs(600);
/// Days of the generated year that are complete in any time zone.
const DAYS: i64 = 363;

fn main() -> Result<()> {
    let args = Args::parse();
    let beside = std::env::current_exe()?.with_file_name("tollgate");
    let program = args.tollgate.clone().unwrap_or(beside);
    if args.postgres_rows > 0 {
        let own = args.postgres.is_none().then(|| Server::with(&std::env::temp_dir(), SERVER));
        let url = own.as_ref().map(Server::fresh_database).or_else(|| args.postgres.clone());
        measure("PostgreSQL", args.postgres_rows, &program, url.as_deref(), (&args, own.as_ref()))?;
    }
    if args.sqlite_rows > 0 {
        measure("SQLite", args.sqlite_rows, &program, None, (&args, None))?;
    }
    Ok(())
}

/// A running gateway.
struct Gateway {
    _program: Program,
    addr: SocketAddr,
    started_in: Duration,
}

fn start(program: &Path, dir: &Path, url: Option<&str>) -> Result<Gateway> {
    let free = || TcpListener::bind("127.0.0.1:0")?.local_addr();
    let (proxy, addr, metrics) = (free()?, free()?, free()?);
    let mut command = Command::new(program);
    command.env_clear().current_dir(dir).env("ADMIN_TOKEN", TOKEN).env("TZ", "Europe/Berlin");
    // A reused database contains values that an earlier run encrypted.
    command.env("TOLLGATE_SECRET_KEY", "bench-secret-key-0123456789-0123456789");
    command
        .env("TOLLGATE_DATA_DIR", dir.join("data"))
        .env("TOLLGATE_PRICES_SYNC", "off")
        .env("TOLLGATE_PROXY_ADDR", proxy.to_string());
    command
        .env("TOLLGATE_ADMIN_ADDR", addr.to_string())
        .env("TOLLGATE_METRICS_ADDR", metrics.to_string());
    if let Some(url) = url {
        command.env("DATABASE_URL", url);
    }
    let began = Instant::now();
    let mut program = Program::start(&mut command, std::fs::File::create(dir.join("log"))?)?;
    while admin::http(addr, "GET", "/api/actions/health", TOKEN, "").is_err() {
        if program.ended() || began.elapsed() > TIME_LIMIT {
            bail!(
                "the gateway did not start:\n{}",
                std::fs::read_to_string(dir.join("log")).unwrap_or_default()
            );
        }
        pause(Duration::from_millis(10));
    }
    Ok(Gateway { _program: program, addr, started_in: began.elapsed() })
}

/// `own`: the private PostgreSQL that has the database.
fn measure(
    name: &str,
    rows: i64,
    program: &Path,
    url: Option<&str>,
    (args, own): (&Args, Option<&Server>),
) -> Result<()> {
    let repeats = args.repeats;
    let dir = tempfile::tempdir()?;
    let gateway = start(program, dir.path(), url)?;
    if !ask::is_peopled(gateway.addr)? {
        ask::people(gateway.addr).context("making users, keys and providers")?;
    }
    drop(gateway);
    let sqlite = format!("sqlite:{}", dir.path().join("data/tollgate.db").display());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let began = Instant::now();
    let filled = runtime
        .block_on(fill::fill(url.unwrap_or(&sqlite), rows))
        .context("filling the database")?;
    let took = began.elapsed();
    let gateway = start(program, dir.path(), url)?;
    let began = Instant::now();
    while runtime.block_on(fill::summed_days(url.unwrap_or(&sqlite)))? < DAYS {
        if began.elapsed() > TIME_LIMIT {
            bail!("the days were not summed in time");
        }
        pause(Duration::from_millis(500));
    }
    println!("### {name}: {} rows\n", filled.rows);
    println!(
        "Filled in {} s: {} hourly sums, {} of hours and users, {} lifetime sums. The gateway \
         starts in {} ms, and has summed the days after {} s.\n",
        took.as_secs(),
        filled.hourly_sums,
        filled.hourly_users,
        filled.totals,
        gateway.started_in.as_millis(),
        began.elapsed().as_secs()
    );
    ask::all(gateway.addr, &filled, repeats, "")?;
    let gateway = match (&args.plans, url, own) {
        (Some(page), Some(url), Some(server)) => {
            drop(gateway);
            runtime.block_on(plans::switch_on(url))?;
            let gateway = start(program, dir.path(), Some(url))?;
            let (questions, key) = (ask::questions(&filled), ask::user_key(gateway.addr)?);
            let log = server.socket().with_file_name("server.log");
            let about = format!("{} rows of log, a year of use.", filled.rows);
            std::fs::write(page, plans::page(gateway.addr, &questions, &key, &log, &about)?)?;
            drop(gateway);
            runtime.block_on(plans::switch_off(url))?;
            start(program, dir.path(), Some(url))?
        }
        _ => gateway,
    };
    ask::clean(gateway.addr, 350)?;
    ask::all(gateway.addr, &filled, repeats, "logs")?;
    ask::clean(gateway.addr, 31)
}
