//! What a strict collector checks of each message, by the rules in the protobuf files' comments.

use std::collections::BTreeSet;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{AggregationTemporality, HistogramDataPoint, Metric};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use tollgate::domain::clock::{Clock as _, SystemClock};

type Faults = Vec<String>;

/// An attribute's value as text; a list as its texts.
pub fn attribute(attributes: &[KeyValue], name: &str) -> Option<String> {
    let pair = attributes.iter().find(|pair| pair.key == name)?;
    Some(text(pair.value.as_ref()?.value.as_ref()?))
}

fn text(value: &Value) -> String {
    match value {
        Value::StringValue(text) => text.clone(),
        Value::IntValue(number) => number.to_string(),
        Value::DoubleValue(number) => number.to_string(),
        Value::BoolValue(flag) => flag.to_string(),
        Value::ArrayValue(list) => {
            let texts = list.values.iter().filter_map(|item| item.value.as_ref()).map(text);
            texts.collect::<Vec<_>>().join(",")
        }
        other => format!("{other:?}"),
    }
}

pub fn traces(batch: &ExportTraceServiceRequest, faults: &mut Faults) {
    need(!batch.resource_spans.is_empty(), "an empty batch", faults);
    for part in &batch.resource_spans {
        resource(part.resource.as_ref(), faults);
        for scope in &part.scope_spans {
            self::scope(scope.scope.as_ref(), faults);
            need(!scope.spans.is_empty(), "a scope without spans", faults);
            scope.spans.iter().for_each(|span| self::span(span, faults));
            let ids: BTreeSet<_> = scope.spans.iter().map(|span| &span.span_id).collect();
            need(ids.len() == scope.spans.len(), "two spans with one id", faults);
        }
    }
}

fn span(span: &Span, faults: &mut Faults) {
    let name = &span.name;
    id(&span.trace_id, 16, faults);
    id(&span.span_id, 8, faults);
    if !span.parent_span_id.is_empty() {
        id(&span.parent_span_id, 8, faults);
    }
    need(!name.is_empty(), "a span without a name", faults);
    need(
        matches!(span.kind(), SpanKind::Server | SpanKind::Client),
        &format!("{name}: kind"),
        faults,
    );
    need(span.flags & 1 == 1, &format!("{name}: not sampled"), faults);
    need(span.flags & 0x100 != 0, &format!("{name}: parent unknown"), faults);
    recent(span.start_time_unix_nano, faults);
    need(
        span.end_time_unix_nano >= span.start_time_unix_nano,
        &format!("{name}: ends before it starts"),
        faults,
    );
    attributes(&span.attributes, faults);
    for event in &span.events {
        need(!event.name.is_empty(), &format!("{name}: an event without a name"), faults);
        let inside = event.time_unix_nano >= span.start_time_unix_nano
            && event.time_unix_nano <= span.end_time_unix_nano;
        need(inside, &format!("{name}: {} is outside of the span", event.name), faults);
        attributes(&event.attributes, faults);
    }
    if let Some(status) = &span.status {
        need(status.code == 2, &format!("{name}: status {status:?}"), faults);
        need(
            attribute(&span.attributes, "error.type").is_some(),
            &format!("{name}: an error without a type"),
            faults,
        );
    }
}

pub fn metrics(batch: &ExportMetricsServiceRequest, faults: &mut Faults) {
    for part in &batch.resource_metrics {
        resource(part.resource.as_ref(), faults);
        for scope in &part.scope_metrics {
            self::scope(scope.scope.as_ref(), faults);
            let names: BTreeSet<_> = scope.metrics.iter().map(|metric| &metric.name).collect();
            need(names.len() == scope.metrics.len(), "two metrics with one name", faults);
            scope.metrics.iter().for_each(|metric| self::metric(metric, faults));
        }
    }
}

fn metric(metric: &Metric, faults: &mut Faults) {
    let name = &metric.name;
    let cumulative = i32::from(AggregationTemporality::Cumulative);
    let sets: Vec<&Vec<KeyValue>> = match metric.data.as_ref().expect("data") {
        Data::Sum(sum) => {
            need(
                sum.is_monotonic && sum.aggregation_temporality == cumulative,
                &format!("{name}: sum"),
                faults,
            );
            for point in &sum.data_points {
                recent(point.start_time_unix_nano, faults);
                recent(point.time_unix_nano, faults);
            }
            sum.data_points.iter().map(|point| &point.attributes).collect()
        }
        Data::Gauge(gauge) => gauge.data_points.iter().map(|point| &point.attributes).collect(),
        Data::Histogram(histogram) => {
            need(
                histogram.aggregation_temporality == cumulative,
                &format!("{name}: temporality"),
                faults,
            );
            histogram.data_points.iter().for_each(|point| buckets(name, point, faults));
            histogram.data_points.iter().map(|point| &point.attributes).collect()
        }
        other => panic!("{name}: {other:?}"),
    };
    need(!sets.is_empty(), &format!("{name}: no data points"), faults);
    let unique: BTreeSet<String> = sets.iter().map(|set| format!("{set:?}")).collect();
    need(
        unique.len() == sets.len(),
        &format!("{name}: two points with the same attributes"),
        faults,
    );
    sets.into_iter().for_each(|set| attributes(set, faults));
}

fn buckets(name: &str, point: &HistogramDataPoint, faults: &mut Faults) {
    let counts = &point.bucket_counts;
    need(counts.len() == point.explicit_bounds.len() + 1, &format!("{name}: buckets"), faults);
    need(
        counts.iter().sum::<u64>() == point.count,
        &format!("{name}: the buckets are not the count"),
        faults,
    );
    need(point.explicit_bounds.is_sorted(), &format!("{name}: bounds"), faults);
    for exemplar in &point.exemplars {
        id(&exemplar.trace_id, 16, faults);
        id(&exemplar.span_id, 8, faults);
        recent(exemplar.time_unix_nano, faults);
        need(exemplar.value.is_some(), &format!("{name}: an exemplar without a value"), faults);
    }
}

pub fn logs(batch: &ExportLogsServiceRequest, faults: &mut Faults) {
    for part in &batch.resource_logs {
        resource(part.resource.as_ref(), faults);
        for scope in &part.scope_logs {
            self::scope(scope.scope.as_ref(), faults);
            for record in &scope.log_records {
                recent(record.time_unix_nano, faults);
                need((1..=24).contains(&record.severity_number), "a severity", faults);
                need(record.body.is_some(), "a line without text", faults);
                attributes(&record.attributes, faults);
                if !record.trace_id.is_empty() {
                    id(&record.trace_id, 16, faults);
                    id(&record.span_id, 8, faults);
                }
            }
        }
    }
}

fn resource(resource: Option<&Resource>, faults: &mut Faults) {
    let Some(resource) = resource else { return need(false, "no resource", faults) };
    attributes(&resource.attributes, faults);
    need(attribute(&resource.attributes, "service.name").is_some(), "no service.name", faults);
}

fn scope(scope: Option<&InstrumentationScope>, faults: &mut Faults) {
    need(scope.is_some_and(|scope| !scope.name.is_empty()), "a scope without a name", faults);
}

fn attributes(attributes: &[KeyValue], faults: &mut Faults) {
    let mut seen = BTreeSet::new();
    for pair in attributes {
        need(
            !pair.key.is_empty() && seen.insert(&pair.key),
            &format!("the attribute {} twice", pair.key),
            faults,
        );
        let value = pair.value.as_ref().and_then(|value| value.value.as_ref());
        need(value.is_some(), &format!("the attribute {} without a value", pair.key), faults);
    }
}

fn id(bytes: &[u8], length: usize, faults: &mut Faults) {
    need(
        bytes.len() == length && bytes.iter().any(|byte| *byte != 0),
        &format!("the id {bytes:?}"),
        faults,
    );
}

/// A time within the last hour.
fn recent(nanos: u64, faults: &mut Faults) {
    let now = u64::try_from(SystemClock.now().0).unwrap() * 1_000_000;
    let hour = 3_600_000_000_000;
    need(nanos <= now + 1_000_000_000 && nanos + hour > now, &format!("the time {nanos}"), faults);
}

fn need(holds: bool, what: &str, faults: &mut Faults) {
    if !holds {
        faults.push(what.to_owned());
    }
}
