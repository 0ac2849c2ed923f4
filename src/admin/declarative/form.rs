//! How a record stands in a document: which fields it has, what they are called there, and which of
//! them need not be written.
//!
//! Fields are those of the actions' bodies, and their values those of the records that the actions
//! answer. Names are snake_case throughout, as in the gateway's own settings.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::admin::bodies::Shape;
use crate::admin::envelope::ApiError;

/// A record as the document has it.
pub(super) type Form = Map<String, Value>;

/// What a field of a body is called in a document.
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

/// A record that an action would answer, as the document has it, with every field of the shape.
///
/// # Errors
/// The record cannot be written as JSON, or lacks a field.
pub(super) fn of<T: Serialize>(record: &T, shape: &Shape) -> Result<Form, ApiError> {
    let Value::Object(record) = serde_json::to_value(record).map_err(ApiError::internal)? else {
        return Err(ApiError::internal("a record that is not an object"));
    };
    // Some bodies have names of another style than the records that show what came of them.
    let mut named: Form = record.into_iter().map(|(name, value)| (snake(&name), value)).collect();
    let take = |name: &str| {
        let name = snake(name);
        let value = named
            .remove(&name)
            .ok_or_else(|| ApiError::internal(format!("a record without {name}")))?;
        Ok((name, value))
    };
    shape.names().map(take).collect()
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
    fn names_are_snake_case_and_distinct() {
        for (name, expected) in [
            ("limit5hUsd", "limit_5h_usd"),
            ("limit_5h_usd", "limit_5h_usd"),
            ("dailyLeaderboardTopN", "daily_leaderboard_top_n"),
            ("canLoginWebUi", "can_login_web_ui"),
            ("rpm", "rpm"),
        ] {
            assert_eq!(snake(name), expected);
        }
        let users = Shape::of::<actions::users::fields::UserFields>();
        let names: std::collections::BTreeSet<String> = users.names().map(snake).collect();
        assert_eq!(names.len(), users.names().count());
    }
}
