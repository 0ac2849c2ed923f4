//! Written rules fix requests that a provider would refuse because of a peculiarity of the client's
//! format.

use serde_json::json;

use super::with;
use crate::proxy::fixture::{FORMATS, path, request};

#[tokio::test(flavor = "multi_thread")]
async fn a_temperature_above_one_is_one_for_a_native_provider() {
    let fixture = with("native").await;
    for client in FORMATS.into_iter().filter(|client| *client != "native") {
        for (asked, sent) in [
            (json!(1.7), json!(1)),
            (json!(2), json!(1)),
            (json!(1), json!(1)),
            (json!(0.3), json!(0.3)),
        ] {
            let mut body = request(client, false);
            match client {
                "alt-cli" => body["generationConfig"] = json!({"temperature": asked}),
                _ => body["temperature"] = asked.clone(),
            }
            let answer = fixture.post(path(client, false), &body).send().await.unwrap();
            assert_eq!(answer.status(), 200, "{client} {asked}: {}", answer.text().await.unwrap());
            let seen = fixture.upstream.requests().await.pop().unwrap();
            assert_eq!(seen["body"]["temperature"].as_f64(), sent.as_f64(), "{client} {asked}");
        }
    }
}
