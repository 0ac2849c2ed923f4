//! The relay's change of a JSON request: who sent it, in every resource that has data.
//!
//! Values that need no change are copied as they are written, so numbers keep all their digits, and
//! texts their escapes. The objects around the data are written again, each name once: of equal
//! names one reader may take the first and another the last. Lists are read an element at a time,
//! and values are parts of the body, so that the memory is a small multiple of the body.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess,
    Visitor,
};
use serde_json::json;
use serde_json::value::RawValue;

use super::relay::{ATTRIBUTES, Outgoing, RelayError, Sender, Signal};

/// Members of one object. Those of OTLP around the data have a few.
const MOST_MEMBERS: usize = 64;

/// The names of one signal's lists; protobuf's names are read as well.
struct ListNames {
    parts: [&'static str; 2],
    scopes: [&'static str; 2],
    records: [&'static str; 2],
}

const METRICS: ListNames = ListNames {
    parts: ["resourceMetrics", "resource_metrics"],
    scopes: ["scopeMetrics", "scope_metrics"],
    records: ["metrics", "metrics"],
};
const LOGS: ListNames = ListNames {
    parts: ["resourceLogs", "resource_logs"],
    scopes: ["scopeLogs", "scope_logs"],
    records: ["logRecords", "log_records"],
};
const TRACES: ListNames = ListNames {
    parts: ["resourceSpans", "resource_spans"],
    scopes: ["scopeSpans", "scope_spans"],
    records: ["spans", "spans"],
};

/// Sets the sender's attributes, and leaves out resources and scopes without data. Everything else
/// stays as it is, also what the gateway does not know. `null` is a member that is absent, as in
/// protobuf's JSON.
pub(super) fn with_sender(
    signal: Signal,
    body: &[u8],
    sender: Option<&Sender>,
    mut out: Outgoing,
) -> Result<Outgoing, RelayError> {
    let names = match signal {
        Signal::Metrics => &METRICS,
        Signal::Logs => &LOGS,
        Signal::Traces => &TRACES,
    };
    let request: JsonMembers<'_> = serde_json::from_slice(body).map_err(malformed)?;
    let own = sender.map(attributes_of).unwrap_or_default();
    let mut writing = Writing { out: &mut out, names, own: &own };
    writing.request(&request)?;
    Ok(out)
}

fn attributes_of(sender: &Sender) -> Vec<String> {
    let [user, id, key] = ATTRIBUTES;
    [
        json!({"key": user, "value": {"stringValue": sender.user_name}}),
        json!({"key": id, "value": {"intValue": sender.user_id.to_string()}}),
        json!({"key": key, "value": {"stringValue": sender.key_name}}),
    ]
    .iter()
    .map(ToString::to_string)
    .collect()
}

struct Writing<'a> {
    out: &'a mut Outgoing,
    names: &'a ListNames,
    own: &'a [String],
}

impl Writing<'_> {
    fn request(&mut self, request: &JsonMembers<'_>) -> Result<(), RelayError> {
        let names = self.names;
        self.object(request, |this, name, value| {
            if !names.parts.contains(&name) || is_null(value) {
                return this.text(value.get());
            }
            this.list(value, |this, part| {
                let before = this.out.len();
                if this.part(read(part)?)? {
                    this.out.count()
                } else {
                    this.out.back_to(before);
                    Ok(())
                }
            })
        })
    }

    /// Writes a part; the result says whether it has data.
    fn part(&mut self, mut part: JsonMembers<'_>) -> Result<bool, RelayError> {
        let (names, mut has_data) = (self.names, false);
        part.0.entry("resource".to_owned()).or_insert(RawValue::NULL);
        self.object(&part, |this, name, value| {
            if name == "resource" {
                return this.resource(value);
            }
            if !names.scopes.contains(&name) || is_null(value) {
                return this.text(value.get());
            }
            this.list(value, |this, scope| {
                if has_records(scope, names)? {
                    has_data = true;
                    this.text(scope.get())?;
                }
                Ok(())
            })
        })?;
        Ok(has_data)
    }

    fn resource(&mut self, resource: &RawValue) -> Result<(), RelayError> {
        let mut resource = if is_null(resource) { JsonMembers::default() } else { read(resource)? };
        resource.0.entry("attributes".to_owned()).or_insert(RawValue::NULL);
        self.object(&resource, |this, name, value| match name {
            "attributes" => this.attributes(value),
            _ => this.text(value.get()),
        })
    }

    fn attributes(&mut self, sent: &RawValue) -> Result<(), RelayError> {
        self.text("[")?;
        let mut comma = "";
        let mut add = |this: &mut Self, attribute: &str| {
            this.text(comma)?;
            comma = ",";
            this.text(attribute)
        };
        if !is_null(sent) {
            each(sent, |attribute| {
                let KeyOfRelay(is_of_relay) =
                    serde_json::from_str(attribute.get()).map_err(malformed)?;
                if is_of_relay { Ok(()) } else { add(self, attribute.get()) }
            })?;
        }
        for attribute in self.own {
            add(self, attribute)?;
        }
        self.text("]")
    }

    fn text(&mut self, text: &str) -> Result<(), RelayError> {
        self.out.push(text.as_bytes())
    }

    fn object(
        &mut self,
        members: &JsonMembers<'_>,
        mut value: impl FnMut(&mut Self, &str, &RawValue) -> Result<(), RelayError>,
    ) -> Result<(), RelayError> {
        let mut before = "{";
        for (name, of) in &members.0 {
            self.text(before)?;
            before = ",";
            self.text(&serde_json::to_string(name).map_err(malformed)?)?;
            self.text(":")?;
            value(self, name, of)?;
        }
        self.text(if members.0.is_empty() { "{}" } else { "}" })
    }

    /// Writes a list of what `item` writes for each element, which may be nothing.
    fn list(
        &mut self,
        of: &RawValue,
        mut item: impl FnMut(&mut Self, &RawValue) -> Result<(), RelayError>,
    ) -> Result<(), RelayError> {
        self.text("[")?;
        let mut comma = "";
        each(of, |element| {
            let before = self.out.len();
            self.text(comma)?;
            let after = self.out.len();
            item(self, element)?;
            if self.out.len() == after {
                self.out.back_to(before);
            } else {
                comma = ",";
            }
            Ok(())
        })?;
        self.text("]")
    }
}

fn malformed(error: serde_json::Error) -> RelayError {
    RelayError::Malformed(error.to_string())
}

fn is_null(value: &RawValue) -> bool {
    value.get() == "null"
}

fn read<'a, T: Deserialize<'a>>(value: &'a RawValue) -> Result<T, RelayError> {
    serde_json::from_str(value.get()).map_err(malformed)
}

/// Whether a scope has a record that is not empty.
fn has_records(scope: &RawValue, names: &ListNames) -> Result<bool, RelayError> {
    let (scope, mut found): (JsonMembers<'_>, _) = (read(scope)?, false);
    for records in names.records.iter().filter_map(|name| scope.0.get(*name)) {
        if !is_null(records) {
            each(records, |record| {
                let inner = record.get().strip_prefix('{').map(str::trim_start);
                found |= !inner.is_some_and(|inner| inner.starts_with('}')) && !is_null(record);
                Ok(())
            })?;
        }
    }
    Ok(found)
}

/// An object's members, each a part of the body. Of equal names the last one counts.
#[derive(Default)]
struct JsonMembers<'a>(BTreeMap<String, &'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for JsonMembers<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = JsonMembers<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<JsonMembers<'de>, A::Error> {
        let mut found = BTreeMap::new();
        while let Some((name, value)) = members.next_entry::<String, &'de RawValue>()? {
            found.insert(name, value);
            if found.len() > MOST_MEMBERS {
                return Err(A::Error::custom("an object has too many members"));
            }
        }
        Ok(JsonMembers(found))
    }
}

/// Calls `item` with each element of a list, one after the other.
fn each<'a>(
    list: &'a RawValue,
    item: impl FnMut(&'a RawValue) -> Result<(), RelayError>,
) -> Result<(), RelayError> {
    let mut failed = None;
    let mut list = serde_json::Deserializer::from_str(list.get());
    let read = Each { item, failed: &mut failed }.deserialize(&mut list);
    match failed {
        Some(failed) => Err(failed),
        None => read.map_err(malformed),
    }
}

struct Each<'f, F> {
    item: F,
    failed: &'f mut Option<RelayError>,
}

impl<'de, F: FnMut(&'de RawValue) -> Result<(), RelayError>> DeserializeSeed<'de> for Each<'_, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, F: FnMut(&'de RawValue) -> Result<(), RelayError>> Visitor<'de> for Each<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        while let Some(element) = list.next_element::<&'de RawValue>()? {
            if let Err(failed) = (self.item)(element) {
                *self.failed = Some(failed);
                return Err(A::Error::custom("an element"));
            }
        }
        Ok(())
    }
}

/// Whether an attribute has a name that the relay sets. If it has several names, a reader may take
/// any.
struct KeyOfRelay(bool);

impl<'de> Deserialize<'de> for KeyOfRelay {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(KeyVisitor)
    }
}

struct KeyVisitor;

impl<'de> Visitor<'de> for KeyVisitor {
    type Value = KeyOfRelay;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an attribute")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<KeyOfRelay, A::Error> {
        let mut is_of_relay = false;
        while let Some(name) = members.next_key::<String>()? {
            if name == "key" {
                let key = members.next_value::<&RawValue>()?;
                // What is not text is not a name. Half of a surrogate pair is in no name of the
                // relay.
                let key = serde_json::from_str::<String>(key.get());
                is_of_relay |= key.is_ok_and(|key| ATTRIBUTES.contains(&key.as_str()));
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(KeyOfRelay(is_of_relay))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn changed(body: &str) -> Result<String, RelayError> {
        let out = with_sender(Signal::Logs, body.as_bytes(), Some(&sender()), Outgoing::new(4096))?;
        Ok(String::from_utf8(out.into_bytes()).unwrap())
    }

    fn sender() -> Sender {
        Sender { user_name: "ada".to_owned(), user_id: 7, key_name: "laptop".to_owned() }
    }

    #[test]
    fn json_is_changed_in_its_resources_only() {
        let body = json!({"resourceLogs": [
            {"resource": {"attributes": [{"key": "user.name", "value": {"stringValue": "mallory"}},
                {"key": "service.name", "value": {"stringValue": "claude-code"}}]}, "scopeLogs": [{"logRecords": [{"later": 1.50}]}]},
            {"scopeLogs": [{"log_records": [{}, 1]}, {"logRecords": [{ }, null]}, {}]},
            {"scopeLogs": []}, {"resource": {}}, {}], "unknown": "1"});
        let sent = changed(&body.to_string()).unwrap();
        let own = [
            json!({"key": "user.name", "value": {"stringValue": "ada"}}),
            json!({"key": "tollgate.user.id", "value": {"intValue": "7"}}),
            json!({"key": "tollgate.key.name", "value": {"stringValue": "laptop"}}),
        ];
        let mut first =
            vec![json!({"key": "service.name", "value": {"stringValue": "claude-code"}})];
        first.extend(own.clone());
        let wanted = json!({"resourceLogs": [
            {"resource": {"attributes": first}, "scopeLogs": [{"logRecords": [{"later": 1.50}]}]},
            {"scopeLogs": [{"log_records": [{}, 1]}], "resource": {"attributes": own}}],
            "unknown": "1"});
        assert_eq!(serde_json::from_str::<Value>(&sent).unwrap(), wanted);
        for body in [
            "",
            "[]",
            "{\"resourceLogs\":{}}",
            "{\"resourceLogs\":[1]}",
            "{\"resourceLogs\":[{\"resource\":1}]}",
        ] {
            assert!(matches!(changed(body), Err(RelayError::Malformed(_))), "{body}");
        }
    }

    #[test]
    fn null_is_a_member_that_is_absent() {
        let own = |body: Value| {
            let changed: Value =
                serde_json::from_str(&changed(&body.to_string()).unwrap()).unwrap();
            changed["resourceLogs"][0]["resource"]["attributes"].as_array().map(Vec::len)
        };
        let with_data = |resource: Value| {
            let scopes = json!([{"scope": null, "logRecords": [{"body": null}]}]);
            json!({"resourceLogs": [{"resource": resource, "scopeLogs": scopes}]})
        };
        assert_eq!(own(with_data(json!({"attributes": null}))), Some(3));
        assert_eq!(own(with_data(Value::Null)), Some(3));
        let empty =
            json!({"resourceLogs": [{"scopeLogs": null}, {"scopeLogs": [{"logRecords": null}]}]});
        assert_eq!(own(empty), None);
        assert_eq!(own(json!({"resourceLogs": null, "resource_logs": null})), None);
    }

    #[test]
    fn values_stay_as_they_are_written() {
        let kept = r#"{"key":"half","value":{"stringValue":"\ud83d"}}"#;
        let logs = r#"[{"logRecords":[{"body":{"stringValue":"\ud83d \u00e9"},"x":1e999,"y":123456789012345678901.50}]}]"#;
        let body = format!(
            r#"{{"resourceLogs":[{{"scopeLogs": {logs},"resource":{{"attributes":[{kept}]}}}}]}}"#
        );
        let changed = changed(&body).unwrap();
        assert!(changed.contains(kept) && changed.contains(logs), "{changed}");
        assert!(changed.contains(r#"{"key":"user.name","value":{"stringValue":"ada"}}"#));
    }

    /// Each would reach one reader or another as a second value of the relay's own attribute.
    #[test]
    fn no_way_of_writing_keeps_a_senders_own_name() {
        let evil = r#"{"key":"user.name","value":{"stringValue":"mallory"}}"#;
        let resource = format!(r#"{{"attributes":[{evil}]}}"#);
        for body in [
            r#"{"resourceLogs":[{"resource":{"attributes":[{"key":"\u0075ser.name","value":{"stringValue":"mallory"}}]}}]}"#.to_owned(),
            r#"{"resourceLogs":[{"resource":{"attributes":[{"key":"user.name","key":"x","value":{"stringValue":"mallory"}}]}}]}"#.to_owned(),
            r#"{"resourceLogs":[{"resource":{"attributes":[{"value":{"stringValue":"mallory \ud83d"},"key":"user.name"}]}}]}"#.to_owned(),
            r#"{"resourceLogs":[{"resource":{"attributes":[{"key":"\ud83d","key":"user.name","value":{"stringValue":"mallory"}}]}}]}"#.to_owned(),
            format!(r#"{{"resourceLogs":[{{"resource":{resource},"resource":{{}}}}]}}"#),
            format!(r#"{{"resourceLogs":[{{"resource":{resource}}}],"resourceLogs":[{{"resource":null}}]}}"#),
            format!(r#"{{"resource_logs":[{{"resource":{resource}}}],"resourceLogs":[]}}"#),
            format!(r#"{{"resourceLogs":[{{"resource":{{"attributes":[{evil}],"attributes":[]}}}}]}}"#),
        ] {
            let data = r#"s":[{"scopeLogs":[{"logRecords":[1]}],"resource":"#;
            let body = body.replace(r#"s":[{"resource":"#, data);
            let changed = changed(&body).unwrap();
            assert!(!changed.contains("mallory") && changed.contains("ada"), "{changed}");
        }
        let unreadable =
            r#"{"resourceLogs":[{"resource":{"attributes":[{"\ud83d":1,"key":"user.name"}]}}]}"#;
        assert!(matches!(changed(unreadable), Err(RelayError::Malformed(_))));
    }
}
