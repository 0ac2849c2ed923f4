//! What is wrong with a document: every fault, each with its place.
//!
//! A place is a JSON pointer (`/users/0/keys/1/name`), by which the command line finds line and
//! column. Messages have it in the form that people read: `users[0].keys[1].name`.

use super::form;
use crate::admin::envelope::{ApiError, Code};

/// The faults that were found so far.
#[derive(Debug, Default)]
pub(super) struct Faults(Vec<ApiError>);

impl Faults {
    /// A fault at a place.
    pub(super) fn add(&mut self, code: Code, at: &str, what: &str) {
        let field = readable(at);
        let message = if field.is_empty() { what.to_owned() } else { format!("{field}: {what}") };
        let fault = ApiError::by_code(code, message).with("field", field.into());
        self.0.push(fault.with("pointer", at.into()));
    }

    /// A fault of a record at `at`, as the actions tell it.
    ///
    /// # Errors
    /// The refusal is not a fault of the document: something of ours failed.
    pub(super) fn take(&mut self, at: &str, refusal: ApiError) -> Result<(), ApiError> {
        if refusal.internal_reason().is_some() {
            return Err(refusal);
        }
        let (field, message) = (refusal.param("field").unwrap_or_default(), refusal.message());
        let message =
            message.strip_prefix(field).and_then(|m| m.strip_prefix(": ")).unwrap_or(&message);
        self.add(refusal.code(), &format!("{at}{}", pointer_of(field)), message);
        Ok(())
    }

    /// Whether none was found.
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them as one refusal.
    ///
    /// # Errors
    /// When there is any.
    pub(super) fn into_result(self) -> Result<(), ApiError> {
        ApiError::of_faults(self.0).map_or(Ok(()), Err)
    }
}

/// `users[0].keys[1].name`
pub(super) fn readable(pointer: &str) -> String {
    let mut text = String::new();
    for part in pointer.split('/').skip(1) {
        if !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()) {
            text.push_str(&format!("[{part}]"));
            continue;
        }
        if !text.is_empty() {
            text.push('.');
        }
        text.push_str(&part.replace("~1", "/").replace("~0", "~"));
    }
    text
}

/// One step of a pointer.
pub(super) fn step(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// The pointer below a record of a field as the checks name it: `allowedModels[3]`.
fn pointer_of(field: &str) -> String {
    if field.is_empty() {
        return String::new();
    }
    let (name, rest) =
        field.split_once('[').map_or((field, None), |(name, rest)| (name, Some(rest)));
    let index = rest.map(|rest| step(rest.trim_end_matches(']'))).unwrap_or_default();
    format!("{}{index}", step(&form::snake(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_reported_as_line_and_column() {
        for (pointer, shown) in [
            ("/users/0/keys/1/name", "users[0].keys[1].name"),
            ("/prices/a~1b/input", "prices.a/b.input"),
            ("/version", "version"),
            ("", ""),
        ] {
            assert_eq!(readable(pointer), shown);
        }
        assert_eq!(pointer_of("allowedModels[3]"), "/allowed_models/3");
        assert_eq!(pointer_of("limit5hUsd"), "/limit_5h_usd");
    }
}
