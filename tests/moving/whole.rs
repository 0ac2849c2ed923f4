//! A complete move: clients, administrators and the accounts notice no difference.

use serde_json::{Value, json};

use super::{Bed, one, run, tables, texts};
use crate::proxy::fixture::request;
use crate::support::gateway::ADMIN_TOKEN;

/// Adds a row to every empty table, whatever its columns: a table that is not copied would lose it.
async fn furnish_empty_tables(url: &str) {
    for table in tables(url).await {
        if one(url, &format!("SELECT CAST(COUNT(*) AS TEXT) FROM {table}")).await != "0" {
            continue;
        }
        let columns = texts(
            url,
            &format!(
                "SELECT name || ' ' || type FROM pragma_table_info('{table}') WHERE name <> 'id'"
            ),
        )
        .await;
        let (names, values): (Vec<&str>, Vec<&str>) = columns
            .iter()
            .map(|column| column.split_once(' ').unwrap())
            .map(|(name, kind)| match (name, kind) {
                ("match_type", _) => (name, "'exact'"),
                ("key_id" | "user_id" | "provider_id", "INTEGER") => (name, "1"),
                ("kind", _) => (name, "'anthropic'"),
                // None: `check` would not open one that is made up.
                ("key_cipher", _) => (name, "''"),
                ("api_key_ids", _) => (name, "'[]'"),
                (flag, "INTEGER") if flag.starts_with("is_") => (name, "1"),
                (_, "INTEGER") => (name, "1700000000123"),
                ("data" | "report", _) => (name, "'{}'"),
                (_, "BLOB") => (name, "x'00ff7f80'"),
                _ => (name, "'naïve ☃'"),
            })
            .unzip();
        let sql =
            format!("INSERT INTO {table} ({}) VALUES ({})", names.join(", "), values.join(", "));
        run(url, &sql).await;
    }
}

/// The status of a request with a cookie of the web UI.
async fn by_cookie(bed: &Bed, cookie: &str) -> u16 {
    let url = format!("{}/api/actions/users/getUsers", bed.fixture.gateway.admin);
    let ask = bed
        .fixture
        .gateway
        .client
        .post(url)
        .header("cookie", format!("auth-token={cookie}"))
        .json(&json!({}));
    ask.send().await.unwrap().status().as_u16()
}

async fn log_in(bed: &Bed) -> String {
    let url = format!("{}/api/auth/login", bed.fixture.gateway.admin);
    let answer = bed
        .fixture
        .gateway
        .client
        .post(url)
        .json(&json!({"key": ADMIN_TOKEN}))
        .send()
        .await
        .unwrap();
    let cookie = answer.headers()["set-cookie"].to_str().unwrap();
    cookie.strip_prefix("auth-token=").unwrap().split(';').next().unwrap().to_owned()
}

async fn ask(bed: &Bed, key: &str) -> u16 {
    let url = format!("{}/v1/messages", bed.fixture.gateway.proxy);
    let ask = bed
        .fixture
        .gateway
        .client
        .post(url)
        .header("x-api-key", key)
        .json(&request("native", false));
    ask.send().await.unwrap().status().as_u16()
}

async fn summary(bed: &Bed, rows: usize) -> (Value, Vec<Value>) {
    let logs = bed.fixture.gateway.logs(rows).await;
    let page = bed.fixture.gateway.admin("usage-logs/getUsageLogs", json!({"pageSize": 1})).await;
    let mut ids: Vec<Value> = logs.iter().map(|row| row["requestId"].clone()).collect();
    ids.sort_by_key(Value::to_string);
    (page["summary"].clone(), ids)
}

/// The output of a completed `tollgate move` of requests that cost `mills` thousandths of a USD.
fn reports_the_move(said: &str, mills: usize) {
    for wanted in [
        "SQLite  PostgreSQL",
        "ledger",
        "cost in USD",
        "database.url",
        "tollgate.db was left as it is",
    ] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    let cost = said.lines().find(|line| line.starts_with("cost in USD")).unwrap();
    let expected = format!("0.0{mills:02}").trim_end_matches('0').to_owned();
    assert_eq!(cost.split_whitespace().skip(3).collect::<Vec<_>>(), [&expected, &expected]);
}

/// The key of the first user works, and the provider receives its credential.
async fn a_request_passes(bed: &Bed) {
    let sent = bed.fixture.upstream.requests().await.len();
    assert_eq!(bed.fixture.ask().send().await.unwrap().status(), 200, "the key works");
    let requests = bed.fixture.upstream.requests().await;
    assert_eq!(requests.len(), sent + 1);
    assert_eq!(
        requests[sent]["headers"]["x-api-key"], "upstream-secret-key",
        "the credential opens"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_goes_on_as_if_it_had_always_been_on_postgres() {
    let mut bed = Bed::start(&[("STORE_SESSION_MESSAGES", "true")], 3).await;
    let gateway = &bed.fixture.gateway;
    let (_, _, bob) = gateway.user(json!({"name": "bob", "limitDailyUsd": 0.01})).await;
    let mut spent = 0;
    while ask(&bed, &bob).await == 200 {
        spent += 1;
    }
    assert!((1..=5).contains(&spent), "{spent} requests of 0.002 USD");
    // Those of the first user, the refused one, too.
    let rows = 3 + spent + 1;
    let secret = json!({"webhookSecret": "a-secret-for-webhooks"});
    gateway.admin("notifications/updateNotificationSettingsAction", secret).await;
    // A number that is used up, although no row has it any more.
    let word = json!({"word": "never-said", "matchType": "contains"});
    gateway.admin("sensitive-words/createSensitiveWordAction", word.clone()).await;
    let list = gateway.admin("sensitive-words/listSensitiveWords", json!({})).await;
    let used = list[0]["id"].as_i64().unwrap();
    gateway.admin("sensitive-words/deleteSensitiveWordAction", json!({"id": used})).await;
    let cookie = log_in(&bed).await;
    let before = summary(&bed, rows).await;
    bed.stop().await;
    furnish_empty_tables(&bed.sqlite()).await;
    run(&bed.sqlite(), "DELETE FROM sensitive_words").await;

    reports_the_move(&bed.done(), 2 * (3 + spent));
    bed.assert_same().await;
    let said = bed.done();
    assert!(said.contains("an earlier run has moved"), "{said}");

    bed.start_on_target().await;
    assert_eq!(summary(&bed, rows).await, before);
    assert_eq!(by_cookie(&bed, &cookie).await, 200, "a login goes on");
    assert_eq!(ask(&bed, &bob).await, 429, "what was spent is known");
    a_request_passes(&bed).await;
    bed.fixture.gateway.logs(rows + 2).await;
    let ids =
        texts(&bed.target, "SELECT CAST(id AS TEXT) FROM request_log ORDER BY request_log.id")
            .await;
    assert_eq!(
        ids,
        (1..=rows + 2).map(|id| id.to_string()).collect::<Vec<_>>(),
        "new requests get new numbers"
    );
    bed.fixture.gateway.admin("sensitive-words/createSensitiveWordAction", word).await;
    let list = bed.fixture.gateway.admin("sensitive-words/listSensitiveWords", json!({})).await;
    assert!(list[0]["id"].as_i64().unwrap() > used, "{list}");
    let (user, key, _) = bed.fixture.gateway.user(json!({"name": "cy"})).await;
    assert!(user > 2 && key > 2, "{user} {key}");
    let (code, said) = bed.command(&["check"]);
    assert_eq!(code, Some(0), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_in_the_journal_is_moved_too_and_counted_once() {
    // Records wait a minute for others to share their batch.
    let mut bed = Bed::start(&[("TOLLGATE_LEDGER_FLUSH_INTERVAL", "1m")], 5).await;
    bed.fixture.gateway.kill();
    assert_eq!(one(&bed.sqlite(), "SELECT CAST(COUNT(*) AS TEXT) FROM ledger").await, "0");
    let (code, said) = bed.command(&["move", "--to", &bed.target, "--check"]);
    assert!(code == Some(0) && said.contains("delivered to SQLite before the move"), "{said}");
    assert_eq!(tables(&bed.target).await, Vec::<String>::new(), "a check changes nothing");
    assert_eq!(one(&bed.sqlite(), "SELECT CAST(COUNT(*) AS TEXT) FROM ledger").await, "0");

    let said = bed.done();
    assert!(said.contains("delivered the journal to the SQLite database: 5 records"), "{said}");
    bed.assert_same().await;
    bed.start_on_target().await;
    assert_eq!(bed.fixture.gateway.logs(5).await.len(), 5);
    let sums = "SELECT CAST(COUNT(*) AS TEXT) || ' ' || CAST(SUM(cost) AS TEXT) FROM ledger";
    assert_eq!(one(&bed.target, sums).await, "5 10000000");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_beside_the_running_gateway_says_what_there_is_and_changes_nothing() {
    let bed = Bed::start(&[], 2).await;
    bed.fixture.gateway.logs(2).await;
    let file = bed.fixture.gateway.dir.path().join("address");
    std::fs::write(&file, format!("{}\n", bed.target)).unwrap();
    let (code, said) = bed.command(&["move", "--to-file", file.to_str().unwrap(), "--check"]);
    assert_eq!(code, Some(0), "{said}");
    for wanted in
        ["the target is empty", "ledger: 2 rows", "a gateway is running: stop it before the move"]
    {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    assert_eq!(tables(&bed.target).await, Vec::<String>::new());
}
