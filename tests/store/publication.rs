//! A publication of all tables (logical replication): PostgreSQL then refuses updates and deletes
//! of a table without a replica identity. Repricing and the clean-up work all the same.

use rust_decimal::Decimal;
use sqlx::{Connection as _, Executor as _, PgConnection, Row as _};
use tollgate::domain::clock::{Clock as _, SystemClock, Timestamp};
use tollgate::domain::money::NanoUsd;
use tollgate::domain::record::Record;
use tollgate::store::{Backend, Store, UnpricedOf, Used};

use super::Place;
use super::partitions::{DAY, at};

/// Tables whose updates and deletes a publication refuses.
const WITHOUT: &str = "SELECT CAST(c.relname AS TEXT) FROM pg_class AS c \
    WHERE c.relkind IN ('r', 'p') AND c.relnamespace = CAST('public' AS REGNAMESPACE) \
    AND (c.relreplident = 'n' OR c.relreplident = 'd' AND NOT EXISTS \
    (SELECT 1 FROM pg_index AS i WHERE i.indrelid = c.oid AND i.indisprimary)) ORDER BY 1";

async fn without_identity(place: &Place) -> Vec<String> {
    let mut connection = PgConnection::connect(place.url.expose()).await.unwrap();
    let rows = connection.fetch_all(WITHOUT).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// Rows of every partition are priced, and those before the last are removed.
async fn reprice_and_clean_up(store: &Store, records: &[Record], cutoff: Timestamp) {
    let price = |_: &mut Used, _: Decimal| NanoUsd(5);
    for model in ["model-0", "model-1", "model-2"] {
        let of = UnpricedOf { model, upstream_model: None, price_model: model };
        let unpriced = records.iter().filter(|r| r.cost.is_none() && &*r.model == model).count();
        assert_eq!(
            store.reprice(of, 10_000, &price).await.unwrap().rows.len(),
            unpriced,
            "{model}"
        );
    }
    let expired = records.iter().filter(|record| record.started_at < cutoff).count() as u64;
    let mut removed = 0;
    loop {
        match store.prune_requests(cutoff, 1_000).await.unwrap() {
            0 => break,
            some => removed += some,
        }
    }
    assert_eq!(removed, expired);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_publication_of_all_tables_refuses_neither_repricing_nor_the_clean_up() {
    let place = Place::new(Backend::Postgres);
    let store = place.ready().await;
    place.meddle("CREATE PUBLICATION all_tables FOR ALL TABLES").await;
    let now = SystemClock.now();
    // Of this month, the next one, one that is made later, and of the default partition.
    store.keep_partitions(now.plus_ms(70 * DAY)).await.unwrap();
    let days = (-90..90).step_by(3);
    let records: Vec<Record> =
        days.zip(0..).map(|(day, n)| at(now.plus_ms(day * DAY), n)).collect();
    assert_eq!(store.append_records(&records).await.unwrap(), records.len() as u64);
    reprice_and_clean_up(&store, &records, now.plus_ms(80 * DAY)).await;
    assert_eq!(without_identity(&place).await, Vec::<String>::new());
}
