//! Error rules: the meaning of an upstream's error, and the client's message in its place
//! (docs/reference/records.md).

use serde::{Deserialize, Serialize};

use super::clock::Timestamp;
use super::ids::RuleId;
use super::matching::MatchType;

/// What kind of client error a rule recognises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[derive(strum::IntoStaticStr, strum::EnumString, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum ErrorCategory {
    /// The prompt is longer than the model or the provider accepts, alone or with the requested
    /// output.
    PromptLimit,
    /// The provider's content filter declined the request.
    ContentFilter,
    /// A PDF in the request has too many pages or bytes, or cannot be read.
    PdfLimit,
    /// The reasoning blocks of the history, or the reasoning settings, are not valid.
    ThinkingError,
    /// A parameter is missing, unknown or out of its range.
    ParameterError,
    /// The request breaks another rule of the provider's format.
    InvalidRequest,
    /// The prompt cache cannot be used as requested: too many marks, marks in positions that are
    /// not allowed, or too little to cache.
    CacheLimit,
}

impl ErrorCategory {
    /// Every category, each once.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// The category's name, as on the wire and in the database.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The category of this name; `None` if there is none. Letter case counts.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

/// The upstream errors that a rule applies to, by their status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[derive(strum::IntoStaticStr, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum AppliesTo {
    /// 4xx, and errors in place of a success reply, whose status has no meaning.
    #[strum(serialize = "4xx")]
    ClientErrors,
    /// 5xx as well.
    #[strum(serialize = "all")]
    AllErrors,
}

impl AppliesTo {
    /// The name on the wire and in the database: `4xx` or `all`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Reads what [`Self::as_str`] writes; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    /// Whether an error with this HTTP status is examined. An error in place of a success reply has
    /// a status below 400 and is always examined.
    pub const fn covers(self, status: u16) -> bool {
        match self {
            Self::ClientErrors => status < 500,
            Self::AllErrors => true,
        }
    }
}

/// The client's error in place of the upstream's, for any format.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OverrideResponse {
    /// The text that the client sees. Never blank when read by [`Self::parse`] from an object.
    pub message: String,
    /// The native format's error type; absent: that of the status.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// The error's code: 1–64 ASCII letters, digits, `_`, `-` or `.`. `None`: no code of the
    /// operator's.
    pub code: Option<String>,
}

impl OverrideResponse {
    /// Reads the operator's text: a plain text is the message, a JSON object has `message` and
    /// optionally `type` and `code`.
    ///
    /// # Errors
    /// What is wrong with the object.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if !text.starts_with('{') {
            return Ok(Self { message: text.to_owned(), kind: None, code: None });
        }
        let read: Self = serde_json::from_str(text).map_err(|error| format!("{error}"))?;
        let word = |text: &Option<String>| {
            text.as_ref().is_none_or(|t| {
                (1..=64).contains(&t.len())
                    && t.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
            })
        };
        if read.message.trim().is_empty() {
            Err("the message is empty".to_owned())
        } else if !word(&read.kind) {
            Err("the type must be one word of at most 64 letters".to_owned())
        } else if !word(&read.code) {
            Err("the code must be one word of at most 64 letters".to_owned())
        } else {
            Ok(read)
        }
    }
}

/// A rule as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorRule {
    /// Serial number in the database.
    pub id: RuleId,
    /// The code of a built-in rule; `None` for an operator's.
    pub builtin_code: Option<String>,
    /// The revision of the built-in text.
    pub builtin_revision: u32,
    /// Changed by an operator: upgrades leave it alone.
    pub is_edited: bool,
    /// The text or the regular expression that is compared with the error's message, type and code.
    pub pattern: String,
    /// How `pattern` is compared.
    pub match_type: MatchType,
    /// What kind of client error a match is.
    pub category: ErrorCategory,
    /// The operator's remark; may be empty. Clients never receive it.
    pub description: String,
    /// The client's message as entered (see [`OverrideResponse::parse`]); `None` keeps the
    /// upstream's.
    pub override_response: Option<String>,
    /// HTTP status for the client, 400–599; `None` keeps an upstream's 4xx, else 400.
    pub override_status: Option<u16>,
    /// The statuses of the errors that are examined.
    pub applies_to: AppliesTo,
    /// If false, the rule is stored but never matches.
    pub is_enabled: bool,
    /// Lower is evaluated first; of equals the older one.
    pub priority: i32,
    /// When the rule was created.
    pub created_at: Timestamp,
    /// When the rule was last changed.
    pub updated_at: Timestamp,
    /// Only built-in rules are kept when they are removed.
    pub deleted_at: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::{AppliesTo, OverrideResponse};

    #[test]
    fn a_response_is_a_text_or_an_object_of_three_members() {
        let plain = OverrideResponse::parse(" Shorten your prompt. ").unwrap();
        assert_eq!((plain.message.as_str(), plain.kind), ("Shorten your prompt.", None));
        let full = OverrideResponse::parse(r#"{"type":"t","message":"m","code":"c"}"#).unwrap();
        assert_eq!((full.kind.as_deref(), full.code.as_deref()), (Some("t"), Some("c")));
        for bad in [
            r#"{"error":{"message":"m"}}"#,
            r#"{"type":"t"}"#,
            r#"{"message":" "}"#,
            r#"{"message":5}"#,
            r#"{"message":"m","type":"two words"}"#,
            r#"{"message":"m""#,
        ] {
            assert!(OverrideResponse::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn rules_are_asked_about_client_errors_unless_they_say_otherwise() {
        for (status, client, all) in
            [(400, true, true), (499, true, true), (200, true, true), (500, false, true)]
        {
            assert_eq!(
                (AppliesTo::ClientErrors.covers(status), AppliesTo::AllErrors.covers(status)),
                (client, all)
            );
        }
    }
}
