//! Metrics and log lines over OTLP, and exemplars.

use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use serde_json::json;

use super::check::attribute;
use super::collector::{Collector, Received};
use super::traced;

const METRICS: [(&str, &str); 2] = [
    ("TOLLGATE_TELEMETRY_OTLP_METRICS", "true"),
    ("TOLLGATE_TELEMETRY_OTLP_METRICS_INTERVAL", "1s"),
];

/// The metrics of the newest batch.
fn newest(received: &Received) -> Vec<&Metric> {
    let Some(batch) = received.metrics.last() else { return Vec::new() };
    batch
        .resource_metrics
        .iter()
        .flat_map(|part| &part.scope_metrics)
        .flat_map(|scope| &scope.metrics)
        .collect()
}

fn named(received: &Received, name: &str) -> Option<Metric> {
    newest(received).into_iter().find(|metric| metric.name == name).cloned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_registrys_metrics_and_the_gen_ai_ones_come_at_an_interval() {
    for grpc in [false, true] {
        let collector = if grpc { Collector::grpc().await } else { Collector::http().await };
        let protocol = if grpc { "grpc" } else { "http/protobuf" };
        let env = [&METRICS[..], &[("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)]].concat();
        let fixture = traced(&collector.url, &env).await;
        let usage = json!({"input": 100, "output": 20, "cache_read": 1000, "cache_write_5m": 30});
        fixture.upstream.default(json!({"usage": usage})).await;
        for stream in [false, true] {
            let answer =
                if stream { fixture.ask_stream() } else { fixture.ask() }.send().await.unwrap();
            answer.text().await.unwrap();
        }
        let duration = collector
            .shows(|received| {
                let metric = named(received, "gen_ai.client.operation.duration")?;
                let Some(Data::Histogram(histogram)) = metric.data else { panic!("{metric:?}") };
                (histogram.data_points[0].count == 2).then(|| histogram.data_points[0].clone())
            })
            .await;
        assert_eq!((duration.explicit_bounds.len(), duration.explicit_bounds[0]), (14, 0.01));
        for (name, value) in [
            ("gen_ai.operation.name", "chat"),
            ("gen_ai.provider.name", "anthropic"),
            ("gen_ai.request.model", "m"),
        ] {
            assert_eq!(attribute(&duration.attributes, name).as_deref(), Some(value));
        }
        assert_eq!(attribute(&duration.attributes, "error.type"), None);
        let received = collector.received.lock();
        let sum = |name: &str| match named(&received, name).unwrap_or_else(|| panic!("{name}")).data
        {
            Some(Data::Sum(sum)) => match sum.data_points[0].value {
                Some(Value::AsDouble(value)) => (value, sum.data_points[0].attributes.clone()),
                ref other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        };
        let usage = "gen_ai.client.inference.usage";
        assert_eq!(sum(&format!("{usage}.input_tokens")).0, 2260.0);
        assert_eq!(sum(&format!("{usage}.output_tokens")).0, 40.0);
        assert_eq!(sum(&format!("{usage}.cache_read.input_tokens")).0, 2000.0);
        let (written, attributes) = sum(&format!("{usage}.cache_write.input_tokens"));
        assert_eq!(
            (written, attribute(&attributes, "gen_ai.token.modality").as_deref()),
            (60.0, Some("unknown"))
        );
        let first = named(&received, "gen_ai.client.operation.time_to_first_chunk").unwrap();
        assert!(
            matches!(first.data, Some(Data::Histogram(first)) if first.data_points[0].count == 1)
        );
        // The gateway's own, as for Prometheus.
        let (requests, attributes) = sum("tollgate_requests_total");
        assert_eq!(
            (requests, attribute(&attributes, "outcome").as_deref()),
            (2.0, Some("completed"))
        );
        let live = named(&received, "tollgate_requests_in_flight").unwrap();
        assert!(matches!(live.data, Some(Data::Gauge(_))));
        let overhead = named(&received, "tollgate_gateway_overhead_seconds").unwrap();
        assert_eq!(overhead.unit, "s");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_alone_need_no_traces_and_the_headers_may_be_in_a_file() {
    let collector = Collector::http().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("headers");
    std::fs::write(&file, "x-token=of%20the%20file\n").unwrap();
    let traces = [
        ("TOLLGATE_TELEMETRY_OTLP_TRACES", "false"),
        ("TOLLGATE_TELEMETRY_OTLP_HEADERS_FILE", file.to_str().unwrap()),
        // Without traces the ratio has no effect; a standard variable is not a fault.
        ("OTEL_TRACES_SAMPLER_ARG", "1"),
    ];
    let fixture = traced(&collector.url, &[&METRICS[..], &traces].concat()).await;
    assert_eq!(fixture.ask().header("traceparent", PARENT).send().await.unwrap().status(), 200);
    let seen = fixture.upstream.requests().await.pop().unwrap();
    assert!(seen["headers"]["traceparent"].to_string().contains(PARENT), "{seen}");
    let count = |received: &Received| {
        let Some(Data::Sum(sum)) = named(received, "tollgate_requests_total")?.data else {
            panic!()
        };
        (sum.data_points.len() == 1).then_some(())
    };
    collector.shows(count).await;
    let received = collector.received.lock();
    assert!(received.headers.iter().all(|headers| headers["x-token"] == "of the file"));
    assert!(received.traces.is_empty() && received.logs.is_empty());
}

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_bucket_leads_to_a_trace() {
    let collector = Collector::http().await;
    let fixture = traced(&collector.url, &METRICS).await;
    fixture.upstream.default(json!({"delay_ms": 120})).await;
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    let spans = collector.spans(|spans| spans.len() == 2).await;
    let server = spans.iter().find(|span| span.name.starts_with("POST")).unwrap();
    let exemplar = collector
        .shows(|received| {
            let metric = named(received, "tollgate_request_duration_seconds")?;
            let Some(Data::Histogram(histogram)) = metric.data else { panic!("{metric:?}") };
            histogram.data_points.iter().flat_map(|point| &point.exemplars).next().cloned()
        })
        .await;
    assert_eq!((&exemplar.trace_id, &exemplar.span_id), (&server.trace_id, &server.span_id));
    // And for Prometheus, if it asks for the format that can carry them.
    let scrape = fixture.gateway.client.get(format!("{}/metrics", fixture.gateway.metrics));
    let plain = scrape.try_clone().unwrap().send().await.unwrap().text().await.unwrap();
    let accept = "application/openmetrics-text;version=1.0.0,text/plain;q=0.5";
    let open = scrape.header("accept", accept).send().await.unwrap();
    assert_eq!(
        open.headers()["content-type"],
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    );
    let open = open.text().await.unwrap();
    assert!(open.ends_with("\n# EOF\n"), "{open}");
    let (trace, span) = (hex::encode(&server.trace_id), hex::encode(&server.span_id));
    let noted = format!("# {{trace_id=\"{trace}\",span_id=\"{span}\"}} 0.");
    let lines: Vec<&str> = open.lines().filter(|line| line.contains(&noted)).collect();
    assert_eq!(lines.len(), 2, "duration and first byte: {open}");
    assert!(
        lines.iter().all(|line| line.contains("_bucket{") && line.contains("le=\"")),
        "{lines:?}"
    );
    // The same series, by the same names.
    let series = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let mut names: Vec<String> =
            lines.map(|line| line.split(' ').next().unwrap().to_owned()).collect();
        names.sort();
        names
    };
    assert_eq!(series(&open), series(&plain));
    assert!(open.contains("# TYPE tollgate_requests counter\n") && !plain.contains("# EOF"));
}

/// The lines so far.
fn lines(received: &Received) -> Vec<&LogRecord> {
    let parts = received
        .logs
        .iter()
        .flat_map(|batch| &batch.resource_logs)
        .flat_map(|part| &part.scope_logs);
    parts.flat_map(|scope| &scope.log_records).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn log_lines_come_with_the_ids_of_their_trace() {
    for (grpc, format) in [(false, "json"), (true, "text")] {
        let collector = if grpc { Collector::grpc().await } else { Collector::http().await };
        let protocol = if grpc { "grpc" } else { "http/protobuf" };
        let env = [
            ("TOLLGATE_TELEMETRY_OTLP_LOGS", "true"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol),
            ("LOG_FORMAT", format),
            // The libraries that send log too: that must not feed itself.
            ("LOG_LEVEL", "trace"),
        ];
        let fixture = traced(&collector.url, &env).await;
        assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
        let spans = collector.spans(|spans| spans.len() == 2).await;
        let server = spans.iter().find(|span| span.name.starts_with("POST")).unwrap();
        let access = collector
            .shows(|received| {
                let is_access = |line: &&LogRecord| {
                    attribute(&line.attributes, "log.target").as_deref() == Some("access")
                };
                lines(received).into_iter().find(is_access).cloned()
            })
            .await;
        assert_eq!((&access.trace_id, &access.span_id), (&server.trace_id, &server.span_id));
        assert_eq!(attribute(&access.attributes, "status").as_deref(), Some("200"));
        assert_eq!(attribute(&access.attributes, "user_name").as_deref(), Some("ada"));
        let received = collector.received.lock();
        let targets: Vec<String> = lines(&received)
            .iter()
            .filter_map(|line| attribute(&line.attributes, "log.target"))
            .collect();
        assert!(targets.iter().any(|target| target.starts_with("tollgate::")), "{targets:?}");
        let own = ["h2", "hyper", "hyper_util", "reqwest", "rustls", "tonic", "tower"];
        assert!(
            !targets.iter().any(|target| own.contains(&target.split("::").next().unwrap())),
            "{targets:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_with_a_mark_in_the_log_and_other_endpoints_count_too() {
    let collector = Collector::http().await;
    let fixture = traced(&collector.url, &METRICS).await;
    fixture.gateway.provider("chat-compatible", &fixture.upstream.url, json!({})).await;
    let check = fixture.ask().header("anthropic-beta", "auto-mode-classifier-2026-07-16");
    check.send().await.unwrap().text().await.unwrap();
    let embedding = fixture.post("/v1/embeddings", &json!({"model": "m", "input": "a"}));
    embedding.send().await.unwrap().text().await.unwrap();
    let log = fixture.gateway.logs(2).await;
    assert_eq!(log[1]["endpoint"], "/v1/messages#tool-check");
    let mut operations = collector
        .shows(|received| {
            let metric = named(received, "gen_ai.client.operation.duration")?;
            let Some(Data::Histogram(histogram)) = metric.data else { panic!("{metric:?}") };
            let name = |attributes: &Vec<_>| attribute(attributes, "gen_ai.operation.name");
            let named: Vec<_> =
                histogram.data_points.iter().filter_map(|point| name(&point.attributes)).collect();
            (named.len() == 2).then_some(named)
        })
        .await;
    operations.sort_unstable();
    assert_eq!(operations, ["chat", "embeddings"]);
}
