//! The price list that the gateway fetches by itself, and the alarm about models without a price.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;

use crate::proxy::fixture::{Fixture, request};
use crate::support::gateway::Gateway;

const ENTRY: f64 = 2e-6;

fn list(dir: &Path, table: &Value) -> String {
    let path = dir.join("list.json");
    std::fs::write(&path, table.to_string()).unwrap();
    format!("file://{}", path.display())
}

/// The report of the daily sync, once there is one.
async fn synced(gateway: &Gateway) -> Value {
    let waiting = async {
        loop {
            let report = gateway.admin("model-prices/getPriceSync", json!({})).await;
            if !report["lastAt"].is_null() {
                return report;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waiting).await.unwrap()
}

async fn price(gateway: &Gateway, model: &str) -> Value {
    let prices = gateway.admin("model-prices/getModelPrices", json!({})).await;
    let found = prices.as_array().unwrap().iter().find(|price| price["modelName"] == model);
    found.cloned().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_is_taken_over_by_itself_and_its_changes_are_audited() {
    let dir = tempfile::tempdir().unwrap();
    let seed = list(dir.path(), &json!({}));
    let table = json!({
        "new-model": {"input_cost_per_token": ENTRY, "output_cost_per_token": ENTRY},
        "claude-haiku-4-5": {"input_cost_per_token": 9e-6, "output_cost_per_token": 1e-5},
        "broken": {"input_cost_per_token": "dear"},
    });
    std::fs::write(dir.path().join("list.json"), table.to_string()).unwrap();
    let env = [("TOLLGATE_PRICES_SYNC", "daily"), ("TOLLGATE_PRICES_SYNC_URL", &*seed)];
    let gateway = Gateway::with(&env).await;
    let report = synced(&gateway).await;
    assert_eq!((&report["mode"], &report["error"]), (&json!("daily"), &Value::Null), "{report}");
    assert_eq!((&report["added"], &report["updated"]), (&json!(1), &json!(1)), "{report}");
    assert_eq!((&report["failed"], &report["total"]), (&json!(1), &json!(3)), "{report}");
    assert_eq!(report["after"]["claude-haiku-4-5"]["input_cost_per_token"], json!(9e-6));
    assert_eq!(report["before"]["claude-haiku-4-5"]["input_cost_per_token"], json!(1e-6));
    assert_eq!(price(&gateway, "new-model").await["source"], "sync");

    let audit = gateway.admin("audit/getAuditLog", json!({"actor": "price sync"})).await;
    let entry = &audit["entries"][0];
    assert_eq!(entry["action"], "model-prices.syncLiteLLMPrices", "{audit}");
    let of =
        |state: &str| entry[state]["changes"]["claude-haiku-4-5"]["input_cost_per_token"].clone();
    assert_eq!((of("before"), of("after")), (json!(1e-6), json!(9e-6)), "{entry}");
    assert_eq!(entry["after"]["added"], json!(["new-model"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_cannot_be_read_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let broken = list(dir.path(), &json!([1, 2]));
    for address in [broken.as_str(), "http://127.0.0.1:9/list.json", "file:///nowhere/list.json"] {
        let env = [("TOLLGATE_PRICES_SYNC", "daily"), ("TOLLGATE_PRICES_SYNC_URL", address)];
        let gateway = Gateway::with(&env).await;
        let report = synced(&gateway).await;
        assert!(!report["error"].as_str().unwrap_or_default().is_empty(), "{address}: {report}");
        assert_eq!(price(&gateway, "claude-haiku-4-5").await["source"], "seed", "{address}");
        let audit = gateway.admin("audit/getAuditLog", json!({"actor": "price sync"})).await;
        assert_eq!(audit["entries"], json!([]), "{address}");
    }
}

/// A server that takes the connection and never answers.
#[tokio::test(flavor = "multi_thread")]
async fn requests_do_not_wait_for_the_list() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/list.json", silent.local_addr().unwrap());
    let (asked, was_asked) = tokio::sync::oneshot::channel();
    let mut holding = tokio::task::JoinSet::new();
    holding.spawn(async move {
        let (mut stream, _) = silent.accept().await.unwrap();
        let mut bytes = [0; 1024];
        let read = stream.read(&mut bytes).await.unwrap();
        asked.send(String::from_utf8_lossy(&bytes[..read]).into_owned()).unwrap();
        stream
    });
    let env = [("TOLLGATE_PRICES_SYNC", "daily"), ("TOLLGATE_PRICES_SYNC_URL", &*address)];
    let fixture = Fixture::native_with(&env).await;
    let head = was_asked.await.unwrap();
    assert!(head.starts_with("GET /list.json"), "{head}");
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    assert_eq!(price(&fixture.gateway, "claude-haiku-4-5").await["source"], "seed");
    let report = fixture.gateway.admin("model-prices/getPriceSync", json!({})).await;
    assert!(report["lastAt"].is_null(), "{report}");
}

/// Prices that the operator made, by hand or in a file of their own, stay.
#[tokio::test(flavor = "multi_thread")]
async fn the_operators_own_prices_stay() {
    let dir = tempfile::tempdir().unwrap();
    let seed = dir.path().join("seed.json");
    let own = json!({"own": {"input_cost_per_token": ENTRY}});
    std::fs::write(&seed, own.to_string()).unwrap();
    let table =
        json!({"own": {"input_cost_per_token": 9e-6}, "other": {"input_cost_per_token": ENTRY}});
    let address = list(dir.path(), &table);
    let env = [
        ("TOLLGATE_PRICES_SYNC", "daily"),
        ("TOLLGATE_PRICES_SYNC_URL", &*address),
        ("TOLLGATE_PRICES_SEED_FILE", seed.to_str().unwrap()),
    ];
    let gateway = Gateway::with(&env).await;
    assert_eq!(synced(&gateway).await["added"], 1);
    assert_eq!(price(&gateway, "own").await["priceData"], own["own"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_without_a_price_is_a_problem_from_the_first_request_on() {
    let fixture = Fixture::native().await;
    let mut body = request("native", false);
    body["model"] = json!("unheard-of");
    let ask = async || fixture.post("/v1/messages", &body).send().await.unwrap();
    let problem = async || {
        let overview = fixture.gateway.admin("overview/getOverviewData", json!({})).await;
        let problems = overview["attention"]["problems"].as_array().unwrap().clone();
        problems.into_iter().find(|problem| problem["kind"] == "model_unpriced")
    };
    assert!(problem().await.is_none());
    // The default serves a key without a money limit, and refuses one with a limit.
    assert_eq!(ask().await.status(), 200);
    let served = problem().await.unwrap();
    assert_eq!(served["params"]["models"], json!(["unheard-of"]));
    assert_eq!((&served["params"]["served"], &served["params"]["refused"]), (&json!(1), &json!(0)));
    let limit = json!({"userId": fixture.user_id, "limitMonthlyUsd": 5});
    fixture.gateway.admin("users/editUser", limit).await;
    assert_eq!(ask().await.status(), 403);
    assert_eq!(problem().await.unwrap()["params"]["refused"], 1);
    assert!((fixture.gateway.metric("tollgate_unpriced_models").await - 1.0).abs() < 0.1);
    // With a price it is none.
    let table = json!({"unheard-of": {"input_cost_per_token": ENTRY}});
    fixture.gateway.prices(table).await;
    assert!(problem().await.is_none());
    assert_eq!(ask().await.status(), 200);
}
