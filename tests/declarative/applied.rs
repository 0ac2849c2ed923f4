//! What a file changes: shown, in effect at once, in the audit log, and once only.

use serde_json::json;
use tollgate::store::Backend;

use super::{Bed, Way, on_both};
use crate::support::upstream::Upstream;

on_both!(
    the_plan_is_shown_and_a_second_run_changes_nothing,
    a_key_that_was_made_works_and_one_that_was_in_use_goes_on_working,
    a_dry_run_changes_nothing,
    a_database_is_written_without_a_gateway,
    a_database_that_no_gateway_has_used_yet_is_furnished,
    a_running_gateway_takes_a_change_of_its_database_over,
    a_provider_that_the_gateway_disabled_stays_disabled,
    a_key_that_the_gateway_disabled_stays_disabled,
);

fn file(url: &str, daily: u32) -> String {
    format!(
        "version: 1\nproviders:\n  - name: main\n    url: {url}\n    key: an-upstream-credential\n\
         users:\n  - name: ada\n    limit_daily_usd: {daily}\n    keys:\n      - name: laptop\n        limit_daily_usd: 2\n\
         prices:\n  m: {{ mode: chat, input_cost_per_token: 0.000001, output_cost_per_token: 0.000002 }}\n"
    )
}

/// The key's text behind its name.
fn shown_key<'a>(said: &'a str, name: &str) -> &'a str {
    let line = said
        .lines()
        .find(|line| line.trim_start().starts_with(name))
        .unwrap_or_else(|| panic!("{said}"));
    line.rsplit(' ').next().unwrap()
}

async fn ask(bed: &Bed, key: &str) -> u16 {
    let body =
        json!({"model": "m", "max_tokens": 8, "messages": [{"role": "user", "content": "hi"}]});
    let ask = bed
        .gateway
        .client
        .post(format!("{}/v1/messages", bed.gateway.proxy))
        .header("x-api-key", key);
    ask.json(&body).send().await.unwrap().status().as_u16()
}

async fn the_plan_is_shown_and_a_second_run_changes_nothing(backend: Backend) {
    let bed = Bed::start(backend).await;
    for way in [Way::Api, Way::Database] {
        let url = format!("https://{way:?}.example.com");
        let name = |text: String| {
            text.replace("main", &format!("main {way:?}")).replace("ada", &format!("ada {way:?}"))
        };
        let text = name(file(&url, 5)).replace("  m:", &format!("  m-{way:?}:"));
        let said = bed.apply(way, &text, &[]);
        assert!(said.contains("Plan: 4 to add, 0 to change, 0 to remove.\nApplied.\n"), "{said}");
        for line in [
            format!("+ provider \"main {way:?}\"\n"),
            format!("    url: \"{url}\"\n    key: \"an-u…tial\"\n"),
            format!("+ user \"ada {way:?}\"\n"),
            "    limit_daily_usd: 5\n".to_owned(),
            format!("+ key \"ada {way:?}/laptop\"\n"),
            format!("+ price \"m-{way:?}\"\n"),
        ] {
            assert!(said.contains(&line), "{line:?} in {said}");
        }
        assert!(
            !said.contains("weight") && !said.contains("an-upstream-credential"),
            "defaults, secrets: {said}"
        );
        let said = bed.apply(way, &text, &[]);
        assert!(
            said.contains("No changes")
                && said.contains("Plan: 0 to add, 0 to change, 0 to remove."),
            "{said}"
        );
        assert!(!said.contains("Applied") && !said.contains("New keys"), "{said}");
        let said = bed.apply(way, &text.replace("limit_daily_usd: 5", "limit_daily_usd: 10"), &[]);
        let change = format!(
            "~ user \"ada {way:?}\"\n    limit_daily_usd: 5 → 10\n\nPlan: 0 to add, 1 to change, 0 to remove."
        );
        assert!(said.contains(&change), "{said}");
    }
    let audits = bed.audits().await;
    assert_eq!(audits.len(), 10, "{audits:?}");
    assert_eq!(audits[0]["actor"], "command line");
    assert_eq!(audits[9]["actor"], "admin token");
    assert_eq!(
        (&audits[0]["before"]["limit_daily_usd"], &audits[0]["after"]["limit_daily_usd"]),
        (&json!(5), &json!(10))
    );
    assert!(audits[9]["target"].as_str().unwrap().starts_with("provider "), "{audits:?}");
    assert!(!json!(audits).to_string().contains("an-upstream-credential"));
}

async fn a_key_that_was_made_works_and_one_that_was_in_use_goes_on_working(backend: Backend) {
    let bed = Bed::start(backend).await;
    let upstream = Upstream::start().await;
    let said = bed.apply(Way::Api, &file(&upstream.url, 5), &[]);
    let made = shown_key(&said, "ada/laptop").to_owned();
    assert!(made.starts_with("sk-") && made.len() == 35, "{said}");
    assert_eq!(ask(&bed, &made).await, 200);

    let mine = "sk-of-another-gateway-0123456789";
    let more = format!("      - {{ name: moved, key: {mine} }}\n");
    let text = file(&upstream.url, 5).replace("prices:", &format!("{more}prices:"));
    let said = bed.apply(Way::Api, &text, &[]);
    assert!(
        said.contains("+ key \"ada/moved\"")
            && said.contains("sk-of-a…6789")
            && !said.contains(mine),
        "{said}"
    );
    assert_eq!((ask(&bed, mine).await, ask(&bed, &made).await), (200, 200));

    // Another text for a key: the former one stops at once.
    let said = bed.apply(Way::Api, &text.replace(mine, "sk-of-a-third-gateway-987654321"), &[]);
    assert!(said.contains("key: \"sk-of-a…6789\" → \"sk-of-a…4321\""), "{said}");
    assert_eq!(
        (ask(&bed, mine).await, ask(&bed, "sk-of-a-third-gateway-987654321").await),
        (401, 200)
    );
    // As a hash it is the same key.
    let exported = bed.export(Way::Api);
    assert!(
        exported.contains("hash: sha256:") && exported.contains("prefix: sk-of-a"),
        "{exported}"
    );
    assert!(!exported.contains("third") && !exported.contains(&made), "{exported}");
}

async fn a_dry_run_changes_nothing(backend: Backend) {
    let bed = Bed::start(backend).await;
    let before = bed.export(Way::Database);
    for way in [Way::Api, Way::Database] {
        let said = bed.apply(way, &file("https://llm.example.com", 5), &["--dry-run"]);
        assert!(said.contains("Plan: 4 to add, 0 to change, 0 to remove."), "{said}");
        assert!(
            !said.contains("Applied") && !said.contains("sk-") && !said.contains("New keys"),
            "{said}"
        );
        assert_eq!(bed.export(Way::Database), before);
    }
    assert!(bed.audits().await.is_empty());
}

async fn a_database_is_written_without_a_gateway(backend: Backend) {
    let mut bed = Bed::start(backend).await;
    let upstream = Upstream::start().await;
    bed.gateway.signal("TERM");
    bed.gateway.ended().await;
    let (code, _, err) = bed.run(Way::Api, &["export"]);
    assert!(code == Some(1) && err.contains("the gateway at http://127.0.0.1"), "{err}");
    let said = bed.apply(Way::Database, &file(&upstream.url, 5), &[]);
    assert!(said.contains("Applied."), "{said}");
    let key = shown_key(&said, "ada/laptop").to_owned();
    bed.gateway.spawn();
    bed.gateway.ready().await;
    assert_eq!(ask(&bed, &key).await, 200);
    assert!(bed.gateway.check().0);
}

/// `migrate` and `apply` before the first start.
async fn a_database_that_no_gateway_has_used_yet_is_furnished(backend: Backend) {
    let mut bed = Bed::prepare(backend);
    let text = file("https://llm.example.com", 5)
        + "error_rules:\n  - { builtin: prompt_too_long, removed: true }\n";
    bed.write("gateway.yaml", &text);
    let (code, _, err) = bed.run(Way::Database, &["apply", "-f", "gateway.yaml"]);
    assert!(code == Some(1) && err.contains("tollgate migrate"), "{err}");
    bed.done(Way::Database, &["migrate"]);
    let said = bed.apply(Way::Database, &text, &["--dry-run"]);
    assert!(
        said.contains("- error rule \"prompt_too_long\"") && said.contains("Plan: 4 to add"),
        "{said}"
    );
    bed.apply(Way::Database, &text, &[]);
    bed.gateway.spawn();
    bed.gateway.ready().await;
    let prices = bed.gateway.admin("model-prices/getModelPrices", json!({})).await;
    assert!(prices.as_array().unwrap().len() > 10, "the program's own are there too: {prices}");
    assert!(bed.apply(Way::Api, &text, &["--prune"]).contains("No changes"));
}

async fn a_running_gateway_takes_a_change_of_its_database_over(backend: Backend) {
    let bed = Bed::start(backend).await;
    let upstream = Upstream::start().await;
    let said = bed.apply(Way::Database, &file(&upstream.url, 5), &[]);
    let key = shown_key(&said, "ada/laptop").to_owned();
    let began = std::time::Instant::now();
    while ask(&bed, &key).await != 200 {
        assert!(began.elapsed() < std::time::Duration::from_secs(30), "{}", bed.gateway.log());
    }
}

async fn a_key_that_the_gateway_disabled_stays_disabled(backend: Backend) {
    let bed = Bed::start(backend).await;
    let further = "    credentials:\n      - name: b\n        key: a-second-upstream-credential\n";
    let text = file("https://llm.example.com", 5);
    let text = text.replace("    key: an-", &format!("{further}    key: an-"));
    let said = bed.apply(Way::Api, &text, &[]);
    assert!(!said.contains("a-second-upstream"), "{said}");
    let key = async || {
        let all = bed.gateway.admin("providers/getProviders", json!({})).await;
        all[0]["credentials"][0].clone()
    };
    let id = key().await["id"].as_i64().unwrap();
    let off = json!([{"id": 0, "name": "key", "isEnabled": true}, {"id": id, "name": "b", "isEnabled": false,
        "refused": {"kind": "status", "status": 401, "message": "no", "at": 1_700_000_000_000_i64}}]);
    bed.meddle(&format!("UPDATE providers SET credentials = '{off}'")).await;
    for _ in 0..2 {
        let said = bed.apply(Way::Api, &text, &[]);
        assert!(said.contains("No changes"), "{said}");
    }
    assert!(!bed.export(Way::Api).contains("is_enabled: false"), "{}", bed.export(Way::Api));
    bed.apply(Way::Api, &text.replace("    key: an-", "    weight: 7\n    key: an-"), &[]);
    assert_eq!(
        (&key().await["isEnabled"], &key().await["refused"]["status"]),
        (&json!(false), &json!(401))
    );
    let said = bed.apply(Way::Api, &text.replace("a-second-", "another-second-"), &[]);
    assert!(said.contains("credentials") && !said.contains("second-upstream"), "{said}");
    assert_eq!((&key().await["isEnabled"], key().await["refused"].is_null()), (&json!(true), true));
    // A document with the list left out removes it.
    bed.apply(Way::Api, &file("https://llm.example.com", 5), &[]);
    assert!(key().await.is_null());
}

async fn a_provider_that_the_gateway_disabled_stays_disabled(backend: Backend) {
    let bed = Bed::start(backend).await;
    let text = file("https://llm.example.com", 5);
    bed.apply(Way::Api, &text, &[]);
    let off = r#"{"at":1700000000000,"failedProbes":3,"error":null}"#;
    bed.meddle(&format!("UPDATE providers SET is_enabled = 0, switched_off = '{off}'")).await;
    let provider = async || bed.gateway.admin("providers/getProviders", json!({})).await[0].clone();
    assert_eq!(provider().await["isEnabled"], false);
    let said = bed.apply(Way::Api, &text, &[]);
    assert!(said.contains("No changes"), "{said}");
    assert!(!bed.export(Way::Api).contains("is_enabled: false"));
    bed.apply(Way::Api, &text.replace("    key: an-", "    weight: 7\n    key: an-"), &[]);
    let changed = provider().await;
    assert_eq!(
        (&changed["weight"], &changed["isEnabled"], changed["switchedOff"].is_null()),
        (&json!(7), &json!(false), false)
    );
    let said = bed.apply(
        Way::Api,
        &text.replace("an-upstream-credential", "another-upstream-credential"),
        &[],
    );
    assert!(said.contains("key: \"an-u…tial\" → \"anot…tial\""), "{said}");
    let changed = provider().await;
    assert_eq!(
        (&changed["isEnabled"], changed["switchedOff"].is_null()),
        (&json!(true), true),
        "with another key it may work"
    );
}
