//! The relay's change of a JSON request: who sent it, in every resource.
//!
//! Values that need no change are copied as they are written, so numbers keep all their digits, and
//! texts their escapes. The objects around the attributes are written again, each name once: of
//! equal names one reader may take the first and another the last.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, DeserializeOwned, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::ser::Serialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::relay::{ATTRIBUTES, RelayError, Sender, Signal};

/// An object's members. Of equal names the last one counts.
type Members = BTreeMap<String, Box<RawValue>>;

/// Sets the sender's attributes. Everything else stays as it is, also what the gateway does not
/// know. `null` is a member that is absent, as in protobuf's JSON.
pub(super) fn with_sender(
    signal: Signal,
    body: &[u8],
    sender: Option<&Sender>,
) -> Result<Vec<u8>, RelayError> {
    let malformed = |error: serde_json::Error| RelayError::Malformed(error.to_string());
    let mut request: Members = serde_json::from_slice(body).map_err(malformed)?;
    let list = match signal {
        Signal::Metrics => ["resourceMetrics", "resource_metrics"],
        Signal::Logs => ["resourceLogs", "resource_logs"],
        Signal::Traces => ["resourceSpans", "resource_spans"],
    };
    let own = sender.map(attributes_of).transpose().map_err(malformed)?.unwrap_or_default();
    for name in list {
        let Some(mut parts) = member::<Vec<Members>>(&request, name)? else { continue };
        for part in &mut parts {
            let mut resource: Members = member(part, "resource")?.unwrap_or_default();
            let mut attributes: Vec<Attribute> =
                member(&resource, "attributes")?.unwrap_or_default();
            attributes.retain(|attribute| !attribute.is_of_relay);
            let values = attributes.iter().map(|attribute| &attribute.value).chain(&own);
            set(&mut resource, "attributes", &values.collect::<Vec<_>>())?;
            set(part, "resource", &resource)?;
        }
        set(&mut request, name, &parts)?;
    }
    serde_json::to_vec(&request).map_err(malformed)
}

fn attributes_of(sender: &Sender) -> serde_json::Result<Vec<Box<RawValue>>> {
    let [user, id, key] = ATTRIBUTES;
    [
        json!({"key": user, "value": {"stringValue": sender.user_name}}),
        json!({"key": id, "value": {"intValue": sender.user_id.to_string()}}),
        json!({"key": key, "value": {"stringValue": sender.key_name}}),
    ]
    .iter()
    .map(to_raw_value)
    .collect()
}

fn member<T: DeserializeOwned>(of: &Members, name: &str) -> Result<Option<T>, RelayError> {
    let Some(value) = of.get(name) else { return Ok(None) };
    serde_json::from_str(value.get())
        .map_err(|error| RelayError::Malformed(format!("{name}: {error}")))
}

fn set(of: &mut Members, name: &str, value: &impl Serialize) -> Result<(), RelayError> {
    let value = to_raw_value(value).map_err(|error| RelayError::Malformed(error.to_string()))?;
    of.insert(name.to_owned(), value);
    Ok(())
}

/// An attribute as it is written.
struct Attribute {
    value: Box<RawValue>,
    /// It has a name that the relay sets. If it has several names, a reader may take any.
    is_of_relay: bool,
}

impl<'de> Deserialize<'de> for Attribute {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = <Box<RawValue>>::deserialize(deserializer)?;
        let KeyOfRelay(is_of_relay) =
            serde_json::from_str(value.get()).map_err(serde::de::Error::custom)?;
        Ok(Self { value, is_of_relay })
    }
}

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
                // What is no text is no name. Half of a surrogate pair is in no name of the relay.
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

    fn sender() -> Sender {
        Sender { user_name: "ada".to_owned(), user_id: 7, key_name: "laptop".to_owned() }
    }

    #[test]
    fn json_is_changed_in_its_resources_only() {
        let body = json!({"resourceLogs": [
            {"resource": {"attributes": [{"key": "user.name", "value": {"stringValue": "mallory"}},
                {"key": "service.name", "value": {"stringValue": "claude-code"}}]}, "scopeLogs": [{"later": 1.50}]},
            {"scopeLogs": []}], "unknown": "1"});
        let changed =
            with_sender(Signal::Logs, body.to_string().as_bytes(), Some(&sender())).unwrap();
        let own = [
            json!({"key": "user.name", "value": {"stringValue": "ada"}}),
            json!({"key": "tollgate.user.id", "value": {"intValue": "7"}}),
            json!({"key": "tollgate.key.name", "value": {"stringValue": "laptop"}}),
        ];
        let mut first =
            vec![json!({"key": "service.name", "value": {"stringValue": "claude-code"}})];
        first.extend(own.clone());
        let wanted = json!({"resourceLogs": [
            {"resource": {"attributes": first}, "scopeLogs": [{"later": 1.50}]},
            {"scopeLogs": [], "resource": {"attributes": own}}], "unknown": "1"});
        assert_eq!(serde_json::from_slice::<Value>(&changed).unwrap(), wanted);
        for body in [
            "",
            "[]",
            "{\"resourceLogs\":{}}",
            "{\"resourceLogs\":[1]}",
            "{\"resourceLogs\":[{\"resource\":1}]}",
        ] {
            let refused = with_sender(Signal::Logs, body.as_bytes(), Some(&sender()));
            assert!(matches!(refused, Err(RelayError::Malformed(_))), "{body}");
        }
    }

    #[test]
    fn null_is_a_member_that_is_absent() {
        let own = |body: Value| {
            let changed =
                with_sender(Signal::Logs, body.to_string().as_bytes(), Some(&sender())).unwrap();
            let changed: Value = serde_json::from_slice(&changed).unwrap();
            changed["resourceLogs"][0]["resource"]["attributes"].as_array().map(Vec::len)
        };
        assert_eq!(own(json!({"resourceLogs": [{"resource": {"attributes": null}}]})), Some(3));
        assert_eq!(own(json!({"resourceLogs": [{"resource": null}]})), Some(3));
        assert_eq!(own(json!({"resourceLogs": null, "resource_logs": null})), None);
    }

    #[test]
    fn values_stay_as_they_are_written() {
        let kept = r#"{"key":"half","value":{"stringValue":"\ud83d"}}"#;
        let logs =
            r#"[{"body":{"stringValue":"\ud83d \u00e9"},"x":1e999,"y":123456789012345678901.50}]"#;
        let body = format!(
            r#"{{"resourceLogs":[{{"scopeLogs": {logs},"resource":{{"attributes":[{kept}]}}}}]}}"#
        );
        let changed = with_sender(Signal::Logs, body.as_bytes(), Some(&sender())).unwrap();
        let changed = String::from_utf8(changed).unwrap();
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
            format!(r#"{{"resourceLogs":[{{"resource":{resource}}}],"resourceLogs":[{{}}]}}"#),
            format!(r#"{{"resource_logs":[{{"resource":{resource}}}],"resourceLogs":[]}}"#),
            format!(r#"{{"resourceLogs":[{{"resource":{{"attributes":[{evil}],"attributes":[]}}}}]}}"#),
        ] {
            let changed = with_sender(Signal::Logs, body.as_bytes(), Some(&sender())).unwrap();
            let changed = String::from_utf8(changed).unwrap();
            assert!(!changed.contains("mallory") && changed.contains("ada"), "{changed}");
        }
        let unreadable =
            r#"{"resourceLogs":[{"resource":{"attributes":[{"\ud83d":1,"key":"user.name"}]}}]}"#;
        let refused = with_sender(Signal::Logs, unreadable.as_bytes(), Some(&sender()));
        assert!(matches!(refused, Err(RelayError::Malformed(_))));
    }
}
