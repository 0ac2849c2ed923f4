//! Permissions of the files that the gateway leaves on its disk.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::proxy::fixture::{prices, request};
use crate::support::gateway::Gateway;
use crate::support::upstream::Upstream;
use crate::support::wait;

/// Everything below a directory, including itself, with modes.
fn modes(path: &Path) -> BTreeMap<PathBuf, u32> {
    let mode = std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777;
    let mut found = BTreeMap::from([(path.to_owned(), mode)]);
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            found.extend(modes(&entry.unwrap().path()));
        }
    }
    found
}

fn exposed(path: &Path) -> BTreeMap<PathBuf, String> {
    let modes = modes(path).into_iter().filter(|(_, mode)| mode & 0o077 != 0);
    modes.map(|(path, mode)| (path, format!("{mode:o}"))).collect()
}

fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// A gateway that generates its own secrets, under a umask that restricts nothing.
async fn permissive() -> (Gateway, Upstream) {
    let mut gateway = Gateway::prepare(&[("TOLLGATE_LEDGER_FLUSH_INTERVAL", "1m")]);
    gateway.run_by(["sh", "-c", "umask 000; exec \"$@\"", "sh"].map(str::to_owned).to_vec());
    gateway.spawn();
    gateway.ready().await;
    let upstream = Upstream::start().await;
    gateway.prices(prices()).await;
    gateway
        .provider(
            "native",
            &upstream.url,
            json!({"circuit_breaker_failure_threshold": 1, "max_retry_attempts": 1}),
        )
        .await;
    let (_, _, key) = gateway.user(json!({"name": "ada"})).await;
    upstream.script(json!([{"status": 200}, {"status": 500}])).await;
    for status in [200, 502] {
        let ask =
            gateway.client.post(format!("{}/v1/messages", gateway.proxy)).header("x-api-key", &key);
        assert_eq!(ask.json(&request("native", false)).send().await.unwrap().status(), status);
    }
    gateway.ready().await;
    (gateway, upstream)
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_gateway_makes_can_be_read_by_others_whatever_the_umask() {
    let (mut gateway, _upstream) = permissive().await;
    let data = gateway.dir.path().join("data");
    // The open circuit is written a moment later.
    wait::until(|| gateway.log(), async || data.join("circuits").exists()).await;
    let names: Vec<String> = modes(&data).keys().map(|path| path.display().to_string()).collect();
    for wanted in ["tollgate.db", "-wal", "-shm", "secret.key", "circuits", ".seg", "/lock"] {
        assert!(
            names.iter().any(|name| name.ends_with(wanted)),
            "{wanted} is looked at: {names:?}"
        );
    }
    assert_eq!(exposed(&data), BTreeMap::new());
    // A second start, which adopts a dead process's journal, and a stop.
    gateway.kill();
    gateway.unset("ADMIN_TOKEN");
    gateway.spawn();
    gateway.ready().await;
    assert!(data.join("admin.token").exists());
    assert_eq!(exposed(&data), BTreeMap::new());
    gateway.signal("TERM");
    gateway.ended().await;
    assert_eq!(exposed(&data), BTreeMap::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_installation_that_others_can_read_is_reported_and_tightened_and_starts() {
    let (mut gateway, _upstream) = permissive().await;
    gateway.kill();
    let data = gateway.dir.path().join("data");
    for path in modes(&data).keys() {
        chmod(path, if path.is_dir() { 0o755 } else { 0o644 });
    }
    let theirs = data.join("backup.sql");
    std::fs::write(&theirs, "not the gateway's").unwrap();
    chmod(&theirs, 0o640);
    let before = modes(&data);

    let (fine, said) = gateway.check();
    assert!(fine, "{said}");
    for wanted in ["the data directory", "secret.key", "tollgate.db", ".seg"] {
        let line = said.lines().find(|line| line.contains("warning") && line.contains(wanted));
        assert!(line.is_some_and(|line| line.contains("mode 0")), "{wanted}: {said}");
    }
    assert!(!said.contains("backup.sql"), "{said}");
    // SQLite has removed its log, as the last process to open the database does.
    let changed: Vec<_> =
        modes(&data).into_iter().filter(|(path, mode)| before.get(path) != Some(mode)).collect();
    assert!(changed.is_empty(), "a check changes nothing: {changed:?}");

    gateway.spawn();
    gateway.ready().await;
    let log = gateway.log();
    assert!(
        log.contains("can look into the data directory") && log.contains("they no longer can"),
        "{log}"
    );
    let left: Vec<(PathBuf, String)> = exposed(&data).into_iter().collect();
    assert_eq!(left, [(data.clone(), "755".to_owned()), (theirs, "640".to_owned())]);
    assert_eq!(gateway.logs(2).await.len(), 2, "what waited in the journal was delivered");
}
