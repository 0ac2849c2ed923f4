//! Models without a price passed every limit of money.

use serde_json::{Value, json};

use crate::proxy::stage::{FORMATS, Stage, path, request};

const REFUSE_WHEN_LIMITED: &[(&str, &str)] = &[("TOLLGATE_PRICES_UNPRICED", "refuse_when_limited")];

async fn staged(env: &[(&str, &str)]) -> Stage {
    let stage = Stage::bare(env).await;
    for kind in FORMATS {
        stage.gateway.provider(kind, &stage.upstream.url, json!({})).await;
    }
    stage
}

/// What a request for a model with or without a price gets, in each format.
async fn ask(stage: &Stage, format: &str, model: &str) -> (u16, Value) {
    let mut body = request(format, false);
    let mut to = path(format, false).to_owned();
    match format {
        "alt-cli" => to = to.replace("/m:", &format!("/{model}:")),
        _ => body["model"] = json!(model),
    }
    let answer = stage.post(&to, &body).send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_with_a_money_limit_is_refused_a_model_without_a_price_in_its_format() {
    let stage = staged(REFUSE_WHEN_LIMITED).await;
    for format in FORMATS {
        assert_eq!(ask(&stage, format, "unheard-of").await.0, 200, "{format}: no limit yet");
    }
    stage.gateway.admin("keys/editKey", json!({"keyId": stage.key_id, "limitTotalUsd": 5})).await;
    for format in FORMATS {
        let (status, body) = ask(&stage, format, "unheard-of").await;
        assert_eq!(status, 403, "{format}: {body}");
        let text = body.to_string();
        assert!(text.contains("unheard-of") && text.contains("add a price for it"), "{format}: {body}");
        assert!(text.to_lowercase().contains("model_not_priced"), "{format}: {body}");
        assert_eq!(ask(&stage, format, "m").await.0, 200, "{format}: priced");
        assert_eq!(ask(&stage, format, "m-latest").await.0, 200, "{format}: priced under another name");
    }
    let rows = stage.gateway.logs(16).await;
    let refused: Vec<_> = rows.iter().filter(|row| row["outcome"] == "refused").collect();
    assert_eq!(refused.len(), 4);
    assert!(refused.iter().all(|row| row["costUsd"] == 0 && row["statusCode"] == 403), "{refused:?}");
    assert_eq!(stage.upstream.requests().await.len(), 12, "no provider saw the refused ones");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_of_the_user_counts_and_a_token_count_is_not_refused() {
    let stage = staged(REFUSE_WHEN_LIMITED).await;
    stage.gateway.admin("users/editUser", json!({"userId": stage.user_id, "dailyQuota": 5})).await;
    assert_eq!(ask(&stage, "native", "unheard-of").await.0, 403);
    let body = json!({"model": "unheard-of", "messages": request("native", false)["messages"]});
    let counted = stage.post("/v1/messages/count_tokens", &body).send().await.unwrap();
    assert_eq!(counted.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_where_the_model_has_a_price_serves_it_and_no_other_stands_in() {
    let stage = Stage::bare(&[("TOLLGATE_PRICES_UNPRICED", "refuse")]).await;
    let unpriced = json!({"name": "without", "priority": 0, "model_redirects": {"alias": "unheard-of"}});
    let unpriced = stage.gateway.provider("native", &stage.upstream.url, unpriced).await;
    assert_eq!(ask(&stage, "native", "alias").await.0, 403, "no limit is needed");
    let priced = json!({"name": "with", "priority": 1, "model_redirects": {"alias": "m"}});
    let priced = stage.gateway.provider("native", &stage.upstream.url, priced).await;
    assert_eq!(ask(&stage, "native", "alias").await.0, 200);
    let rows = stage.gateway.logs(2).await;
    assert_eq!((&rows[0]["providerId"], &rows[0]["priceModel"]), (&json!(priced), &json!("m")), "{}", rows[0]);
    assert!(rows[0]["costUsd"].as_f64().unwrap() > 0.0, "{}", rows[0]);
    let chain = rows[0]["decisionChain"].as_array().unwrap();
    let passed_over = chain.iter().find(|step| step["providerId"] == json!(unpriced)).unwrap();
    assert!(passed_over["detail"].as_str().unwrap().contains("no price"), "{passed_over}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_setting_they_are_served_until_a_reload_sets_it() {
    let stage = staged(&[]).await;
    stage.gateway.admin("keys/editKey", json!({"keyId": stage.key_id, "limitTotalUsd": 5})).await;
    let setting =
        async || stage.gateway.admin("system-config/fetchSystemSettings", json!({})).await["unpricedModels"].clone();
    assert_eq!(ask(&stage, "native", "unheard-of").await.0, 200);
    assert_eq!(setting().await, "serve");
    std::fs::create_dir(stage.gateway.dir.path().join("conf")).unwrap();
    let file = stage.gateway.dir.path().join("conf/tollgate.yaml");
    std::fs::write(&file, "prices: {unpriced: refuse_when_limited}\n").unwrap();
    stage.gateway.signal("HUP");
    stage.gateway.log_shows("prices.unpriced: serve -> refuse_when_limited").await;
    assert_eq!(ask(&stage, "native", "unheard-of").await.0, 403);
    assert_eq!(setting().await, "refuse_when_limited");
}
