//! How many records per second the ledger's writer can write, in batches of 500.
//!
//! The bound is far below the speed of any machine: it detects a write with one statement per row.
//! Run it with `--nocapture` in a release build for real figures.

use std::time::Instant;

use tollgate::domain::record::Record;

use super::make::{full_record, varied_record};
use super::{Place, on_both};

on_both!(batches_are_written_in_few_statements);

async fn batches_are_written_in_few_statements(place: Place) {
    let store = place.ready().await;
    let batches: Vec<Vec<Record>> = (0..10)
        .map(|batch| {
            let records = (0..500).map(|n| {
                let varied = varied_record(batch * 100 + n / 5);
                Record {
                    decisions: full_record().decisions,
                    user_agent: full_record().user_agent,
                    ..varied
                }
            });
            records.collect()
        })
        .collect();
    let begun = Instant::now();
    for batch in &batches {
        assert_eq!(store.append_records(batch).await.unwrap(), 500);
    }
    let rate = 5_000 * 1_000 / begun.elapsed().as_millis().max(1);
    println!("{:?}: {rate} records per second, in {}", store.backend(), place.dir().display());
    assert!(rate > 500, "{rate} records per second");
}
