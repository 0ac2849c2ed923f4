//! The client's own credential is in no log, at any level, in nothing that a collector gets, and in
//! no file of the data directory.

use std::path::Path;

use serde_json::json;

use super::{Bed, OWN, answered};
use crate::otlp::collector::Collector;
use crate::proxy::fixture::request;

/// The files below a directory that hold the text.
fn holding(dir: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(holding(&path, text));
        } else if let Ok(bytes) = std::fs::read(&path)
            && bytes.windows(text.len()).any(|part| part == text.as_bytes())
        {
            found.push(path.display().to_string());
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_written_nowhere() {
    let collector = Collector::http().await;
    let env = [
        ("LOG_LEVEL", "trace"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &*collector.url),
        ("OTEL_TRACES_SAMPLER_ARG", "1"),
        ("TOLLGATE_TELEMETRY_OTLP_LOGS", "true"),
        ("STORE_SESSION_MESSAGES", "true"),
    ];
    let bed = Bed::with(&env, json!({"circuit_breaker_failure_threshold": 0})).await;
    let repeated = json!({"message": format!("the token {OWN} is not valid")});
    for directive in [
        json!({}),
        json!({"status": 401, "error": repeated}),
        json!({"status": 500, "error": repeated}),
        json!({"status": 400, "error": repeated}),
        json!({"hang_up": true}),
        json!({"cut_after": 2}),
        json!({"error_after": 2, "error": repeated}),
    ] {
        bed.fixture.upstream.default(directive).await;
        for stream in [false, true] {
            let ask = bed.post("/v1/messages", &request("native", stream));
            let (_, text) = answered(ask.bearer_auth(OWN)).await;
            assert!(!text.contains(OWN) || text.contains("event:"), "{text}");
            let ask = bed.post("/v1/messages", &request("native", stream));
            answered(ask.header("x-api-key", OWN)).await;
        }
    }
    // Refused before a provider is asked.
    let url = format!("{}/v1/messages", bed.gateway().proxy);
    let wrong = bed.gateway().client.post(url).header("x-tollgate-key", "sk-wrong");
    answered(wrong.bearer_auth(OWN).json(&request("native", false))).await;
    bed.gateway().logs(28).await;
    let mut gateway = bed.fixture.gateway;
    gateway.signal("TERM");
    gateway.ended().await;
    let log = gateway.log();
    assert!(log.contains("tollgate::hook"));
    let line = log.lines().find(|line| line.contains(OWN));
    assert_eq!(line, None);
    assert_eq!(holding(gateway.dir.path(), OWN), Vec::<String>::new());
    let received = collector.received.lock();
    assert!(!received.traces.is_empty());
    for sent in [format!("{:?}", received.logs), format!("{:?}", received.traces)] {
        assert!(!sent.contains(OWN));
    }
}
