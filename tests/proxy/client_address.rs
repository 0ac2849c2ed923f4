//! The client's address behind a reverse proxy, in records, access lines and requests to providers.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::fixture::Fixture;
use crate::support::gateway::ADMIN_TOKEN;
use crate::support::wait;

/// The addresses of the access lines that the log has, oldest first.
fn in_access_lines(fixture: &Fixture) -> Vec<String> {
    let log = fixture.gateway.log();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter_map(|line| line["client_addr"].as_str().map(str::to_owned)).collect()
}

/// The addresses of the request log's `n` rows, oldest first.
async fn in_request_log(fixture: &Fixture, n: usize) -> Vec<String> {
    let rows = fixture.gateway.logs(n).await;
    rows.iter().rev().map(|row| row["clientAddress"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn records_and_access_lines_name_the_client_behind_a_trusted_proxy() {
    let fixture =
        Fixture::native_with(&[("TOLLGATE_TRUSTED_PROXIES", "127.0.0.0/8, fd00::/8")]).await;
    for (name, value) in [
        ("x-forwarded-for", "9.9.9.9, 203.0.113.7"),
        ("forwarded", "for=9.9.9.9, for=\"[2001:db8::7]:443\", for=127.0.0.2"),
        ("x-forwarded-for", "203.0.113.8, unknown"),
        ("x-other", "203.0.113.9"),
    ] {
        assert_eq!(fixture.ask().header(name, value).send().await.unwrap().status(), 200);
    }
    let expected = ["203.0.113.7", "2001:db8::7", "127.0.0.1", "127.0.0.1"];
    assert_eq!(in_request_log(&fixture, 4).await, expected);
    fixture.gateway.log_shows("2001:db8::7").await;
    wait::until(|| fixture.gateway.log(), async || in_access_lines(&fixture).len() >= 4).await;
    assert_eq!(in_access_lines(&fixture), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_proxy_is_trusted_by_default_and_a_reload_changes_that() {
    let fixture = Fixture::native_with(&[]).await;
    let ask = async || {
        let asked = fixture.ask().header("x-forwarded-for", "203.0.113.7").send().await.unwrap();
        assert_eq!(asked.status(), 200);
    };
    ask().await;
    assert_eq!(in_request_log(&fixture, 1).await, ["127.0.0.1"]);
    std::fs::create_dir(fixture.gateway.dir.path().join("conf")).unwrap();
    std::fs::write(
        fixture.gateway.dir.path().join("conf/tollgate.yaml"),
        "trusted_proxies: [127.0.0.1]\n",
    )
    .unwrap();
    fixture.gateway.signal("HUP");
    fixture.gateway.log_shows("trusted_proxies").await;
    let (mut n, began) = (1, Instant::now());
    loop {
        ask().await;
        n += 1;
        if in_request_log(&fixture, n).await.last().unwrap() == "203.0.113.7" {
            break;
        }
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "the reload is not in effect:\n{}",
            fixture.gateway.log()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn logins_on_the_proxys_listener_are_throttled_by_the_client_behind_the_proxy() {
    let env = [("TOLLGATE_PROXY_EXPOSE_ADMIN", "true"), ("TOLLGATE_TRUSTED_PROXIES", "127.0.0.1")];
    let fixture = Fixture::bare(&env).await;
    for listener in [&fixture.gateway.proxy, &fixture.gateway.admin] {
        let attacker =
            if listener == &fixture.gateway.proxy { "203.0.113.7" } else { "203.0.113.8" };
        let login = async |from: &str, key: &str| {
            let post = fixture
                .gateway
                .client
                .post(format!("{listener}/api/auth/login"))
                .header("x-forwarded-for", from);
            post.json(&json!({ "key": key })).send().await.unwrap().status().as_u16()
        };
        for _ in 0..10 {
            assert_eq!(login(attacker, "sk-ffffffffffffffffffffffffffffffff").await, 401);
        }
        assert_eq!(login(attacker, ADMIN_TOKEN).await, 429);
        assert_eq!(login("203.0.113.9", ADMIN_TOKEN).await, 200);
    }
}
