//! A refusal before it is written in the client's format.

use serde_json::Value;

use crate::formats::error::ErrorReply;

/// A refusal before it is written in the client's format.
#[derive(Debug)]
pub struct Meaning {
    pub status: u16,
    pub kind: &'static str,
    pub code: Option<&'static str>,
    pub message: String,
    pub extra: Vec<(&'static str, Value)>,
    pub headers: Vec<(&'static str, String)>,
}

impl Meaning {
    /// The error to be written in the client's format.
    #[must_use]
    pub fn reply(&self) -> ErrorReply<'_> {
        ErrorReply { status: self.status, kind: self.kind, message: &self.message, code: self.code, extra: &self.extra }
    }

    pub(in crate::proxy) fn new(status: u16, kind: &'static str, message: impl Into<String>) -> Self {
        let (code, extra, headers) = (None, Vec::new(), Vec::new());
        let meaning = Self { status, kind, code, message: message.into(), extra, headers };
        // The same key would be refused again: without this some clients retry for minutes,
        // silently.
        if matches!(status, 401 | 403) { meaning.final_answer() } else { meaning }
    }

    /// Tells clients not to repeat the request. Claude Code and the Anthropic and OpenAI SDKs obey
    /// it.
    pub(in crate::proxy) fn final_answer(self) -> Self {
        self.header("x-should-retry", "false")
    }

    pub(in crate::proxy) fn code(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }

    pub(in crate::proxy) fn header(mut self, name: &'static str, value: impl ToString) -> Self {
        self.headers.push((name, value.to_string()));
        self
    }

    pub(in crate::proxy) fn retry_after(self, ms: Option<u64>) -> Self {
        match ms {
            Some(ms) => self.header("retry-after", ms.div_ceil(1000).max(1)),
            None => self,
        }
    }
}
