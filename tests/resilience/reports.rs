//! One user's slow reports, on both databases: administrators and other users are served beside
//! them.

use reqwest::StatusCode;
use serde_json::{Value, json};
use sqlx::{AnyConnection, Connection as _};
use tokio::task::JoinSet;

use crate::proxy::fixture::Fixture;
use crate::support::gateway::ADMIN_TOKEN;
use crate::support::postgres;
use crate::support::wait;

/// Reports that the user asks for at the same time: more than a user may have waiting.
const REPORTS: usize = 40;

/// On SQLite: the table that the report reads becomes a calculation of about a second.
const SLOW_VIEW: &str = "ALTER TABLE usage_totals RENAME TO usage_totals_away; \
    CREATE VIEW usage_totals AS SELECT 'm' AS model, 200 AS status_code, 1 AS user_id FROM \
    (WITH RECURSIVE up (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up WHERE n < 8000000) \
    SELECT MAX(n) AS most FROM up) WHERE most > 0";

fn ask(fixture: &Fixture, operation: &str, key: &str, body: &Value) -> reqwest::RequestBuilder {
    let url = format!("{}/api/actions/{operation}", fixture.gateway.admin);
    fixture.gateway.client.post(url).bearer_auth(key).json(body)
}

async fn connect(url: &str) -> AnyConnection {
    sqlx::any::install_default_drivers();
    AnyConnection::connect(url).await.unwrap()
}

async fn execute(connection: &mut AnyConnection, sql: &'static str) {
    sqlx::raw_sql(sql).execute(connection).await.unwrap();
}

/// Waits until two statements wait for the lock.
async fn two_wait(url: &str) {
    let mut other = connect(url).await;
    let sql = "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND \
               datname = current_database()";
    wait::until(
        || "no report waits for the lock".to_owned(),
        async || sqlx::query_scalar::<_, i64>(sql).fetch_one(&mut other).await.unwrap() >= 2,
    )
    .await;
}

async fn others_are_served_beside_a_users_slow_reports(fixture: Fixture, locked: Option<&str>) {
    let (bob, _, bobs) = fixture.gateway.user(json!({"name": "bob"})).await;
    let mut lock = None;
    match locked {
        Some(url) => {
            let mut connection = connect(url).await;
            let sql = "BEGIN; LOCK TABLE usage_totals IN ACCESS EXCLUSIVE MODE";
            execute(&mut connection, sql).await;
            lock = Some(connection);
        }
        None => {
            let file = fixture.gateway.dir.path().join("data/tollgate.db");
            execute(&mut connect(&format!("sqlite:{}", file.display())).await, SLOW_VIEW).await;
        }
    }
    let mut reports = JoinSet::new();
    for _ in 0..REPORTS {
        let report = ask(&fixture, "usage-logs/getModelList", &fixture.key, &json!({})).send();
        reports.spawn(async move {
            let answer = report.await.unwrap();
            let status = answer.status();
            let retry = answer.headers().get("retry-after").cloned();
            (status, retry, answer.json::<Value>().await.unwrap())
        });
    }
    if let Some(url) = locked {
        two_wait(url).await;
    }
    // An administrator reads, reports and changes, and another user reads: none of them waits for
    // the rest of the reports.
    for _ in 0..5 {
        let keys = json!({"userId": bob});
        for (operation, key, body) in [
            ("keys/getKeys", ADMIN_TOKEN, &keys),
            ("users/editUser", ADMIN_TOKEN, &json!({"userId": bob, "note": "n"})),
            ("usage-logs/getUsageLogs", ADMIN_TOKEN, &json!({})),
            ("keys/getKeys", &bobs, &keys),
        ] {
            let status = ask(&fixture, operation, key, body).send().await.unwrap().status();
            assert_eq!(status, StatusCode::OK, "{operation}\n{}", fixture.gateway.log());
        }
    }
    if let Some(mut lock) = lock {
        execute(&mut lock, "COMMIT").await;
    }
    let answers = reports.join_all().await;
    let (served, refused): (Vec<_>, Vec<_>) =
        answers.into_iter().partition(|(status, ..)| *status == StatusCode::OK);
    assert!(served.len() >= 2, "{refused:?}");
    assert!(refused.len() >= REPORTS - 32, "{} were refused", refused.len());
    for (status, retry, body) in refused {
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{body}");
        assert_eq!(retry.unwrap(), "5");
        assert_eq!(body["errorParams"]["reason"], "reports_busy", "{body}");
    }
    let again = ask(&fixture, "usage-logs/getModelList", &fixture.key, &json!({}));
    assert_eq!(again.send().await.unwrap().status(), StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_users_slow_reports_leave_sqlite_to_the_others() {
    others_are_served_beside_a_users_slow_reports(Fixture::bare(&[]).await, None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_users_slow_reports_leave_postgresql_to_the_others() {
    let url = postgres::fresh_database();
    let fixture = Fixture::bare(&[("DATABASE_URL", &url)]).await;
    others_are_served_beside_a_users_slow_reports(fixture, Some(&url)).await;
}
