//! A commit that is acknowledged is on the database's disk. For SQLite `tests/ledger/power` proves
//! it.

use sqlx::{Connection, Row};
use tollgate::store::Backend;

use super::Place;

/// A server that acknowledges commits before they are on its disk; and the setting of the ledger's
/// transactions.
const OFF: &str =
    "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$;
    CREATE TABLE seen (setting TEXT);
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO seen VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$;
    CREATE TRIGGER note AFTER INSERT ON ledger FOR EACH STATEMENT EXECUTE FUNCTION note();";

/// The build options in `.cargo/config.toml`: without them the ledger's writer needs 7 % more
/// instructions.
#[tokio::test]
async fn the_embedded_sqlite_is_built_without_what_only_costs() {
    let mut connection = sqlx::SqliteConnection::connect("sqlite::memory:").await.unwrap();
    let wanted = [
        ("DEFAULT_MEMSTATUS=0", 1),
        ("ENABLE_API_ARMOR", 0),
        ("ENABLE_MEMORY_MANAGEMENT", 0),
        ("THREADSAFE=1", 1),
    ];
    for (option, used) in wanted {
        let query = sqlx::query("SELECT sqlite_compileoption_used(?)").bind(option);
        let row = query.fetch_one(&mut connection).await.unwrap();
        assert_eq!(row.get::<i64, _>(0), used, "{option}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_ledger_commits_to_the_disk_of_a_server_that_would_not_wait_for_it() {
    let place = Place::new(Backend::Postgres);
    place.ready().await.close().await;
    place.meddle(OFF).await;
    let store = place.open().await;
    assert_eq!(store.append_records(&[crate::ledger::sample(1)]).await.unwrap(), 1);
    store.close().await;
    let mut connection = sqlx::AnyConnection::connect(place.url.expose()).await.unwrap();
    let of_others = sqlx::query("SELECT current_setting('synchronous_commit')")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(of_others.get::<String, _>(0), "off", "the server is set so");
    let rows = sqlx::query("SELECT setting FROM seen").fetch_all(&mut connection).await.unwrap();
    let seen: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(seen, ["on"]);
    connection.close().await.unwrap();
}
