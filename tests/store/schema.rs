//! Migrations: applied once, by one process at a time, and refused if they do not fit.

use std::path::Path;

use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, Row as _};
use tollgate::domain::secret::Secret;
use tollgate::store::{Backend, SchemaError, Store, StoreError};

use super::{Place, on_both};

on_both!(
    a_second_migration_changes_nothing,
    processes_that_migrate_at_once_do_it_once,
    an_empty_database_is_behind,
    a_newer_database_is_refused,
    half_migrated_databases_are_refused,
    ping_answers,
);

/// The names of all migrations, in order.
fn names() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations/sqlite");
    let files = std::fs::read_dir(folder).unwrap();
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

async fn a_newer_database_is_refused(place: Place) {
    let store = place.ready().await;
    place
        .meddle(
            "INSERT INTO _sqlx_migrations (version, description, success, checksum, \
             execution_time) SELECT 99, '0099_future', TRUE, checksum, 0 FROM _sqlx_migrations \
             WHERE version = 1",
        )
        .await;
    for result in [store.check_schema().await, store.migrate().await.map(|_| ())] {
        let error = result.unwrap_err();
        let newer = SchemaError::Newer { found: 99, known: version(&names()[names().len() - 1]) };
        assert!(matches!(&error, StoreError::Schema(found) if *found == newer), "{error}");
    }
}

async fn half_migrated_databases_are_refused(place: Place) {
    let store = place.ready().await;
    let cases = [
        ("UPDATE _sqlx_migrations SET success = FALSE WHERE version = 1", "not finished"),
        (
            "UPDATE _sqlx_migrations SET success = TRUE, checksum = substr(checksum, 2) \
             WHERE version = 1",
            "another content",
        ),
        ("UPDATE _sqlx_migrations SET version = -1 WHERE version = 1", "does not have"),
        ("DROP TABLE _sqlx_migrations", "no record of migrations"),
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

/// A migration may take minutes on a large log, and other nodes wait for it. Roles and databases
/// often have a bound for statements.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bound_of_the_server_for_statements_does_not_end_a_migration() {
    let place = Place::new(Backend::Postgres);
    let database = database_of(place.url.expose());
    place.meddle(&format!("ALTER DATABASE {database} SET statement_timeout = '500ms'")).await;
    // Two nodes start, and wait for one that migrates.
    let mut first = PgConnection::connect(place.url.expose()).await.unwrap();
    first.execute("BEGIN; SELECT pg_advisory_xact_lock(7215836401)").await.unwrap();
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
        first.execute("COMMIT").await.unwrap();
    };
    let node = |at: usize| Box::pin(nodes[at].migrate());
    let waited = async {
        waits.await;
        Ok(())
    };
    let (one, other, ()) = tokio::try_join!(node(0), node(1), waited).unwrap();
    let mut counts = [one.len(), other.len()];
    counts.sort_unstable();
    assert_eq!(counts, [0, names().len()]);
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
        "this is not a database, but long enough to have a header".repeat(99),
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
