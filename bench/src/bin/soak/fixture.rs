//! The fixture of the load: a gateway with everything on, providers of every type with failing
//! ones before some of them, many users and keys, and one mock upstream.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tempfile::TempDir;
use tollgate::domain::format::WireFormat;
use tollgate_bench::admin;
use tollgate_bench::process::{Program, pause};

const TOKEN: &str = "soak-admin-token";
const START: Duration = Duration::from_secs(20);
pub const USERS: usize = 20;
/// Requested models; each has a price.
pub const MODELS: usize = 50;

/// All running programs; dropping this value stops them.
pub struct Fixture {
    pub gateway: Program,
    pub proxy: SocketAddr,
    control: SocketAddr,
    metrics: SocketAddr,
    mock: SocketAddr,
    pub keys: Vec<String>,
    /// A key with a very small limit.
    pub poor_key: String,
    data: PathBuf,
    _mock: Program,
    _dir: TempDir,
}

impl Fixture {
    /// Starts all programs.
    ///
    /// # Errors
    /// When a program does not start or cannot be configured.
    pub fn start(tollgate: &Path) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let [mock, proxy, control, metrics] = [free()?, free()?, free()?, free()?];
        let mut command = Command::new(tollgate);
        command.args(["mock", "--addr", &mock.to_string()]);
        let mock_program =
            Program::start(&mut command, File::create(dir.path().join("mock.log"))?)?;
        let data = dir.path().join("data");
        let mut command = Command::new(tollgate);
        command.arg("serve").current_dir(dir.path()).env_clear();
        command
            .env("TOLLGATE_PRICES_SYNC", "off")
            .env("TOLLGATE_PROXY_ADDR", proxy.to_string())
            .env("TOLLGATE_ADMIN_ADDR", control.to_string());
        command.env("TOLLGATE_METRICS_ADDR", metrics.to_string()).env("TOLLGATE_DATA_DIR", &data);
        // Sessions expire as fast as they are created, so that their memory must settle.
        command.env("ADMIN_TOKEN", TOKEN).env("LOG_FORMAT", "json").env("SESSION_TTL", "60");
        command.env("TOLLGATE_BREAKER_COUNT_NETWORK_ERRORS", "true");
        // It has the mock's directives.
        command.env("TOLLGATE_HEADERS_PASS_REQUEST", "x-mock");
        let gateway = Program::start(&mut command, File::create("/dev/null")?)?;
        let mut fixture = Self {
            gateway,
            proxy,
            control,
            metrics,
            mock,
            keys: Vec::new(),
            poor_key: String::new(),
            data,
            _mock: mock_program,
            _dir: dir,
        };
        fixture.wait()?;
        fixture.furnish()?;
        Ok(fixture)
    }

    fn wait(&mut self) -> Result<()> {
        let end = Instant::now() + START;
        while !admin::http(self.metrics, "GET", "/readyz", "", "")
            .is_ok_and(|(status, _)| status == 200)
            || std::net::TcpStream::connect(self.mock).is_err()
        {
            if self.gateway.ended() || Instant::now() > end {
                bail!("the gateway does not become ready");
            }
            pause(Duration::from_millis(20));
        }
        Ok(())
    }

    fn furnish(&mut self) -> Result<()> {
        let price =
            json!({"mode": "chat", "input_cost_per_token": 1e-7, "output_cost_per_token": 4e-7});
        let table: serde_json::Map<String, Value> =
            (0..MODELS).map(|n| (model(n), price.clone())).collect();
        self.action(
            "model-prices/uploadPriceTable",
            &json!({"jsonContent": Value::from(table).to_string()}),
        )?;
        for kind in WireFormat::ALL {
            self.provider(kind.as_str(), kind, json!({"weight": 10}))?;
        }
        // First in order for its listed models, each with a different failure.
        for (n, fault) in
            [json!({"status": 500}), json!({"hang_up": true}), json!({"error_in_200": true})]
                .iter()
                .enumerate()
        {
            let name = format!("failing-{n}");
            admin::http(
                self.mock,
                "POST",
                &format!("/mock/default?key={name}"),
                "",
                &fault.to_string(),
            )?;
            let fields = json!({"priority": -1, "allowed_models": [model(n)], "key": name,
                "circuit_breaker_open_duration": 1000, "circuit_breaker_failure_threshold": 20});
            self.provider(&name, WireFormat::Native, fields)?;
        }
        for n in 0..USERS {
            let key = self.user(
                &json!({"name": format!("user-{n}"), "rpm": 100_000, "dailyQuota": 10_000}),
            )?;
            self.keys.push(key);
        }
        self.poor_key = self.user(&json!({"name": "poor", "limitTotalUsd": 0.01}))?;
        Ok(())
    }

    fn provider(&self, name: &str, kind: WireFormat, fields: Value) -> Result<()> {
        let mut body = json!({"name": name, "url": format!("http://{}", self.mock), "key": "good",
            "provider_type": kind.as_str()});
        for (field, value) in fields.as_object().into_iter().flatten() {
            body[field] = value.clone();
        }
        self.action("providers/addProvider", &body).map(drop)
    }

    /// A new user's first key.
    ///
    /// # Errors
    /// When it is refused.
    pub fn user(&self, fields: &Value) -> Result<String> {
        let made = self.action("users/addUser", fields)?;
        Ok(made["defaultKey"]["key"].as_str().context("no key in the answer")?.to_owned())
    }

    /// One administration operation.
    ///
    /// # Errors
    /// When it is refused.
    pub fn action(&self, name: &str, body: &Value) -> Result<Value> {
        admin::action(self.control, TOKEN, name, body)
    }

    /// The sum of a metric's samples.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn metric(&self, name: &str) -> Result<u64> {
        let (_, text) = admin::http(self.metrics, "GET", "/metrics", "", "")?;
        let of =
            |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{']));
        let values = text
            .lines()
            .filter(of)
            .filter_map(|line| line.rsplit(' ').next()?.trim().parse::<u64>().ok());
        Ok(values.sum())
    }

    /// Bytes of the database's files.
    pub fn database_bytes(&self) -> u64 {
        let size =
            |name: &str| std::fs::metadata(self.data.join(name)).map_or(0, |meta| meta.len());
        size("tollgate.db") + size("tollgate.db-wal")
    }
}

/// The name of a model.
pub fn model(number: usize) -> String {
    format!("soak-{number}")
}

fn free() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}
