//! The operator's two official instruction texts, read once at start.

use crate::formats::responses::instructions::Official;

/// The texts, if the operator configured files for them.
#[derive(Debug, Default)]
pub struct Instructions {
    /// For models with `codex` in their name.
    pub short: Option<String>,
    /// For all other models.
    pub long: Option<String>,
}

impl Instructions {
    /// Both texts in the form that the conversion of requests takes. If one is missing, the other
    /// is used in its place.
    pub fn official(&self) -> Official<'_> {
        Official { short: self.short.as_deref(), long: self.long.as_deref() }
    }
}
