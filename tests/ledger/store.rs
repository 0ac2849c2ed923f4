//! The complete path, into a real database: rows, costs and hourly sums are those of the records.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{TIME_LIMIT, journals, open, quick, sample};
use crate::support::spent::Spent as _;
use tollgate::domain::clock::Timestamp;
use tollgate::domain::ids::{KeyId, ProviderId, UserId};
use tollgate::domain::money::NanoUsd;
use tollgate::domain::record::{Record, RequestOutcome};
use tollgate::ledger::LedgerSettings;
use tollgate::store::{LogFilter, LogPageAsk, Store};

const RECORDS: u64 = 10_000;
const HOUR_MS: i64 = 3_600_000;

/// Records spread over seven keys, three providers and some forty hours; every hundredth unpriced.
fn spread(number: u64) -> Record {
    let mut record = sample(number);
    let signed = i64::try_from(number).unwrap();
    record.started_at = Timestamp(1_700_000_000_000 + signed * 14_123);
    record.key_id = Some(KeyId(1 + signed % 7));
    record.user_id = Some(UserId(1 + signed % 7));
    record.provider_id = Some(ProviderId(1 + signed % 3));
    record.cost = (!number.is_multiple_of(100)).then(|| NanoUsd(signed * 1_234_567));
    if number.is_multiple_of(10) {
        record.outcome = RequestOutcome::UpstreamFailed;
        record.status_code = 502;
    }
    record
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_records_arrive_with_every_nano_dollar() {
    let root = tempfile::tempdir().unwrap();
    let store = Store::open_sqlite(root.path()).await.unwrap();
    store.migrate().await.unwrap();
    let journal = root.path().join("journal");
    let settings = LedgerSettings { segment_bytes: 1 << 20, ..quick() };
    let ledger = open(&journal, settings);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let writer =
        tokio::runtime::Handle::current().spawn(Arc::clone(&ledger).run(store.clone(), async {
            let _ = stopped.await;
        }));
    let records: Vec<Record> = (1..=RECORDS).map(spread).collect();
    std::thread::scope(|scope| {
        for quarter in records.chunks(records.len() / 4) {
            scope.spawn(|| quarter.iter().for_each(|record| ledger.append(record).unwrap()));
        }
    });
    // Records that are appended again, as after a crash, change nothing.
    records.iter().step_by(50).for_each(|record| ledger.append(record).unwrap());
    assert!(ledger.flush(TIME_LIMIT).await);
    stop.send(()).unwrap();
    writer.await.unwrap();
    let stats = ledger.stats();
    assert_eq!((stats.writer_rows, stats.writer_repeated), (RECORDS, RECORDS / 50));

    let cost: NanoUsd = records.iter().filter_map(|record| record.cost).sum();
    let ask = LogPageAsk { page: 1, page_size: 1, cursor: None };
    let page = store.usage_logs(&LogFilter::default(), &ask).await.unwrap();
    assert_eq!(
        (page.total, page.summary.cost, page.summary.unpriced),
        (RECORDS, cost, RECORDS / 100)
    );
    let from_log = LogFilter { endpoint: Some("/v1/messages".to_owned()), ..LogFilter::default() };
    assert_eq!(
        store.usage_logs(&from_log, &ask).await.unwrap().summary,
        page.summary,
        "log and hourly sums agree"
    );

    let mut expected: BTreeMap<(i64, i64), NanoUsd> = BTreeMap::new();
    let mut since: NanoUsd = NanoUsd::ZERO;
    let cut = Timestamp(1_700_000_000_000 / HOUR_MS * HOUR_MS + 20 * HOUR_MS);
    for record in &records {
        let cost = record.cost.unwrap_or_default();
        *expected.entry((record.key_id.unwrap().0, record.provider_id.unwrap().0)).or_default() +=
            cost;
        if record.started_at >= cut {
            since += cost;
        }
    }
    let totals = store.spend_totals().await.unwrap();
    let totals: BTreeMap<(i64, i64), NanoUsd> =
        totals.iter().map(|t| ((t.key_id.unwrap().0, t.provider_id.unwrap().0), t.cost)).collect();
    assert_eq!(totals, expected, "hourly sums");
    let minutes = store.spend_since(cut).await.unwrap();
    assert_eq!(minutes.iter().map(|row| row.cost).sum::<NanoUsd>(), since, "ledger rows");
    drop(ledger);
    assert!(journals(&journal).is_empty());
}
