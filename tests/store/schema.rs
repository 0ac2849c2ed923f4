//! Migrations: applied once, by one process at a time, and refused where they do not fit.

use tollgate::domain::secret::Secret;
use tollgate::store::{Backend, SchemaError, Store, StoreError};

use super::{Place, on_both};

on_both!(
    a_second_migration_changes_nothing,
    processes_that_migrate_at_once_do_it_once,
    an_empty_database_is_behind,
    a_database_of_an_older_program_is_behind_and_is_brought_up,
    a_newer_database_is_refused,
    half_migrated_databases_are_refused,
    ping_answers,
);

/// The files of a back end, by name, oldest first: what a database must have gone through.
fn files(backend: Backend) -> Vec<(String, String)> {
    let folder = if backend == Backend::Sqlite { "sqlite" } else { "postgres" };
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations").join(folder);
    let mut found: Vec<(String, String)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| {
            let path = file.unwrap().path();
            (path.file_stem().unwrap().to_str().unwrap().to_owned(), std::fs::read_to_string(path).unwrap())
        })
        .collect();
    found.sort();
    found
}

fn names(place: &Place) -> Vec<String> {
    files(place.backend).into_iter().map(|(name, _)| name).collect()
}

async fn a_second_migration_changes_nothing(place: Place) {
    let store = place.open().await;
    let applied = store.migrate().await.unwrap();
    assert_eq!(applied, names(&place));
    store.check_schema().await.unwrap();
    assert!(store.migrate().await.unwrap().is_empty());
    assert!(place.open().await.migrate().await.unwrap().is_empty());
    place.open().await.check_schema().await.unwrap();
}

async fn processes_that_migrate_at_once_do_it_once(place: Place) {
    let stores = [place.open().await, place.open().await, place.open().await, place.open().await];
    let (a, b, c, d) = tokio::join!(stores[0].migrate(), stores[1].migrate(), stores[2].migrate(), stores[3].migrate());
    let mut counts = [a, b, c, d].map(|applied| applied.unwrap().len());
    counts.sort_unstable();
    assert_eq!(counts, [0, 0, 0, names(&place).len()]);
    stores[0].check_schema().await.unwrap();
}

async fn an_empty_database_is_behind(place: Place) {
    let error = place.open().await.check_schema().await.unwrap_err();
    let StoreError::Schema(SchemaError::Behind { missing }) = &error else { panic!("{error}") };
    assert_eq!(*missing, names(&place));
    assert!(error.to_string().contains("tollgate migrate"), "{error}");
}

async fn a_database_of_an_older_program_is_behind_and_is_brought_up(place: Place) {
    use sha2::{Digest, Sha256};
    // As the first program made it: its one migration, and the history of that.
    let store = place.open().await;
    let (name, sql) = files(place.backend).swap_remove(0);
    let checksum: String = Sha256::digest(&sql).iter().map(|byte| format!("{byte:02x}")).collect();
    place
        .meddle(&format!(
            "CREATE TABLE schema_history (version BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, \
             finished BIGINT NOT NULL, applied_at BIGINT NOT NULL); {sql}; \
             INSERT INTO schema_history VALUES (1, '{name}', '{checksum}', 1, 0)"
        ))
        .await;
    let later = names(&place).split_off(1);
    let error = store.check_schema().await.unwrap_err();
    let behind = SchemaError::Behind { missing: later.clone() };
    assert!(matches!(&error, StoreError::Schema(found) if *found == behind), "{error}");
    assert_eq!(store.migrate().await.unwrap(), later);
    store.check_schema().await.unwrap();
}

async fn a_newer_database_is_refused(place: Place) {
    let store = place.ready().await;
    place.meddle("INSERT INTO schema_history VALUES (99, '0099_future', 'x', 1, 0)").await;
    for result in [store.check_schema().await, store.migrate().await.map(|_| ())] {
        let error = result.unwrap_err();
        let known = names(&place).last().and_then(|name| name[..4].parse().ok()).unwrap();
        let newer = SchemaError::Newer { found: 99, known };
        assert!(matches!(&error, StoreError::Schema(found) if *found == newer), "{error}");
    }
}

async fn half_migrated_databases_are_refused(place: Place) {
    let store = place.ready().await;
    let cases = [
        ("UPDATE schema_history SET finished = 0 WHERE version = 2", "not finished"),
        ("UPDATE schema_history SET finished = 1, checksum = 'x' WHERE version = 2", "another content"),
        ("DELETE FROM schema_history WHERE version > 1; UPDATE schema_history SET version = -1", "does not have"),
        ("DROP TABLE schema_history", "no record of migrations"),
    ];
    for (meddling, why) in cases {
        place.meddle(meddling).await;
        for result in [store.check_schema().await, store.migrate().await.map(|_| ())] {
            let error = result.unwrap_err();
            assert!(matches!(&error, StoreError::Schema(SchemaError::HalfMigrated { .. })), "{meddling}: {error}");
            assert!(error.to_string().contains(why), "{meddling}: {error}");
        }
    }
}

async fn ping_answers(place: Place) {
    place.open().await.ping().await.unwrap();
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
    let absent = crate::support::postgres::url_of("absent").replacen("postgres@", "postgres:hunter2@", 1);
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
    std::fs::write(dir.path().join("tollgate.db"), "this is no database, but long enough to have a header".repeat(99))
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
    let others =
        format!("SELECT CAST(pg_terminate_backend(pid) AS TEXT) FROM pg_stat_activity WHERE datname = '{name}'");

    elsewhere.meddle(&format!("ALTER DATABASE {name} ALLOW_CONNECTIONS false")).await;
    elsewhere.meddle(&others).await;
    let error = store.ping().await.unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error:?}");
    elsewhere.meddle(&format!("ALTER DATABASE {name} ALLOW_CONNECTIONS true")).await;
    store.ping().await.unwrap();
    store.check_schema().await.unwrap();
}

fn database_of(url: &str) -> &str {
    url.rsplit('/').find(|part| part.starts_with("test_")).and_then(|part| part.split('?').next()).unwrap()
}
