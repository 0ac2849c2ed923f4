//! A move that is killed, loses its database or finds another source: it continues, or starts
//! again, with the same result.

use std::time::Duration;

use sqlx::Connection;

use super::{Bed, connect, exit_and_output, one, run, shows, tables};
use crate::support::postgres::Server;
use crate::support::wait;

/// The move's progress, as stored in the target.
const REACHED: &str = "SELECT table_name || ' ' || CAST(copied AS TEXT) FROM move_state";
const ROWS: usize = 25_000;

/// A bed with much data, stopped, whose target has its tables and no rows.
async fn large() -> Bed {
    let mut bed = Bed::start(&[], 2).await;
    bed.stop().await;
    bed.fill(ROWS).await;
    migrate(&mut bed);
    bed
}

/// A target with only a schema counts as empty.
fn migrate(bed: &mut Bed) {
    bed.fixture.gateway.set("DATABASE_URL", &bed.target.clone());
    let (code, said) = bed.command(&["migrate"]);
    assert_eq!(code, Some(0), "{said}");
    bed.fixture.gateway.unset("DATABASE_URL");
}

/// Locks writers out of the last tables, so that the move gets that far and waits.
async fn hold(bed: &Bed, table: &str) -> sqlx::AnyConnection {
    let mut holder = connect(&bed.target).await;
    let sql = format!("BEGIN; LOCK TABLE {table} IN SHARE MODE");
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut holder).await.unwrap();
    holder
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_move_goes_on_and_no_gateway_starts_meanwhile() {
    let mut bed = large().await;
    let holder = hold(&bed, "request_log").await;
    let mut moving = bed.begin();
    shows(&bed.target, REACHED, &format!("ledger {}", ROWS + 2)).await;
    // On the source: not while it is moved.
    let (code, said) = bed.command(&["serve"]);
    assert!(
        code == Some(1) && said.contains("a `tollgate move` is working on the data directory"),
        "{said}"
    );
    let (code, said) = bed.moved();
    assert!(code == Some(1) && said.contains("a gateway, or another move, is running"), "{said}");
    moving.kill().unwrap();
    moving.wait().unwrap();
    // On the half moved target: never.
    bed.fixture.gateway.set("DATABASE_URL", &bed.target.clone());
    for command in ["serve", "migrate", "check"] {
        let (code, said) = bed.command(&[command]);
        assert!(
            code == Some(1) && said.contains("begun and not finished: start the same move again"),
            "{said}"
        );
    }
    bed.fixture.gateway.unset("DATABASE_URL");
    holder.close().await.unwrap();

    let said = bed.done();
    assert!(said.contains("going on where it stopped"), "{said}");
    bed.assert_same().await;
    bed.start_on_target().await;
    assert_eq!(bed.fixture.ask().send().await.unwrap().status(), 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_that_is_killed_again_and_again_ends_with_the_same() {
    let mut bed = Bed::start(&[], 2).await;
    bed.stop().await;
    bed.fill(ROWS).await;
    let (mut kills, mut pause) = (0, Duration::from_millis(150));
    loop {
        let mut moving = bed.begin();
        if let Some(status) = wait::within(pause, async || moving.try_wait().unwrap()).await {
            assert!(status.success(), "{}", exit_and_output(&moving.wait_with_output().unwrap()).1);
            break;
        }
        moving.kill().unwrap();
        moving.wait().unwrap();
        (kills, pause) = (kills + 1, pause * 5 / 4);
    }
    assert!(kills > 1, "{kills}");
    bed.assert_same().await;
    assert!(bed.done().contains("an earlier run has moved"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_that_was_changed_in_between_is_copied_again() {
    let mut bed = large().await;
    let holder = hold(&bed, "request_log").await;
    let mut moving = bed.begin();
    shows(&bed.target, REACHED, &format!("ledger {}", ROWS + 2)).await;
    moving.kill().unwrap();
    moving.wait().unwrap();
    holder.close().await.unwrap();
    bed.fixture.gateway.spawn();
    bed.fixture.gateway.ready().await;
    assert_eq!(bed.fixture.ask().send().await.unwrap().status(), 200);
    bed.stop().await;
    let said = bed.done();
    assert!(said.contains("changed since the move began: copying all of it again"), "{said}");
    bed.assert_same().await;
    assert_eq!(
        one(&bed.target, "SELECT CAST(COUNT(*) AS TEXT) FROM ledger").await,
        (ROWS + 3).to_string()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_is_gone_in_the_middle_is_found_again() {
    let server = Server::own();
    let mut bed = Bed::start(&[], 2).await;
    bed.stop().await;
    bed.fill(ROWS).await;
    bed.target = server.fresh_database();
    migrate(&mut bed);
    let holder = hold(&bed, "request_log").await;
    let moving = bed.begin();
    shows(&bed.target, REACHED, &format!("ledger {}", ROWS + 2)).await;
    server.kill();
    drop(holder);
    let (code, said) = exit_and_output(&moving.wait_with_output().unwrap());
    assert!(
        code == Some(1) && said.contains("start it again, and it goes on where it stopped"),
        "{said}"
    );
    let (code, said) = bed.moved();
    assert!(
        code == Some(1) && said.contains("the target: the database cannot be reached"),
        "{said}"
    );
    server.start_again();
    bed.done();
    bed.assert_same().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_is_a_billionth_of_a_dollar_off_is_a_failure() {
    let mut bed = large().await;
    let holder = hold(&bed, "request_log").await;
    let moving = bed.begin();
    shows(&bed.target, REACHED, &format!("ledger {}", ROWS + 2)).await;
    run(&bed.target, "UPDATE ledger SET cost = cost + 1 WHERE started_at = 1000").await;
    holder.close().await.unwrap();
    let (code, said) = exit_and_output(&moving.wait_with_output().unwrap());
    assert_eq!(code, Some(1), "{said}");
    for wanted in [
        "the databases differ after the copy",
        "sum of ledger.cost",
        "cost of user 1:",
        "in PostgreSQL",
    ] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    assert!(!said.contains("What is left to do"), "{said}");
    assert!(tables(&bed.target).await.contains(&"move_state".to_owned()));
    bed.fixture.gateway.set("DATABASE_URL", &bed.target.clone());
    let (code, said) = bed.command(&["serve"]);
    assert!(code == Some(1) && said.contains("begun and not finished"), "{said}");
}
