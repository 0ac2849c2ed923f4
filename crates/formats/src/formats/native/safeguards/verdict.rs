//! The verdicts of a check, as a client reads them.

use serde_json::{Map, Value, json};

/// What a check said of all calls of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckResult {
    /// No service and no model gave a verdict.
    Unsupported,
    /// A verdict for each call.
    Judged(Vec<JudgedCall>),
}

/// A call, and its verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedCall {
    /// The call's id.
    pub id: String,
    /// The verdict.
    pub verdict: Verdict,
}

/// The verdict on one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The call is not dangerous.
    NotFlagged,
    /// It is, for this reason, which may be empty.
    Flagged(String),
    /// There is no verdict on it, for this reason of the format, such as `input_too_long`.
    Unavailable(&'static str),
}

impl CheckResult {
    /// How many calls were flagged.
    pub fn flagged(&self) -> usize {
        match self {
            Self::Unsupported => 0,
            Self::Judged(calls) => {
                calls.iter().filter(|call| matches!(call.verdict, Verdict::Flagged(_))).count()
            }
        }
    }

    /// The member for the reply: a JSON text without a comma.
    pub fn member(&self) -> String {
        let status = match self {
            Self::Unsupported => json!({"type": "unsupported"}),
            Self::Judged(calls) => {
                let verdicts: Map<String, Value> =
                    calls.iter().map(|call| (call.id.clone(), call.verdict.json())).collect();
                json!({"type": "available", "tool_uses": verdicts})
            }
        };
        let results = json!([{"type": "dangerous_tool_use", "status": status}]);
        format!("\"safeguard_results\":{results}")
    }
}

impl Verdict {
    fn json(&self) -> Value {
        match self {
            Self::NotFlagged => json!({"type": "evaluated", "outcome": "not_flagged"}),
            Self::Flagged(why) if why.is_empty() => {
                json!({"type": "evaluated", "outcome": "flagged"})
            }
            Self::Flagged(why) => {
                json!({"type": "evaluated", "outcome": "flagged", "explanation": why})
            }
            Self::Unavailable(why) => json!({"type": "unavailable", "reason": why}),
        }
    }
}
