//! `statistics/getUserStatistics`, and the lists that logs are filtered by.

use serde_json::{Value, json};
use tollgate::domain::clock::Timestamp;
use tollgate::domain::ids::{KeyId, ProviderId, RequestId, UserId};
use tollgate::domain::money::NanoUsd;
use tollgate::domain::record::Record;
use tollgate::store::Backend;

use super::gate::{Gate, NOON, Person};
use crate::store::make::bare_record;

const HOUR: i64 = 3_600_000;

fn record(person: &Person, model: &str, started_at: Timestamp, cost: i64) -> Record {
    Record {
        request_id: RequestId::new(),
        started_at,
        user_id: Some(UserId(person.id)),
        key_id: Some(KeyId(person.key_id)),
        provider_id: Some(ProviderId(1)),
        model: model.into(),
        cost: Some(NanoUsd(cost * 1_000_000_000)),
        ..bare_record()
    }
}

async fn ask(gate: &Gate, key: &str, body: Value) -> Value {
    gate.call("statistics/getUserStatistics", key, body).await.data()
}

/// The points that are not all zeros: place, then cost and calls of one line.
fn points(data: &Value, line: &str) -> Vec<(usize, Value, Value)> {
    let points = data["chartData"].as_array().unwrap().iter().enumerate();
    let values = points
        .map(|(at, p)| (at, p[format!("{line}_cost")].clone(), p[format!("{line}_calls")].clone()));
    values.filter(|(_, _, calls)| *calls != json!(0)).collect()
}

#[tokio::test]
async fn days_hours_and_minutes_are_those_of_the_time_zone_and_filled_with_zeros() {
    for (zone, midnight) in
        [(chrono_tz::Asia::Shanghai, -12 * HOUR), (chrono_tz::Asia::Kolkata, -19 * HOUR / 2)]
    {
        for backend in [Backend::Sqlite, Backend::Postgres] {
            let gate = Gate::start_in(zone, backend, None, false).await;
            let (ada, bob) =
                (gate.person("ada", json!({})).await, gate.person("bob", json!({})).await);
            let midnight = NOON.plus_ms(midnight);
            let records = [
                record(&ada, "m", midnight, 1),
                record(&ada, "m", midnight.plus_ms(-1), 2),
                record(&bob, "n", NOON.plus_ms(-59_000), 4),
                record(&bob, "n", midnight.plus_ms(-29 * 24 * HOUR), 8),
                record(&bob, "n", midnight.plus_ms(-29 * 24 * HOUR - 1), 16),
            ];
            gate.store.append_records(&records).await.unwrap();
            let (ada_line, bob_line) = (format!("user-{}", ada.id), format!("user-{}", bob.id));

            let month = ask(&gate, super::gate::TOKEN, json!({ "timeRange": "month" })).await;
            assert_eq!(
                (&month["resolution"], &month["mode"], &month["timeRange"]),
                (&json!("day"), &json!("users"), &json!("month"))
            );
            assert_eq!(month["chartData"].as_array().unwrap().len(), 30);
            assert_eq!(month["chartData"][29]["date"], json!(midnight.to_iso()));
            assert_eq!(
                points(&month, &ada_line),
                [(28, json!(2), json!(1)), (29, json!(1), json!(1))]
            );
            assert_eq!(
                points(&month, &bob_line),
                [(0, json!(8), json!(1)), (29, json!(4), json!(1))]
            );
            let line = |person: &Person, name| json!({ "id": person.id, "name": name, "dataKey": format!("user-{}", person.id) });
            assert_eq!(month["users"], json!([line(&bob, "bob"), line(&ada, "ada")]));

            let week =
                ask(&gate, super::gate::TOKEN, json!({ "timeRange": "week", "userId": ada.id }))
                    .await;
            assert_eq!(week["users"], json!([line(&ada, "ada")]));
            assert_eq!(
                points(&week, &ada_line),
                [(5, json!(2), json!(1)), (6, json!(1), json!(1))]
            );

            let hour = ask(&gate, super::gate::TOKEN, json!({ "timeRange": "hour" })).await;
            assert_eq!(
                (&hour["resolution"], hour["chartData"].as_array().unwrap().len()),
                (&json!("minute"), 60)
            );
            assert_eq!(points(&hour, &bob_line), [(58, json!(4), json!(1))]);

            let today =
                ask(&gate, super::gate::TOKEN, json!({ "timeRange": "today", "groupBy": "model" }))
                    .await;
            assert_eq!(today["mode"], "models");
            assert_eq!(today["chartData"][0]["date"], json!(midnight.to_iso()));
            assert_eq!(
                today["users"],
                json!([{ "id": 1, "name": "n", "dataKey": "model-1" }, { "id": 2, "name": "m", "dataKey": "model-2" }])
            );
            assert_eq!(points(&today, "model-2"), [(0, json!(1), json!(1))]);
        }
    }
}

#[tokio::test]
async fn days_are_summed_once_they_are_over_and_again_when_something_comes_late() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let gate = Gate::start_in(chrono_tz::Europe::Berlin, backend, None, false).await;
        assert_eq!(gate.jobs.sum_days().await.unwrap(), 0, "nothing was used yet");
        let ada = gate.person("ada", json!({})).await;
        // Noon of Shanghai is five in the morning of Berlin: the day before has been over for five
        // hours.
        let midnight = NOON.plus_ms(-5 * HOUR);
        let every_seven_hours =
            (0..100).map(|n| record(&ada, "m", NOON.plus_ms(-n * 7 * HOUR), 1 + n));
        gate.store.append_records(&every_seven_hours.collect::<Vec<_>>()).await.unwrap();
        let month = json!({ "timeRange": "month", "groupBy": "key" });
        let log =
            json!({ "startDate": midnight.plus_ms(-20 * 24 * HOUR).to_iso(), "keyId": ada.key_id });
        let figures = async || {
            let page = gate.admin("usage-logs/getUsageLogs", log.clone()).await.data();
            (
                ask(&gate, super::gate::TOKEN, month.clone()).await,
                page["total"].clone(),
                page["summary"].clone(),
            )
        };
        let by_hours = figures().await;
        assert_eq!(
            points(&by_hours.0, &format!("key-{}", ada.key_id)).len(),
            30,
            "each day has some"
        );
        // 693 hours before five in the morning.
        assert_eq!(gate.jobs.sum_days().await.unwrap(), 29);
        assert_eq!(figures().await, by_hours);
        assert_eq!(gate.jobs.sum_days().await.unwrap(), 0);

        let late =
            [record(&ada, "m", midnight.plus_ms(-1), 1_000), record(&ada, "m", midnight, 2_000)];
        gate.store.append_records(&late).await.unwrap();
        let with_late = figures().await;
        assert_eq!(with_late.1, json!(by_hours.1.as_u64().unwrap() + 2));
        assert_eq!(gate.jobs.sum_days().await.unwrap(), 1, "today is not over");
        assert_eq!(figures().await, with_late);

        // A day that has only just ended waits for the requests that began in it.
        gate.clock.set(midnight.plus_ms(24 * HOUR + 60_000));
        assert_eq!(gate.jobs.sum_days().await.unwrap(), 0);
        gate.clock.set(midnight.plus_ms(25 * HOUR));
        assert_eq!(gate.jobs.sum_days().await.unwrap(), 1);
    }
}

#[tokio::test]
async fn users_see_their_own_unless_they_may_see_all() {
    let gate = Gate::start().await;
    let (ada, bob) = (gate.person("ada", json!({})).await, gate.person("bob", json!({})).await);
    let (_, read_only) = gate.key(ada.id, "read-only", json!({ "canLoginWebUi": false })).await;
    let records =
        [record(&ada, "m", NOON, 1), Record { status_code: 429, ..record(&bob, "n", NOON, 2) }];
    gate.store.append_records(&records).await.unwrap();
    // A request that was refused before its model was read.
    let without_model = record(&ada, "", NOON.plus_ms(-30 * 24 * HOUR), 0);
    gate.store.append_records(&[without_model]).await.unwrap();
    let own = ask(&gate, &ada.key, json!({})).await;
    assert_eq!(own["users"].as_array().unwrap().len(), 1);
    assert_eq!(own["chartData"].as_array().unwrap().len(), 24);
    assert_eq!(points(&own, &format!("user-{}", ada.id)), [(23, json!(1), json!(1))]);
    let keys = ask(&gate, &ada.key, json!({ "groupBy": "key" })).await;
    assert_eq!((&keys["mode"], &keys["users"][0]["name"]), (&json!("keys"), &json!("default")));
    let foreign = json!({ "userId": bob.id });
    let refused = gate.call("statistics/getUserStatistics", &ada.key, foreign.clone()).await;
    assert_eq!(refused.failure(), (403, "PERMISSION_DENIED"));
    assert_eq!(
        gate.call("statistics/getUserStatistics", &read_only, json!({})).await.failure().0,
        403
    );
    let newcomer =
        ask(&gate, &gate.person("eve", json!({})).await.key, json!({ "timeRange": "thisMonth" }))
            .await;
    assert_eq!(
        (&newcomer["users"][0]["name"], newcomer["chartData"].as_array().unwrap().len()),
        (&json!("eve"), 21)
    );

    for (list, all, own) in [
        ("usage-logs/getModelList", json!(["m", "n"]), json!(["m"])),
        ("usage-logs/getStatusCodeList", json!([200, 429]), json!([200])),
    ] {
        assert_eq!(gate.admin(list, json!({})).await.data(), all);
        assert_eq!(gate.call(list, &ada.key, json!({})).await.data(), own);
    }

    gate.settings(json!({ "allowGlobalUsageView": true })).await;
    assert_eq!(ask(&gate, &ada.key, json!({})).await["users"].as_array().unwrap().len(), 2);
    assert_eq!(ask(&gate, &ada.key, foreign).await["users"][0]["name"], "bob");
    let overview = gate.call("overview/getOverviewData", &ada.key, json!({})).await.data();
    assert_eq!(overview["todayRequests"], 2);
    assert_eq!(
        gate.call("usage-logs/getModelList", &ada.key, json!({})).await.data(),
        json!(["m"])
    );
}

#[tokio::test]
async fn no_user_sees_the_names_of_others_keys() {
    let gate = Gate::start().await;
    let (ada, bob) = (gate.person("ada", json!({})).await, gate.person("bob", json!({})).await);
    let secret = "the key of bobs secret project";
    gate.admin("keys/editKey", json!({ "keyId": bob.key_id, "name": secret })).await.data();
    gate.store
        .append_records(&[record(&ada, "m", NOON, 1), record(&bob, "n", NOON, 2)])
        .await
        .unwrap();
    gate.settings(json!({ "allowGlobalUsageView": true })).await;
    let keys = ask(&gate, &ada.key, json!({ "groupBy": "key" })).await;
    assert_eq!(keys["users"].as_array().unwrap().len(), 1, "{keys}");
    assert_eq!(keys["users"][0]["name"], "default");
    let foreign = json!({ "groupBy": "key", "userId": bob.id });
    let refused = gate.call("statistics/getUserStatistics", &ada.key, foreign.clone()).await;
    assert_eq!(refused.failure(), (403, "PERMISSION_DENIED"));
    assert_eq!(
        gate.admin("statistics/getUserStatistics", foreign).await.data()["users"][0]["name"],
        secret
    );
    // None of the user's other operations shows the name or another user's data.
    for operation in tollgate::admin::table::operations() {
        let target = json!({ "userId": ada.id, "keyId": ada.key_id });
        let required = super::bodies::required(operation.body);
        let body: serde_json::Map<_, _> = required
            .into_iter()
            .map(|f| {
                (
                    f.name.clone(),
                    match f.name.as_str() {
                        "userId" | "keyId" => target[&f.name].clone(),
                        _ => super::bodies::sample(&f),
                    },
                )
            })
            .collect();
        let reads = ["get", "has", "list", "whoami"];
        let is_read =
            reads.iter().any(|verb| operation.path.rsplit('/').next().unwrap().starts_with(verb));
        if operation.verb == tollgate::admin::operation::Verb::Post && is_read {
            let reply =
                super::gate::Reply::of(gate.post(operation.path).bearer_auth(&ada.key).json(&body))
                    .await;
            assert!(
                !reply.body.to_string().contains(secret),
                "{} shows it: {}",
                operation.path,
                reply.body
            );
        }
    }
}
