//! The log's lines and the access lines as OTLP log records.

use std::sync::Arc;

use opentelemetry_proto::tonic::common::v1::any_value;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, SeverityNumber};
use serde_json::Value;
use tokio::sync::mpsc;

use super::proto::{Attributes, nanos, value};
use crate::config::Otlp;
use crate::domain::clock::Clock;
use crate::telemetry::{Forwarded, Metrics, forward_log};

/// Modules whose lines are not sent: sending them makes more of them.
const OWN_CLIENTS: [&str; 7] = ["h2", "hyper", "hyper_util", "reqwest", "rustls", "tonic", "tower"];

/// A line that waits.
#[derive(Debug)]
pub(super) enum LogLine {
    /// A line of the log, ready.
    Event(Box<LogRecord>),
    /// The JSON of an access line.
    Access {
        /// Nanoseconds since 1970.
        at: u64,
        /// One object.
        json: Vec<u8>,
        /// Keep the error's text: a provider's may repeat the prompt.
        with_error: bool,
    },
}

/// Queues the log's lines from now on; a full queue drops and counts them.
pub(super) fn queue(
    settings: &Otlp,
    metrics: &Arc<Metrics>,
    clock: &Arc<dyn Clock>,
) -> mpsc::Receiver<LogLine> {
    let (sender, receiver) = mpsc::channel(settings.queue);
    let with_error = settings.content;
    let (metrics, clock) = (Arc::clone(metrics), Arc::clone(clock));
    forward_log(Box::new(move |forwarded| {
        let at = nanos(clock.now());
        let line = match forwarded {
            Forwarded::Access(json) => LogLine::Access { at, json: json.to_vec(), with_error },
            Forwarded::Event { target, .. } if is_own_client(target) => return,
            Forwarded::Event { level, target, message, fields } => {
                let mut attributes = Attributes::default();
                attributes.text("log.target", target);
                for (name, value) in fields {
                    attributes.text(name, value);
                }
                let (severity, text) = severity(level);
                LogLine::Event(Box::new(record(at, severity, text, message, attributes)))
            }
        };
        if sender.try_send(line).is_err() {
            metrics.otlp.dropped("logs", "queue_full", 1);
        }
    }));
    receiver
}

fn is_own_client(target: &str) -> bool {
    OWN_CLIENTS.contains(&target.split("::").next().unwrap_or(target))
}

impl LogLine {
    /// As a log record.
    pub(super) fn into_record(self) -> LogRecord {
        match self {
            Self::Event(record) => *record,
            Self::Access { at, json, with_error } => access(at, &json, with_error),
        }
    }
}

fn access(at: u64, json: &[u8], with_error: bool) -> LogRecord {
    let mut attributes = Attributes::default();
    attributes.text("log.target", "access");
    let members: serde_json::Map<String, Value> = serde_json::from_slice(json).unwrap_or_default();
    for (name, member) in &members {
        match member {
            _ if ["timestamp", "level", "target"].contains(&name.as_str()) => {}
            _ if name == "error" && !with_error => {}
            Value::String(text) => {
                attributes.text(name, text.as_str());
            }
            Value::Bool(flag) => {
                attributes.flag(name, *flag);
            }
            Value::Number(number) => {
                attributes.number(name, number.as_i64().unwrap_or(i64::MAX));
            }
            _ => {}
        }
    }
    record(at, SeverityNumber::Info, "INFO", "access", attributes)
}

fn record(
    at: u64,
    severity: SeverityNumber,
    text: &str,
    message: &str,
    attributes: Attributes,
) -> LogRecord {
    let mut attributes = attributes.0;
    let mut id = |name: &str| {
        let place = attributes.iter().position(|attribute| attribute.key == name)?;
        match attributes.remove(place).value?.value? {
            any_value::Value::StringValue(text) => hex::decode(text).ok(),
            _ => None,
        }
    };
    let (trace_id, span_id) =
        (id("trace_id").unwrap_or_default(), id("span_id").unwrap_or_default());
    LogRecord {
        time_unix_nano: at,
        observed_time_unix_nano: at,
        severity_number: severity.into(),
        severity_text: text.to_owned(),
        body: Some(value(any_value::Value::StringValue(message.to_owned()))),
        attributes,
        trace_id,
        span_id,
        ..LogRecord::default()
    }
}

const fn severity(level: tracing::Level) -> (SeverityNumber, &'static str) {
    match level {
        tracing::Level::ERROR => (SeverityNumber::Error, "ERROR"),
        tracing::Level::WARN => (SeverityNumber::Warn, "WARN"),
        tracing::Level::INFO => (SeverityNumber::Info, "INFO"),
        tracing::Level::DEBUG => (SeverityNumber::Debug, "DEBUG"),
        tracing::Level::TRACE => (SeverityNumber::Trace, "TRACE"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_line_has_its_members_and_its_ids() {
        let json = br#"{"timestamp":"now","level":"INFO","target":"access","status":200,"streamed":true,
            "trace_id":"0af7651916cd43dd8448eb211c80319c","span_id":"b7ad6b7169203331","model":"m","error":"x"}"#;
        let record = access(5, json, false);
        assert_eq!(
            (record.trace_id.len(), record.span_id.len(), record.time_unix_nano),
            (16, 8, 5)
        );
        let names: Vec<&str> =
            record.attributes.iter().map(|attribute| attribute.key.as_str()).collect();
        assert_eq!(names, ["log.target", "status", "streamed", "model"]);
    }

    #[test]
    fn lines_of_the_sending_libraries_are_not_sent() {
        assert!(
            is_own_client("h2::codec")
                && is_own_client("reqwest")
                && !is_own_client("tollgate::app")
        );
    }
}
