//! Settings with an effect on clients: bounds of requests, headers, sessions, instructions, the
//! pool.

use serde_json::{Value, json};

use crate::proxy::fixture::{Fixture, request};

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_nested_as_deeply_as_is_set_and_no_deeper() {
    let mut deep = json!("x");
    for _ in 0..20 {
        deep = json!([deep]);
    }
    let mut body = request("native", false);
    body["metadata"] = deep;
    for (depth, status) in [("8", 400), ("64", 200)] {
        let fixture = Fixture::native_with(&[("TOLLGATE_PROXY_MAX_JSON_DEPTH", depth)]).await;
        assert_eq!(
            fixture.post("/v1/messages", &body).send().await.unwrap().status(),
            status,
            "{depth}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_are_as_large_as_is_set_and_no_larger() {
    let http2 = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().unwrap();
    // Of the default, and of twice as much.
    for (size, small) in [("4KiB", 431), ("256KiB", 200)] {
        let fixture = Fixture::native_with(&[
            ("TOLLGATE_PROXY_MAX_HEAD_BYTES", size),
            ("TOLLGATE_PROXY_H2C", "true"),
        ])
        .await;
        for client in [&fixture.gateway.client, &http2] {
            let ask = client
                .post(format!("{}/v1/messages", fixture.gateway.proxy))
                .header("x-api-key", &fixture.key);
            let ask = ask.header("x-padding", "p".repeat(10_000)).json(&request("native", false));
            assert_eq!(ask.send().await.unwrap().status(), small, "{size}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn replies_name_the_overhead_where_that_is_set() {
    for (flag, shown) in [("true", true), ("false", false)] {
        let fixture = Fixture::native_with(&[("TOLLGATE_PROXY_OVERHEAD_HEADER", flag)]).await;
        let answer = fixture.ask().send().await.unwrap();
        assert_eq!(answer.headers().contains_key("server-timing"), shown, "{flag}: {answer:?}");
    }
}

/// Which of two headers arrive on each side.
async fn forwarded(env: &[(&str, &str)], there: [&str; 2], back: [&str; 2]) -> [[bool; 2]; 2] {
    let fixture = Fixture::native_with(env).await;
    fixture.upstream.default(json!({"headers": {back[0]: "1", back[1]: "2"}})).await;
    let answer = fixture.ask().header(there[0], "1").header(there[1], "2").send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let got = back.map(|name| answer.headers().contains_key(name));
    let sent = fixture.upstream.requests().await.pop().unwrap()["headers"].to_string();
    [there.map(|name| sent.contains(&format!("\"{name}\""))), got]
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_that_are_named_go_neither_way() {
    let named = [
        ("TOLLGATE_HEADERS_DROP_REQUEST", "x-app"),
        ("TOLLGATE_HEADERS_DROP_RESPONSE", "request-id"),
    ];
    for (env, dropped) in [(&named[..], true), (&[], false)] {
        let (there, back) = (["x-app", "x-stainless-lang"], ["request-id", "x-request-id"]);
        assert_eq!(forwarded(env, there, back).await, [[!dropped, true]; 2], "{env:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_that_are_named_go_both_ways() {
    let named = [
        ("TOLLGATE_HEADERS_PASS_REQUEST", "openai-project, cookie"),
        ("TOLLGATE_HEADERS_PASS_RESPONSE", "x-back, x-accel-redirect"),
    ];
    for (env, passed) in [(&named[..], true), (&[], false)] {
        let (there, back) = (["openai-project", "cookie"], ["x-back", "x-accel-redirect"]);
        assert_eq!(forwarded(env, there, back).await, [[passed, false]; 2], "{env:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_named_by_the_headers_that_are_set() {
    for (env, named) in
        [(&[("TOLLGATE_SESSION_HEADERS", "x-talk")][..], "by-the-setting"), (&[], "by-default")]
    {
        let fixture = Fixture::native_with(env).await;
        let ask =
            fixture.ask().header("x-talk", "by-the-setting").header("x-session-id", "by-default");
        assert_eq!(ask.send().await.unwrap().status(), 200);
        assert_eq!(fixture.gateway.logs(1).await[0]["sessionId"], named);
    }
}

/// The other ones: `proxy/conversion.rs`.
#[tokio::test(flavor = "multi_thread")]
async fn coding_models_get_the_short_instructions() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let file = dir.path().join(name);
        std::fs::write(&file, text).unwrap();
        file.display().to_string()
    };
    let (short, long) = (file("short.md", "Be short."), file("long.md", "Be long."));
    let env = [
        ("TOLLGATE_INSTRUCTIONS_SHORT_FILE", &*short),
        ("TOLLGATE_INSTRUCTIONS_LONG_FILE", &*long),
    ];
    let fixture = Fixture::bare(&env).await;
    let price =
        json!({"mode": "chat", "input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6});
    fixture.gateway.prices(json!({"gpt-5-codex": price.clone(), "gpt-5": price})).await;
    let forced = json!({"instructions_strategy": "force_official"});
    fixture.gateway.provider("responses", &fixture.upstream.url, forced).await;
    for (model, text) in [("gpt-5-codex", "Be short."), ("gpt-5", "Be long.")] {
        let mut body = request("responses", false);
        body["model"] = json!(model);
        assert_eq!(fixture.post("/v1/responses", &body).send().await.unwrap().status(), 200);
        let seen: Value = fixture.upstream.requests().await.pop().unwrap();
        assert_eq!(seen["body"]["instructions"], text, "{model}: {seen}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_strategy_without_instructions_is_warned_of() {
    let mut fixture = Fixture::bare(&[]).await;
    let forced = json!({"name": "forced", "instructions_strategy": "force_official"});
    fixture.gateway.provider("responses", &fixture.upstream.url, forced).await;
    let warning = "instructions_strategy has no effect on the providers forced: set \
                   instructions.short_file or instructions.long_file";
    let (is_fine, said) = fixture.gateway.check();
    assert!(is_fine && said.contains(warning), "{said}");
    fixture.gateway.kill();
    fixture.gateway.spawn();
    fixture.gateway.ready().await;
    fixture.gateway.log_shows(warning).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pool_keeps_so_many_idle_connections() {
    const AT_ONCE: usize = 6;
    for (size, least, most) in [("1", 0.0, 2.0), ("512", 5.0, 6.0)] {
        // Each thread has its own pool.
        let env = [("TOLLGATE_PROXY_UPSTREAM_POOL_SIZE", size), ("TOLLGATE_PROXY_THREADS", "1")];
        let fixture = Fixture::native_with(&env).await;
        fixture.upstream.default(json!({"delay_ms": 1_000})).await;
        for _ in 0..2 {
            let asking: Vec<_> = (0..AT_ONCE).map(|_| tokio::spawn(fixture.ask().send())).collect();
            for one in asking {
                assert_eq!(one.await.unwrap().unwrap().status(), 200);
            }
            // A connection returns to the pool before its request ends.
            fixture.gateway.metric_shows("tollgate_requests_in_flight", |left| left == 0.0).await;
        }
        let new =
            fixture.gateway.metric("tollgate_upstream_connections_total{connection=\"new\"}").await;
        let reused = 2.0 * AT_ONCE as f64 - new;
        assert!((least..=most).contains(&reused), "{size}: {reused} of {AT_ONCE} were used again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn users_and_keys_have_metrics_where_that_is_set() {
    for flag in ["true", "false"] {
        let env = [("TOLLGATE_METRICS_PER_USER", flag), ("TOLLGATE_METRICS_PER_KEY", flag)];
        let fixture = Fixture::native_with(&env).await;
        assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
        fixture.gateway.metric_shows("tollgate_model_requests_total", |count| count >= 1.0).await;
        let metrics = fixture
            .gateway
            .client
            .get(format!("{}/metrics", fixture.gateway.metrics))
            .send()
            .await
            .unwrap();
        let text = metrics.text().await.unwrap();
        for name in ["tollgate_user_requests_total{", "tollgate_key_requests_total{"] {
            assert_eq!(text.contains(name), flag == "true", "{name} {flag}");
        }
    }
}
