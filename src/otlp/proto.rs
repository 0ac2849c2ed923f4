//! Short ways to make the protobuf messages that all signals share.

use opentelemetry_proto::tonic::common::v1::{
    AnyValue, ArrayValue, InstrumentationScope, KeyValue, any_value,
};
use opentelemetry_proto::tonic::resource::v1::Resource;

use crate::config::Otlp;
use crate::domain::clock::Timestamp;
use crate::domain::version;

/// Attributes of a span, an event, a data point or a log line.
#[derive(Debug, Default)]
pub(super) struct Attributes(pub(super) Vec<KeyValue>);

impl Attributes {
    fn add(&mut self, name: &str, value: any_value::Value) -> &mut Self {
        self.0.push(pair(name, value));
        self
    }

    /// A text.
    pub(super) fn text(&mut self, name: &str, value: impl Into<String>) -> &mut Self {
        self.add(name, any_value::Value::StringValue(value.into()))
    }

    /// A text, if there is one.
    pub(super) fn text_if_any(&mut self, name: &str, value: Option<&str>) -> &mut Self {
        match value {
            Some(value) => self.text(name, value),
            None => self,
        }
    }

    /// A count.
    pub(super) fn number(&mut self, name: &str, value: impl TryInto<i64>) -> &mut Self {
        self.add(name, any_value::Value::IntValue(value.try_into().unwrap_or(i64::MAX)))
    }

    /// A number with decimals.
    pub(super) fn float(&mut self, name: &str, value: f64) -> &mut Self {
        self.add(name, any_value::Value::DoubleValue(value))
    }

    /// Yes or no.
    pub(super) fn flag(&mut self, name: &str, value: bool) -> &mut Self {
        self.add(name, any_value::Value::BoolValue(value))
    }

    /// A list of texts.
    pub(super) fn texts(
        &mut self,
        name: &str,
        values: impl IntoIterator<Item = String>,
    ) -> &mut Self {
        let values =
            values.into_iter().map(|text| value(any_value::Value::StringValue(text))).collect();
        self.add(name, any_value::Value::ArrayValue(ArrayValue { values }))
    }
}

/// A value of any type.
pub(super) const fn value(value: any_value::Value) -> AnyValue {
    AnyValue { value: Some(value) }
}

/// One attribute.
pub(super) fn pair(name: &str, of: any_value::Value) -> KeyValue {
    KeyValue { key: name.to_owned(), value: Some(value(of)), key_strindex: 0 }
}

/// This process, as every signal names it. The operator's attributes override the gateway's.
pub(super) fn resource(settings: &Otlp) -> Resource {
    let mut own = Attributes::default();
    own.text("service.name", settings.service_name.as_str())
        .text("service.version", version::NUMBER)
        .text("service.instance.id", uuid::Uuid::new_v4().to_string())
        .number("process.pid", std::process::id());
    for (name, value) in settings.resource_attributes.iter().flatten() {
        own.0.retain(|pair| pair.key != *name);
        own.text(name, value.as_str());
    }
    Resource { attributes: own.0, ..Resource::default() }
}

/// The maker of all spans, metrics and log lines.
pub(super) fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: "tollgate".to_owned(),
        version: version::NUMBER.to_owned(),
        ..InstrumentationScope::default()
    }
}

/// Nanoseconds since 1970.
pub(super) fn nanos(at: Timestamp) -> u64 {
    u64::try_from(at.0).unwrap_or_default().saturating_mul(1_000_000)
}
