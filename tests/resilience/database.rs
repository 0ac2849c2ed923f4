//! PostgreSQL killed, frozen, and restored, under load.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::load::{Load, nothing_lost};
use crate::proxy::fixture::Fixture;
use crate::support::gateway::ADMIN_TOKEN;
use crate::support::postgres::Server;

/// A request for a connection to an unreachable database waits for five seconds.
const LESS_THAN_ANY_WAIT: Duration = Duration::from_secs(4);

/// A gateway on a separate database server, with one native provider.
async fn fixture(env: &[(&str, &str)]) -> (Fixture, Server) {
    let server = Server::own();
    let url = server.fresh_database();
    let env: Vec<(&str, &str)> =
        env.iter().copied().chain([("DATABASE_URL", url.as_str())]).collect();
    let fixture = Fixture::bare(&env).await;
    fixture.gateway.provider("native", &fixture.upstream.url, json!({})).await;
    fixture.upstream.default(json!({"usage": {"input": 1000, "output": 500}, "events": 3})).await;
    (fixture, server)
}

/// A change while the database is unreachable: refused in time, with a reason and its consequences.
async fn a_change_is_refused(fixture: &Fixture) {
    let began = Instant::now();
    let (status, answer) = fixture.gateway.call("users/addUser", json!({"name": "bob"})).await;
    assert_eq!((status, &answer["ok"]), (503, &json!(false)), "{answer}");
    let message = answer["error"].as_str().unwrap();
    assert!(message.contains("database") && message.contains("nothing was changed"), "{answer}");
    assert!(answer["errorParams"]["requestId"].is_string(), "{answer}");
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}

fn database_is_away(ready: bool, parts: &Value) -> bool {
    !ready && parts["database"].as_str().unwrap().starts_with("cannot be reached since ")
}

/// Calls an operation as a browser does.
async fn by_cookie(fixture: &Fixture, cookie: &str, operation: &str) -> (u16, Value) {
    let url = format!("{}/api/{operation}", fixture.gateway.admin);
    let answer = fixture
        .gateway
        .client
        .post(url)
        .header("cookie", cookie)
        .json(&json!({}))
        .send()
        .await
        .unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

/// A name of an event, and which of them is meant.
type Wanted<'w> = (&'w str, &'w dyn Fn(&Value) -> bool);

/// The data of the next event of each kind, in whichever order they come.
async fn next_events<const N: usize>(
    response: &mut reqwest::Response,
    text: &mut String,
    wanted: [Wanted<'_>; N],
) -> [Value; N] {
    let mut found = [const { None }; N];
    loop {
        while let Some((event, rest)) =
            text.split_once("\n\n").map(|(event, rest)| (event.to_owned(), rest.to_owned()))
        {
            *text = rest;
            for (place, (name, fits)) in found.iter_mut().zip(wanted) {
                let mark = format!("event: {name}\ndata: ");
                let data = event.split_once(&mark).map(|(_, data)| data);
                let data = data.map(|data| serde_json::from_str::<Value>(data).unwrap());
                *place = place.take().or(data.filter(|data| fits(data)));
            }
            if found.iter().all(Option::is_some) {
                return found.map(Option::unwrap);
            }
        }
        let chunk = tokio::time::timeout(Duration::from_secs(60), response.chunk())
            .await
            .expect("nothing came");
        text.push_str(std::str::from_utf8(&chunk.unwrap().expect("the stream ended")).unwrap());
    }
}

/// Operations while the database is unreachable: each says so, and since when.
async fn operations_name_the_cause(fixture: &Fixture, cookie: &str, cause: &str, since: &str) {
    for operation in ["auth/whoami", "actions/users/getUsers", "actions/overview/getOverviewData"] {
        let (status, answer) = by_cookie(fixture, cookie, operation).await;
        assert_eq!(
            (status, &answer["ok"], &answer["errorCode"]),
            (503, &json!(false), &json!("OPERATION_FAILED"))
        );
        assert_eq!(answer["error"], format!("the database {cause}"), "{operation}");
        assert_eq!(
            (&answer["errorParams"]["reason"], &answer["errorParams"]["since"]),
            (&json!("database_unreachable"), &json!(since))
        );
    }
    let (status, answer) = fixture.gateway.call("overview/getOverviewData", json!({})).await;
    assert_eq!(
        (status, &answer["error"]),
        (503, &json!(format!("the database {cause}"))),
        "by Bearer: {answer}"
    );
    let (status, answer) = fixture.gateway.call("users/addUser", json!({"name": "bob"})).await;
    assert_eq!(
        (status, &answer["errorCode"], &answer["errorParams"]["since"]),
        (503, &json!("CREATE_FAILED"), &json!(since))
    );
    assert!(
        answer["error"].as_str().unwrap().starts_with(&format!("the database {cause}")),
        "{answer}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_administration_says_since_when_postgres_is_away_and_recovers_without_a_restart() {
    let (fixture, server) = fixture(&[]).await;
    let gateway = &fixture.gateway;
    let login = gateway
        .client
        .post(format!("{}/api/auth/login", gateway.admin))
        .json(&json!({"key": ADMIN_TOKEN}));
    let login = login.send().await.unwrap();
    let cookie =
        login.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    assert_eq!(by_cookie(&fixture, &cookie, "auth/whoami").await.0, 200);
    let watch =
        gateway.client.get(format!("{}/api/events", gateway.admin)).header("cookie", &cookie);
    let mut watching = watch.timeout(Duration::from_secs(300)).send().await.unwrap();
    let mut text = String::new();
    let is_up = |status: &Value| status["databaseUp"] == true;
    next_events(&mut watching, &mut text, [("status", &is_up), ("overview", &|_| true)]).await;

    server.kill();
    gateway.readiness_shows(database_is_away).await;
    let cause = gateway.readiness().await.1["database"].as_str().unwrap().to_owned();
    let since = cause.strip_prefix("cannot be reached since ").unwrap().to_owned();
    assert_eq!(
        gateway.run(&["health"]),
        (false, format!("tollgate: not ready: database: {cause}\n"))
    );
    operations_name_the_cause(&fixture, &cookie, &cause, &since).await;
    let is_down = |status: &Value| status["databaseUp"] == false;
    let seen = |overview: &Value| {
        overview["attention"]["problems"].to_string().contains("database_unreachable")
    };
    let [down, _] =
        next_events(&mut watching, &mut text, [("status", &is_down), ("overview", &seen)]).await;
    assert_eq!(
        (&down["databaseDownSince"], &down["message"]),
        (&json!(since), &json!(format!("the database {cause}")))
    );
    assert!(down["figuresAt"].is_string(), "{down}");

    server.start_again();
    gateway.readiness_shows(|ready, _| ready).await;
    let gone = |overview: &Value| !seen(overview);
    next_events(&mut watching, &mut text, [("status", &is_up), ("overview", &gone)]).await;
    assert_eq!(by_cookie(&fixture, &cookie, "auth/whoami").await.0, 200, "the same session");
    let log = gateway.log_shows("the database can be reached").await;
    assert!(!log.contains("an administration request failed"), "one line for all of it:\n{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_killed_and_back_fails_no_request_and_loses_nothing() {
    let (fixture, server) = fixture(&[]).await;
    let load = Load::start(&fixture, 8);
    load.more(200).await;
    server.kill();
    fixture.gateway.readiness_shows(database_is_away).await;
    load.more(200).await;
    assert_eq!(fixture.gateway.metric("tollgate_store_up").await, 0.0);
    assert!(fixture.gateway.metric("tollgate_journal_pending_records").await >= 200.0);
    a_change_is_refused(&fixture).await;
    server.start_again();
    fixture.gateway.readiness_shows(|ready, _| ready).await;
    load.more(200).await;
    let outcome = load.end().await;
    assert_eq!(outcome.failures, Vec::<String>::new());
    nothing_lost(&fixture, outcome.whole).await;
    assert_eq!(
        fixture.gateway.metric("tollgate_journal_pending_bytes").await,
        0.0,
        "the journal is drained"
    );
    // A connection that died in the pool fails no request.
    fixture.gateway.user(json!({"name": "bob"})).await;
    for line in [
        "the database cannot be reached",
        "the database can be reached",
        "ledger records cannot be delivered",
    ] {
        fixture.gateway.log_shows(line).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_frozen_and_back_fails_no_request_and_loses_nothing() {
    let (fixture, server) = fixture(&[]).await;
    let load = Load::start(&fixture, 8);
    load.more(200).await;
    server.freeze();
    fixture.gateway.readiness_shows(database_is_away).await;
    load.more(200).await;
    a_change_is_refused(&fixture).await;
    assert!(fixture.gateway.metric("tollgate_journal_pending_records").await >= 200.0);
    server.thaw();
    fixture.gateway.readiness_shows(|ready, _| ready).await;
    load.more(100).await;
    let outcome = load.end().await;
    assert_eq!(outcome.failures, Vec::<String>::new());
    let waited = fixture.gateway.longest_overhead();
    assert!(waited < LESS_THAN_ANY_WAIT, "no request waited for the database: {waited:?}");
    nothing_lost(&fixture, outcome.whole).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_that_fills_while_the_database_is_away_is_bounded_says_so_and_recovers() {
    let bounds =
        [("TOLLGATE_LEDGER_MAX_BYTES", "1MiB"), ("TOLLGATE_LEDGER_SEGMENT_BYTES", "64KiB")];
    let (fixture, server) = fixture(&bounds).await;
    let load = Load::start(&fixture, 8);
    load.more(50).await;
    server.kill();
    fixture
        .gateway
        .readiness_shows(|ready, parts| {
            !ready && parts["journal"].as_str().unwrap().contains("full")
        })
        .await;
    load.more_failures(20).await;
    assert!(fixture.gateway.metric("tollgate_journal_pending_bytes").await <= f64::from(1 << 20));
    server.start_again();
    fixture.gateway.readiness_shows(|ready, _| ready).await;
    load.more(50).await;
    let outcome = load.end().await;
    for failure in &outcome.failures {
        assert!(failure.starts_with("503") && failure.contains("\"type\":\"error\""), "{failure}");
    }
    nothing_lost(&fixture, outcome.whole).await;
}
