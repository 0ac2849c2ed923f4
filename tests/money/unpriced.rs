//! Models without a price passed every money limit.

use serde_json::{Value, json};

use crate::proxy::fixture::{FORMATS, Fixture, path, request};

const REFUSE_WHEN_LIMITED: &[(&str, &str)] = &[("TOLLGATE_PRICES_UNPRICED", "refuse_when_limited")];

async fn fixture(env: &[(&str, &str)]) -> Fixture {
    let fixture = Fixture::bare(env).await;
    for kind in FORMATS {
        fixture.gateway.provider(kind, &fixture.upstream.url, json!({})).await;
    }
    fixture
}

/// The answer to a request for a model with or without a price, in each format.
async fn ask(fixture: &Fixture, format: &str, model: &str) -> (u16, Value) {
    let mut body = request(format, false);
    let mut to = path(format, false).to_owned();
    match format {
        "alt-cli" => to = to.replace("/m:", &format!("/{model}:")),
        _ => body["model"] = json!(model),
    }
    let answer = fixture.post(&to, &body).send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_with_a_money_limit_is_refused_a_model_without_a_price_in_its_format() {
    let fixture = fixture(REFUSE_WHEN_LIMITED).await;
    for format in FORMATS {
        assert_eq!(ask(&fixture, format, "unheard-of").await.0, 200, "{format}: no limit yet");
    }
    fixture
        .gateway
        .admin("keys/editKey", json!({"keyId": fixture.key_id, "limitTotalUsd": 5}))
        .await;
    for format in FORMATS {
        let (status, body) = ask(&fixture, format, "unheard-of").await;
        assert_eq!(status, 403, "{format}: {body}");
        let text = body.to_string();
        assert!(
            text.contains("unheard-of") && text.contains("`prices.unpriced` to `serve`"),
            "{format}: {body}"
        );
        assert!(text.to_lowercase().contains("model_not_priced"), "{format}: {body}");
        assert_eq!(ask(&fixture, format, "m").await.0, 200, "{format}: priced");
        assert_eq!(
            ask(&fixture, format, "m-latest").await.0,
            200,
            "{format}: priced under another name"
        );
    }
    let rows = fixture.gateway.logs(16).await;
    let refused: Vec<_> = rows.iter().filter(|row| row["outcome"] == "refused").collect();
    assert_eq!(refused.len(), 4);
    assert!(
        refused.iter().all(|row| row["costUsd"] == 0 && row["statusCode"] == 403),
        "{refused:?}"
    );
    assert_eq!(fixture.upstream.requests().await.len(), 12, "no provider saw the refused ones");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_of_the_user_counts_and_a_token_count_is_not_refused() {
    let fixture = fixture(REFUSE_WHEN_LIMITED).await;
    fixture
        .gateway
        .admin("users/editUser", json!({"userId": fixture.user_id, "dailyQuota": 5}))
        .await;
    assert_eq!(ask(&fixture, "native", "unheard-of").await.0, 403);
    let body = json!({"model": "unheard-of", "messages": request("native", false)["messages"]});
    let counted = fixture.post("/v1/messages/count_tokens", &body).send().await.unwrap();
    assert_eq!(counted.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_where_the_model_has_a_price_serves_it_and_no_other_stands_in() {
    let fixture = Fixture::bare(&[("TOLLGATE_PRICES_UNPRICED", "refuse")]).await;
    let unpriced =
        json!({"name": "without", "priority": 0, "model_redirects": {"alias": "unheard-of"}});
    let unpriced = fixture.gateway.provider("native", &fixture.upstream.url, unpriced).await;
    assert_eq!(ask(&fixture, "native", "alias").await.0, 403, "no limit is needed");
    let priced = json!({"name": "with", "priority": 1, "model_redirects": {"alias": "m"}});
    let priced = fixture.gateway.provider("native", &fixture.upstream.url, priced).await;
    assert_eq!(ask(&fixture, "native", "alias").await.0, 200);
    let rows = fixture.gateway.logs(2).await;
    assert_eq!(
        (&rows[0]["providerId"], &rows[0]["priceModel"]),
        (&json!(priced), &json!("m")),
        "{}",
        rows[0]
    );
    assert!(rows[0]["costUsd"].as_f64().unwrap() > 0.0, "{}", rows[0]);
    let chain = rows[0]["decisionChain"].as_array().unwrap();
    let passed_over = chain.iter().find(|step| step["providerId"] == json!(unpriced)).unwrap();
    assert!(passed_over["detail"].as_str().unwrap().contains("no price"), "{passed_over}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_setting_they_are_refused_until_a_reload_allows_them() {
    let fixture = fixture(&[]).await;
    fixture
        .gateway
        .admin("keys/editKey", json!({"keyId": fixture.key_id, "limitTotalUsd": 5}))
        .await;
    let setting = async || {
        fixture.gateway.admin("system-config/fetchSystemSettings", json!({})).await["unpricedModels"].clone()
    };
    assert_eq!(ask(&fixture, "native", "unheard-of").await.0, 403);
    assert_eq!(setting().await, "refuse_when_limited");
    std::fs::create_dir(fixture.gateway.dir.path().join("conf")).unwrap();
    let file = fixture.gateway.dir.path().join("conf/tollgate.yaml");
    std::fs::write(&file, "prices: {unpriced: serve}\n").unwrap();
    fixture.gateway.signal("HUP");
    fixture.gateway.log_shows("prices.unpriced: refuse_when_limited -> serve").await;
    assert_eq!(ask(&fixture, "native", "unheard-of").await.0, 200);
    assert_eq!(setting().await, "serve");
    fixture.gateway.logs(2).await;
    assert_eq!(
        fixture.gateway.admin("model-prices/getUnpricedModels", json!({})).await,
        json!({
            "models": [{ "modelName": "unheard-of", "requests": 1 }],
            "passLimits": true,
        })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn models_that_a_request_names_beside_its_own_need_a_price_too() {
    let fixture = fixture(REFUSE_WHEN_LIMITED).await;
    let limit = json!({"keyId": fixture.key_id, "limitTotalUsd": 5});
    fixture.gateway.admin("keys/editKey", limit).await;
    let adviser =
        |model: &str| json!([{"type": "advisor_20260301", "name": "advisor", "model": model}]);
    for (more, status) in [
        (json!({"fallbacks": [{"model": "unheard-of"}]}), 403),
        (json!({"fallbacks": [{"model": "m"}]}), 200),
        (json!({"fallbacks": "default"}), 200),
        (json!({ "tools": adviser("unheard-of") }), 403),
        (json!({ "tools": adviser("m") }), 200),
    ] {
        for stream in [false, true] {
            let mut body = request("native", stream);
            for (name, value) in more.as_object().unwrap() {
                body[name] = value.clone();
            }
            let answer = fixture.post("/v1/messages", &body).send().await.unwrap();
            let (got, text) = (answer.status(), answer.text().await.unwrap());
            assert_eq!(got, status, "{more}: {text}");
            let is_named = text.contains("model_not_priced") && text.contains("unheard-of");
            assert_eq!(is_named, status == 403, "{more}: {text}");
        }
    }
}
