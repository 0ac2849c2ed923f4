//! Bodies with very many elements on their way through a gateway.

use std::io::Write;

use serde_json::json;

use crate::proxy::fixture::{FORMATS, Fixture, path};

/// The most by which the gateway may grow, in MiB: sixteen times a body and 8 MiB, and what
/// allocators and earlier requests leave.
const fn most(body: usize) -> u64 {
    ((16 * body as u64) >> 20) + 8 + 24
}

fn body(client: &str, element: &str, count: usize) -> String {
    let list = vec![element; count].join(",");
    match client {
        "native" => format!(
            r#"{{"model":"m","max_tokens":9,"messages":[{{"role":"user","content":[{list}]}}]}}"#
        ),
        "chat-compatible" => {
            format!(r#"{{"model":"m","messages":[{{"role":"assistant","tool_calls":[{list}]}}]}}"#)
        }
        "responses" => format!(r#"{{"model":"m","input":[{list}]}}"#),
        _ => format!(r#"{{"contents":[{{"parts":[{list}]}}]}}"#),
    }
}

async fn send(fixture: &Fixture, client: &str, body: &str) -> (u16, String) {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(body.as_bytes()).unwrap();
    let asked = fixture
        .post(path(client, false), &json!(null))
        .header("content-encoding", "gzip")
        .body(packed.finish().unwrap());
    let answer = asked.send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_with_more_elements_than_the_bound_is_refused_and_takes_no_memory() {
    for provider in FORMATS {
        let fixture = Fixture::bare(&[]).await;
        fixture.gateway.provider(provider, &fixture.upstream.url, json!({})).await;
        let before = fixture.gateway.memory_mib("VmHWM");
        for client in FORMATS {
            let large = body(client, "{}", 300_000);
            let (status, text) = send(&fixture, client, &large).await;
            assert_eq!(status, 400, "{client} to {provider}: {text}");
            assert!(text.contains("more than 200000 elements"), "{client} to {provider}: {text}");
            let full = body(client, "{}", 199_000);
            let (status, text) = send(&fixture, client, &full).await;
            assert!(!text.contains("200000"), "{client} to {provider}: {status} {text}");
            let grown = fixture.gateway.memory_mib("VmHWM") - before;
            assert!(grown <= most(large.len()), "{client} to {provider}: {grown} MiB");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_with_more_elements_than_the_bound_takes_no_memory_and_ends_nothing() {
    let list = vec!["{}"; 300_000].join(",");
    let replies = [
        ("native", format!(r#"{{"type":"message","content":[{list}]}}"#)),
        ("chat-compatible", format!(r#"{{"choices":[{{"message":{{"content":[{list}]}}}}]}}"#)),
        ("responses", format!(r#"{{"output":[{list}]}}"#)),
        ("alt-cli", format!(r#"{{"candidates":[{{"content":{{"parts":[{list}]}}}}]}}"#)),
    ];
    for (provider, reply) in replies {
        let fixture = Fixture::bare(&[]).await;
        let never_opens = json!({"circuit_breaker_failure_threshold": 0});
        fixture.gateway.provider(provider, &fixture.upstream.url, never_opens).await;
        let before = fixture.gateway.memory_mib("VmHWM");
        for stream in [false, true] {
            let body = if stream { format!("data: {reply}\n\n") } else { reply.clone() };
            fixture.upstream.default(json!({"body": body, "strict": false})).await;
            for client in FORMATS.into_iter().filter(|client| *client != provider) {
                let request = crate::proxy::fixture::request(client, stream);
                let answer = fixture.post(path(client, stream), &request).send().await.unwrap();
                let (status, _) = (answer.status(), answer.text().await);
                assert_ne!(status, 503, "{client} from {provider}, streamed: {stream}");
            }
            let grown = fixture.gateway.memory_mib("VmHWM") - before;
            assert!(grown <= most(reply.len()), "from {provider}, {stream}: {grown} MiB");
        }
    }
}
