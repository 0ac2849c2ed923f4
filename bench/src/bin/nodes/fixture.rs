//! The programs: one mock, one PostgreSQL with a database for each setup, and the nodes and the
//! Redis of each setup. All run from beginning to end; idle ones use almost no CPU time.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use tempfile::TempDir;
use tollgate::domain::format::WireFormat;
use tollgate_bench::admin;
use tollgate_bench::fixture::{self, Gateway, Programs, Target};
use tollgate_bench::process::{self, pause};
use tollgate_bench::redis_server::Redis;

use super::postgres::Server;

const USERS: usize = 32;
const KEYS_EACH: usize = 2;
/// How long a node may take to start, or to learn of a new key.
const WAIT: Duration = Duration::from_secs(20);
/// How long the work after the last reply may take.
const SETTLE: Duration = Duration::from_secs(10);
/// The nodes of one setup open each other's credentials.
const SECRET: &str = "bench-secret-key-0123456789-0123456789";
/// How PostgreSQL is set. Its commits wait for the disk, as those of a new installation do.
const POSTGRES: &str = "-c shared_buffers=256MB -c max_wal_size=4GB";

/// What is measured.
struct Plan {
    name: &'static str,
    nodes: &'static [&'static str],
    redis: bool,
    provider_limits: bool,
}

/// The order is that of the figures in `figures.rs`.
const PLANS: [Plan; 4] = [
    Plan { name: "one node, PostgreSQL", nodes: &["a"], redis: false, provider_limits: false },
    Plan { name: "one node, Redis", nodes: &["b"], redis: true, provider_limits: false },
    Plan {
        name: "one node, Redis, provider with limits",
        nodes: &["c"],
        redis: true,
        provider_limits: true,
    },
    Plan { name: "two nodes, Redis", nodes: &["d1", "d2"], redis: true, provider_limits: false },
];

/// Nodes that share a database and Redis.
pub struct Setup {
    pub name: &'static str,
    pub nodes: Vec<Target>,
    /// Of all users.
    pub keys: Vec<String>,
    redis: Option<Redis>,
}

/// All running programs; dropping this value stops them.
pub struct Fixture {
    pub setups: Vec<Setup>,
    pub mock: Target,
    postgres: Server,
    _dir: TempDir,
}

impl Fixture {
    /// Starts all programs, and creates users, keys and providers.
    ///
    /// # Errors
    /// When a program does not start or cannot be configured.
    pub fn start(programs: &Programs) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let mock = fixture::mock(programs, dir.path())?;
        let postgres = Server::with(&std::env::temp_dir(), POSTGRES);
        let setups = PLANS.iter().map(|plan| {
            plan.start(programs, mock.addr, &postgres.fresh_database(), dir.path())
                .context(plan.name)
        });
        Ok(Self { setups: setups.collect::<Result<_>>()?, mock, postgres, _dir: dir })
    }

    /// The CPU time that a setup's programs have used, once they are idle. That of PostgreSQL is of
    /// the whole server: the other setups are idle.
    ///
    /// # Errors
    /// When a program does not report it.
    pub fn settled(&self, setup: &Setup) -> Result<Used> {
        let end = Instant::now() + SETTLE;
        let (mut quiet, mut last) = (0, self.used(setup)?);
        while quiet < 3 && Instant::now() < end {
            pause(Duration::from_millis(120));
            let now = self.used(setup)?;
            let is_idle = now.since(last).all() <= Duration::from_millis(30);
            quiet = if is_idle { quiet + 1 } else { 0 };
            last = now;
        }
        Ok(last)
    }

    fn used(&self, setup: &Setup) -> Result<Used> {
        let facts = setup.redis.as_ref().map(Redis::facts).transpose()?;
        let socket = self.postgres.socket();
        Ok(Used {
            gateways: setup.nodes.iter().map(|node| node.program.cpu()).sum(),
            redis: Duration::from_secs_f64(facts.map_or(0.0, |facts| facts.cpu)),
            postgres: process::cpu_of_family(postmaster(&socket.with_file_name("data"))?),
        })
    }
}

/// CPU time.
#[derive(Clone, Copy)]
pub struct Used {
    pub gateways: Duration,
    pub redis: Duration,
    pub postgres: Duration,
}

impl Used {
    /// The difference to an earlier reading.
    pub fn since(self, before: Self) -> Self {
        Self {
            gateways: self.gateways.saturating_sub(before.gateways),
            redis: self.redis.saturating_sub(before.redis),
            postgres: self.postgres.saturating_sub(before.postgres),
        }
    }

    fn all(self) -> Duration {
        self.gateways + self.redis + self.postgres
    }
}

fn postmaster(data: &Path) -> Result<u32> {
    let file = fs::read_to_string(data.join("postmaster.pid"))?;
    file.lines().next().and_then(|pid| pid.trim().parse().ok()).context("PostgreSQL is not running")
}

impl Plan {
    fn start(
        &self,
        programs: &Programs,
        mock: SocketAddr,
        database: &str,
        dir: &Path,
    ) -> Result<Setup> {
        let redis = self.redis.then(Redis::start).transpose()?;
        let url = redis.as_ref().map(|redis| format!("redis://{}", redis.addr));
        let mut settings = vec![("DATABASE_URL", database), ("TOLLGATE_SECRET_KEY", SECRET)];
        if let Some(url) = &url {
            // A time-out on a busy machine would let a node count for itself meanwhile.
            settings.extend([("REDIS_URL", url.as_str()), ("TOLLGATE_REDIS_TIMEOUT", "2s")]);
        }
        let (mut nodes, mut controls) = (Vec::new(), Vec::new());
        for name in self.nodes {
            let plain = Gateway::plain(name, true, WireFormat::Native);
            let gateway = Gateway { settings: &settings, time_limit: WAIT, ..plain };
            let (node, control) = gateway.launch(programs, dir)?;
            nodes.push(node);
            controls.push(control);
        }
        fixture::furnish(controls[0], mock, &self.provider())?;
        let mut keys = Vec::new();
        for user in 1..=USERS {
            keys.extend(fixture::limited_keys(controls[0], &format!("user {user}"), KEYS_EACH)?);
        }
        for node in &nodes {
            keys.last().map_or(Ok(()), |key| knows(node.addr, key))?;
        }
        Ok(Setup { name: self.name, nodes, keys, redis })
    }

    /// The fields of the provider.
    fn provider(&self) -> Value {
        let mut fields = json!({"provider_type": WireFormat::Native.as_str()});
        if self.provider_limits {
            for (name, usd) in [
                ("limit_5h_usd", 1_000_000),
                ("limit_daily_usd", 1_000_000),
                ("limit_weekly_usd", 5_000_000),
                ("limit_monthly_usd", 20_000_000),
                ("limit_total_usd", 1_000_000_000),
            ] {
                fields[name] = json!(usd);
            }
            fields["limit_concurrent_sessions"] = json!(100_000);
        }
        fields
    }
}

/// Waits until a node accepts a key.
fn knows(node: SocketAddr, key: &str) -> Result<()> {
    let end = Instant::now() + WAIT;
    while !admin::http(node, "GET", "/v1/models", key, "").is_ok_and(|(status, _)| status == 200) {
        if Instant::now() > end {
            bail!("a node does not learn of a new key");
        }
        pause(Duration::from_millis(20));
    }
    Ok(())
}
