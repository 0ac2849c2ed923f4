//! PostgreSQL's partitions by month: every row has a place, and the clean-up drops whole months.

use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, Row};
use tollgate::domain::clock::{Clock, SystemClock, Timestamp};
use tollgate::domain::ids::RequestId;
use tollgate::domain::record::Record;
use tollgate::store::transfer::{TransferSource, TransferTarget};
use tollgate::store::{Backend, LogFilter, LogPage, LogPageAsk, Store, StoreError};

use super::Place;
use super::make::{full_record, varied_record};

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
    assert!(store.keep_partitions(far).await.unwrap().is_empty(), "nothing is missing");
}

/// A report that takes long holds a table: the partition waits for the next look, writers do not
/// wait for long, and the other table gets its partitions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_report_delays_a_partition_and_no_writer() {
    let place = Place::new(Backend::Postgres);
    let store = place.ready().await;
    let now = SystemClock.now();
    let later = now.plus_ms(70 * DAY);
    // Its rows are in the default partition, which the report holds.
    assert_eq!(store.append_records(&[at(later, 1)]).await.unwrap(), 1);
    let mut report = connect(&place).await;
    let mut tx = report.begin().await.unwrap();
    tx.execute("SELECT COUNT(*) FROM request_log").await.unwrap();
    let began = std::time::Instant::now();
    let (kept, written) = tokio::join!(store.keep_partitions(later), async {
        let mut written = 0;
        for n in 0..20 {
            written += store.append_records(&[at(now, 2_000_000 + n)]).await.unwrap();
        }
        written
    });
    assert!(matches!(kept, Err(StoreError::Busy { .. })), "{kept:?}");
    assert_eq!(written, 20);
    assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
    let name = month(later, 0);
    let has = async |table: &str| parts(&place, table).await.iter().any(|part| part.0 == name);
    assert!(has("ledger").await && !has("request_log").await);
    tx.commit().await.unwrap();
    store.keep_partitions(later).await.unwrap();
    assert!(has("request_log").await);
    assert_eq!(all(&store).await.total, 21);
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
async fn a_move_from_sqlite_makes_the_months_of_its_rows() {
    let place = Place::new(Backend::Sqlite);
    let store = place.ready().await;
    let now = SystemClock.now();
    let times = [now.plus_ms(-400 * DAY), now.plus_ms(-100 * DAY), now, noon(1970, 1, 1)];
    let records: Vec<Record> = times.iter().zip(0..).map(|(&time, n)| at(time, n)).collect();
    assert_eq!(store.append_records(&records).await.unwrap(), 4);
    let source = TransferSource::held(&store).await.unwrap();
    let figures = source.figures().await.unwrap();
    let to = Place::new(Backend::Postgres);
    let mut target = TransferTarget::connect(&to.url).await.unwrap();
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
