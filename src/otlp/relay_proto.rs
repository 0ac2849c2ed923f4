//! The relay's change of a protobuf request: who sent it, in every resource that has data.
//!
//! It walks the fields of the messages around the data and copies the rest as it is. Nothing is
//! decoded into structures, which would take a hundred times the memory of a body of empty
//! messages. The three requests have the same numbers: 1 the parts; in a part 1 the resource and 2
//! the scopes; in a scope 2 the records; in a resource 1 the attributes, in these 1 the key.

use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use prost::Message;

use super::proto::pair;
use super::relay::{ATTRIBUTES, Outgoing, RelayError, Sender};

/// A field of a message.
struct Field<'a> {
    number: u64,
    /// With its tag and length.
    raw: &'a [u8],
    /// The bytes of a text or a message.
    value: Option<&'a [u8]>,
}

/// Sets the sender's attributes, and leaves out resources and scopes without data.
pub(super) fn with_sender(
    body: &[u8],
    sender: Option<&Sender>,
    mut out: Outgoing,
) -> Result<Outgoing, RelayError> {
    let own = sender.map(attributes_of).unwrap_or_default();
    for field in ProtoFields(body) {
        let field = field?;
        match field.value.filter(|_| field.number == 1) {
            None => out.push(field.raw)?,
            Some(value) => {
                if let Some(part) = part(value, &own)? {
                    out.count()?;
                    out.push(&message(1, &part))?;
                }
            }
        }
    }
    Ok(out)
}

/// The sender's attributes, as fields of a resource.
fn attributes_of(sender: &Sender) -> Vec<u8> {
    let [user, id, key] = ATTRIBUTES;
    let attributes: [KeyValue; 3] = [
        pair(user, any_value::Value::StringValue(sender.user_name.clone())),
        pair(id, any_value::Value::IntValue(sender.user_id)),
        pair(key, any_value::Value::StringValue(sender.key_name.clone())),
    ];
    attributes.iter().flat_map(|attribute| message(1, &attribute.encode_to_vec())).collect()
}

/// The part with the sender in its resource; `None` if it has no data.
fn part(body: &[u8], own: &[u8]) -> Result<Option<Vec<u8>>, RelayError> {
    // Of several resources a reader makes one: their fields in a row.
    let (mut resource, mut rest, mut has_data) = (Vec::new(), Vec::new(), false);
    for field in ProtoFields(body) {
        let field = field?;
        match (field.number, field.value) {
            (1, Some(value)) => foreign(value, &mut resource)?,
            (2, Some(value)) if !has_records(value)? => {}
            (number, value) => {
                has_data |= number == 2 && value.is_some();
                rest.extend_from_slice(field.raw);
            }
        }
    }
    if !has_data {
        return Ok(None);
    }
    resource.extend_from_slice(own);
    let mut part = message(1, &resource);
    part.append(&mut rest);
    Ok(Some(part))
}

/// Adds a resource's fields without the attributes that the relay sets.
fn foreign(resource: &[u8], to: &mut Vec<u8>) -> Result<(), RelayError> {
    for field in ProtoFields(resource) {
        let field = field?;
        let is_of_relay = match field.value.filter(|_| field.number == 1) {
            Some(attribute) => ProtoFields(attribute).try_fold(false, |found, field| {
                let field = field?;
                let names = |name: &str| field.value == Some(name.as_bytes());
                Ok::<_, RelayError>(found || field.number == 1 && ATTRIBUTES.into_iter().any(names))
            })?,
            None => false,
        };
        if !is_of_relay {
            to.extend_from_slice(field.raw);
        }
    }
    Ok(())
}

/// Whether a scope has a record that is not empty.
fn has_records(scope: &[u8]) -> Result<bool, RelayError> {
    ProtoFields(scope).try_fold(false, |found, field| {
        let field = field?;
        Ok(found || field.number == 2 && field.value.is_some_and(|record| !record.is_empty()))
    })
}

/// A field with a message as its value.
fn message(number: u8, body: &[u8]) -> Vec<u8> {
    let mut field = vec![(number << 3) | 2];
    // Writing to a Vec cannot fail.
    let _ = prost::encode_length_delimiter(body.len(), &mut field);
    field.extend_from_slice(body);
    field
}

/// The fields of a message, one after the other.
struct ProtoFields<'a>(&'a [u8]);

impl<'a> Iterator for ProtoFields<'a> {
    type Item = Result<Field<'a>, RelayError>;

    fn next(&mut self) -> Option<Self::Item> {
        let all = self.0;
        if all.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
        }
        let read = all.len().saturating_sub(self.0.len());
        Some(match (field, all.get(..read)) {
            (Some((number, value)), Some(raw)) => Ok(Field { number, raw, value }),
            _ => Err(RelayError::Malformed("it is not a protobuf message".to_owned())),
        })
    }
}

impl<'a> ProtoFields<'a> {
    fn field(&mut self) -> Option<(u64, Option<&'a [u8]>)> {
        let key = self.varint()?;
        let number = key >> 3;
        let value = match key & 7 {
            0 => self.varint().map(|_| None)?,
            1 => self.take(8).map(|_| None)?,
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                Some(self.take(length)?)
            }
            5 => self.take(4).map(|_| None)?,
            // Groups are in no message of OTLP.
            _ => return None,
        };
        (number != 0).then_some((number, value))
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = *self.take(1)?.first()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }
}
