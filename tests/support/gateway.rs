//! The gateway as its users run it: the built binary, on separate loopback ports, in a separate
//! directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tollgate::domain::clock::{Clock as _, SystemClock, Timestamp};

pub use super::ports::free_port;

pub const ADMIN_TOKEN: &str = "test-admin-token-0123456789";
/// How long a gateway may take to start or to stop.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// A running gateway; it is killed when dropped.
pub struct Gateway {
    pub proxy: String,
    pub admin: String,
    pub metrics: String,
    pub dir: tempfile::TempDir,
    env: BTreeMap<String, String>,
    /// Words before the program's own: the program that runs it.
    runner: Vec<String>,
    child: Option<Child>,
    pub client: reqwest::Client,
}

/// A separate HTTP client. The TLS provider is installed once.
pub fn client() -> reqwest::Client {
    static PROVIDER: std::sync::Once = std::sync::Once::new();
    PROVIDER.call_once(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    reqwest::Client::builder().no_proxy().timeout(TIME_LIMIT).build().unwrap()
}

/// UTC, or about midnight a zone where it is noon: no test meets the end of a day, of a week or of
/// a month.
pub fn zone_by_day(now: Timestamp) -> &'static str {
    let hour = (now.0 / 3_600_000).rem_euclid(24);
    if (2..22).contains(&hour) { "UTC" } else { "Etc/GMT+12" }
}

impl Gateway {
    /// Starts with further environment variables.
    pub async fn with(env: &[(&str, &str)]) -> Self {
        let mut gateway = Self::prepare(env);
        gateway.spawn();
        gateway.ready().await;
        gateway
    }

    /// Everything but the process.
    pub fn prepare(env: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let addr = || format!("127.0.0.1:{}", free_port());
        let (proxy, admin, metrics) = (addr(), addr(), addr());
        let mut all = BTreeMap::from([
            ("TOLLGATE_PROXY_ADDR".to_owned(), proxy.clone()),
            ("TOLLGATE_ADMIN_ADDR".to_owned(), admin.clone()),
            ("TOLLGATE_METRICS_ADDR".to_owned(), metrics.clone()),
            ("TOLLGATE_DATA_DIR".to_owned(), dir.path().join("data").display().to_string()),
            ("TOLLGATE_PROXY_THREADS".to_owned(), "2".to_owned()),
            ("ADMIN_TOKEN".to_owned(), ADMIN_TOKEN.to_owned()),
            ("TZ".to_owned(), zone_by_day(SystemClock.now()).to_owned()),
            ("TOLLGATE_SHUTDOWN_GRACE".to_owned(), "20s".to_owned()),
        ]);
        all.extend(env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())));
        let url = |addr: String| format!("http://{addr}");
        Self {
            proxy: url(proxy),
            admin: url(admin),
            metrics: url(metrics),
            dir,
            env: all,
            runner: Vec::new(),
            child: None,
            client: client(),
        }
    }

    /// Starts the process on the same directory, as after a crash.
    pub fn spawn(&mut self) {
        self.spawn_with(&[]);
    }

    /// `tollgate check` with these settings: whether it succeeded, and its output.
    pub fn check(&self) -> (bool, String) {
        self.run(&["check"])
    }

    /// Another command with these settings: whether it succeeded, and its output.
    pub fn run(&self, arguments: &[&str]) -> (bool, String) {
        let done = self.command(arguments).output().unwrap();
        (
            done.status.success(),
            format!(
                "{}{}",
                String::from_utf8_lossy(&done.stdout),
                String::from_utf8_lossy(&done.stderr)
            ),
        )
    }

    /// Another command with these settings, not started yet.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
        command.args(arguments).current_dir(self.dir.path()).env_clear().envs(&self.env);
        command
    }

    fn spawn_with(&mut self, arguments: &[&str]) {
        let log = std::fs::File::options().create(true).append(true).open(self.log_path()).unwrap();
        let program = [env!("CARGO_BIN_EXE_tollgate").to_owned()];
        let words: Vec<&String> = self.runner.iter().chain(&program).collect();
        let child = Command::new(words[0])
            .args(&words[1..])
            .args(arguments)
            .current_dir(self.dir.path())
            .env_clear()
            .envs(&self.env)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        self.child = Some(child);
    }

    /// From the next start on, files of the process cannot grow beyond this many KiB: writing
    /// fails, as on a full disk. [`Gateway::unlimit_files`] lifts it.
    pub fn limit_files(&mut self, kib: u64) {
        let script = format!("trap '' XFSZ; ulimit -S -f {}; exec \"$@\"", kib * 2);
        self.runner = ["sh", "-c", &script, "sh"].map(str::to_owned).to_vec();
    }

    /// From the next start on, these words run the program, for example with a tracer.
    pub fn run_by(&mut self, words: Vec<String>) {
        self.runner = words;
    }

    /// Lifts the limit of [`Gateway::limit_files`].
    pub fn unlimit_files(&self) {
        let pid = self.pid().to_string();
        let done = Command::new("prlimit")
            .args(["--pid", &pid, "--fsize=unlimited:unlimited"])
            .status()
            .unwrap();
        assert!(done.success());
    }

    /// `/readyz`: whether the gateway is ready, and its parts.
    pub async fn readiness(&self) -> (bool, Value) {
        let answer = self.client.get(format!("{}/readyz", self.metrics)).send().await.unwrap();
        let ready = answer.status() == 200;
        (ready, answer.json::<Value>().await.unwrap()["parts"].clone())
    }

    /// Waits until `/readyz` meets a condition.
    pub async fn readiness_shows(&self, wanted: impl Fn(bool, &Value) -> bool) {
        let began = Instant::now();
        loop {
            let (ready, parts) = self.readiness().await;
            if wanted(ready, &parts) {
                return;
            }
            assert!(began.elapsed() < TIME_LIMIT, "still {ready} {parts}:\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// The text of `/metrics`.
    pub async fn scrape(&self) -> String {
        let scrape = self.client.get(format!("{}/metrics", self.metrics)).send();
        scrape.await.unwrap().text().await.unwrap()
    }

    /// The sum of a metric's samples.
    pub async fn metric(&self, name: &str) -> f64 {
        let text = self.scrape().await;
        let of =
            |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{']));
        let values: Vec<f64> = text
            .lines()
            .filter(of)
            .map(|line| line.rsplit(' ').next().unwrap().parse().unwrap())
            .collect();
        assert!(!values.is_empty(), "no metric {name}");
        values.iter().sum()
    }

    /// Waits until a metric's sum meets a condition.
    pub async fn metric_shows(&self, name: &str, wanted: impl Fn(f64) -> bool) {
        let began = Instant::now();
        loop {
            let value = self.metric(name).await;
            if wanted(value) {
                return;
            }
            assert!(began.elapsed() < TIME_LIMIT, "{name} is {value} still:\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// A figure of the process in MiB: `VmRSS` (its present memory), `VmHWM` (its peak).
    pub fn memory_mib(&self, what: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with(what)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
    }

    /// Waits until the gateway reports that it is ready.
    pub async fn ready(&mut self) {
        let began = Instant::now();
        loop {
            let answer = self.client.get(format!("{}/readyz", self.metrics)).send().await;
            if answer.is_ok_and(|a| a.status() == 200)
                && std::net::TcpStream::connect(self.proxy_addr()).is_ok()
            {
                return;
            }
            let ended = self.child.as_mut().unwrap().try_wait().unwrap();
            assert!(
                ended.is_none() && began.elapsed() < TIME_LIMIT,
                "the gateway did not start:\n{}",
                self.log()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until the gateway answers at all, ready or not.
    pub async fn answers(&self) {
        let began = Instant::now();
        while self.client.get(format!("{}/readyz", self.metrics)).send().await.is_err() {
            assert!(began.elapsed() < TIME_LIMIT, "the gateway did not start:\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub fn proxy_addr(&self) -> &str {
        self.proxy.trim_start_matches("http://")
    }

    fn log_path(&self) -> PathBuf {
        self.dir.path().join("log")
    }

    /// The log so far. A line appears some milliseconds after it is logged: [`Gateway::log_shows`]
    /// waits for it.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// Waits until the log contains a text; returns the log.
    pub async fn log_shows(&self, wanted: &str) -> String {
        let began = Instant::now();
        loop {
            let log = self.log();
            if log.contains(wanted) {
                return log;
            }
            assert!(began.elapsed() < TIME_LIMIT, "the log does not say {wanted:?}:\n{log}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// The longest time of a request in the gateway itself, by the access lines in the log so far:
    /// its total time without its provider's.
    pub fn longest_overhead(&self) -> Duration {
        let log = self.log();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let longest = lines.filter_map(|line| line["overhead_us"].as_u64()).max();
        Duration::from_micros(longest.expect("access lines"))
    }

    pub fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Sends a signal by name (`TERM`, `HUP`).
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([format!("-{name}"), self.pid().to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
    }

    /// Starts a second process that takes the listeners over, and stops the first one, which is
    /// returned.
    pub async fn upgrade(&mut self) -> Child {
        let socket = self.dir.path().join("data/upgrade.sock");
        self.upgrade_over(&socket).await
    }

    /// The same, over a socket that the settings name.
    pub async fn upgrade_over(&mut self, socket: &Path) -> Child {
        let mut old = self.child.take().unwrap();
        self.spawn_with(&["serve", "--upgrade"]);
        // The new process waits at the socket; the old one hands its listeners over on the signal.
        let began = Instant::now();
        while !socket.exists() {
            let ended = self.child.as_mut().unwrap().try_wait().unwrap();
            assert!(
                ended.is_none() && began.elapsed() < TIME_LIMIT,
                "it does not wait at the socket:\n{}",
                self.log()
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(old.try_wait().unwrap().is_none());
        let sent = Command::new("kill").args(["-QUIT", &old.id().to_string()]).status().unwrap();
        assert!(sent.success());
        old
    }

    /// Waits until the process has ended; returns how long that took.
    pub async fn ended(&mut self) -> Duration {
        let began = Instant::now();
        self.exit_code().await;
        began.elapsed()
    }

    /// Waits until the process has ended; returns its exit code, unless a signal ended it.
    pub async fn exit_code(&mut self) -> Option<i32> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.as_mut().unwrap().try_wait().unwrap() {
                self.child = None;
                return status.code();
            }
            assert!(began.elapsed() < TIME_LIMIT, "the gateway did not stop:\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Sets a variable for the next process.
    pub fn set(&mut self, name: &str, value: &str) {
        self.env.insert(name.to_owned(), value.to_owned());
    }

    /// Removes a variable for the next process.
    pub fn unset(&mut self, name: &str) {
        self.env.remove(name);
    }

    /// Calls an administration operation as the administrator: status and envelope.
    pub async fn call(&self, operation: &str, body: Value) -> (u16, Value) {
        let url = format!("{}/api/actions/{operation}", self.admin);
        let answer =
            self.client.post(url).bearer_auth(ADMIN_TOKEN).json(&body).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    /// Calls an operation that must succeed; returns its data.
    pub async fn admin(&self, operation: &str, body: Value) -> Value {
        let (status, answer) = self.call(operation, body).await;
        assert_eq!(
            (status, &answer["ok"]),
            (200, &json!(true)),
            "{operation}: {answer}\n{}",
            self.log()
        );
        answer["data"].clone()
    }

    /// A user with its first key: (user id, key id, key text).
    pub async fn user(&self, fields: Value) -> (i64, i64, String) {
        let data = self.admin("users/addUser", fields).await;
        let key = &data["defaultKey"];
        (
            data["user"]["id"].as_i64().unwrap(),
            key["id"].as_i64().unwrap(),
            key["key"].as_str().unwrap().to_owned(),
        )
    }

    /// A provider; `fields` override the defaults. Returns its id.
    pub async fn provider(&self, kind: &str, url: &str, fields: Value) -> i64 {
        let mut body = json!({"name": format!("{kind}-{}", fastrand::u32(..)), "url": url, "key": "upstream-secret-key",
            "provider_type": kind});
        for (name, value) in fields.as_object().unwrap() {
            body[name] = value.clone();
        }
        let name = body["name"].clone();
        self.admin("providers/addProvider", body).await;
        let all = self.admin("providers/getProviders", json!({})).await;
        all.as_array().unwrap().iter().find(|p| p["name"] == name).unwrap()["id"].as_i64().unwrap()
    }

    /// Puts exact prices into effect.
    pub async fn prices(&self, table: Value) {
        self.admin(
            "model-prices/uploadPriceTable",
            json!({"jsonContent": table.to_string(), "overwriteManual": true}),
        )
        .await;
    }

    /// The usage log once it has `n` rows, newest first.
    pub async fn logs(&self, n: usize) -> Vec<Value> {
        let began = Instant::now();
        loop {
            let page = self.admin("usage-logs/getUsageLogs", json!({"pageSize": 100})).await;
            let total = page["total"].as_u64().unwrap();
            if total >= n as u64 {
                assert_eq!(total, n as u64, "more rows than requests");
                return page["logs"].as_array().unwrap().clone();
            }
            assert!(
                began.elapsed() < TIME_LIMIT,
                "{total} of {n} rows in the usage log:\n{}",
                self.log()
            );
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!("--- log of the gateway ---\n{}", self.log());
        }
    }
}
