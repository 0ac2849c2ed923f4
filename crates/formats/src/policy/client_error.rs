//! Recognises, from an upstream's error body, errors that are the client's own: no other provider
//! would succeed.
//!
//! Six codes (docs/providers.md) end a request with any status. Beyond them,
//! bodies with status 400, 404, 413 or 422 are examined for other providers' names of the six,
//! their phrases, and the error type. An error about the provider's account or address is never the
//! client's, whatever its type.

use super::error_reply::ErrorReply;
use crate::domain::prompt_length::says_too_long;

/// The client errors that are not retried, and the general case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ClientError {
    /// The prompt is longer than the model or the provider accepts.
    PromptTooLong,
    /// The provider's content filter declined prompt or reply.
    ContentFilter,
    /// The request asks for more output tokens than the model gives.
    MaxTokensExceeded,
    /// The credential is not valid. It is the provider record's credential, not the client's key.
    InvalidApiKey,
    /// The provider does not have the model.
    ModelNotFound,
    /// The provider's account has no credit or quota left.
    BillingQuotaExceeded,
    /// The body's type says that the request is invalid.
    InvalidRequest,
}

impl ClientError {
    const CODES: [Self; 6] = [
        Self::PromptTooLong,
        Self::ContentFilter,
        Self::MaxTokensExceeded,
        Self::InvalidApiKey,
        Self::ModelNotFound,
        Self::BillingQuotaExceeded,
    ];

    /// The error's code, such as `prompt_too_long`; also the verdict's reason.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The status for the client if the upstream's own is not a client error (for example an error
    /// inside a 200).
    pub const fn status(self) -> u16 {
        match self {
            Self::InvalidApiKey => 401,
            Self::BillingQuotaExceeded => 402,
            Self::ModelNotFound => 404,
            _ => 400,
        }
    }

    /// Whether it concerns the upstream credential: another provider's may be valid.
    pub const fn is_upstream_auth(self) -> bool {
        matches!(self, Self::InvalidApiKey | Self::BillingQuotaExceeded)
    }
}

/// Other providers' codes for the same errors.
const SYNONYMS: &[(&str, ClientError)] = &[
    ("context_length_exceeded", ClientError::PromptTooLong),
    ("request_too_large", ClientError::PromptTooLong),
    ("string_above_max_length", ClientError::PromptTooLong),
    ("content_policy_violation", ClientError::ContentFilter),
    ("responsibleaipolicyviolation", ClientError::ContentFilter),
];

/// Phrases of other error messages, in lower case.
const PHRASES: &[(&str, ClientError)] = &[
    ("output blocked by content filtering policy", ClientError::ContentFilter),
    ("content management policy", ClientError::ContentFilter),
    ("maximum allowed number of output tokens", ClientError::MaxTokensExceeded),
    ("max_tokens is too large", ClientError::MaxTokensExceeded),
];

/// Error types that mean an invalid request.
const CLIENT_KINDS: &[&str] = &[
    "invalid_request_error",
    "invalid_request",
    "invalid_argument",
    "out_of_range",
    "bad_request",
    "badrequesterror",
    "validation_error",
    "unprocessable_entity",
    "validationexception",
];

/// Phrases of problems that the operator must fix, in lower case: another provider may succeed.
const OPERATOR_PHRASES: &[&str] = &[
    "credit balance",
    "api key not valid",
    "api key expired",
    "billing",
    "quota",
    "location is not supported",
    "invalid url",
    "unknown request url",
    "organization has been disabled",
    // Bedrock: the model's name at this provider.
    "model identifier is invalid",
    "on-demand throughput",
    "doesn't support counting tokens",
];

/// Codes and types of errors about a credential.
const INVALID_KEY_NAMES: [&str; 8] = [
    "invalid_api_key",
    "authentication_error",
    "api_key_invalid",
    "account_deactivated",
    // AWS
    "unrecognizedclientexception",
    "invalidsignatureexception",
    "missingauthenticationtokenexception",
    "expiredtokenexception",
];

/// How messages of such errors begin, in lower case. Further on, a message may repeat the client's
/// text.
const INVALID_KEY_PHRASES: [&str; 6] = [
    "api key not valid",
    "api key expired",
    "invalid api key",
    "incorrect api key",
    "this api key has been disabled",
    DISABLED_ACCOUNT,
];

const DISABLED_ACCOUNT: &str = "this organization has been disabled";

/// Codes and types of errors about an account without credit.
const EMPTY_NAMES: [&str; 2] = ["insufficient_quota", "billing_error"];

/// How messages begin that an account cannot be used now, in lower case.
const EMPTY_PHRASES: [&str; 3] = ["your credit balance", "credit balance", DISABLED_ACCOUNT];

/// Statuses that say that the request is at fault (RFC 9110), whatever the body says.
const REQUEST_STATUSES: [u16; 10] = [400, 404, 405, 411, 413, 414, 415, 417, 422, 431];

/// Words of a moderation's refusal, in lower case.
const MODERATION: &[&str] = &[
    "flagged",
    "moderation",
    "content policy",
    "content_policy",
    "policy violation",
    "policy_violation",
    "usage policies",
    "safety",
    "harmful",
    "prohibited content",
];

/// How services refuse the reasoning of earlier turns: all of a row's phrases are in the message, in
/// lower case and without quotes.
const REASONING_REFUSALS: &[&[&str]] = &[
    &["signature in thinking"],
    &["expected thinking or redacted_thinking"],
    &["blocks in the latest assistant message cannot be modified"],
    &["encrypted content", "could not be verified"],
    &["encrypted content", "could not be decrypted"],
    &["of type reasoning was provided without"],
    &["invalid thought signature"],
    &["corrupted thought signature"],
    &["thought signature is not valid"],
    &["missing a thought_signature"],
];

/// Whether the provider refuses the reasoning of earlier turns that the request sends back: it is
/// of another model or account, or was made after other messages. Without it the same request is
/// accepted. Relays wrap these errors, with other statuses.
pub fn refuses_reasoning(reply: &ErrorReply<'_>) -> bool {
    let Some(message) = reply.message else { return false };
    let plain: String = message.chars().filter(|c| !matches!(c, '`' | '\'' | '"' | '\\')).collect();
    let plain = plain.to_lowercase();
    reply.code == Some("invalid_encrypted_content")
        || REASONING_REFUSALS.iter().any(|row| row.iter().all(|phrase| plain.contains(phrase)))
}

/// Whether an error reply that [`recognise`] does not know says that the request is at fault: by
/// its status, by a moderation's words, or, within a success reply, by its type or code.
pub fn refuses_request(reply: &ErrorReply<'_>) -> bool {
    let code = reply.code.and_then(|code| code.parse().ok());
    match reply.status {
        403 => is_moderation(reply),
        200..300 => {
            let kind_is_clients = [reply.kind, reply.code]
                .into_iter()
                .flatten()
                .any(|name| CLIENT_KINDS.iter().any(|known| name.eq_ignore_ascii_case(known)));
            kind_is_clients
                || code.is_some_and(|code| REQUEST_STATUSES.contains(&code))
                || code == Some(403) && is_moderation(reply)
        }
        status => REQUEST_STATUSES.contains(&status),
    }
}

fn is_moderation(reply: &ErrorReply<'_>) -> bool {
    let names = [reply.kind, reply.code, reply.message].into_iter().flatten();
    let body = String::from_utf8_lossy(reply.body);
    names.chain([&*body]).any(|text| {
        let text = text.to_lowercase();
        MODERATION.iter().any(|word| text.contains(word))
    })
}

/// What an error reply says of the credential that the request was sent with, where others could be
/// accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CredentialFault {
    /// It is not valid.
    Refused,
    /// Its account has used up what it may for now.
    UsedUp,
}

/// What is wrong with the credential, if that is what the reply says. A 403 may also be about the
/// model or the region. A 400 of the type `invalid_request_error` may be the client's: only its
/// code says that the credential is not valid.
pub fn credential_fault(reply: &ErrorReply<'_>) -> Option<CredentialFault> {
    let said = reply.message.unwrap_or_default().to_lowercase();
    let says = |names: &[&str], phrases: &[&str]| {
        let sent = [reply.code, reply.kind].into_iter().flatten();
        let is_named =
            sent.into_iter().any(|one| names.iter().any(|n| n.eq_ignore_ascii_case(one)));
        is_named || phrases.iter().any(|phrase| said.starts_with(phrase))
    };
    let may_be_clients = reply.status == 400 && reply.kind == Some("invalid_request_error");
    let phrases = if may_be_clients { &[][..] } else { &INVALID_KEY_PHRASES };
    match reply.status {
        401 => Some(CredentialFault::Refused),
        400 | 403 if says(&INVALID_KEY_NAMES, phrases) => Some(CredentialFault::Refused),
        402 | 429 => Some(CredentialFault::UsedUp),
        400 | 403 if says(&EMPTY_NAMES, &EMPTY_PHRASES) => Some(CredentialFault::UsedUp),
        _ => None,
    }
}

/// Whether an error is about the account whose credential was sent. One in the place of a reply
/// says so by its type.
pub fn is_of_account(reply: &ErrorReply<'_>) -> bool {
    const TYPES: [&str; 3] = ["authentication_error", "permission_error", "rate_limit_error"];
    match reply.status {
        401 | 402 | 403 | 429 => true,
        400.. => credential_fault(reply).is_some(),
        _ => reply.kind.is_some_and(|kind| TYPES.contains(&kind)),
    }
}

/// Whether a refusal names a problem that the operator must fix.
pub fn is_operators(message: &str) -> bool {
    let message = message.to_lowercase();
    OPERATOR_PHRASES.iter().any(|phrase| message.contains(phrase))
}

/// The client error in an upstream's error body, if it is one. `kind` and `code` are the body's
/// error type and code.
pub fn recognise(
    status: u16,
    kind: Option<&str>,
    code: Option<&str>,
    message: Option<&str>,
) -> Option<ClientError> {
    let names = || [code, kind].into_iter().flatten();
    let is = |name: &str, wanted: &str| name.eq_ignore_ascii_case(wanted);
    if let Some(found) =
        ClientError::CODES.into_iter().find(|known| names().any(|n| is(n, known.as_str())))
    {
        return Some(found);
    }
    if !matches!(status, 400 | 404 | 413 | 422) {
        return None;
    }
    if let Some((_, found)) = SYNONYMS.iter().find(|(known, _)| names().any(|n| is(n, known))) {
        return Some(*found);
    }
    if is_operators(message.unwrap_or_default()) {
        return None;
    }
    let message = message.unwrap_or_default().to_lowercase();
    if says_too_long(&message) {
        return Some(ClientError::PromptTooLong);
    }
    if let Some((_, found)) = PHRASES.iter().find(|(phrase, _)| message.contains(phrase)) {
        return Some(*found);
    }
    if names().any(|n| is(n, "not_found_error") || is(n, "not_found")) {
        // If the message names no model, the address was not found, and that is the operator's
        // error.
        return message.contains("model").then_some(ClientError::ModelNotFound);
    }
    names()
        .any(|n| CLIENT_KINDS.iter().any(|known| is(n, known)))
        .then_some(ClientError::InvalidRequest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_errors_are_distinguished_from_the_providers() {
        use ClientError::{
            ContentFilter, InvalidApiKey, InvalidRequest, ModelNotFound, PromptTooLong,
        };
        let invalid = Some("invalid_request_error");
        let cases = [
            (500, None, Some("prompt_too_long"), None, Some(PromptTooLong)),
            (200, Some("content_filter"), None, None, Some(ContentFilter)),
            (401, invalid, Some("invalid_api_key"), None, Some(InvalidApiKey)),
            (401, Some("authentication_error"), None, Some("invalid x-api-key"), None),
            (429, Some("insufficient_quota"), None, None, None),
            (400, invalid, None, Some("messages: roles must alternate"), Some(InvalidRequest)),
            (400, invalid, None, Some("prompt is too long: 210000 tokens"), Some(PromptTooLong)),
            (
                400,
                Some("INVALID_ARGUMENT"),
                Some("400"),
                Some("The input token count (9) exceeds the maximum number of tokens allowed (8)."),
                Some(PromptTooLong),
            ),
            (400, invalid, Some("context_length_exceeded"), None, Some(PromptTooLong)),
            (500, invalid, None, None, None),
            (400, invalid, None, Some("Your credit balance is too low"), None),
            (400, Some("INVALID_ARGUMENT"), Some("400"), Some("API key not valid."), None),
            (
                400,
                Some("INVALID_ARGUMENT"),
                Some("400"),
                Some("contents is required"),
                Some(InvalidRequest),
            ),
            (404, Some("not_found_error"), None, Some("model: nonesuch"), Some(ModelNotFound)),
            (404, Some("not_found_error"), None, Some("Not Found"), None),
            (404, invalid, None, Some("Invalid URL (POST /v2)"), None),
            (413, Some("request_too_large"), None, None, Some(PromptTooLong)),
            (422, None, None, Some("field required"), None),
            (400, Some("ValidationException"), None, Some("messages: none"), Some(InvalidRequest)),
            (
                400,
                Some("ValidationException"),
                None,
                Some("The provided model identifier is invalid."),
                None,
            ),
            (
                400,
                Some("ValidationException"),
                None,
                Some("Input is too long for requested model."),
                Some(PromptTooLong),
            ),
            (429, Some("ThrottlingException"), None, Some("Too many requests"), None),
            (404, None, None, None, None),
        ];
        for (status, kind, code, message, expected) in cases {
            assert_eq!(
                recognise(status, kind, code, message),
                expected,
                "{status} {kind:?} {code:?} {message:?}"
            );
        }
    }

    #[test]
    fn a_bad_credential_is_distinguished_from_a_used_up_one_and_from_other_refusals() {
        use CredentialFault::{Refused, UsedUp};
        let cases = [
            (401, None, "anything", Some(Refused)),
            (403, Some("permission_error"), "Your key may not use this model", None),
            (403, Some("authentication_error"), "no", Some(Refused)),
            (403, None, "This organization has been disabled.", Some(Refused)),
            (400, Some("INVALID_ARGUMENT"), "API key not valid. Please pass one.", Some(Refused)),
            (400, Some("invalid_request_error"), "Your credit balance is too low", Some(UsedUp)),
            (400, Some("invalid_request_error"), "messages: must alternate", None),
            (400, Some("invalid_request_error"), "Invalid API key: unknown field", None),
            (400, Some("INVALID_ARGUMENT"), "model “invalid api key” does not exist", None),
            (403, None, "not allowed: “your credit balance”", None),
            (400, Some("insufficient_quota"), "no", Some(UsedUp)),
            (402, None, "", Some(UsedUp)),
            (403, Some("ExpiredTokenException"), "The security token is expired", Some(Refused)),
            (403, Some("AccessDeniedException"), "You may not use this model", None),
            (429, Some("ThrottlingException"), "Too many requests", Some(UsedUp)),
            (429, Some("rate_limit_error"), "slow down", Some(UsedUp)),
            (500, Some("authentication_error"), "no", None),
            (503, None, "", None),
        ];
        for (status, kind, message, expected) in cases {
            let message = Some(message);
            let reply = ErrorReply { status, kind, message, ..ErrorReply::default() };
            assert_eq!(credential_fault(&reply), expected, "{status} {kind:?} {message:?}");
        }
    }

    #[test]
    fn refused_reasoning_is_recognised_in_the_words_of_each_vendor() {
        let refuses = |code, message| {
            refuses_reasoning(&ErrorReply { status: 400, code, message, ..ErrorReply::default() })
        };
        for message in [
            "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to \
             a different conversation. Remove the block, or set \
             `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\".",
            "messages.1.content.0: Invalid signature in thinking block",
            "messages.129.content.0.type: Expected `thinking` or `redacted_thinking`, but found \
             `text`.",
            "messages.1.content.1: `thinking` or `redacted_thinking` blocks in the latest \
             assistant message cannot be modified.",
            "The encrypted content gAAA...DQ== could not be verified.",
            "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
            "Invalid thought signature.",
            "Corrupted thought signature.",
            "Unable to submit request because Thought signature is not valid.",
            "Function call is missing a thought_signature in functionCall parts.",
            r#"{"type":"error","error":{"message":"messages.1.content.0: Invalid `signature` in `thinking` block"}}"#,
        ] {
            assert!(refuses(None, Some(message)), "{message}");
        }
        assert!(refuses(Some("invalid_encrypted_content"), Some("no")));
        for message in [
            "`max_tokens` must be greater than `thinking.budget_tokens`.",
            "thinking.block_binding: Extra inputs are not permitted",
            "Invalid signature",
            "the encrypted content is too long",
        ] {
            assert!(!refuses(None, Some(message)), "{message}");
        }
        assert!(!refuses(None, None));
    }

    #[test]
    fn errors_of_an_account_are_told_from_those_of_a_request_or_a_host() {
        let of =
            |status, kind| is_of_account(&ErrorReply { status, kind, ..ErrorReply::default() });
        for (status, kind) in [
            (401, None),
            (402, None),
            (403, Some("permission_error")),
            (429, None),
            (200, Some("rate_limit_error")),
        ] {
            assert!(of(status, kind), "{status} {kind:?}");
        }
        let message = Some("Your credit balance is too low");
        assert!(is_of_account(&ErrorReply { status: 400, message, ..ErrorReply::default() }));
        for (status, kind) in [
            (400, Some("invalid_request_error")),
            (404, Some("not_found_error")),
            (500, None),
            (529, Some("overloaded_error")),
            (200, Some("overloaded_error")),
        ] {
            assert!(!of(status, kind), "{status} {kind:?}");
        }
    }
}
