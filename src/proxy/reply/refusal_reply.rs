//! The neutral form of a refusal: the stages of the proxy make it, `formats/error` writes it in the
//! client's format.

use serde_json::Value;

use crate::formats::error::ErrorReply;

/// Status, error object and headers of a refusal, before the client's format is applied.
#[derive(Debug)]
pub struct RefusalReply {
    pub status: u16,
    pub kind: &'static str,
    pub code: Option<&'static str>,
    pub message: String,
    pub extra: Vec<(&'static str, Value)>,
    pub headers: Vec<(&'static str, String)>,
}

impl RefusalReply {
    /// The error to be written in the client's format.
    pub fn error(&self) -> ErrorReply<'_> {
        ErrorReply {
            status: self.status,
            kind: self.kind,
            message: &self.message,
            code: self.code,
            extra: &self.extra,
        }
    }

    pub(in crate::proxy) fn new(
        status: u16,
        kind: &'static str,
        message: impl Into<String>,
    ) -> Self {
        let (code, extra, headers) = (None, Vec::new(), Vec::new());
        let reply = Self { status, kind, code, message: message.into(), extra, headers };
        // The same key would be refused again. Without the header, some clients retry silently for
        // minutes.
        if matches!(status, 401 | 403) { reply.final_answer() } else { reply }
    }

    /// Adds the header that stops retries in Claude Code and in the Anthropic and OpenAI SDKs.
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

    /// Adds a member to the error object, if there is a value.
    pub(in crate::proxy) fn extra(
        mut self,
        name: &'static str,
        value: Option<impl Into<Value>>,
    ) -> Self {
        self.extra.extend(value.map(|value| (name, value.into())));
        self
    }

    pub(in crate::proxy) fn retry_after(self, ms: Option<u64>) -> Self {
        match ms {
            Some(ms) => self.header("retry-after", ms.div_ceil(1000).max(1)),
            None => self,
        }
    }
}
