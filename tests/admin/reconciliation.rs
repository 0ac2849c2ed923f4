//! Vendors' invoices beside the ledger, against strict mocks of the vendors' report APIs: paging,
//! partial days, wrong keys, rate limits, files, and the daily check.

mod command;
mod daily;
mod vendor;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tollgate::domain::clock::Timestamp;
use tollgate::domain::ids::ProviderId;
use tollgate::domain::record::Record;
use tollgate::domain::usage::Usage;
use tollgate::store::Backend;

use super::gate::{Gate, NOON, Person};
use super::statistics::record;
use vendor::{COSTS, KEY, OPENAI_COSTS, OPENAI_USAGE, Trouble, Vendor};

const DAY_MS: i64 = 86_400_000;
/// 2026-11-18, UTC.
const DAY: Timestamp = Timestamp(NOON.0 - NOON.0 % DAY_MS - 3 * DAY_MS);
const CENT: i64 = 10_000_000;

/// A gateway with a provider, and a vendor.
struct Bed {
    gate: Gate,
    vendor: Vendor,
    ann: Person,
    provider: i64,
    _tasks: JoinSet<()>,
}

impl Bed {
    async fn start(kind: &str, more: Value) -> Self {
        Self::start_on(Backend::Sqlite, kind, more).await
    }

    async fn start_on(backend: Backend, kind: &str, more: Value) -> Self {
        let mut tasks = JoinSet::new();
        let vendor = Vendor::start(&mut tasks);
        let gate = Gate::start_on(backend).await;
        let provider = gate.provider("up").await;
        let ann = gate.person("ann", json!({})).await;
        let mut source =
            json!({ "providerId": provider, "kind": kind, "url": vendor.url, "adminKey": KEY });
        source.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        gate.admin("reconciliation/saveInvoiceSource", source).await.data();
        Self { gate, vendor, ann, provider, _tasks: tasks }
    }

    /// A request of the provider.
    fn request(&self, at: Timestamp, model: &str, tokens: [u64; 5], cost: i64) -> Record {
        let [input, cache_read, cache_write_5m, cache_write_1h, output] = tokens;
        Record {
            provider_id: Some(ProviderId(self.provider)),
            usage: Usage {
                input,
                cache_read,
                cache_write_5m,
                cache_write_1h,
                output,
                ..Usage::default()
            },
            ..record(&self.ann, at, model, Some(cost))
        }
    }

    async fn compare(&self, body: Value) -> Value {
        self.gate.admin("reconciliation/getReconciliation", body).await.data()
    }

    /// The lines of the only provider for these days.
    async fn lines(&self, start: &str, end: &str) -> Vec<Value> {
        let whole = self.compare(json!({ "startDate": start, "endDate": end })).await;
        assert_eq!(whole["providers"][0]["error"], Value::Null, "{whole}");
        whole["providers"][0]["lines"].as_array().unwrap().clone()
    }

    async fn error(&self) -> String {
        let whole =
            self.compare(json!({ "startDate": "2026-11-18", "endDate": "2026-11-19" })).await;
        whole["providers"][0]["error"].as_str().unwrap_or_else(|| panic!("{whole}")).to_owned()
    }
}

#[tokio::test]
async fn an_invoice_of_anthropic_is_compared_over_several_pages() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let bed = Bed::start_on(backend, "anthropic", json!({})).await;
        let next = DAY.plus_ms(DAY_MS);
        // Equal on the first day: two requests at the ends of the day, one line of the vendor.
        let records = [
            bed.request(DAY, "m-20260101", [10, 20, 3, 4, 5], CENT),
            bed.request(next.plus_ms(-1), "m-20260101", [1, 2, 0, 0, 1], CENT),
            // On the second day the vendor has more, and a request failed.
            bed.request(next, "m-20260101", [10, 0, 0, 0, 5], CENT),
            Record { status_code: 502, ..bed.request(next, "m-20260101", [0; 5], 0) },
        ];
        bed.gate.store.append_records(&records).await.unwrap();
        bed.vendor.anthropic_usage(DAY, json!("apikey_1"), "m", [11, 22, 3, 4, 6]);
        bed.vendor.anthropic_cost(DAY, "m", "2.0000001");
        bed.vendor.anthropic_usage(next, json!("apikey_1"), "m", [10, 0, 0, 0, 9]);
        bed.vendor.anthropic_cost(next, "m", "4");
        let lines = bed.lines("2026-11-18", "2026-11-19").await;
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert_eq!((&lines[0]["day"], &lines[0]["cause"]), (&json!("2026-11-18"), &Value::Null));
        assert_eq!(lines[0]["vendor"]["cacheWrite1hTokens"], 4);
        assert_eq!(lines[1]["cause"], "failed_after_sent");
        assert_eq!(
            (&lines[1]["difference"]["outputTokens"], &lines[1]["difference"]["costUsd"]),
            (&json!(4), &json!(0.03))
        );
        assert_eq!((&lines[1]["requests"], &lines[1]["failedRequests"]), (&json!(2), &json!(1)));
        let filter = &lines[1]["requestsFilter"];
        let log = bed.gate.admin("usage-logs/getUsageLogs", filter.clone()).await.data();
        assert_eq!(log["total"], 2, "the filter leads to the requests: {filter} {log}");
        assert_eq!(bed.vendor.asked().len(), 4, "one page for each day and report");
    }
}

#[tokio::test]
async fn an_invoice_of_openai_is_compared_by_key() {
    let bed = Bed::start("openai", json!({ "apiKeyIds": ["key_1"] })).await;
    bed.gate
        .store
        .append_records(&[bed.request(DAY, "gpt-5.1", [30, 60, 10, 0, 7], 3 * CENT)])
        .await
        .unwrap();
    for (key, factor) in [("key_1", 1), ("key_2", 5)] {
        let usage = json!({
            "object": "organization.usage.completions.result", "input_tokens": 100 * factor,
            "input_cached_tokens": 60 * factor, "input_cache_write_tokens": 10 * factor,
            "output_tokens": 7 * factor, "num_model_requests": 1, "model": "gpt-5.1-2026-11-13",
            "api_key_id": key,
        });
        bed.vendor.has(OPENAI_USAGE, DAY, usage);
        for (item, value) in [("input", 0.01), ("output", 0.02)] {
            let cost = json!({
                "object": "organization.costs.result", "project_id": null, "api_key_id": key,
                "line_item": format!("gpt-5.1-2026-11-13, {item}"),
                "amount": { "value": value * f64::from(factor), "currency": "usd" },
            });
            bed.vendor.has(OPENAI_COSTS, DAY, cost);
        }
    }
    let fee = json!({
        "amount": { "value": 0.5, "currency": "usd" }, "line_item": "web search tool calls",
        "project_id": null, "api_key_id": "key_1",
    });
    bed.vendor.has(OPENAI_COSTS, DAY, fee);
    let lines = bed.lines("2026-11-18", "2026-11-18").await;
    let shown: Vec<_> = lines.iter().map(|l| (&l["model"], &l["cause"])).collect();
    let (model, fee) = (json!("gpt-5.1"), json!("web search tool calls"));
    assert_eq!(shown, [(&model, &Value::Null), (&fee, &json!("unknown_fee"))], "{lines:?}");
    assert_eq!(lines[0]["apiKeyIds"], json!(["key_1"]));
}

#[tokio::test]
async fn use_outside_and_days_that_are_not_complete_are_told_apart() {
    let bed = Bed::start("anthropic", json!({})).await;
    let today = DAY.plus_ms(3 * DAY_MS);
    bed.gate
        .store
        .append_records(&[bed.request(today, "m", [10, 0, 0, 0, 5], CENT)])
        .await
        .unwrap();
    bed.vendor.anthropic_usage(today, json!("apikey_1"), "m", [4, 0, 0, 0, 1]);
    bed.vendor.anthropic_usage(DAY, json!("apikey_9"), "other", [1, 0, 0, 0, 1]);
    bed.vendor.anthropic_usage(DAY, Value::Null, "m", [1, 0, 0, 0, 1]);
    let fee = json!({
        "currency": "USD", "amount": "5", "description": "Code Execution Usage", "model": null,
        "cost_type": "code_execution", "token_type": null, "service_tier": null,
        "context_window": null, "workspace_id": null,
    });
    bed.vendor.has(COSTS, DAY, fee);
    let lines = bed.lines("2026-11-18", "2026-11-21").await;
    let shown: Vec<_> = lines
        .iter()
        .map(|l| [&l["day"], &l["part"], &l["cause"]].map(|v| v.as_str().unwrap_or("none")))
        .collect();
    assert_eq!(
        shown,
        [
            ["2026-11-18", "provider", "outside_gateway"],
            ["2026-11-18", "no_key", "outside_gateway"],
            ["2026-11-18", "fee", "unknown_fee"],
            ["2026-11-21", "provider", "report_not_complete"],
        ]
    );
}

#[tokio::test]
async fn a_vendor_that_fails_is_named_with_the_remedy_and_without_the_key() {
    let bed = Bed::start("anthropic", json!({})).await;
    bed.vendor.trouble(Trouble { limited: (2, "0"), ..Trouble::default() });
    assert!(bed.lines("2026-11-18", "2026-11-19").await.is_empty(), "a short limit is waited for");

    let answer = |status, body: &str| Trouble {
        answer: Some((status, body.to_owned())),
        ..Trouble::default()
    };
    let huge = "x".repeat(9 << 20);
    let cases = [
        (Trouble { limited: (9, "3600"), ..Trouble::default() }, "rate limit is reached"),
        (Trouble { is_endless: true, ..Trouble::default() }, "more than 64 pages"),
        (answer(302, ""), "answered 302"),
        (answer(404, ""), "check the address"),
        (answer(403, ""), "refused the administration key (403)"),
        (answer(200, "<html>"), "not of the documented form"),
        (answer(200, &huge), "larger than"),
    ];
    for (trouble, expected) in cases {
        bed.vendor.trouble(trouble);
        let error = bed.error().await;
        assert!(error.contains(expected) && !error.contains("sk-ant"), "{error}");
    }
    assert!(!bed.vendor.asked().iter().any(|path| path.contains("elsewhere")), "no redirect");
    bed.vendor.trouble(Trouble::default());
    let wrong = json!({ "providerId": bed.provider, "adminKey": "sk-ant-api-of-a-model" });
    bed.gate.admin("reconciliation/saveInvoiceSource", wrong).await.data();
    let error = bed.error().await;
    assert!(error.contains("refused the administration key (401): create one"), "{error}");
    assert!(!error.contains("of-a-model"), "{error}");
}

#[tokio::test]
async fn a_source_keeps_its_key_for_its_address_and_goes_with_its_provider() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let bed = Bed::start_on(backend, "anthropic", json!({ "alertAboveUsd": 2.5 })).await;
        let (gate, id) = (&bed.gate, bed.provider);
        let save = async |body: Value| gate.admin("reconciliation/saveInvoiceSource", body).await;
        let shown = gate.admin("reconciliation/getInvoiceSources", json!({})).await.data();
        assert_eq!(shown[0]["adminKey"], "sk-a…6789", "{shown}");
        assert_eq!(
            (&shown[0]["isDaily"], &shown[0]["alertAboveUsd"]),
            (&json!(false), &json!(2.5))
        );
        let stored = gate.store.invoice_sources().await.unwrap();
        assert!(!format!("{stored:?}").contains("of-the-vendor"), "sealed at rest");

        for elsewhere in [
            json!({ "url": "http://127.0.0.1:9" }),
            json!({ "url": null }),
            json!({ "kind": "openai" }),
        ] {
            let mut body = json!({ "providerId": id });
            body.as_object_mut().unwrap().extend(elsewhere.as_object().unwrap().clone());
            let refused = save(body.clone()).await;
            assert_eq!(refused.failure(), (400, "REQUIRED_FIELD"), "{elsewhere}");
            assert_eq!(refused.body["errorParams"]["field"], "adminKey");
        }
        let masked = save(json!({ "providerId": id, "adminKey": "sk-a…6789" })).await;
        assert_eq!(masked.failure(), (400, "INVALID_FORMAT"));
        let changed = save(json!({ "providerId": id, "url": format!("{}/proxy", bed.vendor.url) }));
        assert_eq!(changed.await.data()["url"], format!("{}/proxy", bed.vendor.url));
        let unknown = save(json!({ "providerId": 99, "kind": "openai", "adminKey": "k" })).await;
        assert_eq!(unknown.failure(), (400, "NOT_FOUND"));
        let audit =
            gate.admin("audit/getAuditLog", json!({ "action": "reconciliation." })).await.data();
        assert_eq!(audit["entries"].as_array().unwrap().len(), 2);
        assert!(!audit.to_string().contains(KEY), "{audit}");

        gate.admin("providers/removeProvider", json!({ "providerId": id })).await.data();
        assert_eq!(gate.store.invoice_sources().await.unwrap(), []);
        assert_eq!(gate.store.sealed_texts().await.unwrap().0, []);
        let gone =
            gate.admin("reconciliation/removeInvoiceSource", json!({ "providerId": id })).await;
        assert_eq!(gone.failure(), (400, "NOT_FOUND"));
    }
}

#[tokio::test]
async fn what_cannot_be_compared_is_refused() {
    let bed = Bed::start("anthropic", json!({})).await;
    let ask = async |body: Value| {
        let reply = bed.gate.admin("reconciliation/getReconciliation", body).await;
        let (status, code) = reply.failure();
        (status, code.to_owned(), reply.body["errorParams"]["field"].clone())
    };
    for (start, end) in [
        ("2026-11-19", "2026-11-18"),
        ("2026-10-01", "2026-11-18"),
        ("2026-11-18", "2026-12-18"),
        ("2026-11-21", "2026-11-22"),
    ] {
        let refused = ask(json!({ "startDate": start, "endDate": end })).await;
        assert_eq!(refused, (400, "INVALID_FORMAT".to_owned(), Value::Null), "{start} {end}");
    }
    let required = |field: &str| (400, "REQUIRED_FIELD".to_owned(), json!(field));
    let file = "cost,usage_start_time";
    assert_eq!(ask(json!({ "csv": file, "fileKind": "google" })).await, required("providerId"));
    assert_eq!(ask(json!({ "csv": file, "providerId": bed.provider })).await, required("fileKind"));
    assert_eq!(ask(json!({ "fileKind": "aws" })).await, required("csv"));
    let other = bed.gate.provider("without a source").await;
    assert_eq!(ask(json!({ "providerId": other })).await.1, "NOT_FOUND");
    let body = json!({ "csv": file, "fileKind": "google", "providerId": bed.provider });
    let whole = bed.compare(body).await;
    let error = whole["providers"][0]["error"].as_str().unwrap();
    assert!(error.contains("no column sku_description"), "{error}");
    assert!(bed.vendor.asked().is_empty());
}

#[tokio::test]
async fn a_billing_file_is_compared_by_descriptions() {
    let bed = Bed::start("anthropic", json!({})).await;
    let mut request = bed.request(DAY, "sonnet", [2_000, 0, 0, 0, 1_000], 2 * CENT);
    request.upstream_model = Some("us.anthropic.claude-sonnet-4-5-20250929-v1:0".into());
    bed.gate.store.append_records(&[request]).await.unwrap();
    let file = "line_item_usage_start_date,line_item_usage_type,line_item_unblended_cost,\
        line_item_usage_amount,line_item_product_code,pricing_unit\n\
        2026-11-18T01:00:00Z,USE1-Claude4.5Sonnet-input-tokens,0.005,2,AmazonBedrock,1K tokens\n\
        2026-11-18T02:00:00Z,USE1-Claude4.5Sonnet-output-tokens,0.015,1000,AmazonBedrock,Units\n\
        2026-10-18T02:00:00Z,USE1-Claude4.5Sonnet-output-tokens,0.015,1000,AmazonBedrock,Units\n";
    let body = json!({
        "providerId": bed.provider, "fileKind": "aws", "csv": file, "startDate": "2026-11-18",
        "endDate": "2026-11-18",
    });
    let whole = bed.compare(body).await;
    let lines = whole["providers"][0]["lines"].as_array().unwrap();
    assert_eq!((lines.len(), &lines[0]["cause"]), (1, &Value::Null), "{whole}");
    assert_eq!(lines[0]["requestedModels"], json!(["sonnet"]));
}
