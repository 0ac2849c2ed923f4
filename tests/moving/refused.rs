//! Moves that are refused: the message, and that nothing was changed.

use super::{Bed, one, run, tables};
use crate::support::postgres;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_gateway_is_not_moved() {
    let mut bed = Bed::start(&[], 1).await;
    let (code, said) = bed.moved();
    assert!(code == Some(1) && said.contains("Stop the gateway (SIGTERM)"), "{said}");
    assert_eq!(bed.fixture.ask().send().await.unwrap().status(), 200, "it serves on");
    assert_eq!(tables(&bed.target).await, Vec::<String>::new());
    bed.stop().await;

    // Another program that writes to the database.
    let mut writer = super::connect(&bed.sqlite()).await;
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut writer).await.unwrap();
    let (code, said) = bed.moved();
    assert!(code == Some(1) && said.contains("the database is busy"), "{said}");
    sqlx::Connection::close(writer).await.unwrap();
    bed.done();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_with_data_is_left_alone() {
    let mut bed = Bed::start(&[], 1).await;
    bed.stop().await;
    // A gateway was started on it: there are prices and rules.
    bed.start_on_target().await;
    bed.stop().await;
    bed.fixture.gateway.unset("DATABASE_URL");
    let prices = "SELECT CAST(COUNT(*) AS TEXT) FROM model_prices";
    let before = one(&bed.target, prices).await;
    for arguments in [&["move", "--to", &bed.target][..], &["move", "--check", "--to", &bed.target]]
    {
        let (code, said) = bed.command(arguments);
        assert!(
            code == Some(1) && said.contains("the target holds data that is not from this move"),
            "{said}"
        );
        assert!(
            said.contains(&format!("model_prices: {before}"))
                && said.contains("Nothing was changed"),
            "{said}"
        );
    }
    // Also if another version migrated it: it is not brought up to date.
    run(
        &bed.target,
        "DELETE FROM _sqlx_migrations WHERE version = (SELECT MAX(version) FROM _sqlx_migrations)",
    )
    .await;
    let (code, said) = bed.moved();
    assert!(
        code == Some(1) && said.contains("the target holds data that is not from this move"),
        "{said}"
    );
    run(
        &bed.target,
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
         VALUES (99, '0099_future', TRUE, '', 0)",
    )
    .await;
    let (code, said) = bed.moved();
    assert!(code == Some(1) && said.contains("migrated by a newer version"), "{said}");
    assert_eq!(one(&bed.target, prices).await, before);

    // Another program's database.
    let other = postgres::fresh_database();
    run(&other, "CREATE TABLE users (name TEXT); INSERT INTO users VALUES ('theirs')").await;
    let (code, said) = bed.command(&["move", "--to", &other]);
    assert!(code == Some(1) && said.contains("no record of migrations"), "{said}");
    assert_eq!(one(&other, "SELECT name FROM users").await, "theirs");
    assert_eq!(tables(&other).await, ["users"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_of_another_database_is_not_gone_on_with() {
    let mut bed = Bed::start(&[], 1).await;
    bed.stop().await;
    bed.done();
    // As if another database's move had been killed after its first table.
    run(
        &bed.target,
        "CREATE TABLE move_state AS SELECT CAST(1 AS SMALLINT) AS id, 'another' AS source, \
         '/srv/other/tollgate.db' AS path, '' AS digest, 'users' AS table_name, \
         CAST(1 AS BIGINT) AS copied, '[1]' AS place; INSERT INTO _sqlx_migrations \
         (version, description, success, checksum, execution_time) \
         VALUES (0, 'a move from SQLite', FALSE, '', 0)",
    )
    .await;
    let (code, said) = bed.moved();
    assert!(
        code == Some(1) && said.contains("a part of another database (/srv/other/tollgate.db)"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_addresses_and_sources_are_reported_without_a_password() {
    let mut bed = Bed::start(&[], 1).await;
    bed.stop().await;
    let absent = postgres::url_of("absent").replacen("postgres@", "postgres:hunter2@", 1);
    let cases = [
        (&["--to", absent.as_str()][..], 1, "the target: the database cannot be reached"),
        (
            &["--to", "postgres://someone:hunter2@127.0.0.1:1/x"],
            1,
            "the target: the database cannot be reached",
        ),
        (
            &["--to", "mysql://someone:hunter2@localhost/x"],
            2,
            "--to is not a PostgreSQL address: write postgres://",
        ),
        (&["--to", "hunter2"], 2, "--to is not a PostgreSQL address"),
        (
            &["--to", "sqlite:///data/hunter2.db"],
            2,
            "--to names the embedded database: write postgres://",
        ),
        (&["--to-file", "none"], 2, "none cannot be read"),
        (&[], 2, "--to <ADDRESS>"),
    ];
    for (arguments, expected, wanted) in cases {
        let (code, said) = bed.command(&[&["move"], arguments].concat());
        assert!(code == Some(expected) && said.contains(wanted), "{arguments:?}: {code:?} {said}");
        assert!(!said.contains("hunter2"), "{said}");
    }
    // A source that is behind, and one that does not exist.
    let last = one(
        &bed.sqlite(),
        "SELECT description FROM _sqlx_migrations ORDER BY version DESC LIMIT 1",
    )
    .await;
    run(
        &bed.sqlite(),
        &format!(
            "CREATE TABLE kept AS SELECT * FROM _sqlx_migrations WHERE description = '{last}'"
        ),
    )
    .await;
    run(&bed.sqlite(), &format!("DELETE FROM _sqlx_migrations WHERE description = '{last}'")).await;
    let (code, said) = bed.moved();
    assert!(
        code == Some(1) && said.contains("run `tollgate migrate`") && said.contains(&last),
        "{said}"
    );
    run(&bed.sqlite(), "INSERT INTO _sqlx_migrations SELECT * FROM kept").await;
    assert_eq!(tables(&bed.target).await, Vec::<String>::new());
    let said = bed.done();
    assert!(said.contains("not copied: the table kept, which is not tollgate's"), "{said}");

    bed.fixture.gateway.set("DATABASE_URL", &bed.target.clone());
    let (code, said) = bed.moved();
    assert!(code == Some(2) && said.contains("names PostgreSQL already"), "{said}");
    bed.fixture.gateway.unset("DATABASE_URL");
    let elsewhere = bed.fixture.gateway.dir.path().join("elsewhere");
    bed.fixture.gateway.set("TOLLGATE_DATA_DIR", elsewhere.to_str().unwrap());
    let (code, said) = bed.moved();
    assert!(code == Some(1) && said.contains("there is no SQLite database to move"), "{said}");
    assert!(!elsewhere.exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_journal_that_cannot_be_delivered_is_not_left_behind() {
    let mut bed = Bed::start(&[("TOLLGATE_LEDGER_FLUSH_INTERVAL", "1m")], 20).await;
    bed.fixture.gateway.kill();
    run(
        &bed.sqlite(),
        "CREATE TRIGGER sick BEFORE INSERT ON request_log BEGIN SELECT RAISE(ABORT, \
         'the disk is sick'); END",
    )
    .await;
    let (code, said) = bed.moved();
    assert_eq!(code, Some(1), "{said}");
    for wanted in [
        "records wait in the journal",
        "the disk is sick",
        "Nothing was moved, and nothing is lost",
    ] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    assert_eq!(tables(&bed.target).await, Vec::<String>::new());
    run(&bed.sqlite(), "DROP TRIGGER sick").await;
    assert!(bed.done().contains("20 records"));
    bed.assert_same().await;
}
