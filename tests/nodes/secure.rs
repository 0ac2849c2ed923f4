//! Redis over TLS, with its own user and a database number: it works like any other, and a refusal
//! has a reason.

use std::time::{Duration, Instant};

use serde_json::json;

use super::pair::Pair;
use crate::support::gateway::Gateway;
use crate::support::redis::{Redis, tls_file as file};

/// Names and values of settings.
type Env<'a> = &'a [(&'static str, String)];

/// The credentials of a node.
pub fn credentials() -> [(&'static str, String); 3] {
    let of = |name, path| (name, file(path));
    [
        of("TOLLGATE_REDIS_TLS_CA", "ca.pem"),
        of("TOLLGATE_REDIS_TLS_CERT", "client.pem"),
        of("TOLLGATE_REDIS_TLS_KEY", "client.key"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn counters_and_circuits_are_shared_over_tls_by_a_user_that_may_do_little_else() {
    let credentials = credentials();
    let mut env: Vec<(&str, &str)> =
        credentials.iter().map(|(name, value)| (*name, value.as_str())).collect();
    env.push(("TOLLGATE_REDIS_TIMEOUT", "10s"));
    let mut pair = Pair::with(Redis::secure(), &env).await;
    let who = pair.person(json!({}), json!({"limitTotalUsd": 0.04})).await;
    let all_know = async |pair: &Pair, requests: usize| {
        for n in requests - 2..requests {
            assert_eq!(pair.ask(n % 2, &who, "s").send().await.unwrap().status(), 200);
            pair.settled(&who, n + 1).await;
        }
    };
    all_know(&pair, 2).await;
    // Circuits use a separate connection.
    let id =
        pair.nodes[0].admin("providers/getProviders", json!({})).await[0]["id"].as_i64().unwrap();
    let edit =
        json!({"providerId": id, "circuit_breaker_failure_threshold": 1, "max_retry_attempts": 1});
    pair.nodes[0].admin("providers/editProvider", edit).await;
    let version = pair.version(0).await;
    pair.until(async || pair.version(1).await >= version).await;
    pair.upstream.script(json!([{"status": 500}])).await;
    assert_ne!(pair.ask(0, &who, "s").send().await.unwrap().status(), 200);
    let stands = async |pair: &Pair, node: usize, state: &str| {
        let state = json!(state);
        pair.until(async || {
            let health =
                pair.nodes[node].admin("providers/getProvidersHealthStatus", json!({})).await;
            health[0]["state"] == state
        })
        .await;
    };
    stands(&pair, 1, "OPEN").await;
    pair.nodes[1].admin("providers/resetProviderCircuit", json!({"providerId": id})).await;
    stands(&pair, 0, "CLOSED").await;
    // Lost, and back empty: rebuilt from the ledger, as without TLS.
    pair.redis.kill();
    for node in &pair.nodes {
        node.readiness_shows(|_, parts| parts["redis"] == "is lost: this node counts for itself")
            .await;
    }
    pair.redis.start_again();
    for node in &pair.nodes {
        node.readiness_shows(|_, parts| parts["redis"] == "ok").await;
    }
    all_know(&pair, 4).await;
    for node in 0..2 {
        assert_eq!(pair.ask(node, &who, "s").send().await.unwrap().status(), 429);
    }
    for node in &pair.nodes {
        assert!(!node.log().contains("pa:ss") && !node.log().contains("pa%3Ass"), "{}", node.log());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_redis_refuses_reports_why_at_once_and_reveals_no_secret() {
    let (secure, plain) = (Redis::secure(), Redis::start());
    let (ours, port) = (secure.url(), secure.port());
    let other = [("TOLLGATE_REDIS_TLS_CA", file("other-ca.pem"))];
    let (known, with_other) = (
        [credentials()[0].clone()],
        [other, [credentials()[1].clone()], [credentials()[2].clone()]].concat(),
    );
    let shown = credentials();
    let at = |address: &str| format!("rediss://{address}");
    let cases: [(&str, String, Env<'_>, &str); 8] = [
        ("an authority that signed something else", ours.clone(), &with_other, "UnknownIssuer"),
        ("public authorities alone", ours.clone(), &[], "UnknownIssuer"),
        ("no certificate of ours", ours.clone(), &known, "CertificateRequired"),
        (
            "a wrong password",
            at(&format!("gate:wrong-word@127.0.0.1:{port}/3")),
            &shown,
            "Password authentication failed",
        ),
        ("no user", at(&format!("127.0.0.1:{port}/3")), &shown, "Authentication required"),
        (
            "no such database",
            at(&format!("{}@127.0.0.1:{port}/99", Redis::SECURE_USER)),
            &shown,
            "DB index is out of range",
        ),
        (
            "plain words to a TLS port",
            format!("redis://{}@127.0.0.1:{port}/3", Redis::SECURE_USER),
            &[],
            "Redis (redis.url)",
        ),
        (
            "TLS to a plain port",
            at(&format!("127.0.0.1:{}", plain.port())),
            &known,
            "Redis (redis.url)",
        ),
    ];
    for (what, url, files, why) in cases {
        let mut env: Vec<(&str, &str)> =
            files.iter().map(|(name, value)| (*name, value.as_str())).collect();
        env.push(("REDIS_URL", &url));
        let began = Instant::now();
        let (well, said) = Gateway::prepare(&env).check();
        assert!(!well && said.contains(why), "{what}: {said}");
        assert!(began.elapsed() < Duration::from_secs(20), "{what}: it took {:?}", began.elapsed());
        for secret in ["pa:ss", "pa%3Ass", "wrong-word"] {
            assert!(!said.contains(secret), "{what}: {said}");
        }
    }
    let mut env: Vec<(&str, &str)> =
        shown.iter().map(|(name, value)| (*name, value.as_str())).collect();
    env.push(("REDIS_URL", &ours));
    let (well, said) = Gateway::prepare(&env).check();
    assert!(well, "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_redis_refuses_serves_alone_and_reports_why() {
    let redis = Redis::secure();
    let env = [("REDIS_URL", redis.url()), ("TOLLGATE_REDIS_TLS_CA", file("other-ca.pem"))];
    let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let gateway = Gateway::with(&env).await;
    gateway
        .readiness_shows(|ready, parts| {
            ready && parts["redis"] == "is lost: this node counts for itself"
        })
        .await;
    gateway.log_shows("UnknownIssuer").await;
}
