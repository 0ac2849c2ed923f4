//! `tollgate move` through the built binary: a gateway's SQLite database to PostgreSQL, complete,
//! interrupted and refused.

mod interrupted;
mod refused;
mod whole;

use std::cell::Cell;
use std::process::{Child, Output, Stdio};

use serde_json::json;
use sqlx::{Connection, Row};

use crate::proxy::fixture::Fixture;
use crate::support::postgres;
use crate::support::wait;

/// A gateway on SQLite with a provider, a key and some requests, and an empty PostgreSQL database.
pub struct Bed {
    pub fixture: Fixture,
    pub target: String,
}

impl Bed {
    /// With requests of 2 000 micro-USD each.
    pub async fn start(env: &[(&str, &str)], requests: usize) -> Self {
        let fixture = Fixture::native_with(env).await;
        fixture.upstream.default(json!({"usage": {"input": 1000, "output": 500}})).await;
        let bed = Self { fixture, target: postgres::fresh_database() };
        for _ in 0..requests {
            assert_eq!(bed.fixture.ask().send().await.unwrap().status(), 200);
        }
        bed
    }

    /// Stops the gateway cleanly.
    pub async fn stop(&mut self) {
        self.fixture.gateway.signal("TERM");
        self.fixture.gateway.ended().await;
    }

    /// Starts it on PostgreSQL.
    pub async fn start_on_target(&mut self) {
        let target = self.target.clone();
        self.fixture.gateway.set("DATABASE_URL", &target);
        self.fixture.gateway.spawn();
        self.fixture.gateway.ready().await;
    }

    /// `tollgate move` to the target: its exit code, and its output.
    pub fn moved(&self) -> (Option<i32>, String) {
        self.command(&["move", "--to", &self.target])
    }

    /// The move, which must succeed.
    pub fn done(&self) -> String {
        let (code, said) = self.moved();
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("all counts and sums are the same on both sides"), "{said}");
        said
    }

    pub fn command(&self, arguments: &[&str]) -> (Option<i32>, String) {
        exit_and_output(&self.fixture.gateway.command(arguments).output().unwrap())
    }

    /// The move as its own process.
    pub fn begin(&self) -> Child {
        let mut command = self.fixture.gateway.command(&["move", "--to", &self.target]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    pub fn sqlite(&self) -> String {
        format!("sqlite:{}/data/tollgate.db", self.fixture.gateway.dir.path().display())
    }

    /// Both databases have the same content, value by value.
    pub async fn assert_same(&self) {
        let (here, there) = (everything(&self.sqlite()).await, everything(&self.target).await);
        assert!(here.len() >= 20, "{} tables", here.len());
        for (here, there) in here.iter().zip(&there) {
            assert_eq!(here.0, there.0);
            assert_eq!(here.1.len(), there.1.len(), "rows of {}", here.0);
            for (here, there) in here.1.iter().zip(&there.1) {
                assert_eq!(here, there);
            }
        }
        assert_eq!(here.len(), there.len(), "the mark of the move is gone");
    }

    /// Rows enough for many batches, in the tables that grow: the ledger gets so many, of which the
    /// log still has half.
    pub async fn fill(&self, rows: usize) {
        let half = rows / 2;
        let up = format!(
            "(WITH RECURSIVE up (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up WHERE n < {rows}) \
             SELECT n FROM up)"
        );
        let same = "n * 1000, n % 100, n % 50, n % 6, 'm' || (n % 12)";
        let tokens = "200, 'completed', n, 2 * n, 0, 0, 3, 4, 0, 0, CASE WHEN n % 7 = 0 THEN NULL \
            ELSE n * 1001 END, '1', 0, 5";
        run(
            &self.sqlite(),
            &format!(
                "INSERT INTO ledger_archive (request_id, started_at, key_id, user_id, provider_id, model, \
                 endpoint, status_code, outcome, input_tokens, output_tokens, \
                 cache_write_5m_tokens, cache_write_1h_tokens, cache_read_tokens, \
                 reasoning_tokens, image_input_tokens, image_output_tokens, cost, \
                 cost_multiplier, estimated, duration_ms) SELECT randomblob(16), {same}, '/v1/e', \
                 {tokens} FROM {up} WHERE n <= {half}; \
                 INSERT INTO request_log (request_id, started_at, key_id, user_id, provider_id, \
                 model, endpoint, status_code, outcome, input_tokens, output_tokens, \
                 cache_write_5m_tokens, cache_write_1h_tokens, cache_read_tokens, \
                 reasoning_tokens, image_input_tokens, image_output_tokens, cost, \
                 cost_multiplier, estimated, duration_ms, client_format, streamed, overhead_us, \
                 attempts, decisions, error_message) SELECT randomblob(16), {same}, '/v1/e', \
                 {tokens}, 'native', 0, 1, 1, '[]', CASE WHEN n % 9 = 0 THEN 'naïve ☃ ' || n \
                 ELSE NULL END FROM {up} WHERE n > {half}; \
                 INSERT INTO hourly_sums SELECT n / 3600 * 3600000, n % 100, n % 50, n % 6, \
                 'm' || n, '/v1/e', 200, 1, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8 FROM {up}"
            ),
        )
        .await;
    }
}

fn exit_and_output(output: &Output) -> (Option<i32>, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

pub async fn connect(url: &str) -> sqlx::AnyConnection {
    sqlx::any::install_default_drivers();
    sqlx::AnyConnection::connect(url).await.unwrap()
}

pub async fn run(url: &str, sql: &str) {
    let mut connection = connect(url).await;
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

/// The first column of all rows, as text.
pub async fn texts(url: &str, sql: &str) -> Vec<String> {
    let mut connection = connect(url).await;
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql)).fetch_all(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

pub async fn one(url: &str, sql: &str) -> String {
    texts(url, sql).await.remove(0)
}

/// Waits until a query returns the expected value.
pub async fn shows(url: &str, sql: &str, wanted: &str) {
    let mut connection = connect(url).await;
    let last = Cell::default();
    wait::until(
        || format!("{sql}: {:?}, not {wanted}", last.take()),
        async || {
            // Its table may not be there yet.
            let found = sqlx::query(sqlx::AssertSqlSafe(sql)).fetch_optional(&mut connection).await;
            let found = found.ok().flatten().map(|row| row.get::<String, _>(0));
            let is_so = found.as_deref() == Some(wanted);
            last.set(found);
            is_so
        },
    )
    .await;
}

/// The tables in a database's catalogue, except the migrations' own. SQLite's ledger is a view, and
/// its archive is a part of it.
pub async fn tables(url: &str) -> Vec<String> {
    let sql = if url.starts_with("sqlite") {
        "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') \
         AND name <> 'ledger_archive' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    } else {
        "SELECT CAST(relname AS TEXT) FROM pg_class WHERE relnamespace = CAST('public' AS \
         REGNAMESPACE) AND relkind IN ('r', 'p') AND NOT relispartition"
    };
    let mut found = texts(url, sql).await;
    found.retain(|name| name != "_sqlx_migrations");
    found.sort();
    found
}

/// Every row of every table as one text, sorted.
async fn everything(url: &str) -> Vec<(String, Vec<String>)> {
    let mut all = Vec::new();
    for table in tables(url).await {
        // From the embedded database on both sides, whose names are the same: text, numbers and
        // bytes in hexadecimal.
        let (about, hex) = if url.starts_with("sqlite") {
            (
                format!(
                    "SELECT name || ' ' || type FROM pragma_table_info('{table}') ORDER BY name"
                ),
                "lower(hex(@))",
            )
        } else {
            let about = format!(
                "SELECT CAST(column_name || ' ' || CASE data_type WHEN 'bytea' THEN 'BLOB' ELSE '' END AS TEXT) FROM \
                 information_schema.columns WHERE table_name = '{table}' ORDER BY column_name COLLATE \"C\""
            );
            (about, "encode(@, 'hex')")
        };
        let mut parts = Vec::new();
        for column in texts(url, &about).await {
            let (name, kind) = column.split_once(' ').unwrap();
            let name = format!("\"{name}\"");
            let value = if kind == "BLOB" {
                hex.replace('@', &name)
            } else {
                format!("CAST({name} AS TEXT)")
            };
            parts.push(format!("COALESCE({value}, 'null')"));
        }
        let mut rows =
            texts(url, &format!("SELECT {} FROM {table}", parts.join(" || '|' || "))).await;
        rows.sort();
        all.push((table, rows));
    }
    all
}
