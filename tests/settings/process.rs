//! Settings of the process: threads, the socket of an upgrade, the log.

use serde_json::Value;

use crate::proxy::fixture::Fixture;
use crate::support::wait;

/// How many threads of the process have this name.
fn threads(fixture: &Fixture, name: &str) -> usize {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", fixture.gateway.pid())).unwrap();
    let names = tasks
        .map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).unwrap_or_default());
    names.filter(|comm| comm.trim() == name).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_proxy_has_as_many_threads_as_are_set() {
    for count in [1, 5] {
        let fixture = Fixture::native_with(&[("TOLLGATE_PROXY_THREADS", &count.to_string())]).await;
        assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
        assert_eq!(threads(&fixture, "proxy"), count);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_goes_over_the_socket_that_is_set() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("hand-over.sock");
    let mut fixture =
        Fixture::native_with(&[("TOLLGATE_PROXY_UPGRADE_SOCKET", socket.to_str().unwrap())]).await;
    let mut old = fixture.gateway.upgrade_over(&socket).await;
    fixture.gateway.ready().await;
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    wait::ended(&mut old).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_written_as_is_set() {
    for (format, access) in [("json", true), ("json", false), ("text", true)] {
        let env = [
            ("LOG_FORMAT", format),
            ("TOLLGATE_LOG_ACCESS", if access { "true" } else { "false" }),
        ];
        let fixture = Fixture::native_with(&env).await;
        assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
        fixture.gateway.logs(1).await;
        fixture.gateway.signal("HUP");
        let log = fixture.gateway.log_shows("read the configuration again").await;
        let is_json = log.lines().all(|line| serde_json::from_str::<Value>(line).is_ok());
        assert_eq!(
            (is_json, log.contains("overhead_us")),
            (format == "json", access),
            "{format} {access}: {log}"
        );
    }
}
