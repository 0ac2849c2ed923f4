//! A collector that is slow, away or unwilling: no request waits, and what is lost is counted.

use std::time::Duration;

use super::collector::Collector;
use super::traced;
use crate::support::gateway::free_port;

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_hangs_delays_no_request_and_what_is_lost_is_counted() {
    let collector = Collector::http().await;
    collector.received.lock().hang = true;
    let env = [("TOLLGATE_TELEMETRY_OTLP_QUEUE", "16"), ("TOLLGATE_TELEMETRY_OTLP_TIMEOUT", "1m")];
    let fixture = traced(&collector.url, &env).await;
    // The first goes into the batch that hangs.
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    collector.shows(|received| (received.headers.len() == 1).then_some(())).await;
    for _ in 0..60 {
        assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    }
    // All but the 16 requests that the queue holds, of two spans each.
    fixture.gateway.metric_shows("tollgate_otlp_dropped_total", |lost| lost == 88.0).await;
    let text = fixture
        .gateway
        .client
        .get(format!("{}/metrics", fixture.gateway.metrics))
        .send()
        .await
        .unwrap();
    let text = text.text().await.unwrap();
    assert!(
        text.contains("tollgate_otlp_dropped_total{reason=\"queue_full\",signal=\"traces\"}"),
        "{text}"
    );
    assert!(fixture.gateway.longest_overhead() < Duration::from_secs(1));
    // A stop does not wait for it longer than some seconds.
    let mut gateway = fixture.gateway;
    gateway.signal("TERM");
    assert!(gateway.ended().await < Duration::from_secs(20));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_batch_is_sent_again_once_and_a_hopeless_one_is_not() {
    let collector = Collector::http().await;
    collector.received.lock().refuse = vec![429, 503];
    let fixture = traced(&collector.url, &[]).await;
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    collector.spans(|spans| spans.len() == 2).await;
    assert_eq!(collector.received.lock().headers.len(), 3);
    fixture.gateway.metric_shows("tollgate_otlp_exported_total", |sent| sent == 2.0).await;
    fixture.gateway.log_shows("the collector takes telemetry again").await;
    collector.received.lock().refuse = vec![400];
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    fixture.gateway.metric_shows("tollgate_otlp_dropped_total", |lost| lost == 2.0).await;
    assert_eq!(collector.received.lock().headers.len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_queued_at_a_stop_is_sent_and_one_that_is_away_does_not_hold_it_up() {
    let collector = Collector::http().await;
    let mut fixture = traced(&collector.url, &[]).await;
    assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
    fixture.gateway.signal("TERM");
    assert_eq!(fixture.gateway.exit_code().await, Some(0));
    assert_eq!(collector.spans(|spans| !spans.is_empty()).await.len(), 2);
    for protocol in ["http/protobuf", "grpc"] {
        let away = format!("http://127.0.0.1:{}", free_port());
        let mut fixture = traced(&away, &[("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)]).await;
        assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
        fixture.gateway.log_shows("the collector does not take telemetry").await;
        fixture.gateway.signal("TERM");
        assert_eq!(fixture.gateway.exit_code().await, Some(0), "{protocol}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_does_not_answer_in_time_is_given_up() {
    for protocol in ["http/protobuf", "grpc"] {
        // It accepts connections and says nothing.
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", silent.local_addr().unwrap());
        let env = [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol),
            ("TOLLGATE_TELEMETRY_OTLP_TIMEOUT", "200ms"),
        ];
        let fixture = traced(&url, &env).await;
        assert_eq!(fixture.ask().send().await.unwrap().status(), 200);
        fixture.gateway.log_shows("the collector does not take telemetry").await;
    }
}
