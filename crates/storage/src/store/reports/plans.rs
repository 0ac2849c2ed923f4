//! Tests that both back ends plan the administration's queries of large tables through an index.
//!
//! The tables have enough rows for a planner to use an index if one fits.

use sqlx::{AssertSqlSafe, Row};

use super::key_statistics::{KEYS, ROWS};
use super::last_use::EVERY_KEY;
use super::log_filter::LogFilter;
use super::log_sums::ENDS;
use super::logs::{LogCursor, LogPageAsk, page_sql};
use super::overview::LAST_MINUTE_OF_USER;
use super::statistics::{GroupBy, SeriesAsk, arms, runs};
use crate::domain::clock::Timestamp;
use crate::domain::ids::{KeyId, ProviderId, RequestId, UserId};
use crate::domain::secret::Secret;
use crate::store::engine::column::Values;
use crate::store::{Backend, Store, StoreError, SummedDay};

#[path = "../../../../../tests/support/postgres.rs"]
#[expect(
    dead_code,
    reason = "the integration tests kill and freeze their servers; here one only runs"
)]
mod postgres;

const HOUR: i64 = 3_600_000;
const HOURS: i64 = 2_000;

/// The rows of the ledger, from the log's.
const LEDGER: &str = "(request_id, started_at, key_id, user_id, provider_id, model, endpoint, \
    status_code, outcome, input_tokens, output_tokens, cache_write_5m_tokens, \
    cache_write_1h_tokens, cache_read_tokens, reasoning_tokens, image_input_tokens, \
    image_output_tokens, cost, cost_multiplier, estimated, duration_ms) \
    SELECT request_id, started_at, key_id, user_id, provider_id, model, endpoint, status_code, \
    outcome, 1, 1, 0, 0, 0, 0, 0, 0, cost, '1', 0, 1 FROM request_log";

/// Some rows of each table, in the order of time.
async fn fill(store: &Store) {
    let rows = 40_000;
    let series = match store.backend() {
        Backend::Postgres => format!("generate_series(1, CAST({rows} AS BIGINT)) AS n"),
        Backend::Sqlite => format!(
            "(WITH RECURSIVE up (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up WHERE n < {rows}) \
             SELECT n FROM up)"
        ),
    };
    let id = match store.backend() {
        Backend::Postgres => "decode(md5(CAST(n AS TEXT)), 'hex')",
        Backend::Sqlite => "randomblob(16)",
    };
    let statements = [
        format!(
            "INSERT INTO request_log (request_id, started_at, key_id, user_id, session_id, \
             provider_id, client_format, endpoint, model, streamed, status_code, outcome, \
             input_tokens, output_tokens, cache_write_5m_tokens, cache_write_1h_tokens, \
             cache_read_tokens, reasoning_tokens, image_input_tokens, image_output_tokens, cost, \
             cost_multiplier, estimated, duration_ms, overhead_us, attempts, decisions) \
             SELECT {id}, n * 180000, n % 100, n % 50, 's' || (n / 8), n % 6, 'native', '/v1/e' || \
             (n % 3), 'm' || (n % 12), 0, CASE WHEN n % 50 = 0 THEN 429 ELSE 200 END, 'completed', \
             1, 1, 0, 0, 0, 0, 0, 0, 1, '1', 0, 1, 1, CASE WHEN n % 30 = 0 THEN 2 ELSE 1 END, '[]' \
             FROM {series}"
        ),
        match store.backend() {
            // The ledger is a view, and the older half of it is in the archive.
            Backend::Sqlite => format!(
                "INSERT INTO ledger_archive {LEDGER} WHERE id <= {rows} / 2; DELETE FROM request_log WHERE id <= {rows} / 2"
            ),
            Backend::Postgres => format!("INSERT INTO ledger {LEDGER}"),
        },
        "INSERT INTO hourly_sums \
         SELECT started_at / 3600000 * 3600000, key_id, user_id, provider_id, model, endpoint, \
         status_code, COUNT(*), 0, 0, 1, 1, 0, 0, 0, 0, 1, 1 FROM ledger \
         GROUP BY 1, 2, 3, 4, 5, 6, 7"
            .to_owned(),
        "INSERT INTO hourly_users SELECT hour, user_id, 1, 0, 1, 1 FROM hourly_sums \
         GROUP BY hour, user_id"
            .to_owned(),
        "ANALYZE".to_owned(),
    ];
    for sql in statements {
        sqlx::raw_sql(AssertSqlSafe(sql))
            .execute(&mut *store.writer().await.unwrap())
            .await
            .unwrap();
    }
}

/// The day of that number, in UTC.
const fn summed(number: i64) -> SummedDay {
    SummedDay { from: Timestamp(number * 24 * HOUR), until: Timestamp((number + 1) * 24 * HOUR) }
}

/// The lines of the plan.
async fn plan(store: &Store, sql: &str, values: Values) -> Vec<String> {
    let (explain, column) = match store.backend() {
        Backend::Postgres => ("EXPLAIN", 0),
        Backend::Sqlite => ("EXPLAIN QUERY PLAN", 3),
    };
    let query =
        sqlx::query_with(AssertSqlSafe(format!("{explain} {sql}")), values.into_arguments());
    let rows = query.fetch_all(&mut *store.reader().await.unwrap()).await.unwrap();
    rows.iter().map(|row| row.get::<String, _>(column)).collect()
}

/// Whether a line of the plan reads a whole table. PostgreSQL knows of the partitions without rows
/// that they cost nothing.
fn reads_all(line: &str) -> bool {
    if line.contains("(cost=0.00..0.00 ") {
        return false;
    }
    // The ledger is a view on SQLite: `SCAN ledger` there reads what its parts have found.
    let postgres = ["request_log", "ledger", "hourly_sums", "hourly_users", "daily_sums"];
    let sqlite = ["request_log", "ledger_archive", "hourly_sums", "hourly_users", "daily_sums"];
    postgres.iter().any(|table| line.contains(&format!("Seq Scan on {table}")))
        || sqlite.iter().any(|table| line.trim_end().ends_with(&format!("SCAN {table}")))
}

fn pages() -> Vec<LogFilter> {
    let none = LogFilter::default;
    let text = |text: &str| Some(text.to_owned());
    vec![
        none(),
        LogFilter { model: text("m1"), ..none() },
        LogFilter { status_code: Some(429), ..none() },
        LogFilter { exclude_status_200: true, ..none() },
        LogFilter { user_id: Some(UserId(3)), ..none() },
        LogFilter { key_id: Some(KeyId(3)), ..none() },
        LogFilter { provider_id: Some(ProviderId(3)), ..none() },
        LogFilter { session_id: text("s7"), ..none() },
        LogFilter { request_id: Some(RequestId::NONE), ..none() },
        LogFilter { endpoint: text("/v1/e1"), ..none() },
        LogFilter { min_retry_count: Some(1), ..none() },
        LogFilter { min_retry_count: Some(50), ..none() },
        LogFilter { scope: Some(UserId(3)), model: text("m1"), ..none() },
        LogFilter { user_id: Some(UserId(3)), status_code: Some(429), ..none() },
        of_a_session(),
        retried_of_a_user(),
        LogFilter {
            start: Some(Timestamp(1_900 * HOUR)),
            end: Some(Timestamp(1_950 * HOUR)),
            ..none()
        },
    ]
}

/// A session of a user, with conditions that have an index too.
fn of_a_session() -> LogFilter {
    LogFilter {
        scope: Some(UserId(3)),
        key_id: Some(KeyId(3)),
        provider_id: Some(ProviderId(3)),
        session_id: Some("none".to_owned()),
        model: Some("m1".to_owned()),
        endpoint: Some("/v1/e1".to_owned()),
        ..LogFilter::default()
    }
}

fn retried_of_a_user() -> LogFilter {
    LogFilter {
        scope: Some(UserId(3)),
        key_id: Some(KeyId(3)),
        provider_id: Some(ProviderId(3)),
        min_retry_count: Some(9),
        model: Some("m1".to_owned()),
        endpoint: Some("/v1/e1".to_owned()),
        ..LogFilter::default()
    }
}

/// SQLite's planner knows no numbers of rows: with any other index these read all of a user's rows.
#[tokio::test]
async fn a_users_rare_rows_are_found_without_reading_all_of_the_users() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_sqlite(dir.path()).await.unwrap();
    store.migrate().await.unwrap();
    for (filter, index) in [
        (of_a_session(), "request_log_session (session_id=?"),
        (retried_of_a_user(), "request_log_user_retried (user_id=?"),
    ] {
        for cursor in [None, Some(LogCursor { started_at: Timestamp(1_000 * HOUR), id: 20_000 })] {
            let ask = LogPageAsk { page: 1, page_size: 50, cursor: None };
            let (sql, values) = page_sql(&filter, &ask, cursor);
            let lines = plan(&store, &sql, values).await;
            assert!(lines.iter().any(|line| line.contains(index)), "{sql}\n{lines:?}");
            assert!(!lines.iter().any(|line| line.contains("TEMP B-TREE")), "{sql}\n{lines:?}");
        }
    }
}

/// PostgreSQL ends a statement of a report that takes too long, and the report knows why.
#[tokio::test]
async fn a_statement_of_a_report_has_a_time_limit() {
    let url = Secret::new(postgres::fresh_database());
    let store = Store::open_postgres(&url, 4).await.unwrap();
    let mut report = store.report().await.unwrap();
    let limit = "SELECT setting FROM pg_settings WHERE name = 'statement_timeout'";
    let limit: String = sqlx::query_scalar(limit).fetch_one(&mut *report).await.unwrap();
    assert_eq!(limit, "20000");
    sqlx::raw_sql("SET LOCAL statement_timeout = 1").execute(&mut *report).await.unwrap();
    let late = sqlx::query("SELECT pg_sleep(30)").execute(&mut *report).await.unwrap_err();
    assert!(matches!(StoreError::from(late), StoreError::Slow));
    drop(report);
    let mut other = store.read().await.unwrap();
    let limit = "SELECT setting FROM pg_settings WHERE name = 'statement_timeout'";
    let limit: String = sqlx::query_scalar(limit).fetch_one(&mut *other).await.unwrap();
    assert_eq!(limit, "0", "other statements have none");
}

/// Queries of the ledger alone, which is a view on SQLite.
fn of_ledger() -> Vec<(String, String, Values)> {
    let with = |numbers: &[i64]| {
        let mut values = Values::default();
        numbers.iter().for_each(|number| {
            values.int(*number);
        });
        values
    };
    let hours = [3, 1_900 * HOUR, 1_901 * HOUR];
    [
        ("last uses", EVERY_KEY, with(&[])),
        ("keys", KEYS, with(&hours[..1])),
        ("partial hours of keys", ROWS, with(&hours)),
        ("ends", ENDS, with(&[])),
        ("the last minute of a user", LAST_MINUTE_OF_USER, with(&[hours[2], 3])),
    ]
    .map(|(name, sql, values)| (name.to_owned(), sql.to_owned(), values))
    .into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_tables_are_read_through_their_indexes() {
    let dir = tempfile::tempdir().unwrap();
    let stores = [
        Store::open_sqlite(dir.path()).await.unwrap(),
        Store::open_postgres(&Secret::new(postgres::fresh_database()), 4).await.unwrap(),
    ];
    for store in stores {
        store.migrate().await.unwrap();
        fill(&store).await;
        for day in (0..HOURS / 24).map(summed) {
            store.sum_day(day).await.unwrap();
        }
        sqlx::raw_sql("ANALYZE").execute(&mut *store.writer().await.unwrap()).await.unwrap();
        let mut asked: Vec<(String, String, Values)> = Vec::new();
        for filter in pages() {
            for cursor in
                [None, Some(LogCursor { started_at: Timestamp(1_000 * HOUR), id: 20_000 })]
            {
                let ask = LogPageAsk { page: 1, page_size: 50, cursor: None };
                let (sql, values) = page_sql(&filter, &ask, cursor);
                asked.push((format!("{filter:?} {cursor:?}"), sql, values));
            }
        }
        for (by, scope) in [
            (GroupBy::User, None),
            (GroupBy::User, Some(UserId(3))),
            (GroupBy::Key, Some(UserId(3))),
            (GroupBy::Model, None),
            (GroupBy::Provider, None),
        ] {
            let end = HOURS * HOUR - HOUR / 2;
            let boundaries = vec![Timestamp(end - 72 * HOUR), Timestamp(end)];
            let ask = SeriesAsk { scope, by, boundaries };
            let days: Vec<SummedDay> = (0..HOURS / 24).map(summed).collect();
            for run in runs(&arms(&ask.boundaries, &days)) {
                let mut values = Values::default();
                let sql = ask.select(run, &mut values);
                asked.push((format!("{ask:?} {run:?}"), sql, values));
            }
        }
        asked.extend(of_ledger());
        for (name, sql, values) in asked {
            let lines = plan(&store, &sql, values).await;
            assert!(
                !lines.iter().any(|line| reads_all(line)),
                "{:?}: {name}\n{sql}\n{}",
                store.backend(),
                lines.join("\n")
            );
        }
    }
}
