//! `tollgate backup` and `tollgate restore` through the built binary: a drill under load, what is
//! refused, what interrupts a restore; and the procedure for PostgreSQL of docs/backup.md.

mod drill;
mod interrupted;
mod postgres;
mod refused;
mod secrets;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use serde_json::json;

use crate::moving::one;
use crate::proxy::fixture::{Fixture, request};
use crate::support::gateway::Gateway;
use crate::support::wait;

/// What one request costs, in nano-USD.
const COST: i64 = 2_000_000;

/// A gateway whose requests cost the same, and a place for backups of it.
pub struct Bed {
    pub fixture: Fixture,
    pub files: tempfile::TempDir,
}

impl Bed {
    pub async fn start(env: &[(&str, &str)], requests: usize) -> Self {
        let fixture = Fixture::native_with(env).await;
        fixture.upstream.default(json!({"usage": {"input": 1000, "output": 500}})).await;
        let bed = Self { fixture, files: tempfile::tempdir().unwrap() };
        for _ in 0..requests {
            bed.ask_of(&bed.fixture.gateway).await;
        }
        bed
    }

    /// A request of the first key to a gateway.
    pub async fn ask_of(&self, gateway: &Gateway) {
        let ask = gateway
            .client
            .post(format!("{}/v1/messages", gateway.proxy))
            .header("x-api-key", &self.fixture.key);
        let answer = ask.json(&request("native", false)).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        answer.bytes().await.unwrap();
    }

    /// The same while other futures of this task go on.
    pub async fn backup_meanwhile(&self, name: &str) {
        let file = self.file(name);
        let mut command =
            self.fixture.gateway.command(&["backup", file.to_str().unwrap(), "--with-secrets"]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        assert!(wait::ended(&mut child).await.success());
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    /// A backup that must succeed; returns its output.
    pub fn backup(&self, name: &str, more: &[&str]) -> String {
        let file = self.file(name);
        let (well, said) =
            self.fixture.gateway.run(&[&["backup", file.to_str().unwrap()], more].concat());
        assert!(well, "{said}");
        said
    }

    /// A gateway with an empty data directory.
    pub fn other(&self, env: &[(&str, &str)]) -> Gateway {
        Gateway::prepare(env)
    }

    pub fn restore(&self, gateway: &Gateway, name: &str, more: &[&str]) -> (bool, String) {
        let file = self.file(name);
        gateway.run(&[&["restore", file.to_str().unwrap()], more].concat())
    }
}

pub fn data(gateway: &Gateway) -> PathBuf {
    gateway.dir.path().join("data")
}

pub fn url(data: &Path) -> String {
    format!("sqlite:{}/tollgate.db", data.display())
}

/// Requests and cost, which must be the same by the ledger, by the request log and by the hourly
/// sums.
pub async fn sums(url: &str) -> (i64, i64) {
    let figures =
        "CAST(COALESCE(SUM(@), 0) AS TEXT) || ' ' || CAST(COALESCE(SUM(cost), 0) AS TEXT)";
    let mut found = Vec::new();
    for (table, count) in [("ledger", "1"), ("request_log", "1"), ("hourly_sums", "requests")] {
        found.push(one(url, &format!("SELECT {} FROM {table}", figures.replace('@', count))).await);
    }
    assert!(found.iter().all(|line| *line == found[0]), "{found:?}");
    let (requests, cost) = found[0].split_once(' ').unwrap();
    let (requests, cost) = (requests.parse().unwrap(), cost.parse().unwrap());
    assert_eq!(cost, requests * COST);
    (requests, cost)
}

/// Clients that ask one request after the other, and count.
#[derive(Default)]
pub struct Load {
    begun: AtomicI64,
    answered: AtomicI64,
    over: AtomicBool,
}

impl Load {
    /// Runs clients while `work` runs.
    pub async fn during<T>(&self, bed: &Bed, work: impl Future<Output = T>) -> T {
        let client = async || {
            while !self.over.load(Ordering::SeqCst) {
                self.begun.fetch_add(1, Ordering::SeqCst);
                bed.ask_of(&bed.fixture.gateway).await;
                self.answered.fetch_add(1, Ordering::SeqCst);
            }
        };
        let work = async {
            let done = work.await;
            self.over.store(true, Ordering::SeqCst);
            done
        };
        tokio::join!(work, client(), client(), client(), client()).0
    }

    pub fn answered(&self) -> i64 {
        self.answered.load(Ordering::SeqCst)
    }

    pub fn begun(&self) -> i64 {
        self.begun.load(Ordering::SeqCst)
    }

    /// Waits for some more answers.
    pub async fn goes_on(&self, answers: i64) {
        let wanted = self.answered() + answers;
        wait::until(|| "the load stands still".to_owned(), async || self.answered() >= wanted)
            .await;
    }
}

/// Every file below a folder but the empty lock, with its length and its content's beginning.
pub fn tree(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut dirs = vec![folder.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(&dir).into_iter().flatten() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => dirs.push(path),
                false
                    if ["lock", "hand-on"]
                        .map(AsRef::as_ref)
                        .contains(&path.file_name().unwrap()) => {}
                false => found.push((path.display().to_string(), std::fs::read(&path).unwrap())),
            }
        }
    }
    found.sort();
    found
}

/// Runs a program of the system.
pub fn system(program: &str, arguments: &[&str]) -> String {
    let done = Command::new(program).args(arguments).output().unwrap();
    let said =
        String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{program} {arguments:?}: {said}");
    said
}
