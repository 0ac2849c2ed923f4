//! How services say that a prompt is longer than their model takes.

/// Parts of their messages, in lower case.
const PHRASES: [&str; 11] = [
    "prompt is too long",
    "input is too long",
    "exceed context limit",
    "maximum context length",
    "maximum prompt length",
    "exceeds the context window",
    "exceeds the available context size",
    "input token count exceeds",
    "exceeds the maximum number of tokens allowed",
    "exceeded model token limit",
    "longer than the maximum model length",
];

/// Whether an error's message, in lower case, says so.
pub fn says_too_long(message: &str) -> bool {
    PHRASES.iter().any(|phrase| message.contains(phrase))
}
