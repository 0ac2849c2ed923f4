//! Amazon Bedrock's `Converse`, for models that have no interface of a format there (Nova, Llama,
//! Mistral, …).
//!
//! A request is written from the neutral conversation. Replies and streams become those of the
//! native format, and are converted from there. What models take beyond the common part are rows of
//! `conf/bedrock.json`; a model without a row gets nothing that could fail its requests.

mod blocks;
mod fields;
pub(super) mod model;
pub mod reply;
mod request;
pub mod stream;
mod tools;
mod usage;

pub use request::{fit, write};

/// The caller's decisions about a request.
#[derive(Debug, Clone, Copy, Default)]
pub struct ConverseOptions<'o> {
    /// The tokens of the request are to be counted.
    pub counts: bool,
    /// Reasoning in the history is left out.
    pub without_reasoning: bool,
    /// As [`super::bedrock::betas`] returns them; for Claude.
    pub betas: &'o [&'o str],
}

/// The native format's stop reason. `None` if the model's output is of no use, unless there is
/// content.
fn stop_reason(reason: &str) -> Option<&str> {
    match reason {
        "guardrail_intervened" | "content_filtered" => Some("refusal"),
        "malformed_model_output" | "malformed_tool_use" => None,
        // The others are the format's own.
        reason => Some(reason),
    }
}
