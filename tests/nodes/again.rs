//! A client that sends its next request as soon as it has a reply: Redis receives the end of the
//! last one a little later.

use serde_json::json;

use super::pair::{Pair, Person};
use crate::support::upstream::Upstream;

/// Each request reserves a cent, and costs a fifth of it.
async fn cheap() -> Pair {
    let pair = Pair::start().await;
    pair.upstream.default(json!({"usage": {"output": 20}})).await;
    pair
}

/// Under a limit of two cents: as many as cost that, each sent as soon as the last one has ended.
async fn ten_pass_and_the_next_gets(refused: u16, pair: &Pair, who: &Person) {
    for n in 0..10 {
        let answer = pair.ask(0, who, "s").send().await.unwrap();
        let status = answer.status();
        assert_eq!(status, 200, "request {n}: {}", answer.text().await.unwrap());
    }
    assert_eq!(pair.ask(0, who, "s").send().await.unwrap().status(), refused);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limits_of_a_client_are_compared_with_what_it_has_spent() {
    let pair = cheap().await;
    for (user, key) in
        [(json!({"limitTotalUsd": 0.02}), json!({})), (json!({}), json!({"limitTotalUsd": 0.02}))]
    {
        let who = pair.person(user, key).await;
        ten_pass_and_the_next_gets(429, &pair, &who).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limits_of_a_provider_are_compared_with_what_was_spent_there() {
    let pair = cheap().await;
    let all = pair.nodes[0].admin("providers/getProviders", json!({})).await;
    pair.nodes[0]
        .admin(
            "providers/editProvider",
            json!({"providerId": all[0]["id"], "limit_total_usd": 0.02}),
        )
        .await;
    let who = pair.person(json!({}), json!({})).await;
    ten_pass_and_the_next_gets(503, &pair, &who).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_goes_to_the_provider_that_has_just_answered_it() {
    let (pair, failing) = (cheap().await, Upstream::start().await);
    let all = pair.nodes[0].admin("providers/getProviders", json!({})).await;
    failing.default(json!({"status": 500})).await;
    pair.nodes[0].provider("native", &failing.url, json!({"priority": 0})).await;
    pair.nodes[0]
        .admin("providers/editProvider", json!({"providerId": all[0]["id"], "priority": 1}))
        .await;
    let who = pair.person(json!({}), json!({})).await;
    for session in ["a", "b", "c"] {
        assert_eq!(pair.ask(0, &who, session).send().await.unwrap().status(), 200);
        let before = failing.requests().await.len();
        assert!(before > 0, "the first request of a session is tried there");
        assert_eq!(pair.ask(0, &who, session).send().await.unwrap().status(), 200);
        assert_eq!(failing.requests().await.len(), before, "session {session}");
    }
}
