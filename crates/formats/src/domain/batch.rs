//! A batch of requests, as far as its reservation and its bill depend on it.

use serde::{Deserialize, Serialize};

/// What a batch asks for. Stored with the file that holds its requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchAsk {
    /// The path that each of its requests would have alone, such as `/v1/messages`.
    pub path: String,
    /// The models that requests name, each once: that of the first request first.
    pub models: Vec<String>,
    /// Its requests, those that cost nearly the same together.
    pub groups: Vec<BatchGroup>,
}

/// Requests for one model, of about the same length and with about the same bound of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchGroup {
    /// The place of the model in [`BatchAsk::models`].
    pub model: usize,
    /// Requests; at least one.
    pub count: u64,
    /// Input tokens of all, estimated.
    pub input: u64,
    /// An upper bound of the input tokens of each.
    pub input_bound: u64,
    /// The bound of the output tokens of each answer, if they have one.
    pub max_tokens: Option<u64>,
    /// Answers to each.
    pub choices: u64,
}

impl BatchAsk {
    /// All requests.
    pub fn count(&self) -> u64 {
        self.groups.iter().fold(0, |sum, group| sum.saturating_add(group.count))
    }
}
