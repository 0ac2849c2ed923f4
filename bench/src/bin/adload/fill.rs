//! A year of use, made by the database itself: the log and the ledger row by row, the sums from the
//! ledger.
//!
//! Conversations of eight requests, 125 of them at a time; keys, models and providers are chosen
//! unevenly, as in production. Indexes are dropped before the rows are inserted and created again
//! afterwards; with them it would take an hour.

use anyhow::Result;
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Executor, Row};
use tollgate::domain::clock::Timestamp;
use tollgate::domain::secret::Secret;
use tollgate::store::Store;

/// The year ends now.
const SPAN_MS: i64 = 365 * DAY_MS;
const DAY_MS: i64 = 24 * 3_600_000;
pub const USERS: i64 = 200;
pub const KEYS: i64 = 400;
pub const PROVIDERS: i64 = 6;

/// The generated rows.
pub struct Filled {
    pub hourly_sums: i64,
    pub hourly_users: i64,
    pub totals: i64,
    /// Rows of the request log.
    pub rows: i64,
    /// A session of the busiest key, and a place in the middle of the log.
    pub session: String,
    pub cursor: String,
    pub now: i64,
}

/// Begins with the request's time, as ids do: the ledger is partitioned by it.
const POSTGRES_ID: &str = "decode(lpad(to_hex($START + n * $STEP / 1000), 12, '0') || \
    substr(md5(CAST(n AS TEXT)), 1, 20), 'hex')";

/// `$N` rows; `n` counts them, `s` is the conversation's number, `h` its hash and `r` the
/// request's.
const ROWS: &str = "SELECT n, s, h, (n * 2654435761) % 4294967296 AS r FROM \
    (SELECT n, s, (s * 2654435761) % 4294967296 AS h FROM (SELECT n, n / 1000 * 125 + n % 125 AS s \
    FROM $SERIES) AS a) AS b";

/// The product of two uniform choices is not uniform.
const COLUMNS: &str = "n AS n, $REQUEST_ID AS request_id, $START + n * $STEP / 1000 AS started_at, \
    1 + (h % 400) * (h / 400 % 400) / 400 AS key_id, 'key' AS key_name, \
    1 + (h % 400) * (h / 400 % 400) / 400 % 200 AS user_id, 'user' AS user_name, \
    'session-' || s AS session_id, 1 + (h % 6) * (h / 7 % 6) / 6 AS provider_id, \
    'provider' AS provider_name, 'native' AS client_format, 'native' AS provider_format, \
    CASE WHEN h % 3 = 0 THEN '/v1/chat/completions' ELSE '/v1/messages' END AS endpoint, \
    'model-' || (1 + (h / 11 % 12) * (h / 133 % 12) / 12) AS model, 1 AS streamed, \
    CASE WHEN r % 50 = 0 THEN 429 WHEN r % 50 = 1 THEN 500 WHEN r % 50 = 2 THEN 400 \
    ELSE 200 END AS status_code, \
    CASE WHEN r % 50 = 0 THEN 'refused' WHEN r % 50 = 1 THEN 'upstream_failed' WHEN r % 50 = 2 THEN 'client_error' \
    ELSE 'completed' END AS outcome, \
    500 + r % 4000 AS input_tokens, 100 + r % 900 AS output_tokens, r % 3000 AS cache_read_tokens, \
    1000000 + r % 30000000 AS cost, 300 + r % 9000 AS duration_ms, CASE WHEN r % 30 = 0 THEN 2 \
    ELSE 1 END AS attempts";

const LOG: &str = "INSERT INTO request_log (id, request_id, started_at, key_id, key_name, user_id, user_name, session_id, \
    provider_id, provider_name, client_format, provider_format, endpoint, model, streamed, status_code, outcome, \
    input_tokens, output_tokens, cache_write_5m_tokens, cache_write_1h_tokens, cache_read_tokens, reasoning_tokens, \
    image_input_tokens, image_output_tokens, cost, cost_multiplier, estimated, duration_ms, first_byte_ms, overhead_us, \
    attempts, decisions, user_agent, client_addr) SELECT n, request_id, started_at, key_id, key_name, user_id, user_name, \
    session_id, provider_id, provider_name, client_format, provider_format, endpoint, model, streamed, status_code, outcome, \
    input_tokens, output_tokens, 0, 0, cache_read_tokens, 0, 0, 0, cost, '1', 0, duration_ms, 200, 60, attempts, \
    '[{\"providerId\":1,\"providerName\":\"provider\",\"step\":\"chosen\",\"at_ms\":0,\"atMs\":0},{\"providerId\":1,\"providerName\":\"provider\",\"step\":\"succeeded\",\"status\":200,\"atMs\":850,\"tookMs\":849}]', \
    'client/2.1 (linux)', '10.1.2.3' FROM (SELECT $COLUMNS FROM ($ROWS) AS rows) AS made";

const LEDGER: &str = "INSERT INTO ledger (request_id, started_at, key_id, user_id, provider_id, \
    model, endpoint, status_code, outcome, input_tokens, output_tokens, cache_write_5m_tokens, \
    cache_write_1h_tokens, cache_read_tokens, reasoning_tokens, image_input_tokens, \
    image_output_tokens, cost, cost_multiplier, estimated, duration_ms) SELECT request_id, \
    started_at, key_id, user_id, provider_id, model, endpoint, status_code, outcome, input_tokens, \
    output_tokens, 0, 0, cache_read_tokens, 0, 0, 0, cost, '1', 0, duration_ms FROM request_log";

const SUMS: [&str; 3] = [
    "INSERT INTO hourly_sums SELECT started_at / 3600000 * 3600000, key_id, user_id, provider_id, \
     model, endpoint, status_code, COUNT(*), SUM(CASE WHEN outcome = 'completed' THEN 0 \
     ELSE 1 END), 0, SUM(input_tokens), SUM(output_tokens), 0, 0, SUM(cache_read_tokens), 0, \
     SUM(cost), SUM(duration_ms) FROM ledger GROUP BY 1, 2, 3, 4, 5, 6, 7 ORDER BY 1",
    "INSERT INTO hourly_users SELECT hour, user_id, SUM(requests), SUM(errors), SUM(cost), \
     SUM(duration_ms) FROM hourly_sums GROUP BY hour, user_id ORDER BY 1",
    "INSERT INTO usage_totals SELECT user_id, key_id, provider_id, model, status_code, \
     SUM(requests), SUM(errors), SUM(unpriced), SUM(input_tokens), SUM(output_tokens), 0, \
     0, SUM(cache_read_tokens), 0, SUM(cost), SUM(duration_ms) FROM hourly_sums \
     GROUP BY 1, 2, 3, 4, 5",
];

/// Fills the empty tables of a migrated database.
pub async fn fill(url: &str, rows: i64) -> Result<Filled> {
    sqlx::any::install_default_drivers();
    let mut connection = AnyConnection::connect(url).await?;
    let postgres = url.starts_with("postgres");
    let now = now_ms(&mut connection, postgres).await?;
    if connection.fetch_optional("SELECT id FROM request_log LIMIT 1").await?.is_some() {
        return look(&mut connection, now).await;
    }
    let series = match postgres {
        true => format!("generate_series(0, CAST({} AS BIGINT)) AS n", rows - 1),
        false => format!(
            "(WITH RECURSIVE up (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM up WHERE n < {}) \
             SELECT n FROM up)",
            rows - 1
        ),
    };
    let made = ROWS.replace("$SERIES", &series);
    let columns = COLUMNS
        .replace("$REQUEST_ID", if postgres { POSTGRES_ID } else { "randomblob(16)" })
        .replace("$START", &(now - SPAN_MS).to_string())
        .replace("$STEP", &(SPAN_MS * 1000 / rows).to_string());
    if postgres {
        months(url, now).await?;
    } else {
        connection
            .execute(
                "PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -400000",
            )
            .await?;
    }
    let indexes = take_off_indexes(&mut connection, postgres).await?;
    run(&mut connection, &LOG.replace("$COLUMNS", &columns).replace("$ROWS", &made)).await?;
    // SQLite's ledger is a view of the log.
    if postgres {
        run(&mut connection, LEDGER).await?;
    }
    for sql in indexes {
        run(&mut connection, &sql).await?;
    }
    for sql in SUMS {
        run(&mut connection, sql).await?;
    }
    if postgres {
        run(
            &mut connection,
            "SELECT setval(pg_get_serial_sequence('request_log', 'id'), (SELECT MAX(id) \
             FROM request_log))",
        )
        .await?;
    }
    run(&mut connection, if postgres { "VACUUM ANALYZE" } else { "ANALYZE" }).await?;
    let filled = look(&mut connection, now).await?;
    connection.close().await?;
    Ok(filled)
}

/// Makes the partitions of the year, as the gateway does when their months begin.
async fn months(url: &str, now: i64) -> Result<()> {
    let store = Store::open_postgres(&Secret::new(url), 2).await?;
    for days in (0..=SPAN_MS / DAY_MS).step_by(20) {
        store.keep_partitions(Timestamp(now - SPAN_MS + days * DAY_MS)).await?;
    }
    store.close().await;
    Ok(())
}

async fn run(connection: &mut AnyConnection, sql: &str) -> Result<()> {
    let began = std::time::Instant::now();
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await?;
    eprintln!(
        "{:6.1} s  {}",
        began.elapsed().as_secs_f32(),
        sql.chars().take(80).collect::<String>()
    );
    Ok(())
}

async fn now_ms(connection: &mut AnyConnection, postgres: bool) -> Result<i64> {
    let sql = match postgres {
        true => "SELECT CAST(EXTRACT(EPOCH FROM now()) * 1000 AS BIGINT) AS now",
        false => "SELECT CAST(strftime('%s', 'now') AS INTEGER) * 1000 AS now",
    };
    Ok(connection.fetch_one(sql).await?.try_get("now")?)
}

/// Drops the indexes and returns the statements that create them again.
async fn take_off_indexes(connection: &mut AnyConnection, postgres: bool) -> Result<Vec<String>> {
    let sql = match postgres {
        true => {
            "SELECT CAST(indexname AS TEXT) AS name, indexdef AS made FROM pg_indexes \
             WHERE tablename IN ('request_log', 'ledger') AND indexname NOT LIKE '%_pkey' \
             AND schemaname = current_schema()"
        }
        false => {
            "SELECT name, sql AS made FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL \
             AND tbl_name IN ('request_log', 'ledger')"
        }
    };
    let rows = connection.fetch_all(sql).await?;
    let mut made = Vec::new();
    for row in rows {
        let name: String = row.try_get("name")?;
        // The index of a partitioned table is made for all its partitions.
        made.push(row.try_get::<String, _>("made")?.replace(" ON ONLY ", " ON "));
        run(connection, &format!("DROP INDEX {name}")).await?;
    }
    Ok(made)
}

/// How many days are summed; the gateway does that in a maintenance job.
pub async fn summed_days(url: &str) -> Result<i64> {
    let mut connection = AnyConnection::connect(url).await?;
    let count =
        connection.fetch_one("SELECT COUNT(*) AS n FROM summed_days").await?.try_get("n")?;
    connection.close().await?;
    Ok(count)
}

async fn look(connection: &mut AnyConnection, now: i64) -> Result<Filled> {
    let mut count = Vec::new();
    for table in ["hourly_sums", "hourly_users", "usage_totals", "request_log"] {
        let sql = format!("SELECT COUNT(*) AS n FROM {table}");
        count.push(connection.fetch_one(AssertSqlSafe(sql)).await?.try_get::<i64, _>("n")?);
    }
    let middle = "SELECT id, started_at, session_id FROM request_log \
                  WHERE started_at >= (SELECT (MIN(started_at) + MAX(started_at)) / 2 \
                  FROM request_log) ORDER BY started_at, id LIMIT 1";
    let middle = connection.fetch_one(middle).await?;
    let (id, started_at): (i64, i64) = (middle.try_get("id")?, middle.try_get("started_at")?);
    Ok(Filled {
        hourly_sums: count[0],
        hourly_users: count[1],
        totals: count[2],
        rows: count[3],
        session: middle.try_get("session_id")?,
        cursor: format!("{started_at}_{id}"),
        now,
    })
}
