//! The gateway as its users run it: the built binary, on separate loopback ports, in a separate
//! directory.

mod operations;
pub mod process;
mod watch;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tollgate::domain::clock::{Clock as _, SystemClock, Timestamp};

pub use super::ports::free_port;
use super::wait;

pub const ADMIN_TOKEN: &str = "test-admin-token-0123456789";
const ROOT_CERTIFICATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/nodes/tls/ca.pem");

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
    // Without the system's root certificates, which take most of the time to make a client.
    reqwest::Client::builder()
        .tls_certs_only([])
        .no_proxy()
        .timeout(wait::TIME_LIMIT)
        .build()
        .unwrap()
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
            ("TOLLGATE_PRICES_SYNC".to_owned(), "off".to_owned()),
            // One root certificate: reading the system's is a sixth of a start's instructions.
            ("SSL_CERT_FILE".to_owned(), ROOT_CERTIFICATE.to_owned()),
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

    /// Waits until the gateway reports that it is ready. Each question has its own connection: one
    /// that is kept leads to the old process for as long as that finishes its requests.
    pub async fn ready(&mut self) {
        self.comes_up("the gateway did not start", async |gateway| {
            let ask = gateway.client.get(format!("{}/readyz", gateway.metrics));
            let answer = ask.header("connection", "close").send().await;
            answer.is_ok_and(|a| a.status() == 200)
                && std::net::TcpStream::connect(gateway.proxy_addr()).is_ok()
        })
        .await;
    }

    /// Waits until the gateway answers at all, ready or not.
    pub async fn answers(&self) {
        wait::until(
            || format!("the gateway did not start:\n{}", self.log()),
            async || self.client.get(format!("{}/readyz", self.metrics)).send().await.is_ok(),
        )
        .await;
    }

    pub fn proxy_addr(&self) -> &str {
        self.proxy.trim_start_matches("http://")
    }

    pub fn log_path(&self) -> PathBuf {
        self.dir.path().join("log")
    }

    pub fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// Sets a variable for the next process.
    pub fn set(&mut self, name: &str, value: &str) {
        self.env.insert(name.to_owned(), value.to_owned());
    }

    /// A variable of the next process.
    pub fn variable(&self, name: &str) -> String {
        self.env[name].clone()
    }

    /// Removes a variable for the next process.
    pub fn unset(&mut self, name: &str) {
        self.env.remove(name);
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
