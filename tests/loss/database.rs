//! PostgreSQL killed, and frozen, and back again, under load.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::load::{Load, nothing_lost};
use crate::proxy::stage::Stage;
use crate::support::postgres::Server;

/// Whoever asks for a connection to a database that is away waits for five seconds.
const LESS_THAN_ANY_WAIT: Duration = Duration::from_secs(4);

/// A gateway on a database server of its own, with one native provider.
async fn stage(env: &[(&str, &str)]) -> (Stage, Server) {
    let server = Server::own();
    let url = server.fresh_database();
    let env: Vec<(&str, &str)> = env.iter().copied().chain([("DATABASE_URL", url.as_str())]).collect();
    let stage = Stage::bare(&env).await;
    stage.gateway.provider("native", &stage.upstream.url, json!({})).await;
    stage.upstream.default(json!({"usage": {"input": 1000, "output": 500}, "events": 3})).await;
    (stage, server)
}

/// A change while the database is away: refused in time, with a reason, and with what to think of it.
async fn a_change_is_refused(stage: &Stage) {
    let began = Instant::now();
    let (status, answer) = stage.gateway.call("users/addUser", json!({"name": "bob"})).await;
    assert_eq!((status, &answer["ok"]), (503, &json!(false)), "{answer}");
    let message = answer["error"].as_str().unwrap();
    assert!(message.contains("database") && message.contains("nothing was changed"), "{answer}");
    assert!(answer["errorParams"]["requestId"].is_string(), "{answer}");
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}

fn database_is_away(ready: bool, parts: &Value) -> bool {
    !ready && parts["database"] == "cannot be reached"
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_killed_and_back_fails_no_request_and_loses_nothing() {
    let (stage, server) = stage(&[]).await;
    let load = Load::start(&stage, 8);
    load.more(200).await;
    server.kill();
    stage.gateway.readiness_shows(database_is_away).await;
    load.more(200).await;
    assert_eq!(stage.gateway.metric("tollgate_store_up").await, 0.0);
    assert!(stage.gateway.metric("tollgate_journal_pending_records").await >= 200.0);
    a_change_is_refused(&stage).await;
    server.start_again();
    stage.gateway.readiness_shows(|ready, _| ready).await;
    load.more(200).await;
    let outcome = load.end().await;
    assert_eq!(outcome.failures, Vec::<String>::new());
    nothing_lost(&stage, outcome.whole).await;
    assert_eq!(stage.gateway.metric("tollgate_journal_pending_bytes").await, 0.0, "the journal is drained");
    // A connection that died in the pool costs nobody a request.
    stage.gateway.user(json!({"name": "bob"})).await;
    for told in ["the database cannot be reached", "the database can be reached", "ledger records cannot be delivered"]
    {
        stage.gateway.log_shows(told).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_frozen_and_back_fails_no_request_and_loses_nothing() {
    let (stage, server) = stage(&[]).await;
    let load = Load::start(&stage, 8);
    load.more(200).await;
    server.freeze();
    stage.gateway.readiness_shows(database_is_away).await;
    load.more(200).await;
    a_change_is_refused(&stage).await;
    assert!(stage.gateway.metric("tollgate_journal_pending_records").await >= 200.0);
    server.thaw();
    stage.gateway.readiness_shows(|ready, _| ready).await;
    load.more(100).await;
    let outcome = load.end().await;
    assert_eq!(outcome.failures, Vec::<String>::new());
    let waited = stage.gateway.longest_overhead();
    assert!(waited < LESS_THAN_ANY_WAIT, "no request waited for the database: {waited:?}");
    nothing_lost(&stage, outcome.whole).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_that_fills_while_the_database_is_away_is_bounded_says_so_and_recovers() {
    let bounds = [("TOLLGATE_LEDGER_MAX_BYTES", "1MiB"), ("TOLLGATE_LEDGER_SEGMENT_BYTES", "64KiB")];
    let (stage, server) = stage(&bounds).await;
    let load = Load::start(&stage, 8);
    load.more(50).await;
    server.kill();
    stage.gateway.readiness_shows(|ready, parts| !ready && parts["journal"].as_str().unwrap().contains("full")).await;
    load.more_failures(20).await;
    assert!(stage.gateway.metric("tollgate_journal_pending_bytes").await <= f64::from(1 << 20));
    server.start_again();
    stage.gateway.readiness_shows(|ready, _| ready).await;
    load.more(50).await;
    let outcome = load.end().await;
    for failure in &outcome.failures {
        assert!(failure.starts_with("503") && failure.contains("\"type\":\"error\""), "{failure}");
    }
    nothing_lost(&stage, outcome.whole).await;
}
