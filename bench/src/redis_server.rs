//! A private Redis server, and what it reports of itself: its CPU time (user and system, of the
//! whole process), commands, and bytes.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::process::{Program, pause};

const WAIT: Duration = Duration::from_secs(20);

/// What Redis has done so far.
#[derive(Debug, Clone, Copy)]
pub struct Facts {
    /// Seconds of CPU time.
    pub cpu: f64,
    /// Scripts that clients called.
    pub calls: f64,
    /// Commands, those inside of scripts included.
    pub commands: f64,
    /// Bytes received and sent.
    pub bytes: f64,
}

impl Facts {
    fn read(info: &str) -> Self {
        let of = |name: &str| -> f64 {
            let found = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            found.and_then(|number| number.trim().parse().ok()).unwrap_or(0.0)
        };
        let stats = info.lines().filter_map(|line| {
            let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
            Some((name, rest.split(',').next()?.parse::<f64>().ok()?))
        });
        let scripts = |name: &str| name.starts_with("eval");
        Self {
            cpu: of("used_cpu_user") + of("used_cpu_sys"),
            calls: stats.clone().filter(|(name, _)| scripts(name)).map(|(_, calls)| calls).sum(),
            commands: stats.map(|(_, calls)| calls).sum(),
            bytes: of("total_net_input_bytes") + of("total_net_output_bytes"),
        }
    }

    /// The difference to an earlier reading.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            cpu: self.cpu - before.cpu,
            calls: self.calls - before.calls,
            commands: self.commands - before.commands,
            bytes: self.bytes - before.bytes,
        }
    }
}

/// A server on a free loopback port, without persistence; it ends with this value.
pub struct Redis {
    pub addr: SocketAddr,
    _program: Program,
    _dir: tempfile::TempDir,
}

impl Redis {
    /// Starts it and waits until it answers.
    ///
    /// # Errors
    /// When `redis-server` does not start.
    pub fn start() -> Result<Self> {
        let addr = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let dir = tempfile::Builder::new().prefix("tollgate-bench-redis-").tempdir()?;
        let mut command = Command::new("redis-server");
        command.args(["--port", &addr.port().to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.args(["--appendonly", "no", "--loglevel", "warning", "--dir"]).arg(dir.path());
        let log = File::create(dir.path().join("log"))?;
        let program = Program::start(&mut command, log)
            .context("redis-server did not start; it is in the package `redis-server`")?;
        let redis = Self { addr, _program: program, _dir: dir };
        let began = Instant::now();
        while redis.facts().is_err() {
            if began.elapsed() > WAIT {
                bail!("redis-server does not listen");
            }
            pause(Duration::from_millis(20));
        }
        Ok(redis)
    }

    /// What it has done so far.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn facts(&self) -> Result<Facts> {
        let mut stream = TcpStream::connect(self.addr)?;
        stream.write_all(b"INFO everything\r\nQUIT\r\n")?;
        let mut info = String::new();
        stream.read_to_string(&mut info)?;
        Ok(Facts::read(&info))
    }
}
