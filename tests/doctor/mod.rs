//! `tollgate doctor` through the built binary: a sound gateway, and each fault with what to do.

use std::os::unix::fs::FileExt as _;

use serde_json::{Value, json};

use crate::proxy::fixture::Fixture;
use crate::support::gateway::{Gateway, free_port};
use crate::support::postgres::Server;
use crate::support::redis::Redis;

/// On a busy machine a database or Redis answers late now and then, which is a warning.
fn is_late(line: &str) -> bool {
    line.starts_with("warning") && line.contains("answers within")
}

/// What `look` finds when nothing answers late.
fn in_time<T>(look: impl Fn() -> T, is_late: impl Fn(&T) -> bool) -> T {
    let mut looks = std::iter::repeat_with(look).take(20);
    looks.find(|seen| !is_late(seen)).expect("something answers late, twenty times in a row")
}

/// The table that `tollgate doctor` prints; and whether the command succeeded.
fn table(gateway: &Gateway) -> (bool, String) {
    in_time(|| gateway.run(&["doctor"]), |(_, said)| said.lines().any(is_late))
}

/// The findings of one part, as `level text` lines; and whether the command succeeded.
fn examine(gateway: &Gateway, part: &str) -> (bool, Vec<String>) {
    in_time(|| examine_once(gateway, part), |(_, lines)| lines.iter().any(|line| is_late(line)))
}

fn examine_once(gateway: &Gateway, part: &str) -> (bool, Vec<String>) {
    let done = gateway.command(&["doctor", "--json"]).output().unwrap();
    let document: Value =
        serde_json::from_slice(&done.stdout).unwrap_or_else(|e| panic!("{e}: {done:?}"));
    assert_eq!(document["ok"], done.status.success());
    let findings = document["findings"].as_array().unwrap();
    for finding in findings {
        let (level, advice) =
            (finding["level"].as_str().unwrap(), finding["advice"].as_str().unwrap());
        assert_eq!(["ok", "note"].contains(&level), advice.is_empty(), "{finding}");
    }
    let of_part = findings.iter().filter(|finding| finding["part"] == part);
    let line =
        |f: &Value| format!("{} {}", f["level"].as_str().unwrap(), f["text"].as_str().unwrap());
    (done.status.success(), of_part.map(line).collect())
}

/// The only finding of a part that is a fault or a warning.
fn only(gateway: &Gateway, part: &str, level: &str) -> String {
    let (well, lines) = examine(gateway, part);
    let mut of_level = lines.iter().filter_map(|line| line.strip_prefix(level));
    let found = of_level.next().unwrap_or_else(|| panic!("no {level} in {lines:?}"));
    assert_eq!(of_level.next(), None, "{lines:?}");
    assert!(level != "fault" || !well, "{lines:?}");
    found.trim().to_owned()
}

async fn add_provider(gateway: &Gateway, name: &str, url: &str) {
    let body =
        json!({"name": name, "url": url, "key": "upstream-secret", "provider_type": "native"});
    gateway.admin("providers/addProvider", body).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sound_gateway_has_no_fault_and_nothing_is_changed() {
    let fixture = Fixture::native().await;
    fixture.ask().send().await.unwrap().bytes().await.unwrap();
    fixture
        .gateway
        .metric_shows("tollgate_journal_pending_records", |pending| pending == 0.0)
        .await;
    let (well, said) = table(&fixture.gateway);
    assert!(well, "{said}");
    for part in [
        "gateway",
        "data directory",
        "disk",
        "journal",
        "database",
        "stored credentials",
        "redis",
        "providers",
    ] {
        assert!(
            said.lines().any(|line| line.get(9..).is_some_and(|rest| rest.starts_with(part))),
            "no {part}:\n{said}"
        );
    }
    assert!(said.contains("ok       gateway             runs and is ready\n"), "{said}");
    assert!(said.contains("SQLite 3."), "{said}");
    assert!(said.ends_with("\nno fault, 0 warnings\n"), "{said}");
    assert!(!said.contains("upstream-secret") && !said.contains("test-admin-token"), "{said}");
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn before_the_first_start_there_is_nothing_to_complain_about() {
    let gateway = Gateway::prepare(&[]);
    let (well, said) = gateway.run(&["doctor"]);
    assert!(well, "{said}");
    assert!(said.contains("the first start creates it"), "{said}");
    assert!(!gateway.dir.path().join("data").exists(), "it creates nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn providers_are_queried_and_each_fault_has_its_advice() {
    let fixture = Fixture::native().await;
    let closed = format!("http://127.0.0.1:{}", free_port());
    add_provider(&fixture.gateway, "closed", &closed).await;
    let unknown = only(&fixture.gateway, "providers", "fault");
    assert!(unknown.starts_with("closed: ") && unknown.contains("refused"), "{unknown}");
    let (_, said) = table(&fixture.gateway);
    assert!(said.contains("→ Nothing listens there"), "{said}");
    assert!(said.ends_with("tollgate: 1 fault, 0 warnings\n"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_refuses_the_credential_is_a_fault() {
    use axum::http::StatusCode;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let app = axum::Router::new()
        .fallback(|| async { (StatusCode::UNAUTHORIZED, "no such key: upstream-secret") });
    #[expect(clippy::disallowed_methods, reason = "the test's runtime outlives its server")]
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    let fixture = Fixture::bare(&[]).await;
    add_provider(&fixture.gateway, "locked", &url).await;
    let refused = only(&fixture.gateway, "providers", "fault");
    assert!(refused.starts_with("locked: answers 401"), "{refused}");
    assert!(!fixture.gateway.run(&["doctor"]).1.contains("upstream-secret"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_secret_key_and_a_taken_port_are_found_while_no_gateway_runs() {
    let mut fixture = Fixture::native().await;
    fixture.gateway.kill();
    let data = fixture.gateway.dir.path().join("data");
    let key = data.join("secret.key");
    std::fs::rename(&key, data.join("elsewhere")).unwrap();
    let missing = only(&fixture.gateway, "stored credentials", "fault");
    assert!(
        missing.contains("secret.key is missing, and 1 stored credentials are sealed"),
        "{missing}"
    );
    assert!(!key.exists(), "it makes none");
    let (file, empty) = (data.join("export.yaml"), data.join("empty.yaml"));
    std::fs::write(&empty, "version: 1\nusers: []\n").unwrap();
    let [file, empty] = [&file, &empty].map(|path| path.to_str().unwrap());
    for command in [
        &["check"][..],
        &["serve"],
        &["secret", "status"],
        &["secret", "rotate"],
        &["apply", "--file", empty],
        &["export", "--secrets", "sealed", "-o", file],
    ] {
        let (is_fine, said) = fixture.gateway.run(command);
        assert!(!is_fine && said.contains("secret.key is missing, and 1 stored"), "{said}");
        assert!(!key.exists(), "nor does {command:?}");
    }
    std::fs::write(&key, "not a key\n").unwrap();
    only(&fixture.gateway, "stored credentials", "fault");
    std::fs::rename(data.join("elsewhere"), &key).unwrap();
    let _taken = std::net::TcpListener::bind(fixture.gateway.proxy_addr()).unwrap();
    let taken = only(&fixture.gateway, "gateway", "fault");
    assert!(taken.starts_with("proxy.addr ("), "{taken}");
}

#[tokio::test(flavor = "multi_thread")]
async fn records_that_wait_and_a_damaged_database_are_found() {
    let mut fixture = Fixture::native_with(&[("TOLLGATE_LEDGER_FLUSH_INTERVAL", "60s")]).await;
    fixture.ask().send().await.unwrap().bytes().await.unwrap();
    fixture
        .gateway
        .metric_shows("tollgate_journal_pending_records", |pending| pending == 1.0)
        .await;
    fixture.gateway.kill();
    let (_, lines) = examine(&fixture.gateway, "journal");
    assert!(lines[0].starts_with("ok ") && lines[0].contains("wait for the database"), "{lines:?}");
    let data = fixture.gateway.dir.path().join("data");
    std::fs::create_dir_all(data.join("journal/set-aside")).unwrap();
    std::fs::write(data.join("journal/set-aside/x.refused.json"), "{}").unwrap();
    let aside = only(&fixture.gateway, "journal", "warning");
    assert!(aside.starts_with("1 files in "), "{aside}");
    // Pages in the middle of the file; its first page, with the schema, stays.
    let file = std::fs::OpenOptions::new().write(true).open(data.join("tollgate.db")).unwrap();
    let pages = file.metadata().unwrap().len() / 4096;
    for page in pages / 2..pages {
        file.write_all_at(&[0xA5; 4096], page * 4096).unwrap();
    }
    let damaged = only(&fixture.gateway, "database", "fault");
    assert!(damaged.contains("damaged") || damaged.contains("malformed"), "{damaged}");
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_that_ended_or_belong_to_another_key_are_faults() {
    let file = |name: &str| format!("{}/tests/{name}", env!("CARGO_MANIFEST_DIR"));
    let mut gateway = Gateway::prepare(&[]);
    gateway.set("TOLLGATE_ADMIN_TLS_CERT", &file("doctor/tls/cert.pem"));
    gateway.set("TOLLGATE_ADMIN_TLS_KEY", &file("doctor/tls/key.pem"));
    let ended = only(&gateway, "certificates", "fault");
    assert!(ended.starts_with("admin.tls: expired "), "{ended}");
    let (is_good, said) = gateway.check();
    assert!(is_good && said.contains("warning: admin.tls: expired "), "{said}");
    gateway.set("TOLLGATE_ADMIN_TLS_CERT", &file("admin/tls/cert.pem"));
    let other = only(&gateway, "certificates", "fault");
    assert!(other.contains("is not the certificate's key"), "{other}");
    gateway.set("TOLLGATE_ADMIN_TLS_KEY", &file("admin/tls/key.pem"));
    let (well, lines) = examine(&gateway, "certificates");
    assert!(well && lines[0].starts_with("ok admin.tls: valid for "), "{lines:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_is_examined_and_its_loss_its_eviction_and_another_zone_are_found() {
    let mut redis = Redis::start();
    let gateway = Gateway::with(&[("REDIS_URL", &redis.url()), ("TZ", "Asia/Tokyo")]).await;
    let (well, lines) = examine(&gateway, "redis");
    assert!(
        well && lines[0].starts_with("ok Redis ") | lines[0].starts_with("ok Valkey "),
        "{lines:?}"
    );
    assert!(examine(&gateway, "clock").1[0].starts_with("ok as Redis'"));
    let mut elsewhere = Gateway::prepare(&[("REDIS_URL", &redis.url())]);
    elsewhere.set("TZ", "Europe/Berlin");
    let zone = only(&elsewhere, "time zone", "warning");
    assert_eq!(zone, "Europe/Berlin, and the other gateways have Asia/Tokyo");
    set_policy(&redis, "allkeys-lru").await;
    let evicting = only(&gateway, "redis", "fault");
    assert!(evicting.contains("allkeys-lru"), "{evicting}");
    redis.kill();
    only(&gateway, "redis", "fault");
}

async fn set_policy(redis: &Redis, policy: &str) {
    let mut connection =
        redis::Client::open(redis.url()).unwrap().get_multiplexed_async_connection().await.unwrap();
    let mut set = redis::cmd("CONFIG");
    set.arg("SET").arg("maxmemory-policy").arg(policy);
    set.query_async::<()>(&mut connection).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_is_examined_and_its_loss_is_a_fault_without_its_password() {
    let server = Server::own();
    let gateway = Gateway::with(&[("DATABASE_URL", &server.fresh_database())]).await;
    let (well, lines) = examine(&gateway, "database");
    assert!(well && lines[0].starts_with("ok PostgreSQL "), "{lines:?}");
    assert!(examine(&gateway, "clock").1[0].starts_with("ok as PostgreSQL's"));
    server.kill();
    only(&gateway, "database", "fault");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_configuration_is_refused_as_ever() {
    let mut gateway = Gateway::prepare(&[]);
    gateway.set("TOLLGATE_PROXY_ADDR", "nowhere");
    let done = gateway.command(&["doctor"]).output().unwrap();
    assert_eq!(done.status.code(), Some(2), "{done:?}");
    assert!(done.stdout.is_empty(), "{done:?}");
}
