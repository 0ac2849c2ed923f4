//! The stream of events through both listeners: live, over HTTP/1.1 and HTTP/2, without delaying a
//! stop.

use std::time::Duration;

use serde_json::Value;

use super::fixture::Fixture;
use crate::support::gateway::ADMIN_TOKEN;

/// Reads until the data of an event of this name has come.
pub async fn until(response: &mut reqwest::Response, text: &mut String, name: &str) -> Value {
    let mark = format!("event: {name}\ndata: ");
    loop {
        if let Some((data, _)) =
            text.split_once(&mark).and_then(|(_, rest)| rest.split_once("\n\n"))
        {
            return serde_json::from_str(data).unwrap();
        }
        let chunk = tokio::time::timeout(Duration::from_secs(60), response.chunk()).await;
        let chunk = chunk.expect("nothing came").unwrap().expect("the stream ended");
        text.push_str(std::str::from_utf8(&chunk).unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_is_seen_on_both_listeners_and_does_not_keep_the_gateway_from_stopping() {
    let env = [("TOLLGATE_PROXY_EXPOSE_ADMIN", "true"), ("TOLLGATE_PROXY_H2C", "true")];
    let mut fixture = Fixture::bare(&env).await;
    fixture.gateway.provider("native", &fixture.upstream.url, serde_json::json!({})).await;
    let http2 = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().unwrap();
    let ways = [
        (&fixture.gateway.client, &fixture.gateway.admin),
        (&http2, &fixture.gateway.admin),
        (&fixture.gateway.client, &fixture.gateway.proxy),
        (&http2, &fixture.gateway.proxy),
    ];
    let mut watching = Vec::new();
    for (client, url) in ways {
        // Without the whole-request time limit of the fixture's client.
        let get = client
            .get(format!("{url}/api/events"))
            .timeout(Duration::from_secs(300))
            .bearer_auth(ADMIN_TOKEN);
        let (mut response, mut text) = (get.send().await.unwrap(), String::new());
        assert_eq!(response.status(), 200, "{url}");
        until(&mut response, &mut text, "hello").await;
        watching.push((response, text));
    }
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    for (response, text) in &mut watching {
        let logged = until(response, text, "log").await;
        assert_eq!((&logged["userName"], &logged["statusCode"]), (&"ada".into(), &200.into()));
        let sessions = until(response, text, "sessions").await;
        assert!(sessions.is_array(), "{sessions}");
    }
    fixture.gateway.signal("TERM");
    let took = fixture.gateway.ended().await;
    assert!(took < Duration::from_secs(15), "live views kept the gateway up for {took:?}");
}
