//! Replies of the playground while they are sent: as they come, cut by the browser, bounded in
//! number, and during a stop.

use futures_util::StreamExt;
use serde_json::{Value, json};

use super::{ask, send};
use crate::proxy::fixture::Fixture;
use crate::support::gateway::ADMIN_TOKEN;

/// The next line of an answer that is still coming.
async fn next_line(answer: &mut reqwest::Response, held: &mut String) -> Value {
    loop {
        if let Some((line, rest)) = held.split_once('\n') {
            let line = serde_json::from_str(line).unwrap();
            *held = rest.to_owned();
            return line;
        }
        let chunk = answer.chunk().await.unwrap().expect("the answer ended");
        held.push_str(std::str::from_utf8(&chunk).unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_is_relayed_as_it_comes() {
    let fixture = Fixture::native().await;
    fixture
        .upstream
        .default(json!({"text": "one two three four", "events": 4, "hold_after": 4}))
        .await;
    let body = ask(fixture.key_id, "native", true);
    let mut answer =
        send(&fixture.gateway.client, &fixture.gateway.admin, ADMIN_TOKEN, &body).await;
    let mut held = String::new();
    assert_eq!(next_line(&mut answer, &mut held).await["type"], "begin");
    assert_eq!(next_line(&mut answer, &mut held).await["type"], "head");
    let first = next_line(&mut answer, &mut held).await;
    assert!(first["text"].as_str().unwrap().contains("message_start"), "{first}");
    fixture.upstream.go_on(1).await;
    let mut text = first["text"].as_str().unwrap().to_owned();
    loop {
        let line = next_line(&mut answer, &mut held).await;
        match line["type"].as_str().unwrap() {
            "data" => text.push_str(line["text"].as_str().unwrap()),
            "end" => break assert_eq!(line["complete"], true),
            _ => {}
        }
    }
    assert!(text.contains("message_stop"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn leaving_stops_the_request_on_every_listener() {
    let env = [("TOLLGATE_PROXY_EXPOSE_ADMIN", "true"), ("TOLLGATE_PROXY_H2C", "true")];
    let fixture = Fixture::native_with(&env).await;
    fixture.upstream.default(json!({"delay_ms": 600_000})).await;
    let http2 = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().unwrap();
    let ways = [
        (&fixture.gateway.client, &fixture.gateway.admin),
        (&http2, &fixture.gateway.admin),
        (&fixture.gateway.client, &fixture.gateway.proxy),
        (&http2, &fixture.gateway.proxy),
    ];
    for (nth, (client, url)) in (1..).zip(ways) {
        let answer = send(client, url, ADMIN_TOKEN, &ask(fixture.key_id, "native", true)).await;
        let mut body = answer.bytes_stream();
        body.next().await.unwrap().unwrap();
        fixture.upstream.stats(&format!("started={nth}")).await;
        drop(body);
        fixture.upstream.stats(&format!("dropped={nth}")).await;
        let row = &fixture.gateway.logs(nth).await[0];
        assert_eq!(
            (&row["outcome"], &row["statusCode"]),
            (&json!("client_aborted"), &json!(499)),
            "{url}: {row}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_person_has_so_many_at_once() {
    let fixture = Fixture::native().await;
    let (_, bobs, bobs_text) = fixture.gateway.user(json!({"name": "bob"})).await;
    fixture.upstream.default(json!({"delay_ms": 600_000})).await;
    let body = ask(fixture.key_id, "native", true);
    let mut running = Vec::new();
    for _ in 0..8 {
        running
            .push(send(&fixture.gateway.client, &fixture.gateway.admin, ADMIN_TOKEN, &body).await);
    }
    let ninth = send(&fixture.gateway.client, &fixture.gateway.admin, ADMIN_TOKEN, &body).await;
    assert_eq!(
        (ninth.status().as_u16(), &ninth.headers()["retry-after"]),
        (429, &"5".parse().unwrap())
    );
    let other = send(
        &fixture.gateway.client,
        &fixture.gateway.admin,
        &bobs_text,
        &ask(bobs, "native", true),
    )
    .await;
    assert_eq!(other.status(), 200, "others are not kept out");
    fixture.upstream.stats("started=9").await;
    drop(running);
    fixture.upstream.stats("dropped=8").await;
    let again = send(&fixture.gateway.client, &fixture.gateway.admin, ADMIN_TOKEN, &body).await;
    assert_eq!(again.status(), 200, "places are given back");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_waits_for_a_running_request_and_lets_in_no_new_one() {
    let mut fixture = Fixture::native().await;
    fixture
        .upstream
        .default(json!({"text": "one two three four", "events": 4, "hold_after": 4}))
        .await;
    let body = ask(fixture.key_id, "native", true);
    let mut answer =
        send(&fixture.gateway.client, &fixture.gateway.admin, ADMIN_TOKEN, &body).await;
    let mut held = String::new();
    while next_line(&mut answer, &mut held).await["type"] != "data" {}
    fixture.gateway.signal("TERM");
    fixture.gateway.log_shows("stopping: no new connections").await;
    let late = send(&fixture.gateway.client, &fixture.gateway.admin, ADMIN_TOKEN, &body).await;
    assert_eq!(late.status(), 503);
    assert_eq!(late.json::<Value>().await.unwrap()["error"], "the proxy takes no requests now");
    fixture.upstream.go_on(1).await;
    let end = loop {
        let line = next_line(&mut answer, &mut held).await;
        if line["type"] == "end" {
            break line;
        }
    };
    assert_eq!(end["complete"], true, "{end}");
    fixture.gateway.ended().await;
}
