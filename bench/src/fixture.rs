//! The fixture: a mock upstream, and in front of it nginx, a bare Pingora, and the gateway twice,
//! all on loopback.
//!
//! *On*: a key and a user with every limit set (all thirteen checks are made), reservation,
//! sensitive words where asked for, journal, usage database, metrics, a JSON access line per
//! request. *Off*: the administrator's token as credential (no key, no user, no limit), no words,
//! no reservation, no access lines, log level error. The journal and the metrics have no switch:
//! they run in both. For conversion there are four gateways more, each on, each before the mock as
//! a provider of another type.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tempfile::TempDir;
use tollgate::domain::format::WireFormat;

use crate::admin;
use crate::process::{Program, Resident, pause};

const TOKEN: &str = "bench-admin-token";
const START: Duration = Duration::from_secs(20);

/// A server under load: a proxy with the credential for it, or the mock itself.
pub struct Target {
    pub name: &'static str,
    pub addr: SocketAddr,
    /// The credential that it requires, as `x-api-key`.
    pub key: String,
    /// Further headers that it requires, each with its line end.
    pub headers: String,
    pub program: Program,
    /// Resident memory before the first load.
    pub idle: Resident,
}

/// All started programs; dropping this value stops them.
pub struct Fixture {
    /// The mock comes first; the baseline is named [`FLOOR`].
    pub targets: Vec<Target>,
    /// Programs that are not installed and were skipped.
    pub missing: Vec<&'static str>,
    /// Gateways that convert, by the type of their only provider; empty unless requested.
    pub converting: Vec<(WireFormat, Target)>,
    dir: TempDir,
}

pub const DIRECT: &str = "mock, direct";
pub const NGINX: &str = "nginx";
pub const FLOOR: &str = "bare Pingora";
pub const OFF: &str = "tollgate, off";
pub const ON: &str = "tollgate, on";
/// Names of the converting gateways, in the order of [`WireFormat::ALL`].
const CONVERTING: [&str; 4] = ["to native", "to responses", "to chat-compatible", "to alt-cli"];

/// The paths of the programs.
pub struct Programs {
    pub tollgate: PathBuf,
    pub floor: PathBuf,
    /// How many sensitive words a gateway that is on has.
    pub words: usize,
}

impl Fixture {
    /// Starts all programs and waits until they answer; the converting gateways only on request.
    ///
    /// # Errors
    /// When a program of this project does not start.
    pub fn start(programs: &Programs, with_converting: bool) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let cores = std::thread::available_parallelism()?.get();
        let mut targets = Vec::new();
        let mut missing = Vec::new();
        let direct = self::mock(programs, dir.path())?;
        let mock = direct.addr;
        targets.push(direct);
        let nginx = free()?;
        let conf = dir.path().join("nginx.conf");
        fs::write(&conf, nginx_conf(dir.path(), nginx, mock, cores))?;
        let mut command = Command::new("nginx");
        command
            .arg("-p")
            .arg(dir.path())
            .arg("-c")
            .arg(&conf)
            .arg("-e")
            .arg(dir.path().join("nginx-error.log"));
        match target(NGINX, nginx, "bench", command, dir.path()) {
            Ok(target) => targets.push(target),
            Err(error) => {
                eprintln!("without nginx: {error:#}");
                missing.push(NGINX);
            }
        }
        let floor = free()?;
        let mut command = Command::new(&programs.floor);
        command.args(["--listen", &floor.to_string(), "--upstream", &mock.to_string()]);
        command.args(["--threads", &cores.to_string()]);
        targets.push(target(FLOOR, floor, "bench", command, dir.path())?);
        for (name, on) in [(OFF, false), (ON, true)] {
            targets.push(Gateway::plain(name, on, WireFormat::Native).start(
                programs,
                mock,
                dir.path(),
            )?);
        }
        let mut converting = Vec::new();
        for (name, provider) in
            CONVERTING.into_iter().zip(WireFormat::ALL).filter(|_| with_converting)
        {
            let target = Gateway::plain(name, true, provider).start(programs, mock, dir.path())?;
            converting.push((provider, target));
        }
        for target in &mut targets {
            target.program.settle(Duration::from_secs(3));
            target.idle = target.program.resident();
        }
        Ok(Self { targets, missing, converting, dir })
    }

    /// Starts another gateway in front of the mock. `command`: for the shell, with `{listen}`,
    /// `{port}`, `{upstream}` and `{dir}` (an empty folder) in it. `headers` may have `{upstream}`.
    ///
    /// # Errors
    /// When it does not listen in time.
    pub fn add_peer(&mut self, name: &'static str, command: &str, headers: &str) -> Result<()> {
        let addr = free()?;
        let mock = self.targets.first().context("no mock")?.addr;
        let dir = self.dir.path().join(name);
        fs::create_dir(&dir)?;
        let filled = command
            .replace("{listen}", &addr.to_string())
            .replace("{port}", &addr.port().to_string())
            .replace("{upstream}", &mock.to_string())
            .replace("{dir}", &dir.display().to_string());
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("exec {filled}")]);
        let mut peer = target(name, addr, "bench", shell, &dir)?;
        peer.headers = headers.replace("{upstream}", &mock.to_string());
        peer.program.settle(Duration::from_secs(3));
        peer.idle = peer.program.resident();
        self.targets.push(peer);
        Ok(())
    }

    /// The bare Pingora.
    ///
    /// # Errors
    /// When the fixture has none.
    pub fn floor(&self) -> Result<&Target> {
        self.targets
            .iter()
            .find(|target| target.name == FLOOR)
            .context("no bare Pingora on the fixture")
    }
}

/// A free loopback address.
fn free() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

/// Starts a program and waits until it accepts connections.
fn target(
    name: &'static str,
    addr: SocketAddr,
    key: &str,
    command: Command,
    dir: &Path,
) -> Result<Target> {
    target_within(name, addr, key, Start { command, dir, limit: START })
}

/// How a program is started: its working folder and its start-up time-out.
struct Start<'d> {
    command: Command,
    dir: &'d Path,
    limit: Duration,
}

fn target_within(
    name: &'static str,
    addr: SocketAddr,
    key: &str,
    start: Start<'_>,
) -> Result<Target> {
    let Start { mut command, dir, limit } = start;
    let log = dir.join(format!("{}.log", name.replace([' ', ','], "-")));
    let file = File::create(&log)?;
    let mut program = Program::start(command.current_dir(dir), file)
        .with_context(|| format!("{name} cannot be started"))?;
    let end = Instant::now() + limit;
    while std::net::TcpStream::connect(addr).is_err() {
        if program.ended() || Instant::now() > end {
            bail!("{name} does not listen: {}", fs::read_to_string(&log).unwrap_or_default());
        }
        pause(Duration::from_millis(20));
    }
    let (key, headers) = (key.to_owned(), String::new());
    Ok(Target { name, addr, key, headers, program, idle: Resident::default() })
}

/// The mock without a gateway, as a target.
///
/// # Errors
/// When it does not start.
pub fn mock(programs: &Programs, dir: &Path) -> Result<Target> {
    let addr = free()?;
    let mut command = Command::new(&programs.tollgate);
    command.args(["mock", "--addr", &addr.to_string()]);
    target(DIRECT, addr, "bench", command, dir)
}

/// One gateway of the fixture.
pub struct Gateway<'a> {
    pub name: &'static str,
    pub on: bool,
    /// Type of its only provider.
    pub provider: WireFormat,
    /// A program that runs the gateway, with its arguments; empty = none.
    pub under: &'a [String],
    /// Further environment variables.
    pub settings: &'a [(&'a str, &'a str)],
    /// How long its start may take.
    pub time_limit: Duration,
}

impl Gateway<'_> {
    /// A gateway that runs directly, without a tool around it, with the usual settings.
    pub const fn plain(name: &'static str, on: bool, provider: WireFormat) -> Self {
        Self { name, on, provider, under: &[], settings: &[], time_limit: START }
    }

    /// Starts it, creates a provider, prices and a key, and waits until it is ready.
    ///
    /// # Errors
    /// When it does not start, or refuses an action.
    pub fn start(&self, programs: &Programs, mock: SocketAddr, dir: &Path) -> Result<Target> {
        let (mut target, control) = self.launch(programs, dir)?;
        furnish(control, mock, &json!({"provider_type": self.provider.as_str()}))?;
        if self.on {
            target.key = limited_key(control)?;
            forbid_words(control, programs.words)?;
        }
        Ok(target)
    }

    /// Starts it and waits until it is ready. Returns the address of its administration too.
    ///
    /// # Errors
    /// When it does not start.
    pub fn launch(&self, programs: &Programs, dir: &Path) -> Result<(Target, SocketAddr)> {
        let data = dir.join(format!("data-{}", self.name.replace([' ', ','], "-")));
        let [proxy, control, metrics] = [free()?, free()?, free()?];
        let mut command = match self.under.split_first() {
            Some((program, arguments)) => {
                let mut command = Command::new(program);
                command.args(arguments).arg(&programs.tollgate);
                command
            }
            None => Command::new(&programs.tollgate),
        };
        command.arg("serve").env_clear().envs(self.settings.iter().copied());
        command
            .env("TOLLGATE_PROXY_ADDR", proxy.to_string())
            .env("TOLLGATE_ADMIN_ADDR", control.to_string());
        command.env("TOLLGATE_METRICS_ADDR", metrics.to_string()).env("TOLLGATE_DATA_DIR", &data);
        command
            .env("ADMIN_TOKEN", TOKEN)
            .env("TOLLGATE_SHUTDOWN_GRACE", "2s")
            .env("TOLLGATE_PRICES_SYNC", "off")
            // It has the mock's directives.
            .env("TOLLGATE_HEADERS_PASS_REQUEST", "x-mock")
            .env("LOG_FORMAT", "json");
        if !self.on {
            command.env("TOLLGATE_LOG_ACCESS", "false").env("LOG_LEVEL", "error");
            command.env("TOLLGATE_LIMITS_RESERVATION", "off");
        }
        let mut target =
            target_within(self.name, proxy, TOKEN, Start { command, dir, limit: self.time_limit })?;
        let end = Instant::now() + self.time_limit;
        while !admin::http(metrics, "GET", "/readyz", "", "").is_ok_and(|(status, _)| status == 200)
        {
            if target.program.ended() || Instant::now() > end {
                bail!("{} does not become ready", self.name);
            }
            pause(Duration::from_millis(20));
        }
        Ok((target, control))
    }
}

/// A provider, with further fields, and prices.
///
/// # Errors
/// When the gateway refuses them.
pub fn furnish(control: SocketAddr, mock: SocketAddr, fields: &Value) -> Result<()> {
    let mut provider = json!({"name": "mock", "url": format!("http://{mock}"), "key": "upstream"});
    for (field, value) in fields.as_object().into_iter().flatten() {
        provider[field] = value.clone();
    }
    admin::action(control, TOKEN, "providers/addProvider", &provider)?;
    let price =
        json!({"mode": "chat", "input_cost_per_token": 1e-7, "output_cost_per_token": 4e-7});
    let table =
        json!({"bench-json": price, "bench-stream": price, "bench-held": price}).to_string();
    admin::action(control, TOKEN, "model-prices/uploadPriceTable", &json!({"jsonContent": table}))?;
    Ok(())
}

/// A key with every limit set, each too high to be reached.
fn limited_key(control: SocketAddr) -> Result<String> {
    limited_keys(control, "bench", 1)?.pop().context("no key was made")
}

/// A user's keys. User and keys have every limit set, each too high to be reached.
///
/// # Errors
/// When the gateway refuses them.
pub fn limited_keys(control: SocketAddr, name: &str, count: usize) -> Result<Vec<String>> {
    let user = json!({
        "name": name, "rpm": 1_000_000, "dailyQuota": 10_000, "limit5hUsd": 10_000, "limitWeeklyUsd": 50_000,
        "limitMonthlyUsd": 200_000, "limitTotalUsd": 10_000_000, "limitConcurrentSessions": 1000,
    });
    let made = admin::action(control, TOKEN, "users/addUser", &user)?;
    let limits = json!({
        "limit5hUsd": 10_000, "limitDailyUsd": 10_000, "limitWeeklyUsd": 50_000,
        "limitMonthlyUsd": 200_000, "limitTotalUsd": 10_000_000, "limitConcurrentSessions": 1000,
    });
    let first = &made["defaultKey"];
    let mut edit = limits.clone();
    edit["keyId"] = first["id"].clone();
    admin::action(control, TOKEN, "keys/editKey", &edit)?;
    let text = |text: &Value| text.as_str().map(str::to_owned).context("no key in the answer");
    let mut keys = vec![text(&first["key"])?];
    for number in 1..count {
        let mut key = limits.clone();
        key["userId"] = made["user"]["id"].clone();
        key["name"] = json!(format!("{name} {number}"));
        keys.push(text(&admin::action(control, TOKEN, "keys/addKey", &key)?["generatedKey"])?);
    }
    Ok(keys)
}

/// A typical list of an operator's `contains` words: several scripts, no common parts.
const PHRASES: &str = "confidential|internal use only|project titan|do not distribute|trade secret|classified|launch code|\
    merger talks|layoff plan|salary list|acme falcon|codename nova|board minutes|source escrow|zero day|exploit kit|\
    credit card dump|make a bomb|nerve agent|pipe bomb|ricin|sarin|anthrax|meth recipe|ghost gun|human trafficking|\
    fake passport|suicide method|self harm|terror cell|hit list|malware builder|ransomware|keylogger|phishing kit|botnet|\
    carding|money laundering|counterfeit|内部机密|绝密文件|商业秘密|客户名单|薪资表|枪支弹药|毒品配方|пароль|straße|naïveté|東京湾";
/// The other kinds of words, whatever their number.
const OTHERS: [(&str, &str); 6] = [
    ("nothing-but-this", "exact"),
    ("open sesame", "exact"),
    ("口令", "exact"),
    (r"secret-[0-9]{6}\b", "regex"),
    (r"\bAKIA[0-9A-Z]{16}\b", "regex"),
    (r"\b\d{3}-\d{2}-\d{4}\b", "regex"),
];

/// Words that no request contains: `words` of the kind `contains`, three complete texts and three
/// regular expressions.
fn forbid_words(control: SocketAddr, words: usize) -> Result<()> {
    if words == 0 {
        return Ok(());
    }
    let numbered =
        (PHRASES.split('|').count()..words).map(|number| format!("forbidden phrase {number}"));
    let phrases =
        PHRASES.split('|').map(|phrase| phrase.trim().to_owned()).take(words).chain(numbered);
    let others = OTHERS.into_iter().map(|(word, kind)| (word.to_owned(), kind));
    for (word, kind) in phrases.map(|phrase| (phrase, "contains")).chain(others) {
        let word = json!({"word": word, "matchType": kind});
        admin::action(control, TOKEN, "sensitive-words/createSensitiveWordAction", &word)?;
    }
    Ok(())
}

/// A pass-through with kept connections on both sides, unbuffered as streams need it, without an
/// access log.
fn nginx_conf(dir: &Path, listen: SocketAddr, upstream: SocketAddr, workers: usize) -> String {
    let dir = dir.display();
    let root = fs::metadata("/proc/self")
        .is_ok_and(|meta| std::os::unix::fs::MetadataExt::uid(&meta) == 0);
    let user = if root { "user root;" } else { "" };
    format!(
        "{user} daemon off; worker_processes {workers}; pid {dir}/nginx.pid; error_log {dir}/nginx-error.log warn;
events {{ worker_connections 8192; }}
http {{
  access_log off; tcp_nodelay on; keepalive_requests 100000000;
  client_max_body_size 64m; client_body_buffer_size 1m; client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy;
  fastcgi_temp_path {dir}/fastcgi; uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
  upstream mock {{ server {upstream}; keepalive 512; keepalive_requests 100000000; }}
  server {{
    listen {listen};
    location / {{
      proxy_pass http://mock; proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_buffering off;
    }}
  }}
}}
"
    )
}
