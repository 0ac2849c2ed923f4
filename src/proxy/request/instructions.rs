//! The operator's two official instruction texts, read once at start.

use crate::formats::responses::instructions::Official;

/// The texts, if the operator configured files for them.
#[derive(Debug, Default)]
pub struct Instructions {
    pub short: Option<String>,
    pub long: Option<String>,
}

impl Instructions {
    #[must_use]
    pub fn official(&self) -> Official<'_> {
        Official { short: self.short.as_deref(), long: self.long.as_deref() }
    }
}
