//! Errors in the shapes of the real services.

use serde_json::{Value, json};

use crate::directive::ErrorSpec;
use tollgate_formats::domain::format::WireFormat;

/// An error to report.
#[derive(Debug, Clone)]
pub(crate) struct WireFault {
    pub status: u16,
    /// The error's type; absent: the format's type for the status.
    pub kind: Option<String>,
    pub message: String,
    pub code: Option<String>,
    /// The invalid field, if the format can report it.
    pub param: Option<String>,
}

impl WireFault {
    pub(crate) fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, kind: None, message: message.into(), code: None, param: None }
    }

    /// A refused request: status 400.
    pub(crate) fn bad(message: impl Into<String>) -> Self {
        Self::new(400, message)
    }

    #[must_use]
    pub(crate) fn param(self, param: impl Into<String>) -> Self {
        Self { param: Some(param.into()), ..self }
    }

    #[must_use]
    pub(crate) fn code(self, code: impl Into<String>) -> Self {
        Self { code: Some(code.into()), ..self }
    }

    /// The error of a directive.
    pub(crate) fn from_spec(status: u16, spec: Option<&ErrorSpec>) -> Self {
        let spec = spec.cloned().unwrap_or_default();
        let message =
            spec.message.unwrap_or_else(|| format!("The mock was asked to answer {status}."));
        Self { status, kind: spec.kind, message, code: spec.code, param: spec.param }
    }

    /// The error body of `format`.
    pub(crate) fn body(&self, format: WireFormat) -> Value {
        match format {
            WireFormat::Native => {
                let kind = self.kind.as_deref().unwrap_or_else(|| native_kind(self.status));
                let mut error = json!({"type": kind, "message": self.message});
                if let Some(code) = &self.code {
                    error["code"] = json!(code);
                }
                json!({"type": "error", "error": error, "request_id": "req_mock"})
            }
            WireFormat::Chat | WireFormat::Responses => {
                let kind = self.kind.as_deref().unwrap_or_else(|| open_kind(self.status));
                let code = self.code.as_deref().or_else(|| open_code(self.status));
                json!({"error": {"message": self.message, "type": kind, "param": self.param, "code": code}})
            }
            WireFormat::AltCli => {
                let status = self.kind.as_deref().unwrap_or_else(|| alt_status(self.status));
                let mut error =
                    json!({"code": self.status, "message": self.message, "status": status});
                if let Some(code) = &self.code {
                    let kind = "type.googleapis.com/google.rpc.ErrorInfo";
                    error["details"] =
                        json!([{"@type": kind, "reason": code, "domain": "googleapis.com"}]);
                }
                json!({"error": error})
            }
        }
    }

    /// The responses format's `error` stream event.
    pub(crate) fn responses_event(&self, sequence: usize) -> Value {
        let code =
            self.code.as_deref().or_else(|| open_code(self.status)).unwrap_or("server_error");
        json!({"type": "error", "code": code, "message": self.message, "param": self.param, "sequence_number": sequence})
    }
}

const fn native_kind(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        503 | 529 => "overloaded_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    }
}

const fn open_kind(status: u16) -> &'static str {
    match status {
        429 => "rate_limit_error",
        503 => "service_unavailable_error",
        400..=499 => "invalid_request_error",
        _ => "server_error",
    }
}

const fn open_code(status: u16) -> Option<&'static str> {
    match status {
        401 => Some("invalid_api_key"),
        404 => Some("model_not_found"),
        429 => Some("rate_limit_exceeded"),
        _ => None,
    }
}

const fn alt_status(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        409 => "ABORTED",
        429 => "RESOURCE_EXHAUSTED",
        501 => "UNIMPLEMENTED",
        503 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        400..=499 => "INVALID_ARGUMENT",
        _ => "INTERNAL",
    }
}
