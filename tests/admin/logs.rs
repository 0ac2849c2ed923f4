//! The usage log through the API: filters, scope, pages, exact costs.

use std::sync::Arc;

use serde_json::{Value, json};
use tollgate::domain::format::WireFormat;
use tollgate::domain::ids::{KeyId, ProviderId, RequestId, SessionId, UserId};
use tollgate::domain::money::NanoUsd;
use tollgate::domain::record::{Decision, DecisionStep, Record, RequestOutcome};
use tollgate::domain::usage::Usage;

use super::gate::{Gate, NOON, Person};

pub fn record(who: &Person, n: i64) -> Record {
    Record {
        request_id: RequestId::new(),
        started_at: NOON.plus_ms(n * 3_600_000),
        admitted_ms: 0,
        key_id: Some(KeyId(who.key_id)),
        key_name: Some("default".into()),
        user_id: Some(UserId(who.id)),
        user_name: Some("someone".into()),
        session_id: Some(SessionId::from(format!("session-{}", n % 2).as_str())),
        provider_id: Some(ProviderId(n % 3 + 1)),
        provider_name: Some("up".into()),
        client_format: WireFormat::Native,
        provider_format: Some(WireFormat::Native),
        endpoint: if n % 2 == 0 { "/v1/messages" } else { "/v1/responses" }.into(),
        model: if n < 3 { "alpha" } else { "beta" }.into(),
        upstream_model: None,
        streamed: true,
        status_code: if n == 4 { 502 } else { 200 },
        outcome: if n == 4 { RequestOutcome::UpstreamFailed } else { RequestOutcome::Completed },
        error_message: None,
        usage: Usage { input: 10, output: 5, ..Usage::default() },
        cost: (n != 5).then_some(NanoUsd(1_230_001)),
        price_model: None,
        parts: Vec::new(),
        notional_cost: None,
        cache_miss: None,
        cost_multiplier: "1.5".parse().unwrap(),
        estimated: false,
        duration_ms: 120,
        first_byte_ms: Some(30),
        overhead_us: 55,
        attempts: if n == 4 { 3 } else { 1 },
        decisions: vec![Decision {
            provider_id: Some(ProviderId(1)),
            provider_name: "up".into(),
            step: DecisionStep::Chosen,
            detail: None,
            status: None,
            at_ms: 0,
            took_ms: None,
            usage: None,
        }],
        user_agent: Some("client/1".into()),
        client_addr: Some(Arc::from("127.0.0.1")),
    }
}

/// Filters, and how many of six requests of `ann` and two of `bob` each finds. `fourth` is the
/// fourth of `ann`.
fn filters(ann: &Person, bob: &Person, fourth: RequestId) -> [(Value, u64); 19] {
    [
        (json!({}), 8),
        (json!({ "userId": ann.id }), 6),
        (json!({ "keyId": bob.key_id }), 2),
        (json!({ "model": "beta" }), 3),
        (json!({ "statusCode": "502" }), 1),
        (json!({ "excludeStatusCode200": true }), 1),
        (json!({ "minRetryCount": 2 }), 1),
        (json!({ "providerId": 3 }), 2),
        (json!({ "sessionId": "session-1", "userId": ann.id }), 3),
        (json!({ "endpoint": "/v1/responses" }), 4),
        (json!({ "startDate": "2026-11-21", "endDate": "2026-11-21" }), 8),
        (json!({ "startDate": "2026-11-22" }), 0),
        (json!({ "endDate": "2026-11-20", "startDate": "" }), 0),
        (json!({ "startDate": "2026-11-21T13:00:00", "endDate": "2026-11-21T14:00:00+08:00" }), 3),
        (json!({ "startDate": null, "model": null }), 8),
        (json!({ "requestId": fourth.to_string() }), 1),
        (json!({ "requestId": fourth.to_string(), "userId": bob.id }), 0),
        (json!({ "requestId": RequestId::new().to_string() }), 0),
        (json!({ "requestId": "not an id" }), 0),
    ]
}

#[tokio::test]
async fn the_log_is_filtered_paged_and_summed() {
    let gate = Gate::start().await;
    let (ann, bob) = (gate.person("ann", json!({})).await, gate.person("bob", json!({})).await);
    let mut records: Vec<Record> = (0..6).map(|n| record(&ann, n)).collect();
    records.extend((0..2).map(|n| record(&bob, n)));
    gate.store.append_records(&records).await.unwrap();
    let total = async |filter: Value| {
        gate.admin("usage-logs/getUsageLogs", filter).await.data()["total"].clone()
    };
    for (filter, expected) in filters(&ann, &bob, records[3].request_id) {
        assert_eq!(total(filter.clone()).await, json!(expected), "{filter}");
    }

    let page = gate
        .admin("usage-logs/getUsageLogs", json!({ "userId": ann.id, "pageSize": 4 }))
        .await
        .data();
    assert_eq!(
        (&page["page"], &page["pageSize"], page["logs"].as_array().unwrap().len()),
        (&json!(1), &json!(4), 4)
    );
    let sums = &page["summary"];
    assert_eq!(
        (&sums["requests"], &sums["errors"], &sums["unpriced"]),
        (&json!(6), &json!(1), &json!(1))
    );
    assert_eq!((&sums["costUsd"], &sums["inputTokens"]), (&json!(0.006150005), &json!(60)));
    let (unpriced, failed) = (&page["logs"][0], &page["logs"][1]);
    assert_eq!((&unpriced["costUsd"], &failed["costUsd"]), (&json!(null), &json!(0.001230001)));
    assert_eq!(
        (&failed["statusCode"], &failed["outcome"]),
        (&json!(502), &json!("upstream_failed"))
    );
    assert_eq!(
        (&failed["decisionChain"][0]["step"], &failed["costMultiplier"]),
        (&json!("chosen"), &json!(1.5))
    );
    let by_cursor = json!({ "userId": ann.id, "pageSize": 4, "cursor": page["nextCursor"] });
    let by_number = json!({ "userId": ann.id, "pageSize": 4, "page": 2 });
    let (next, second) = (
        gate.admin("usage-logs/getUsageLogs", by_cursor).await,
        gate.admin("usage-logs/getUsageLogs", by_number).await,
    );
    assert_eq!(
        (next.data()["logs"].as_array().unwrap().len(), &next.data()["nextCursor"]),
        (2, &json!(null))
    );
    assert_eq!(next.data()["logs"], second.data()["logs"]);
    let bad = gate.admin("usage-logs/getUsageLogs", json!({ "cursor": "x" })).await;
    assert_eq!(
        (bad.failure(), &bad.body["errorParams"]["field"]),
        ((400, "INVALID_FORMAT"), &json!("cursor"))
    );
}

#[tokio::test]
async fn users_read_their_own_requests_whatever_they_ask() {
    let gate = Gate::start().await;
    let (ann, bob) = (gate.person("ann", json!({})).await, gate.person("bob", json!({})).await);
    gate.store.append_records(&[record(&ann, 0), record(&ann, 1), record(&bob, 2)]).await.unwrap();
    let ask = async |filter: Value| gate.call("usage-logs/getUsageLogs", &ann.key, filter).await;
    assert_eq!(ask(json!({})).await.data()["total"], json!(2));
    assert_eq!(ask(json!({ "userId": ann.id })).await.data()["total"], json!(2));
    assert_eq!(ask(json!({ "keyId": bob.key_id })).await.data()["total"], json!(0));
    assert_eq!(ask(json!({ "userId": bob.id })).await.failure(), (403, "PERMISSION_DENIED"));
    assert_eq!(ask(json!({ "usrId": ann.id })).await.failure(), (400, "INVALID_FORMAT"));
}

#[tokio::test]
async fn one_request_is_shown_with_its_cost_line_by_line_to_those_who_may_see_it() {
    let gate = Gate::start().await;
    let (ann, bob) = (gate.person("ann", json!({})).await, gate.person("bob", json!({})).await);
    let prices =
        json!({"alpha": {"input_cost_per_token": 0.000_001, "output_cost_per_token": 0.000_002}})
            .to_string();
    gate.admin("model-prices/uploadPriceTable", json!({ "jsonContent": prices })).await.data();
    let (priced, unpriced) = (record(&ann, 0), record(&ann, 3));
    gate.store.append_records(&[priced.clone(), unpriced.clone()]).await.unwrap();
    let body = |of: &Record| json!({ "requestId": of.request_id.to_string() });

    let shown = gate.call("usage-logs/getUsageLogDetail", &ann.key, body(&priced)).await.data();
    assert_eq!(shown["entry"]["requestId"], json!(priced.request_id.to_string()));
    assert_eq!(
        shown["costLines"],
        json!([
            { "kind": "input", "quantity": 10, "rateUsd": 0.000_001, "amountUsd": 0.000_01 },
            { "kind": "output", "quantity": 5, "rateUsd": 0.000_002, "amountUsd": 0.000_01 },
        ])
    );
    // (10 + 10) millionths × 1.5; the entry keeps what was charged then.
    assert_eq!(
        (&shown["costAtPresentPrices"], &shown["entry"]["costUsd"]),
        (&json!(0.000_03), &json!(0.001_230_001))
    );

    let without = gate.admin("usage-logs/getUsageLogDetail", body(&unpriced)).await.data();
    assert_eq!(
        (&without["costLines"], &without["costAtPresentPrices"]),
        (&json!([]), &json!(null))
    );
    let foreign = gate.call("usage-logs/getUsageLogDetail", &bob.key, body(&priced)).await;
    let unknown =
        gate.call("usage-logs/getUsageLogDetail", &bob.key, json!({ "requestId": "x" })).await;
    assert_eq!((foreign.failure(), unknown.failure()), ((400, "NOT_FOUND"), (400, "NOT_FOUND")));
    assert_eq!(foreign.body["error"], unknown.body["error"]);
}
