//! PostgreSQL's partitions by month: every row has a place, tables of earlier versions are
//! converted beside their writers, and the clean-up drops whole months.

use std::time::{Duration, Instant};

use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, Row};
use tollgate::domain::clock::{Clock, SystemClock, Timestamp};
use tollgate::domain::ids::{KeyId, ProviderId, RequestId, UserId};
use tollgate::domain::record::Record;
use tollgate::store::transfer::{Source, Target};
use tollgate::store::{
    Backend, GroupBy, LogFilter, LogPage, LogPageAsk, Series, SeriesAsk, SpendTotal, Store,
    StoreError,
};

use super::Place;
use super::make::{full_record, varied_record};
use super::schema::{earlier, names};

pub(super) const DAY: i64 = 86_400_000;

/// A record with an id of its time.
pub(super) fn at(time: Timestamp, n: u64) -> Record {
    let mut random = [0x55; 10];
    random[2..].copy_from_slice(&n.to_be_bytes());
    let ms = u64::try_from(time.0).unwrap();
    let id = uuid::Builder::from_unix_timestamp_millis(ms, &random).into_uuid();
    let decisions = full_record().decisions;
    Record { request_id: RequestId(id), started_at: time, decisions, ..varied_record(n) }
}

/// Noon on a day of a month.
fn noon(year: i32, month: u32, day: u32) -> Timestamp {
    let date = chrono::NaiveDate::from_ymd_opt(year, month, day).unwrap();
    Timestamp(date.and_hms_opt(12, 0, 0).unwrap().and_utc().timestamp_millis())
}

/// `2026_11`, some months after that of a time.
fn month(time: Timestamp, later: u32) -> String {
    let date = time.to_utc().date_naive();
    let date = date.checked_add_months(chrono::Months::new(later)).unwrap();
    date.format("%Y_%m").to_string()
}

async fn connect(place: &Place) -> PgConnection {
    PgConnection::connect(place.url.expose()).await.unwrap()
}

/// The partitions of a table and the rows of each, by name without the table's.
async fn parts(place: &Place, table: &str) -> Vec<(String, i64)> {
    let mut connection = connect(place).await;
    let sql = format!(
        "SELECT CAST(relname AS TEXT) FROM pg_inherits JOIN pg_class ON oid = inhrelid \
         WHERE inhparent = CAST('{table}' AS REGCLASS) ORDER BY 1"
    );
    let mut found = Vec::new();
    for row in connection.fetch_all(AssertSqlSafe(sql)).await.unwrap() {
        let name: String = row.get(0);
        let sql = AssertSqlSafe(format!("SELECT COUNT(*) FROM {name}"));
        let rows = connection.fetch_one(sql).await.unwrap().get(0);
        found.push((name.strip_prefix(&format!("{table}_")).unwrap().to_owned(), rows));
    }
    found
}

fn named(parts: &[(&str, i64)]) -> Vec<(String, i64)> {
    parts.iter().map(|(name, rows)| ((*name).to_owned(), *rows)).collect()
}

async fn all(store: &Store) -> LogPage {
    let ask = LogPageAsk { page: 1, page_size: 5_000, cursor: None };
    store.usage_logs(&LogFilter::default(), &ask).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_any_time_have_a_place_and_go_to_their_month_when_it_has_one() {
    let place = Place::new(Backend::Postgres);
    let store = place.ready().await;
    let now = SystemClock.now();
    let (this, next) = (month(now, 0), month(now, 1));
    let empty = named(&[(&this, 0), (&next, 0), ("other", 0)]);
    for table in ["request_log", "ledger"] {
        assert_eq!(parts(&place, table).await, empty, "{table}");
    }
    let far = noon(2080, 2, 29);
    let times = [noon(1970, 1, 1), now.plus_ms(-800 * DAY), now, now.plus_ms(40 * DAY), far];
    let records: Vec<Record> = times.iter().zip(0..).map(|(&time, n)| at(time, n)).collect();
    assert_eq!(store.append_records(&records).await.unwrap(), 5);
    assert_eq!(store.append_records(&records).await.unwrap(), 0, "each counts once");
    assert_eq!(all(&store).await.total, 5);
    // The clock steps to where one row is, with the partitions of that time missing.
    let other = |parts: Vec<(String, i64)>| parts.into_iter().find(|(name, _)| name == "other");
    let before = other(parts(&place, "ledger").await).unwrap().1;
    assert!(before >= 3, "{before}");
    store.keep_partitions(far).await.unwrap();
    for table in ["request_log", "ledger"] {
        let found = parts(&place, table).await;
        assert_eq!(other(found.clone()).unwrap().1, before - 1, "{table}");
        assert!(found.contains(&("2080_02".to_owned(), 1)), "{found:?}");
        assert!(found.contains(&("2080_03".to_owned(), 0)), "{found:?}");
    }
    assert_eq!(store.append_records(&records).await.unwrap(), 0, "each still counts once");
    let page = all(&store).await;
    assert_eq!((page.total, page.rows.len()), (5, 5));
    for record in &records {
        assert!(store.usage_log(record.request_id).await.unwrap().is_some());
    }
    assert_eq!(store.keep_partitions(far).await.unwrap(), Default::default(), "nothing is missing");
}

/// What the reports show of everything.
async fn reports(store: &Store) -> (LogPage, Vec<LogPage>, Vec<SpendTotal>, Vec<Series>) {
    let page = |filter, cursor| async move {
        let ask = LogPageAsk { page: 1, page_size: 40, cursor };
        store.usage_logs(&filter, &ask).await.unwrap()
    };
    let first = page(LogFilter::default(), None).await;
    let mut more = vec![page(LogFilter::default(), first.next_cursor.clone()).await];
    for filter in [
        LogFilter { user_id: Some(UserId(1)), ..LogFilter::default() },
        LogFilter { session_id: Some("s3".to_owned()), ..LogFilter::default() },
        LogFilter { provider_id: Some(ProviderId(2)), ..LogFilter::default() },
        LogFilter { key_id: Some(KeyId(2)), exclude_status_200: true, ..LogFilter::default() },
    ] {
        more.push(page(filter, None).await);
    }
    let boundaries = (0..20).map(|n| noon(2024, 1, 1).plus_ms(n * 60 * DAY)).collect();
    let ask = SeriesAsk { scope: None, by: GroupBy::Model, boundaries };
    let totals = store.spend_totals().await.unwrap();
    (first, more, totals, store.series(&ask).await.unwrap())
}

/// What a program from before the partitions writes with.
const EARLIER: &str = "WITH written AS (INSERT INTO request_log (request_id, started_at, \
    client_format, endpoint, model, streamed, status_code, outcome, input_tokens, output_tokens, \
    cache_write_5m_tokens, cache_write_1h_tokens, cache_read_tokens, reasoning_tokens, \
    image_input_tokens, image_output_tokens, cost, cost_multiplier, estimated, duration_ms, \
    overhead_us, attempts, decisions) VALUES ($1, $2, 'native', '/v1/messages', 'm', 0, 200, \
    'completed', 1, 1, 0, 0, 0, 0, 0, 0, 5, '1', 0, 1, 1, 1, '[]') RETURNING *) INSERT INTO \
    ledger (request_id, started_at, model, endpoint, status_code, outcome, input_tokens, \
    output_tokens, cache_write_5m_tokens, cache_write_1h_tokens, cache_read_tokens, \
    reasoning_tokens, image_input_tokens, image_output_tokens, cost, cost_multiplier, estimated, \
    duration_ms) SELECT request_id, started_at, model, endpoint, status_code, outcome, \
    input_tokens, output_tokens, cache_write_5m_tokens, cache_write_1h_tokens, cache_read_tokens, \
    reasoning_tokens, image_input_tokens, image_output_tokens, cost, cost_multiplier, estimated, \
    duration_ms FROM written ON CONFLICT (request_id) DO NOTHING";

/// The migrations from the one of the partitions on.
fn since_partitions() -> Vec<String> {
    names().into_iter().skip_while(|name| name != "0020_partitions").collect()
}

/// A database of the version before, with two records a day until a time.
pub(super) async fn filled(
    place: &Place,
    from: Timestamp,
    until: Timestamp,
) -> (Store, Vec<Record>) {
    let names = names();
    earlier(place, &names[..names.len() - since_partitions().len()]).await;
    // What today's writer needs besides.
    let column = "ALTER TABLE request_log ADD COLUMN admitted_ms BIGINT";
    connect(place).await.execute(column).await.unwrap();
    let store = place.open().await;
    let times = (0..).map(|n| from.plus_ms(n * DAY / 2)).take_while(|time| *time <= until);
    let records: Vec<Record> = times.zip(0..).map(|(time, n)| at(time, n)).collect();
    for some in records.chunks(400) {
        assert_eq!(store.append_records(some).await.unwrap(), some.len() as u64);
    }
    (store, records)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_of_an_earlier_version_gets_partitions_and_keeps_its_rows_and_its_writers() {
    let place = Place::new(Backend::Postgres);
    let now = SystemClock.now();
    let (old, records) = filled(&place, now.plus_ms(-500 * DAY), now).await;
    place
        .meddle("CREATE ROLE reader_of_partitions; GRANT SELECT ON ledger TO reader_of_partitions")
        .await;
    let before = reports(&old).await;
    assert_eq!(before.0.total, records.len() as u64);
    // A program of the earlier version: its statement is prepared before, and used after.
    let mut earlier = connect(&place).await;
    let write = async |connection: &mut PgConnection, record: &Record| {
        sqlx::query(EARLIER)
            .bind(record.request_id.0.as_bytes().to_vec())
            .bind(record.started_at.0)
            .execute(connection)
            .await
            .unwrap()
            .rows_affected()
    };
    assert_eq!(write(&mut earlier, &at(now.plus_ms(1), 1_000_001)).await, 1);
    let before_write = reports(&old).await;

    let store = place.open().await;
    assert_eq!(store.migrate().await.unwrap(), since_partitions());
    store.check_schema().await.unwrap();
    assert_eq!(reports(&store).await, before_write);
    for table in ["request_log", "ledger"] {
        let found = parts(&place, table).await;
        let (old, rows) = found.last().unwrap();
        assert!(old.starts_with("until_"), "{found:?}");
        assert_eq!(*rows, i64::try_from(records.len()).unwrap() + 1, "{table}");
    }
    assert_eq!(write(&mut earlier, &at(now.plus_ms(2), 1_000_002)).await, 1);
    assert_eq!(write(&mut earlier, &at(now.plus_ms(2), 1_000_002)).await, 0, "counts once");
    assert_eq!(old.append_records(&records[..50]).await.unwrap(), 0, "known by their ids");
    // Row numbers go on above the highest.
    let later = at(now.plus_ms(70 * DAY), 1_000_003);
    assert_eq!(store.append_records(std::slice::from_ref(&later)).await.unwrap(), 1);
    let newest = all(&store).await.rows.swap_remove(0);
    assert_eq!(newest.record.request_id, later.request_id);
    assert!(newest.id > i64::try_from(records.len()).unwrap(), "{}", newest.id);
    // Every index of the old table is one of the new.
    let sql = "SELECT COUNT(*) FROM pg_index AS i JOIN pg_class AS t ON t.oid = i.indrelid \
               WHERE t.relname LIKE '%\\_until\\_%' AND NOT EXISTS (SELECT 1 FROM pg_inherits \
               WHERE inhrelid = i.indexrelid)";
    let left: i64 = earlier.fetch_one(sql).await.unwrap().get(0);
    assert_eq!(left, 1, "only the primary key by row number, which partitions cannot share");
    let sql = "SELECT has_table_privilege('reader_of_partitions', 'ledger', 'SELECT')";
    assert!(earlier.fetch_one(sql).await.unwrap().get::<bool, _>(0), "grants are kept");
    place.meddle("DROP OWNED BY reader_of_partitions; DROP ROLE reader_of_partitions").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_table_is_converted_beside_its_writers_and_waits_for_a_long_report() {
    let place = Place::new(Backend::Postgres);
    let now = SystemClock.now();
    let (store, records) = filled(&place, now.plus_ms(-100 * DAY), now).await;
    // A report that takes long: the conversion gives up in time, and leaves the check for later.
    let mut report = connect(&place).await;
    let mut tx = report.begin().await.unwrap();
    tx.execute("SELECT COUNT(*) FROM request_log").await.unwrap();
    let began = Instant::now();
    let (kept, slowest) = tokio::join!(store.keep_partitions(now), async {
        let mut slowest = Duration::ZERO;
        for n in 0..20 {
            let began = Instant::now();
            let record = at(now.plus_ms(-n), 2_000_000 + u64::try_from(n).unwrap());
            assert_eq!(store.append_records(&[record]).await.unwrap(), 1);
            slowest = slowest.max(began.elapsed());
        }
        slowest
    });
    assert!(matches!(kept, Err(StoreError::Busy { .. })), "{kept:?}");
    assert!(began.elapsed() < Duration::from_secs(10) && slowest < Duration::from_secs(5));
    tx.commit().await.unwrap();

    let (kept, written) = tokio::join!(store.keep_partitions(now), async {
        let mut written = 0;
        for n in 20..220 {
            let record = at(now.plus_ms(-n), 2_000_000 + u64::try_from(n).unwrap());
            written += store.append_records(&[record]).await.unwrap();
        }
        written
    });
    assert_eq!(kept.unwrap().converted, ["request_log"], "the ledger did not wait for the report");
    assert_eq!(written, 200);
    let expected = records.len() as u64 + 220;
    assert_eq!(all(&store).await.total, expected);
    for table in ["request_log", "ledger"] {
        let found = parts(&place, table).await;
        assert_eq!(found.iter().map(|(_, rows)| *rows).sum::<i64>(), expected as i64, "{found:?}");
    }
    let mut connection = connect(&place).await;
    let sql = "SELECT COUNT(*) FROM pg_constraint WHERE contype = 'c' \
               AND conname LIKE '%\\_until\\_%'";
    let checks: i64 = connection.fetch_one(sql).await.unwrap().get(0);
    assert_eq!(checks, 0, "the check is dropped once the range says the same");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retention_drops_whole_months_and_deletes_only_in_the_month_that_it_cuts() {
    let place = Place::new(Backend::Postgres);
    let store = place.ready().await;
    let now = SystemClock.now();
    for time in [noon(2026, 3, 1), noon(2026, 4, 1), noon(2026, 5, 1)] {
        store.keep_partitions(time).await.unwrap();
    }
    let times = (0..120).map(|n| noon(2026, 3, 1).plus_ms(n * DAY)).chain([now, noon(1970, 1, 1)]);
    let records: Vec<Record> = times.zip(0..).map(|(time, n)| at(time, n)).collect();
    assert_eq!(store.append_records(&records).await.unwrap(), 122);
    let cutoff = noon(2026, 5, 11);
    let stays = records.iter().filter(|record| record.started_at >= cutoff).count();
    let mut removed = Vec::new();
    loop {
        match store.prune_requests(cutoff, 6).await.unwrap() {
            0 => break,
            some => removed.push(some),
        }
    }
    // March and April at once, with the first rows of May and the one of 1970.
    assert_eq!(removed, [31 + 30 + 6, 5]);
    let found = parts(&place, "request_log").await;
    let (this, next) = (month(now, 0), month(now, 1));
    let left = [("2026_05", 21), ("2026_06", 28), (&this, 1), (&next, 0), ("other", 0)];
    assert_eq!(found, named(&left));
    assert_eq!(all(&store).await.total, stays as u64);
    let ledger = parts(&place, "ledger").await;
    assert_eq!(ledger.iter().map(|(_, rows)| *rows).sum::<i64>(), 122, "the ledger keeps all");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_table_of_an_earlier_version_is_dropped_when_its_last_row_has_expired() {
    let place = Place::new(Backend::Postgres);
    let now = SystemClock.now();
    let (store, records) = filled(&place, now.plus_ms(-100 * DAY), now).await;
    store.migrate().await.unwrap();
    // Rows of a part of it go in batches, all of it at once.
    let part = records.iter().filter(|r| r.started_at < now.plus_ms(-30 * DAY)).count();
    assert_eq!(store.prune_requests(now.plus_ms(-30 * DAY), 1_000).await.unwrap(), part as u64);
    let later = now.plus_ms(70 * DAY);
    store.keep_partitions(later).await.unwrap();
    assert_eq!(store.append_records(&[at(later, 5_000)]).await.unwrap(), 1);
    let left = (records.len() - part) as u64;
    assert_eq!(store.prune_requests(later.plus_ms(-DAY), 1).await.unwrap(), left);
    assert_eq!(all(&store).await.total, 1);
    let found = parts(&place, "request_log").await;
    assert!(found.iter().all(|(name, _)| !name.starts_with("until_")), "{found:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_from_sqlite_makes_the_months_of_its_rows() {
    let place = Place::new(Backend::Sqlite);
    let store = place.ready().await;
    let now = SystemClock.now();
    let times = [now.plus_ms(-400 * DAY), now.plus_ms(-100 * DAY), now, noon(1970, 1, 1)];
    let records: Vec<Record> = times.iter().zip(0..).map(|(&time, n)| at(time, n)).collect();
    assert_eq!(store.append_records(&records).await.unwrap(), 4);
    let source = Source::held(&store).await.unwrap();
    let figures = source.figures().await.unwrap();
    let to = Place::new(Backend::Postgres);
    let mut target = Target::connect(&to.url).await.unwrap();
    target.begin(&source, &figures, "the source").await.unwrap();
    let mut names = vec![month(times[0], 0), month(times[1], 0), month(now, 0), month(now, 1)];
    names.push("other".to_owned());
    for table in ["request_log", "ledger"] {
        let found: Vec<String> =
            parts(&to, table).await.into_iter().map(|(name, _)| name).collect();
        assert_eq!(found, names, "{table}");
    }
    target.close().await;
}
