//! Passes log lines on to one further receiver, beside standard output: the exporter of OTLP.
//!
//! Without a receiver, a line costs one look at an atomic.

use std::sync::OnceLock;

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// One line.
#[derive(Debug)]
pub enum Forwarded<'a> {
    /// A line of the log.
    Event {
        /// Its level.
        level: Level,
        /// The module that wrote it.
        target: &'a str,
        /// Its text.
        message: &'a str,
        /// Its other fields: name and value.
        fields: &'a [(&'static str, String)],
    },
    /// The JSON of an access line: one object.
    Access(&'a [u8]),
}

/// Receives lines. It must not wait, and must not log.
pub type LogReceiver = Box<dyn Fn(Forwarded<'_>) + Send + Sync>;

static RECEIVER: OnceLock<LogReceiver> = OnceLock::new();

/// Passes lines to `receiver` from now on. Only the first call has an effect.
pub fn forward_log(receiver: LogReceiver) {
    let _set_before = RECEIVER.set(receiver);
}

/// The receiver, if there is one.
pub(super) fn receiver() -> Option<&'static LogReceiver> {
    RECEIVER.get()
}

/// The layer of the log that passes its lines on.
pub(super) struct Forward;

#[derive(Default)]
struct LineFields {
    message: String,
    others: Vec<(&'static str, String)>,
    target: Option<String>,
}

impl LineFields {
    fn take(&mut self, field: &Field, value: String) {
        match field.name() {
            "message" => self.message = value,
            // The module of a line of the `log` crate.
            "log.target" => self.target = Some(value),
            name if name.starts_with("log.") => {}
            name => self.others.push((name, value)),
        }
    }
}

impl Visit for LineFields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.take(field, value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.take(field, format!("{value:?}"));
    }
}

impl<S: Subscriber> Layer<S> for Forward {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let Some(receiver) = receiver() else { return };
        let mut fields = LineFields::default();
        event.record(&mut fields);
        let target = fields.target.as_deref().unwrap_or(event.metadata().target());
        let level = *event.metadata().level();
        receiver(Forwarded::Event {
            level,
            target,
            message: &fields.message,
            fields: &fields.others,
        });
    }
}
