//! How a record stands in a document: which fields it has, what they are called there, and which of
//! them need not be written.
//!
//! Fields are those of the actions' tables, and their values those of the records that the actions
//! answer. Names are snake_case throughout, as in the gateway's own settings.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::admin::envelope::ApiError;
use crate::admin::fields::{Field, Need};

/// A record as the document has it.
pub(super) type Form = Map<String, Value>;

/// What the fields of a table are called in a document, and a body's name for each.
pub(super) fn snake(name: &str) -> String {
    let mut text = String::with_capacity(name.len() + 4);
    let mut before = '_';
    for c in name.chars() {
        let begins = c.is_ascii_uppercase() || (c.is_ascii_digit() && before.is_ascii_alphabetic());
        if begins && before != '_' {
            text.push('_');
        }
        text.push(c.to_ascii_lowercase());
        before = c;
    }
    text
}

/// A table without a field.
pub(super) fn without(fields: &[Field], name: &str) -> Vec<Field> {
    fields.iter().filter(|field| field.name != name).copied().collect()
}

/// A table none of whose fields must be there or has a value of its own.
pub(super) fn optional(fields: &[Field]) -> Vec<Field> {
    fields.iter().map(|field| Field { need: Need::Optional, ..*field }).collect()
}

/// A record that an action would answer, as the document has it, with every field of the table.
///
/// # Errors
/// The record cannot be written as JSON, or lacks a field.
pub(super) fn of<T: Serialize>(record: &T, fields: &[Field]) -> Result<Form, ApiError> {
    let Value::Object(record) = serde_json::to_value(record).map_err(ApiError::internal)? else {
        return Err(ApiError::internal("a record that is no object"));
    };
    // Some bodies have names of another style than the records that show what came of them.
    let mut named: Form = record.into_iter().map(|(name, value)| (snake(&name), value)).collect();
    let take = |field: &Field| {
        let name = snake(field.name);
        let value = named.remove(&name).ok_or_else(|| ApiError::internal(format!("a record without {name}")))?;
        Ok((name, value))
    };
    fields.iter().map(take).collect()
}

/// What need not be written, as it is so anyway: fields with their defaults.
pub(super) fn shortened(form: Form, defaults: &Form) -> Form {
    form.into_iter().filter(|(name, value)| defaults.get(name) != Some(value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::actions;

    #[test]
    fn names_are_snake_case_and_told_apart() {
        for (name, expected) in [
            ("limit5hUsd", "limit_5h_usd"),
            ("limit_5h_usd", "limit_5h_usd"),
            ("dailyLeaderboardTopN", "daily_leaderboard_top_n"),
            ("canLoginWebUi", "can_login_web_ui"),
            ("rpm", "rpm"),
        ] {
            assert_eq!(snake(name), expected);
        }
        let users = actions::users::fields::USER;
        let names: std::collections::BTreeSet<String> = users.iter().map(|field| snake(field.name)).collect();
        assert_eq!(names.len(), users.len());
    }
}
