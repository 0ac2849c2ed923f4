//! Sums of days, compared with the same records added up in the test: in zones whose days have
//! other lengths or begin within an hour, with records and prices that arrive late, beside writers,
//! and before and after a clean-up.

mod checks;

use chrono_tz::Tz;
use rust_decimal::Decimal;
use tollgate::domain::ids::{ProviderId, UserId};
use tollgate::domain::money::NanoUsd;
use tollgate::domain::record::Record;
use tollgate::store::{LogFilter, LogPageAsk, SummedDay, UnpricedOf, Used};

use self::checks::{DAY, HOUR, at, check_charts, check_log, days, records, sum_all};
use super::make::bare_record;
use super::{Place, on_both};

on_both!(
    figures_are_those_of_the_records_in_every_zone,
    what_comes_late_takes_its_day_out_until_it_is_summed_again,
    writers_and_who_sums_a_day_do_not_miss_each_other,
    summed_days_are_read_and_their_hours_are_not,
    a_log_that_was_cleaned_up_counts_what_it_holds,
    very_many_hours_are_not_added_up,
);

async fn figures_are_those_of_the_records_in_every_zone(place: Place) {
    let store = place.ready().await;
    // The end of October: a day of 25 hours in Berlin. From late in March a day of 23. Lord Howe
    // changes its clock by half an hour.
    let zones = [
        (Tz::UTC, "2028-02-25T00:00:00Z"),
        (chrono_tz::Europe::Berlin, "2026-10-20T03:00:00Z"),
        (chrono_tz::Europe::Berlin, "2027-03-24T03:00:00Z"),
        (chrono_tz::Asia::Kolkata, "2026-12-27T00:00:00Z"),
        (chrono_tz::Australia::Lord_Howe, "2028-03-30T00:00:00Z"),
    ];
    let mut all = Vec::new();
    for (seed, (tz, first)) in (1..).zip(zones) {
        let first = at(first);
        let mut random = fastrand::Rng::with_seed(seed);
        let added = records(&mut random, first, 9, 400);
        store.append_records(&added).await.unwrap();
        all.extend(added.clone());
        let days = days(first, first.plus_ms(9 * DAY), tz);
        let whole_hours = days.iter().all(|day| day.from.0 % HOUR == 0);
        // Partial hours of one user are found by the existing keys, and there are none.
        let scopes: &[Option<UserId>] =
            if whole_hours { &[None, Some(UserId(1))] } else { &[None] };
        let (early, late) = (days[1].from, days[days.len() - 2].until);
        let times = [
            None,
            Some(early),
            Some(early.plus_ms(1)),
            Some(late.plus_ms(-7 * HOUR / 3)),
            Some(late),
        ];
        // None summed; some, with a hole; all.
        check_charts(&store, &added, &days, scopes).await;
        sum_all(&store, &days[2..4]).await;
        sum_all(&store, &days[6..8]).await;
        check_charts(&store, &added, &days, scopes).await;
        check_log(&store, &all, &times[..2]).await;
        sum_all(&store, &days).await;
        assert_eq!(
            store.summed_days(days[0].from, days[days.len() - 1].until).await.unwrap(),
            days
        );
        check_charts(&store, &added, &days, scopes).await;
        check_log(&store, &all, &times).await;
    }
}

async fn what_comes_late_takes_its_day_out_until_it_is_summed_again(place: Place) {
    let store = place.ready().await;
    let (first, tz) = (at("2026-10-23T00:00:00Z"), chrono_tz::Europe::Berlin);
    let mut random = fastrand::Rng::with_seed(7);
    let mut all = records(&mut random, first, 4, 200);
    store.append_records(&all).await.unwrap();
    let days = days(first, first.plus_ms(4 * DAY), tz);
    sum_all(&store, &days).await;
    let there = async || store.summed_days(days[0].from, days[days.len() - 1].until).await.unwrap();
    assert_eq!(there().await, days);

    // Its first millisecond and its last; the neighbours stay.
    for late in [days[2].from, days[2].until.plus_ms(-1)] {
        let record = Record { started_at: late, model: "model-1".into(), ..bare_record() };
        store.append_records(std::slice::from_ref(&record)).await.unwrap();
        all.push(record);
        assert_eq!(there().await, [&days[..2], &days[3..]].concat());
        check_log(&store, &all, &[None, Some(days[1].from)]).await;
        check_charts(&store, &all, &days, &[None]).await;
        store.sum_day(days[2]).await.unwrap();
        assert_eq!(there().await, days);
    }
    // Existing records change nothing.
    store.append_records(&all[..50]).await.unwrap();
    assert_eq!(there().await, days);

    let price = |_: &mut Used, _: Decimal| NanoUsd(5);
    let of = UnpricedOf { model: "model-1", upstream_model: None, price_model: "model-1" };
    let priced = store.reprice(of, 10_000, &price).await.unwrap();
    let mut touched = 0;
    for record in
        all.iter_mut().filter(|record| record.cost.is_none() && &*record.model == "model-1")
    {
        record.cost = Some(NanoUsd(5));
        touched += 1;
    }
    assert_eq!(priced.rows.len(), touched);
    let untouched = |day: &&SummedDay| {
        !priced.rows.iter().any(|p| day.from <= p.minute && p.minute < day.until)
    };
    assert_eq!(there().await, days.iter().filter(untouched).copied().collect::<Vec<_>>());
    assert!(there().await.len() < days.len());
    for _ in 0..2 {
        check_log(&store, &all, &[None, Some(days[1].from)]).await;
        check_charts(&store, &all, &days, &[None]).await;
        sum_all(&store, &days).await;
    }

    // The days of another zone replace those that they overlap, and no others.
    let elsewhere = checks::days(days[1].from, days[2].from, Tz::UTC);
    sum_all(&store, &elsewhere[..2]).await;
    assert_eq!(there().await, [&elsewhere[..2], &days[3..]].concat());
    check_log(&store, &all, &[None, Some(days[1].from)]).await;
    check_charts(&store, &all, &days, &[None]).await;
}

async fn writers_and_who_sums_a_day_do_not_miss_each_other(place: Place) {
    let (store, other) = (place.ready().await, place.open().await);
    let first = at("2026-11-02T00:00:00Z");
    let days = days(first, first.plus_ms(DAY), Tz::UTC);
    let mut random = fastrand::Rng::with_seed(3);
    let mut all = Vec::new();
    for _ in 0..12 {
        let batches: Vec<Vec<Record>> =
            (0..3).map(|_| records(&mut random, first, 2, 20)).collect();
        let (sums, a, b, c) = tokio::join!(
            sum_all(&store, &days),
            store.append_records(&batches[0]),
            other.append_records(&batches[1]),
            other.append_records(&batches[2]),
        );
        let ((), written) = (sums, a.unwrap() + b.unwrap() + c.unwrap());
        assert_eq!(written, 60);
        all.extend(batches.into_iter().flatten());
        check_charts(&store, &all, &days, &[None]).await;
    }
    check_log(&store, &all, &[None]).await;
}

async fn summed_days_are_read_and_their_hours_are_not(place: Place) {
    let store = place.ready().await;
    let first = at("2026-11-02T00:00:00Z");
    let all = records(&mut fastrand::Rng::with_seed(5), first, 3, 300);
    store.append_records(&all).await.unwrap();
    let days = days(first, first.plus_ms(3 * DAY - 1), Tz::UTC);
    sum_all(&store, &days).await;
    place.meddle("DELETE FROM hourly_sums; DELETE FROM hourly_users").await;
    check_charts(&store, &all, &days, &[None]).await;
    let total = async |filter: LogFilter| {
        store
            .usage_logs(&filter, &LogPageAsk { page: 1, page_size: 1, cursor: None })
            .await
            .unwrap()
            .total
    };
    let since = |start| LogFilter { start: Some(start), ..LogFilter::default() };
    let later = all.iter().filter(|record| record.started_at >= days[1].from).count() as u64;
    assert_eq!(total(since(days[1].from)).await, later);
    assert_eq!(total(since(days[1].from.plus_ms(HOUR))).await, total(since(days[2].from)).await);
}

async fn a_log_that_was_cleaned_up_counts_what_it_holds(place: Place) {
    let store = place.ready().await;
    let first = at("2026-11-02T00:00:00Z");
    let all = records(&mut fastrand::Rng::with_seed(11), first, 6, 300);
    store.append_records(&all).await.unwrap();
    let days = days(first, first.plus_ms(6 * DAY), chrono_tz::Europe::Berlin);
    sum_all(&store, &days).await;
    let cutoff = days[2].from.plus_ms(5 * HOUR + 77);
    while store.prune_requests(cutoff, 20).await.unwrap() > 0 {}
    let left: Vec<Record> =
        all.iter().filter(|record| record.started_at >= cutoff).cloned().collect();
    check_log(&store, &left, &[None, Some(days[1].from), Some(days[3].from), Some(days[4].from)])
        .await;
    check_charts(&store, &all, &days, &[None]).await;
}

async fn very_many_hours_are_not_added_up(place: Place) {
    let store = place.ready().await;
    let first = at("2026-09-02T00:00:00Z");
    let record = |n: i64| Record {
        started_at: first.plus_ms(n * 10_000),
        user_id: Some(UserId(1)),
        provider_id: Some(ProviderId(1)),
        ..bare_record()
    };
    for from in (0..20_400).step_by(1_700) {
        store.append_records(&(from..from + 1_700).map(record).collect::<Vec<_>>()).await.unwrap();
    }
    let last = first.plus_ms(40 * DAY);
    store.append_records(&[Record { started_at: last, ..record(0) }]).await.unwrap();
    let filter = LogFilter {
        start: Some(first),
        provider_id: Some(ProviderId(1)),
        model: Some("model-a".to_owned()),
        user_id: Some(UserId(1)),
        ..LogFilter::default()
    };
    let total = async |filter: &LogFilter| {
        let page = store
            .usage_logs(filter, &LogPageAsk { page: 1, page_size: 1, cursor: None })
            .await
            .unwrap();
        (page.total, page.total_is_exact)
    };
    sum_all(&store, &days(first, last.plus_ms(-1), Tz::UTC)).await;
    assert_eq!(total(&filter).await, (20_401, true), "the hours are few");
    // As if the user had a great many keys.
    place.meddle("UPDATE daily_sums SET hours = 60000 WHERE cut = 2").await;
    assert_eq!(total(&filter).await, (20_000, false));
    let one = LogFilter { model: None, ..filter.clone() };
    assert_eq!(total(&one).await, (20_401, true), "days know it");
    assert_eq!(
        total(&LogFilter { start: None, ..filter.clone() }).await,
        (20_401, true),
        "the lifetime sums know it"
    );
    let short = LogFilter { end: Some(first.plus_ms(30 * DAY)), ..filter };
    assert_eq!(total(&short).await, (20_400, true));
}
