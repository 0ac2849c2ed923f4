//! Migrations: applied once, by one process at a time, and refused if they do not fit.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, Row as _};
use tollgate::domain::clock::Timestamp;
use tollgate::domain::ids::{KeyId, UserId};
use tollgate::domain::money::NanoUsd;
use tollgate::domain::secret::Secret;
use tollgate::store::{Backend, GroupBy, SchemaError, SeriesAsk, Store, StoreError};

use super::{Place, on_both};

on_both!(
    a_second_migration_changes_nothing,
    processes_that_migrate_at_once_do_it_once,
    an_empty_database_is_behind,
    a_database_of_the_first_release_is_behind_and_is_brought_up_with_what_it_holds,
    a_newer_database_is_refused,
    half_migrated_databases_are_refused,
    ping_answers,
);

/// Where the migrations of a back end are.
fn folder(backend: Backend) -> PathBuf {
    let name = if backend == Backend::Sqlite { "sqlite" } else { "postgres" };
    Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations").join(name)
}

/// The names of all migrations, in order.
pub(super) fn names() -> Vec<String> {
    let files = std::fs::read_dir(folder(Backend::Sqlite)).unwrap();
    let mut names: Vec<String> = files
        .map(|file| file.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

fn version(name: &str) -> i64 {
    name.split('_').next().unwrap().parse().unwrap()
}

async fn a_second_migration_changes_nothing(place: Place) {
    let store = place.open().await;
    let applied = store.migrate().await.unwrap();
    assert_eq!(applied, names());
    store.check_schema().await.unwrap();
    assert!(store.migrate().await.unwrap().is_empty());
    assert!(place.open().await.migrate().await.unwrap().is_empty());
    place.open().await.check_schema().await.unwrap();
}

async fn processes_that_migrate_at_once_do_it_once(place: Place) {
    let stores = [place.open().await, place.open().await, place.open().await, place.open().await];
    let (a, b, c, d) = tokio::join!(
        stores[0].migrate(),
        stores[1].migrate(),
        stores[2].migrate(),
        stores[3].migrate()
    );
    let mut counts = [a, b, c, d].map(|applied| applied.unwrap().len());
    counts.sort_unstable();
    assert_eq!(counts, [0, 0, 0, names().len()]);
    stores[0].check_schema().await.unwrap();
}

async fn an_empty_database_is_behind(place: Place) {
    let error = place.open().await.check_schema().await.unwrap_err();
    let StoreError::Schema(SchemaError::Behind { missing }) = &error else { panic!("{error}") };
    assert_eq!(*missing, names());
    assert!(error.to_string().contains("tollgate migrate"), "{error}");
}

/// The migrations of the first release.
const FIRST: [&str; 2] = ["0001_configuration", "0002_accounting"];

/// Brings an empty database to the schema of an earlier version, by its migrations.
pub(super) async fn earlier(place: &Place, names: &[impl AsRef<str>]) {
    place
        .meddle(
            "CREATE TABLE schema_history (version BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL, \
             checksum TEXT NOT NULL, finished BIGINT NOT NULL, applied_at BIGINT NOT NULL)",
        )
        .await;
    for name in names {
        let name = name.as_ref();
        let file =
            std::fs::read_to_string(folder(place.backend).join(format!("{name}.sql"))).unwrap();
        let checksum: String =
            Sha256::digest(&file).iter().map(|byte| format!("{byte:02x}")).collect();
        place.meddle(&file).await;
        let version = version(name);
        place
            .meddle(&format!(
                "INSERT INTO schema_history VALUES ({version}, '{name}', '{checksum}', 1, 0)"
            ))
            .await;
    }
}

async fn a_database_of_the_first_release_is_behind_and_is_brought_up_with_what_it_holds(
    place: Place,
) {
    let store = place.open().await;
    earlier(&place, &FIRST).await;
    place
        .meddle(
            "INSERT INTO hourly_sums VALUES (0, 1, 2, 3, 'm', '/e', 200, 4, 1, 1, 10, 20, 30, \
             40, 50, 60, 700, 800), (3600000, 1, 2, 3, 'm', '/other', 200, 1, 0, 0, 1, 2, 3, \
             4, 5, 6, 7, 8), \
             (3600000, 9, 2, 3, 'n', '/e', 500, 1, 0, 0, 1, 2, 3, 4, 5, 6, 1000, 8)",
        )
        .await;
    let error = store.check_schema().await.unwrap_err();
    let behind = SchemaError::Behind { missing: names()[FIRST.len()..].to_vec() };
    assert!(matches!(&error, StoreError::Schema(found) if *found == behind), "{error}");
    assert_eq!(store.migrate().await.unwrap(), names()[FIRST.len()..]);
    store.check_schema().await.unwrap();

    let totals = store.key_totals(UserId(2), KeyId(1)).await.unwrap();
    let (requests, errors, cost) = (totals[0].requests, totals[0].errors, totals[0].cost);
    assert_eq!((totals.len(), requests, errors, cost), (1, 5, 1, NanoUsd(707)));
    assert_eq!((totals[0].cache_write_tokens, totals[0].cache_read_tokens), (77, 55));
    assert_eq!(store.models_asked_for(None).await.unwrap(), ["m", "n"]);
    let boundaries = vec![Timestamp(0), Timestamp(3_600_000), Timestamp(7_200_000)];
    let ask = SeriesAsk { scope: None, by: GroupBy::User, boundaries };
    let series = store.series(&ask).await.unwrap();
    assert_eq!(series[0].points, [(4, NanoUsd(700)), (2, NanoUsd(1_007))]);
}

async fn a_newer_database_is_refused(place: Place) {
    let store = place.ready().await;
    place.meddle("INSERT INTO schema_history VALUES (99, '0099_future', 'x', 1, 0)").await;
    for result in [store.check_schema().await, store.migrate().await.map(|_| ())] {
        let error = result.unwrap_err();
        let newer = SchemaError::Newer { found: 99, known: version(&names()[names().len() - 1]) };
        assert!(matches!(&error, StoreError::Schema(found) if *found == newer), "{error}");
    }
}

async fn half_migrated_databases_are_refused(place: Place) {
    let store = place.ready().await;
    let cases = [
        ("UPDATE schema_history SET finished = 0 WHERE version = 2", "not finished"),
        (
            "UPDATE schema_history SET finished = 1, checksum = 'x' WHERE version = 2",
            "another content",
        ),
        (
            "DELETE FROM schema_history WHERE version > 1; UPDATE schema_history SET version = -1",
            "does not have",
        ),
        ("DROP TABLE schema_history", "no record of migrations"),
    ];
    for (meddling, why) in cases {
        place.meddle(meddling).await;
        for result in [store.check_schema().await, store.migrate().await.map(|_| ())] {
            let error = result.unwrap_err();
            assert!(
                matches!(&error, StoreError::Schema(SchemaError::HalfMigrated { .. })),
                "{meddling}: {error}"
            );
            assert!(error.to_string().contains(why), "{meddling}: {error}");
        }
    }
}

async fn ping_answers(place: Place) {
    place.open().await.ping().await.unwrap();
}

/// An index takes minutes on a large log. Roles and databases often have a bound for statements.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bound_of_the_server_for_statements_does_not_end_a_migration() {
    let place = Place::new(Backend::Postgres);
    earlier(&place, &names()[..names().len() - 2]).await;
    let database = database_of(place.url.expose());
    place.meddle(&format!("ALTER DATABASE {database} SET statement_timeout = '500ms'")).await;
    // Of two nodes that start, one waits for a writer and the other for the first node.
    let mut writer = PgConnection::connect(place.url.expose()).await.unwrap();
    writer.execute("BEGIN; LOCK TABLE request_log IN ROW EXCLUSIVE MODE").await.unwrap();
    let nodes = [place.open().await, place.open().await];
    let waits = async {
        let place = Place::new(Backend::Postgres);
        let mut look = PgConnection::connect(place.url.expose()).await.unwrap();
        let sql = format!(
            "SELECT COUNT(*) >= 2 FROM pg_stat_activity WHERE datname = '{database}' \
             AND wait_event_type = 'Lock' AND now() - query_start > '700ms'"
        );
        let began = std::time::Instant::now();
        while !look.fetch_one(AssertSqlSafe(sql.clone())).await.unwrap().get::<bool, _>(0) {
            assert!(began.elapsed().as_secs() < 60, "both wait");
        }
        writer.execute("COMMIT").await.unwrap();
    };
    let node = |at: usize| Box::pin(nodes[at].migrate());
    let waited = async {
        waits.await;
        Ok(())
    };
    let (one, other, ()) = tokio::try_join!(node(0), node(1), waited).unwrap();
    let mut counts = [one.len(), other.len()];
    counts.sort_unstable();
    assert_eq!(counts, [0, 2]);
}

#[tokio::test]
async fn a_migration_that_was_left_out_is_half_migrated() {
    let place = Place::new(Backend::Sqlite);
    let store = place.ready().await;
    place.meddle("DELETE FROM schema_history WHERE version = 1").await;
    let error = store.check_schema().await.unwrap_err();
    assert!(error.to_string().contains("left out"), "{error}");
}

#[tokio::test]
async fn what_cannot_be_reached_says_so_without_its_password() {
    let absent =
        crate::support::postgres::url_of("absent").replacen("postgres@", "postgres:hunter2@", 1);
    let urls = [
        absent.as_str(),
        "postgres://someone:hunter2@localhost/x?host=/nonexistent/socket",
        "postgres://someone:hunter2@localhost:notaport/x",
        "mysql://someone:hunter2@localhost/x",
        "hunter2",
    ];
    for url in urls {
        let error = Store::open_postgres(&Secret::new(url), 2).await.unwrap_err();
        let text = format!("{error} {error:?}");
        assert!(matches!(error, StoreError::Unreachable { .. }), "{text}");
        assert!(!text.contains("hunter2") && !text.contains("someone"), "{text}");
    }
}

#[tokio::test]
async fn a_folder_that_is_a_file_and_a_file_that_is_no_database_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let error = Store::open_sqlite(&file).await.unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
    std::fs::write(
        dir.path().join("tollgate.db"),
        "this is no database, but long enough to have a header".repeat(99),
    )
    .unwrap();
    let error = Store::open_sqlite(dir.path()).await.unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
}

#[tokio::test]
async fn a_folder_with_an_awkward_name_works() {
    let dir = tempfile::tempdir().unwrap();
    let awkward = dir.path().join("ü ?x=1#%41&mode=ro");
    let store = Store::open_sqlite(&awkward).await.unwrap();
    store.migrate().await.unwrap();
    assert!(awkward.join("tollgate.db").is_file());
}

#[tokio::test]
async fn a_database_that_goes_away_is_unreachable_and_is_found_again() {
    let url = crate::support::postgres::fresh_database();
    let store = Store::open_postgres(&Secret::new(url.as_str()), 2).await.unwrap();
    store.migrate().await.unwrap();
    let (name, elsewhere) = (database_of(&url), Place::new(Backend::Postgres));
    let others = format!(
        "SELECT CAST(pg_terminate_backend(pid) AS TEXT) FROM pg_stat_activity \
         WHERE datname = '{name}'"
    );

    elsewhere.meddle(&format!("ALTER DATABASE {name} ALLOW_CONNECTIONS false")).await;
    elsewhere.meddle(&others).await;
    let error = store.ping().await.unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error:?}");
    elsewhere.meddle(&format!("ALTER DATABASE {name} ALLOW_CONNECTIONS true")).await;
    store.ping().await.unwrap();
    store.check_schema().await.unwrap();
}

fn database_of(url: &str) -> &str {
    url.rsplit('/')
        .find(|part| part.starts_with("test_"))
        .and_then(|part| part.split('?').next())
        .unwrap()
}
