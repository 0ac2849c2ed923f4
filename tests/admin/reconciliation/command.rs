//! `tollgate reconcile`, on the database and on a running gateway; the source in `apply`, `export`
//! and `secret rotate`.

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tollgate::domain::clock::{Clock, SystemClock, Timestamp};
use tollgate::domain::record::Record;
use tollgate::store::Store;

use super::vendor::{KEY, Vendor};
use super::{CENT, DAY_MS};
use crate::admin::gate::Person;
use crate::admin::statistics::record;
use crate::support::gateway::Gateway;

/// Three days ago.
fn day() -> Timestamp {
    let now = SystemClock.now();
    Timestamp(now.0 - now.0.rem_euclid(DAY_MS) - 3 * DAY_MS)
}

fn document(vendor: &Vendor, key: &str) -> String {
    format!(
        "version: 1\nproviders:\n  - {{name: up, url: 'http://127.0.0.1:9', key: k}}\n\
         invoice_sources:\n  - {{provider: up, kind: anthropic, url: '{}', admin_key: {key}}}\n",
        vendor.url
    )
}

/// A stopped gateway with a source and a request that the vendor counts otherwise.
async fn furnished(tasks: &mut JoinSet<()>) -> (Gateway, Vendor) {
    let vendor = Vendor::start(tasks);
    let mut gateway = Gateway::prepare(&[("VENDOR_KEY", KEY)]);
    let (good, said) = gateway.run(&["migrate"]);
    assert!(good, "{said}");
    let file = gateway.dir.path().join("gateway.yaml");
    std::fs::write(&file, document(&vendor, "'${VENDOR_KEY}'")).unwrap();
    let (good, said) = gateway.run(&["apply", "--file", file.to_str().unwrap()]);
    assert!(good && said.contains("+ invoice source \"up\"") && !said.contains(KEY), "{said}");
    let store = Store::open_sqlite(&gateway.dir.path().join("data")).await.unwrap();
    let nobody = Person { id: 1, key_id: 1, key: String::new() };
    let request = Record {
        usage: tollgate::domain::usage::Usage { output: 5, ..Default::default() },
        ..record(&nobody, day(), "=m", Some(CENT))
    };
    store.append_records(&[request]).await.unwrap();
    vendor.anthropic_usage(day(), json!("apikey_1"), "=m", [0, 0, 0, 0, 9]);
    vendor.anthropic_cost(day(), "=m", "4");
    gateway.set("VENDOR_KEY", "changed");
    (gateway, vendor)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_prints_the_same_from_the_database_and_from_a_gateway() {
    let mut tasks = JoinSet::new();
    let (mut gateway, _vendor) = furnished(&mut tasks).await;
    let date = day().to_utc().format("%Y-%m-%d").to_string();
    let days = ["reconcile", "--from", &date, "--until", &date];
    let (good, said) = gateway.run(&days);
    assert!(
        good && said.contains("up: invoice 0.04 USD, ledger 0.01 USD, 1 of 1 lines differ"),
        "{said}"
    );
    assert!(said.contains("=m: output +4, +0.03 USD (use outside the gateway)"), "{said}");
    let in_form = |form: &'static str| [&days[..], &["--format", form]].concat();
    let (good, csv) = gateway.run(&in_form("csv"));
    let rows: Vec<&str> = csv.lines().collect();
    assert!(good && rows.len() == 2, "{csv}");
    assert!(
        rows[1].starts_with(&format!("up,{date},'=m,provider,outside_gateway,1,0,0,apikey_1,")),
        "{csv}"
    );
    let (good, by_database) = gateway.run(&in_form("json"));
    assert!(good, "{by_database}");

    gateway.spawn();
    gateway.ready().await;
    let (url, token) = (gateway.admin.clone(), gateway.dir.path().join("token"));
    std::fs::write(&token, gateway.variable("ADMIN_TOKEN")).unwrap();
    let way = ["--provider", "up", "--url", &url, "--token-file", token.to_str().unwrap()];
    let (good, by_gateway) = gateway.run(&[&in_form("json")[..], &way].concat());
    assert!(good, "{by_gateway}");
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap()["providers"].clone();
    assert_eq!(read(&by_database), read(&by_gateway));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_reads_billing_files_and_says_what_is_wrong() {
    let mut tasks = JoinSet::new();
    let (gateway, vendor) = furnished(&mut tasks).await;
    let date = day().to_utc().format("%Y-%m-%d").to_string();
    let path = gateway.dir.path().join("billing.csv");
    let head = "service.description,sku.description,usage_start_time,usage.amount,cost,currency\n";
    let line = format!("Vertex AI,Gemini 9 Flash Output,{date} 07:00:00 UTC,100,0.5,USD\n");
    std::fs::write(&path, format!("{head}{line}")).unwrap();
    let file = path.to_str().unwrap();
    let run = |more: &[&str]| {
        gateway.run(&[&["reconcile", "--from", &date, "--until", &date][..], more].concat())
    };
    let (good, said) = run(&["--provider", "up", "--google", file]);
    assert!(good && said.contains("Gemini 9 Flash Output: output +100, +0.5 USD"), "{said}");
    assert!(vendor.asked().is_empty(), "a file takes the place of the report");
    let (good, said) = run(&["--google", file]);
    assert!(!good && said.contains("--provider"), "{said}");
    let (good, said) = run(&["--provider", "nobody"]);
    assert!(!good && said.contains("there is no provider \"nobody\""), "{said}");
    let (good, said) = run(&["--provider", "up", "--aws", file]);
    assert!(!good && said.contains("no column line_item_usage_start_date"), "{said}");
    std::fs::write(&path, format!("{head}{}", line.replace("0.5", "much"))).unwrap();
    let (good, said) = run(&["--provider", "up", "--google", file]);
    assert!(!good && said.contains("line 2 of the file: the amount much"), "{said}");
    let (good, said) = gateway.run(&["reconcile", "--from", "2020-01-01", "--until", &date]);
    assert!(!good && said.contains("compare 1 to 31 days"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_is_exported_applied_and_sealed_again() {
    let mut tasks = JoinSet::new();
    let (gateway, vendor) = furnished(&mut tasks).await;
    let file = gateway.dir.path().join("exported.yaml");
    let file = file.to_str().unwrap();
    let apply = |text: &str, more: &[&str]| {
        std::fs::write(file, text).unwrap();
        gateway.run(&[&["apply", "--file", file][..], more].concat())
    };
    for secrets in ["masked", "sealed"] {
        let (good, text) = gateway.run(&["export", "--secrets", secrets]);
        assert!(good && text.contains("invoice_sources:") && !text.contains(KEY), "{text}");
        let (good, said) = apply(&text, &[]);
        assert!(good && said.contains("No changes"), "{secrets}: {said}");
        // A sealed key opens for its own address alone.
        let (good, said) = apply(&text.replace(&vendor.url, "http://127.0.0.2:9"), &[]);
        assert!(!good && said.contains("admin_key"), "{secrets}: {said}");
    }
    let unknown = "version: 1\ninvoice_sources:\n  - {provider: x, kind: openai, admin_key: k}\n";
    let (good, said) = apply(unknown, &[]);
    assert!(!good && said.contains("there is no provider \"x\""), "{said}");

    let (good, said) = gateway.run(&["secret", "rotate"]);
    assert!(good && said.contains("2 of 2 stored texts"), "{said}");
    let date = day().to_utc().format("%Y-%m-%d").to_string();
    let (good, said) = gateway.run(&["reconcile", "--from", &date, "--until", &date]);
    assert!(good && said.contains("1 of 1 lines differ"), "the key opens: {said}");

    let (good, said) = apply("version: 1\ninvoice_sources: []\n", &["--prune"]);
    assert!(good && said.contains("- invoice source \"up\""), "{said}");
    let (good, said) = gateway.run(&["reconcile"]);
    assert!(good && said.contains("No provider has an invoice source"), "{said}");
}
