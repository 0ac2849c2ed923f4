//! Where the credential goes: to one provider that takes it, and to no other.

use serde_json::{Value, json};

use super::{Bed, COMPANY, OWN, answered, said};
use crate::proxy::fixture::request;
use crate::proxy::websocket::client::{Client, handshake, user};
use crate::support::gateway::ADMIN_TOKEN;
use crate::support::upstream::Upstream;

#[tokio::test(flavor = "multi_thread")]
async fn it_reaches_its_provider_byte_for_byte_with_the_request_as_it_came() {
    let bed = Bed::with(&[], json!({"cache_ttl_preference": "1h"})).await;
    let betas = "claude-code-20250219,oauth-2025-04-20,interleaved-thinking-2025-05-14";
    let mut body = request("native", true);
    body["system"] = json!([{"type": "text", "text": "You are Claude Code.",
        "cache_control": {"type": "ephemeral"}}]);
    let value = format!("Bearer {OWN}");
    let ask = bed.post("/v1/messages", &body).header("anthropic-beta", betas);
    let (status, text) = answered(ask.header("authorization", &value)).await;
    assert_eq!(status, 200, "{text}");
    let [own, company] = bed.received().await;
    assert_eq!((own.len(), company.len()), (1, 0));
    let headers = &own[0]["headers"];
    assert_eq!(headers["authorization"], value);
    assert_eq!(headers["anthropic-beta"], betas);
    assert_eq!(own[0]["body"], body, "no cache lifetime is set in it");
    for absent in ["x-api-key", "x-tollgate-key"] {
        assert_eq!(headers[absent], Value::Null, "{absent}");
    }
    // A key of the client's own, in the header for keys.
    let (status, text) = answered(bed.ask().header("x-api-key", OWN)).await;
    assert_eq!(status, 200, "{text}");
    let [own, _] = bed.received().await;
    assert_eq!(own[1]["headers"]["x-api-key"], OWN);
    assert_eq!(own[1]["headers"]["authorization"], Value::Null);
    // Beside a bearer, no key.
    assert_eq!(answered(bed.ask_with_own().header("x-api-key", "sk-other-key-12345")).await.0, 200);
    let [own, _] = bed.received().await;
    assert_eq!(own[2]["headers"]["authorization"], format!("Bearer {OWN}"));
    assert_eq!(own[2]["headers"]["x-api-key"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_one_passes_the_provider_over() {
    let bed = Bed::start().await;
    // The key where keys usually are, and where a credential of the client's may be beside it.
    let key = &bed.fixture.key;
    let asks = [bed.fixture.ask(), bed.ask(), bed.ask().bearer_auth(key)];
    for (place, ask) in asks.into_iter().enumerate() {
        let (status, text) = answered(ask).await;
        assert_eq!(status, 200, "{place}: {text}");
    }
    let [own, company] = bed.received().await;
    assert_eq!((own.len(), company.len()), (0, 3));
    assert!(company.iter().all(|one| one["headers"]["x-api-key"] == COMPANY));
    let chain = said(&bed.newest(3).await, "own");
    assert_eq!(chain.len(), 1, "{chain:?}");
    assert_eq!(chain[0].0, "disabled");
    assert!(chain[0].1.contains("the client's own credential"), "{chain:?}");
    // With no other provider, the client is told how to send one.
    bed.gateway().admin("providers/removeProvider", json!({"providerId": bed.company_id})).await;
    let (status, text) = answered(bed.ask()).await;
    assert_eq!(status, 401, "{text}");
    assert!(text.contains("authentication_error") && text.contains("x-tollgate-key"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn failover_carries_it_to_nobody() {
    let bed = Bed::with(&[], json!({"max_retry_attempts": 1})).await;
    let second = Upstream::start().await;
    let fields = json!({"name": "second", "auth": "client", "key": "none", "priority": 5});
    bed.gateway().provider("native", &second.url, fields).await;
    bed.fixture.upstream.default(json!({"status": 500})).await;
    let (status, text) = answered(bed.ask_with_own()).await;
    assert_eq!(status, 200, "{text}");
    let [own, company] = bed.received().await;
    assert_eq!((own.len(), company.len()), (1, 1));
    assert_eq!(company[0]["headers"]["x-api-key"], COMPANY);
    assert!(!company[0].to_string().contains(OWN), "{}", company[0]);
    assert!(second.requests().await.is_empty());
    let row = bed.newest(1).await;
    let chain = said(&row, "second");
    assert!(chain.iter().any(|(_, why)| why.contains("another host")), "{chain:?}");
    assert_eq!(row["providerName"], "company");
    assert_eq!(row["notionalCostUsd"], Value::Null, "the operator's account pays");
    assert!(row["costUsd"].as_f64().unwrap() > 0.0, "{row}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_provider_at_the_same_host_may_have_it() {
    let bed = Bed::with(&[], json!({"max_retry_attempts": 1})).await;
    let fields = json!({"name": "same", "auth": "client", "key": "none", "priority": 5});
    bed.gateway().provider("native", &format!("{}/v1", bed.fixture.upstream.url), fields).await;
    bed.fixture.upstream.script(json!([{"status": 500}])).await;
    assert_eq!(answered(bed.ask_with_own()).await.0, 200);
    assert_eq!(bed.newest(1).await["providerName"], "same");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_opens_the_gateway_is_sent_to_no_provider() {
    let bed = Bed::start().await;
    let (_, _, other) = bed.gateway().user(json!({"name": "bob"})).await;
    for (bearer, key, expected) in [
        // A key of the gateway in its usual place comes first.
        (None, &*other, 200),
        (None, ADMIN_TOKEN, 401),
        (Some(&*other), OWN, 401),
        (Some(ADMIN_TOKEN), OWN, 401),
        // The bearer goes on, and the key beside it does not.
        (Some(OWN), &*other, 200),
        (Some(OWN), ADMIN_TOKEN, 200),
    ] {
        let ask = bed.ask().header("x-api-key", key);
        let ask = match bearer {
            Some(bearer) => ask.bearer_auth(bearer),
            None => ask,
        };
        let (status, text) = answered(ask).await;
        assert_eq!(status, expected, "{bearer:?} {key}: {text}");
        assert!(status == 200 || text.contains("different API keys"), "{text}");
    }
    let [own, company] = bed.received().await;
    assert_eq!((own.len(), company.len()), (2, 1));
    for sent in own.iter().chain(&company) {
        let text = sent.to_string();
        assert!(!text.contains(&*other) && !text.contains(ADMIN_TOKEN), "{text}");
    }
    // A wrong key lets nobody in, whatever is beside it.
    let url = format!("{}/v1/messages", bed.gateway().proxy);
    let wrong = bed.gateway().client.post(url).header("x-tollgate-key", "sk-wrong");
    let (status, _) = answered(wrong.bearer_auth(OWN).json(&request("native", false))).await;
    assert_eq!(status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_converted_request_goes_there_and_a_token_count_does() {
    let bed = Bed::start().await;
    let chat = bed.post("/v1/chat/completions", &request("chat-compatible", false));
    assert_eq!(answered(chat.bearer_auth(OWN)).await.0, 200);
    let [own, company] = bed.received().await;
    assert_eq!((own.len(), company.len()), (0, 1));
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    let count = bed.post("/v1/messages/count_tokens", &body).bearer_auth(OWN);
    let (status, text) = answered(count).await;
    assert_eq!(status, 200, "{text}");
    let [own, company] = bed.received().await;
    assert_eq!((own.len(), company.len()), (1, 1));
    assert_eq!(own[0]["headers"]["authorization"], format!("Bearer {OWN}"));
}

/// With a responses provider that takes the client's credential.
async fn responses() -> Bed {
    let bed = Bed::start().await;
    let id = bed.own_id;
    let fields = json!({"providerId": id, "provider_type": "responses", "auth": "client"});
    bed.gateway().admin("providers/editProvider", fields).await;
    let fields = json!({"providerId": bed.company_id, "provider_type": "responses"});
    bed.gateway().admin("providers/editProvider", fields).await;
    bed
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_over_a_websocket_carry_that_of_the_handshake() {
    let bed = responses().await;
    let key = bed.fixture.key.clone();
    let mut client: Client =
        handshake(&bed.fixture, OWN, &[("x-tollgate-key", &key)]).await.expect("101");
    client.create(json!({"input": [user("one")]})).await;
    client.reply().await;
    let [own, company] = bed.received().await;
    assert_eq!((own.len(), company.len()), (1, 0));
    assert_eq!(own[0]["headers"]["authorization"], format!("Bearer {OWN}"));
    assert_eq!(own[0]["headers"]["x-tollgate-key"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_for_later_goes_to_another_provider() {
    let bed = responses().await;
    let edit = json!({"keyId": bed.fixture.key_id, "allowedFeatures": ["background"]});
    bed.gateway().admin("keys/editKey", edit).await;
    let body = json!({"model": "m", "input": "hi", "background": true});
    let (status, text) = answered(bed.post("/v1/responses", &body).bearer_auth(OWN)).await;
    assert_eq!(status, 200, "{text}");
    let [own, company] = bed.received().await;
    assert!(own.is_empty() && !company.is_empty(), "{own:?}");
    assert!(company.iter().all(|one| !one.to_string().contains(OWN)));
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_go_to_another_provider() {
    let bed = Bed::start().await;
    let asked = json!({"custom_id": "r0", "params": request("native", false)});
    let batch = bed.post("/v1/messages/batches", &json!({"requests": [asked]}));
    let (status, text) = answered(batch.bearer_auth(OWN)).await;
    assert_eq!(status, 200, "{text}");
    let [own, company] = bed.received().await;
    assert!(own.is_empty() && !company.is_empty(), "{own:?}");
    assert!(company.iter().all(|one| !one.to_string().contains(OWN)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_reply_is_asked_for_with_it_and_not_without() {
    let bed = responses().await;
    let body = json!({"model": "m", "input": "hi", "store": true});
    let (status, text) = answered(bed.post("/v1/responses", &body).bearer_auth(OWN)).await;
    assert_eq!(status, 200, "{text}");
    let reply: Value = serde_json::from_str(&text).unwrap();
    let path = format!("{}/v1/responses/{}", bed.gateway().proxy, reply["id"].as_str().unwrap());
    let get = || bed.gateway().client.get(&path).header("x-tollgate-key", &bed.fixture.key);
    let (status, text) = answered(get()).await;
    assert_eq!(status, 401, "{text}");
    let before = bed.received().await[0].len();
    answered(get().bearer_auth(OWN)).await;
    let [own, company] = bed.received().await;
    assert_eq!((own.len(), company.len()), (before + 1, 0));
    assert_eq!(own[before]["headers"]["authorization"], format!("Bearer {OWN}"));
}
