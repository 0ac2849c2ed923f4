//! What a reply is billed by.

use super::changes::InputChange;
use super::diagnosis::CacheDiagnosis;
use super::model::ModelName;
use crate::domain::part::Part;
use crate::domain::usage::Usage;

/// What a reply is billed by.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Bill {
    /// The tokens of the reply, as its format reports them.
    pub usage: Usage,
    /// The usage is an estimate.
    pub estimated: bool,
    /// The model that the reply says made it.
    pub model: ModelName,
    /// The parts that have their own price; none, and no memory, for most replies.
    pub parts: Vec<Part>,
    /// What the provider did with the reasoning of earlier turns; as rare.
    pub changes: Vec<InputChange>,
    /// native: what the provider says about its prompt cache, if the request asked.
    pub diagnosis: Option<Box<CacheDiagnosis>>,
}

impl Bill {
    /// The bill of a request whose reply never began: its input, estimated.
    pub fn of_input(input: u64) -> Self {
        let usage = Usage { input, ..Usage::default() };
        Self { usage, estimated: true, ..Self::default() }
    }
}
