//! The check of tool calls before an agent runs them (`safeguards`): the vendor's own service
//! judges the calls of a reply, other services do not.
//!
//! A request asks for it by the member `safeguards`, whose `classifier_context` has the user's
//! rules, folders and identity, and by two betas. The reply has the verdicts: in a stream in the
//! `delta` of `message_delta`, else as a member of the message. Here are those forms
//! ([`verdict`]), the reply that waits for its verdicts ([`reply`]), and the question to a model
//! that judges in the service's place ([`checker`]).
//!
//! Source: captures of Claude Code 2.1.332, and what its program reads.

pub mod checker;
pub mod reply;
pub mod verdict;

/// The betas of a request that asks for a check.
pub const BETAS: [&str; 2] = ["dangerous-tool-use-2026-09-03", "afk-mode-2026-01-31"];

/// The beginning of a client's own checks in the beta header.
const OWN_CHECK_BETA: &str = "auto-mode-classifier-";
/// The beginning of a system text of Claude Code's own checks, which have no beta behind a gateway.
pub const OWN_CHECK_TEXT: &[u8] = b"You are a security monitor for autonomous AI coding agents.";

/// Whether the beta header names the client's own check.
pub fn is_own_check_by_beta(betas: &str) -> bool {
    betas.split(',').any(|beta| beta.trim().starts_with(OWN_CHECK_BETA))
}

/// A tool call of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedCall {
    /// The call's id in the client's reply.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments, a JSON text.
    pub input: String,
}
