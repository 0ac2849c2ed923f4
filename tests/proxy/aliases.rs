//! Names of a group that stand for models: in the order of the list, priced as the model that
//! answers, cheaper ones when money runs out.

use serde_json::{Value, json};

use super::fixture::{FORMATS, Fixture, path, request};
use crate::support::gateway::ADMIN_TOKEN;
use crate::support::wait;

/// `large` costs ten times as much as `small`.
const LARGE: f64 = 1e-3;
const SMALL: f64 = 1e-4;

struct Bed {
    fixture: Fixture,
}

impl Bed {
    /// Two native providers, each with one of the models, and two of the other formats for `small`.
    async fn with(env: &[(&str, &str)], alias: Value) -> Self {
        let fixture = Fixture::bare(env).await;
        let price = |rate: f64| {
            let (input, output) = (rate, rate);
            json!({"mode": "chat", "input_cost_per_token": input, "output_cost_per_token": output})
        };
        let prices = json!({"large": price(LARGE), "small": price(SMALL)});
        fixture.gateway.prices(prices).await;
        let (gateway, url) = (&fixture.gateway, &fixture.upstream.url);
        let of = |name: &str, key: &str, model: &str| json!({"name": name, "key": key, "allowed_models": [model]});
        // The lower number, yet the later model.
        gateway.provider("native", url, of("for small", "sk-small-0123456789", "small")).await;
        let mut large = of("for large", "sk-large-0123456789", "large");
        large["priority"] = json!(5);
        gateway.provider("native", url, large).await;
        let bed = Self { fixture };
        bed.alias(alias).await;
        bed
    }

    async fn alias(&self, alias: Value) {
        let groups = json!({"groupFeatures": [{"group": "default", "aliases": [alias]}]});
        self.fixture.gateway.admin("system-config/saveSystemSettings", groups).await;
    }

    async fn ask(&self, session: &str) -> reqwest::Response {
        let mut body = request("native", false);
        body["model"] = json!("fast");
        let ask = self.fixture.post("/v1/messages", &body).header("x-session-id", session);
        ask.send().await.unwrap()
    }

    async fn newest(&self, requests: usize) -> Value {
        self.fixture.gateway.logs(requests).await.swap_remove(0)
    }

    async fn sent_models(&self) -> Vec<String> {
        let all = self.fixture.upstream.requests().await;
        all.iter().map(|one| one["body"]["model"].as_str().unwrap().to_owned()).collect()
    }
}

fn fast() -> Value {
    json!({"name": "fast", "models": ["large", "small"]})
}

fn header<'r>(reply: &'r reqwest::Response, name: &str) -> Option<&'r str> {
    reply.headers().get(name).map(|value| value.to_str().unwrap())
}

fn usd(row: &Value) -> String {
    row["costUsd"].to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_model_answers_and_the_next_one_stands_in_each_at_its_own_price() {
    let bed = Bed::with(&[], fast()).await;
    let upstream = &bed.fixture.upstream;
    upstream.default(json!({"usage": {"input": 1000, "output": 1000}})).await;
    let reply = bed.ask("one").await;
    assert_eq!((reply.status().as_u16(), header(&reply, "x-tollgate-model")), (200, Some("large")));
    assert_eq!(header(&reply, "x-tollgate-degraded"), None);
    let row = bed.newest(1).await;
    assert_eq!((&row["model"], &row["providerName"]), (&json!("large"), &json!("for large")));
    assert_eq!(usd(&row), "2", "{row}");
    let chain = row["decisionChain"].as_array().unwrap();
    assert_eq!(chain[0]["detail"], "fast stands for large, small", "{row}");
    let detail = |provider: &str| {
        let of = chain.iter().find(|one| one["providerName"] == provider).unwrap();
        of["detail"].as_str().unwrap()
    };
    let first = "it serves the first of the models that the name stands for";
    let later = "it serves a later model of those that the name stands for";
    assert_eq!((detail("for large"), detail("for small")), (first, later), "{row}");
    upstream.default_for("sk-large-0123456789", json!({"status": 500})).await;
    let reply = bed.ask("two").await;
    assert_eq!((reply.status().as_u16(), header(&reply, "x-tollgate-model")), (200, Some("small")));
    let row = bed.newest(2).await;
    assert_eq!((&row["model"], &row["upstreamModel"]), (&json!("small"), &Value::Null), "{row}");
    assert_eq!(usd(&row), "0.2", "{row}");
    assert_eq!(bed.sent_models().await, ["large", "large", "small"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_format_may_ask_by_the_name_and_lists_show_it() {
    let bed = Bed::with(&[], fast()).await;
    let fixture = &bed.fixture;
    for format in FORMATS {
        for stream in [false, true] {
            let path = path(format, stream).replace("/m:", "/fast:");
            let mut body = request(format, stream);
            if format != "alt-cli" {
                body["model"] = json!("fast");
            }
            let reply = fixture.post(&path, &body).send().await.unwrap();
            assert_eq!(reply.status(), 200, "{format} {stream}");
            assert_eq!(header(&reply, "x-tollgate-model"), Some("large"), "{format} {stream}");
            reply.text().await.unwrap();
        }
    }
    assert_eq!(bed.sent_models().await, ["large"; 8]);
    let url = format!("{}/v1/models", fixture.gateway.proxy);
    let list = fixture.gateway.client.get(url).header("x-api-key", &fixture.key).send().await;
    let list: Value = list.unwrap().json().await.unwrap();
    let ids: Vec<_> = list["data"].as_array().unwrap().iter().map(|one| &one["id"]).collect();
    assert_eq!(ids, ["fast", "large", "small"], "{list}");
    let asked = json!({"keyId": fixture.key_id, "format": "native", "model": "fast"});
    let explained = fixture.gateway.admin("providers/explainSelection", asked).await;
    assert_eq!(explained["decisionChain"][1]["providerName"], "for large", "{explained}");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_models_allow_the_name_or_what_it_stands_for() {
    let bed = Bed::with(&[], fast()).await;
    for (listed, expected) in [
        (json!(["fast"]), Some("large")),
        (json!(["fa*"]), Some("large")),
        (json!(["small"]), Some("small")),
        (json!(["other"]), None),
    ] {
        let user = json!({"userId": bed.fixture.user_id, "allowedModels": listed});
        bed.fixture.gateway.admin("users/editUser", user).await;
        let reply = bed.ask("any").await;
        let status = if expected.is_some() { 200 } else { 403 };
        assert_eq!(reply.status().as_u16(), status, "{listed}");
        assert_eq!(header(&reply, "x-tollgate-model"), expected, "{listed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cheaper_model_answers_once_most_of_a_limit_is_spent() {
    let alias = json!({"name": "fast", "models": ["large"], "degradeModels": ["small"],
        "degradeAt": 50});
    let bed = Bed::with(&[], alias).await;
    let fixture = &bed.fixture;
    fixture.upstream.default(json!({"usage": {"input": 1000, "output": 1000}})).await;
    // One request of `large` costs 2 USD.
    let user = json!({"userId": fixture.user_id, "dailyQuota": 3.9});
    fixture.gateway.admin("users/editUser", user).await;
    let reply = bed.ask("one").await;
    assert_eq!(header(&reply, "x-tollgate-model"), Some("large"));
    bed.newest(1).await;
    let reply = bed.ask("one").await;
    assert_eq!(reply.status(), 200);
    assert_eq!(header(&reply, "x-tollgate-model"), Some("small"));
    assert_eq!(header(&reply, "x-tollgate-degraded"), Some("true"));
    let row = bed.newest(2).await;
    let why = "fast stands for small, because 2 of 3.9 USD of the user's daily limit are spent";
    assert_eq!(row["decisionChain"][0]["detail"], why, "{row}");
    assert_eq!(usd(&row), "0.2", "{row}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cheaper_model_answers_where_a_limit_has_no_room_for_the_other() {
    let alias = json!({"name": "fast", "models": ["large"], "degradeModels": ["small"],
        "degradeAt": 100});
    let bed = Bed::with(&[("TOLLGATE_LIMITS_RESERVATION", "strict")], alias).await;
    let fixture = &bed.fixture;
    // 100 tokens of output: `large` may cost some 0.2 USD, so no two fit beside each other.
    let user = json!({"userId": fixture.user_id, "dailyQuota": 0.35});
    fixture.gateway.admin("users/editUser", user).await;
    fixture.upstream.script(json!([{"delay_ms": 1500}])).await;
    let (first, second) = tokio::join!(bed.ask("one"), async {
        wait::until(
            || "the first request was not sent".to_owned(),
            async || fixture.upstream.requests().await.len() == 1,
        )
        .await;
        bed.ask("two").await
    });
    assert_eq!((first.status().as_u16(), header(&first, "x-tollgate-model")), (200, Some("large")));
    assert_eq!(
        (second.status().as_u16(), header(&second, "x-tollgate-model")),
        (200, Some("small"))
    );
    let rows = fixture.gateway.logs(2).await;
    let row = rows.iter().find(|row| row["model"] == "small").unwrap();
    let chain = row["decisionChain"].as_array().unwrap();
    let why = chain.iter().filter_map(|one| one["detail"].as_str());
    let why = why.filter(|said| said.contains("stands for")).collect::<Vec<_>>();
    assert_eq!(why.len(), 2, "{row}");
    let reason = "fast stands for small, because the user_daily limit of 0.35 could be exceeded";
    assert!(why[1].starts_with(reason), "{why:?}");
    // Another limit is not about money.
    let user = json!({"userId": fixture.user_id, "dailyQuota": null, "rpm": 1});
    fixture.gateway.admin("users/editUser", user).await;
    assert_eq!(bed.ask("one").await.status(), 429);
    assert_eq!(bed.sent_models().await, ["large", "small"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alias_without_models_or_with_a_strange_percentage_is_refused() {
    let bed = Bed::with(&[], fast()).await;
    let gateway = &bed.fixture.gateway;
    let url = format!("{}/api/actions/system-config/saveSystemSettings", gateway.admin);
    for wrong in [
        json!({"name": "fast", "models": []}),
        json!({"name": "", "models": ["large"]}),
        json!({"name": "fast"}),
        json!({"name": "fast", "models": ["large"], "degradeAt": 0}),
        json!({"name": "fast", "models": ["large"], "degradeAt": 101}),
        json!({"name": "fast", "models": ["large"], "other": 1}),
    ] {
        let groups = json!({"groupFeatures": [{"group": "default", "aliases": [wrong]}]});
        let sent = gateway.client.post(&url).bearer_auth(ADMIN_TOKEN).json(&groups).send().await;
        assert_eq!(sent.unwrap().status(), 400, "{wrong}");
    }
    let kept = gateway.admin("system-config/fetchSystemSettings", json!({})).await;
    assert_eq!(kept["groupFeatures"][0]["aliases"][0]["models"], json!(["large", "small"]));
}
