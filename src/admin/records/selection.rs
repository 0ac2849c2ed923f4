//! Which providers a request would be offered to.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::http_client::in_process::{ExplainedRefusal, Explanation};

/// The selection for a request that is not sent.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SelectionRecord {
    /// The status with which it would be refused; `null` = it would be sent to a provider.
    pub status_code: Option<u16>,
    /// What the client would read then.
    pub error_message: Option<String>,
    /// As of an entry of the log: every provider, skipped, chosen or standing in, and why. Chosen
    /// ones stand in the order in which they would be asked.
    pub decision_chain: Value,
}

impl SelectionRecord {
    /// A request that is refused before providers are selected.
    pub fn refused(status: u16, message: String) -> Self {
        Self {
            status_code: Some(status),
            error_message: Some(message),
            decision_chain: Value::Array(Vec::new()),
        }
    }
}

impl From<Explanation> for SelectionRecord {
    fn from(explanation: Explanation) -> Self {
        let (status_code, error_message) = match explanation.refusal {
            Some(ExplainedRefusal { status, message }) => (Some(status), Some(message)),
            None => (None, None),
        };
        let decision_chain = serde_json::to_value(explanation.decisions).unwrap_or_default();
        Self { status_code, error_message, decision_chain }
    }
}
