//! Why a request is refused as malformed.

use super::scan::ScanError;

/// Why a body is refused: a 400 in the client's format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct BadRequest {
    /// The invalid member, if there is one.
    pub field: Option<String>,
    /// For the client; names the field, never its content.
    pub message: String,
}

impl BadRequest {
    /// About the body as a whole.
    pub(super) fn whole(message: &str) -> Self {
        Self { field: None, message: message.to_owned() }
    }

    pub(super) fn field(field: &str, message: &str) -> Self {
        Self { field: Some(field.to_owned()), message: format!("{field}: {message}") }
    }
}

impl From<ScanError> for BadRequest {
    fn from(error: ScanError) -> Self {
        Self { field: None, message: format!("the request body is not acceptable JSON: {error}") }
    }
}
