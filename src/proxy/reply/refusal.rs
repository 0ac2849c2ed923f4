//! Every reason for which the gateway itself answers a request, with its status, error type and
//! message. No message names a key, a sensitive word or an internal detail.

use chrono_tz::Tz;
use serde_json::json;

use super::limit_refusal;
use super::refusal_reply::RefusalReply;
use crate::domain::feature::{Feature, Sort};
use crate::domain::fee::Fee;
use crate::domain::ids::WordId;
use crate::domain::price::CostKind;
use crate::formats::bad_request::BadRequest;
use crate::formats::error::words;
use crate::limits::Denied;
use crate::policy::bill::IMAGES;
use crate::policy::client_version::{Client, Version};
use crate::policy::features::DeniedBy;
use crate::policy::select::SOON_MS;

/// Seconds after which a client may repeat a request whose body exceeded the budget: bodies are
/// dropped as soon as providers answer.
const BUDGET_RETRY_S: u32 = 2;
const NO_UPGRADE: &str = "websockets are not served here: use POST with streaming";
const BACKGROUND_FULL: &str =
    "too many responses are made in the background now, for this key or for all";
const CONVERSION_TIMED_OUT: &str =
    "the gateway is busy, and could not convert this large request in time";
const BUDGET_EXCEEDED: &str = "the gateway holds as many request bodies as it may now, \
                               of all clients or of this user";

const NO_PROVIDER_CREDENTIAL: &str = "no provider can take the request: an administrator must \
                                      enter the credential of a provider again";

const NO_OWN_CREDENTIAL: &str = "this model is served with your own account: send the gateway's key \
                                 in x-tollgate-key, and your credential in Authorization or \
                                 x-api-key; batches, files and background responses cannot use it";

/// Why the gateway answers in place of a provider.
#[derive(Debug)]
pub enum Refusal {
    UnknownRoute,
    WrongMethod {
        allow: &'static str,
    },
    UpgradeUnsupported,
    /// An ambiguous head (both kinds of length, no host).
    MalformedHead(&'static str),
    /// The body has another transfer coding than `chunked`.
    TransferCoding,
    MissingCredential,
    ConflictingCredentials,
    UnknownKey,
    KeyDisabled,
    KeyExpired,
    UserDisabled,
    BodyTooLarge {
        limit: usize,
    },
    /// `ms`: how long the gateway waited, if it is known.
    BodyTimedOut {
        ms: Option<u64>,
    },
    /// The bodies of requests in flight have used up the body budget.
    BodyBudgetExceeded,
    /// A large body could not be converted in time.
    ConversionTimedOut,
    UnknownEncoding,
    DamagedEncoding,
    /// The body is a form where JSON is expected, or the reverse.
    ContentType {
        takes_form: bool,
    },
    BadRequest(String),
    ModelNotAllowed {
        model: String,
        /// Where the request names it, if it is not the request's own model.
        member: Option<&'static str>,
    },
    /// A feature that the request uses is denied.
    FeatureNotAllowed {
        feature: Feature,
        /// What asks for it.
        member: &'static str,
        by: DeniedBy,
    },
    ClientNotAllowed,
    /// Others use a newer version of this client.
    ClientOutdated {
        client: Client,
        current: Version,
        required: Version,
    },
    /// A text of the request holds a sensitive word.
    SensitiveWord {
        id: WordId,
    },
    Limit(Denied),
    /// The journal cannot take more records.
    JournalFull,
    /// As many replies are made in the background as one node may follow.
    BackgroundFull,
    /// The shared counters are unreachable, and nothing may pass uncounted.
    CountersUnreachable,
    /// `exists`: there are providers that are enabled.
    NoGroup {
        exists: bool,
    },
    UnknownModel {
        model: String,
    },
    /// No provider is known to store this reply, batch or file for the key.
    UnknownReply {
        /// What it is.
        item: &'static str,
        id: String,
    },
    /// Providers serve the model, but none has a price for it.
    ModelNotPriced {
        model: String,
    },
    /// Providers serve the model, but none has a price for a tool that the request uses.
    ToolNotPriced {
        feature: Feature,
        /// What asks for it.
        member: &'static str,
        fee: Fee,
        model: String,
    },
    /// Providers serve the model, but their stored credentials cannot be opened.
    NoProviderCredential,
    /// Providers serve the model with the client's own credential, which the request does not have.
    NoOwnCredential,
    /// Providers exist, but none is available now.
    Unavailable {
        retry_after_ms: Option<u64>,
    },
    /// Every provider that was tried failed.
    UpstreamFailed {
        message: String,
    },
    /// Every provider that was tried is rate limited.
    UpstreamRateLimited {
        retry_after_ms: Option<u64>,
    },
    UpstreamTimedOut {
        message: String,
    },
    Internal,
}

impl From<BadRequest> for Refusal {
    fn from(bad: BadRequest) -> Self {
        Self::BadRequest(bad.message)
    }
}

impl Refusal {
    /// Status, error type, message and headers of the answer. Times in messages are in `zone`.
    pub fn reply(&self, zone: Tz) -> RefusalReply {
        match self {
            Self::UnknownRoute => not_found("there is nothing at this path"),
            Self::WrongMethod { allow } => {
                invalid(405, format!("this path takes {allow} only")).header("allow", allow)
            }
            Self::UpgradeUnsupported => invalid(426, NO_UPGRADE).header("upgrade", "HTTP/1.1"),
            Self::MalformedHead(what) => invalid(400, *what),
            Self::TransferCoding => invalid(501, "of the transfer codings only `chunked` is taken"),
            Self::MissingCredential => unauthorized("no API key was sent"),
            Self::ConflictingCredentials => {
                unauthorized("the request carries several different API keys")
            }
            Self::UnknownKey => unauthorized("the API key is not known"),
            Self::KeyDisabled => unauthorized("the API key is disabled"),
            Self::KeyExpired => unauthorized("the API key has expired"),
            Self::UserDisabled => {
                unauthorized("the user of this API key is disabled or has expired")
            }
            Self::BodyTooLarge { limit } => {
                let message = format!("the body is larger than {limit} bytes");
                RefusalReply::new(413, "request_too_large", message)
            }
            Self::BodyBudgetExceeded => busy(BUDGET_EXCEEDED, BUDGET_RETRY_S),
            Self::ConversionTimedOut => busy(CONVERSION_TIMED_OUT, BUDGET_RETRY_S),
            Self::BodyTimedOut { ms } => invalid(408, body_timed_out(*ms)),
            Self::UnknownEncoding => {
                invalid(415, "the content encoding is not one of gzip, deflate, br, zstd")
            }
            Self::ContentType { takes_form } => invalid(415, wrong_type(*takes_form)),
            Self::DamagedEncoding => invalid(400, "the compressed body is damaged"),
            Self::BadRequest(message) => invalid(400, message.as_str()),
            Self::ModelNotAllowed { model, member } => model_denied(model, *member),
            Self::FeatureNotAllowed { feature, member, by } => {
                feature_refused(*feature, member, *by)
            }
            Self::ClientNotAllowed => forbidden("this key may not be used with this client"),
            Self::ClientOutdated { client, current, required } => {
                outdated(*client, *current, *required)
            }
            // The word is not named: a client could find out the whole list by trying.
            Self::SensitiveWord { .. } => {
                forbidden("the request holds content that this gateway does not pass on")
                    .code("content_filtered")
            }
            Self::Limit(denied) => limit_refusal::reply(denied, zone),
            Self::JournalFull => busy("the gateway cannot account for requests now", 5),
            Self::BackgroundFull => busy(BACKGROUND_FULL, 60),
            Self::CountersUnreachable => busy("the gateway cannot count requests now", 5),
            Self::NoGroup { .. }
            | Self::UnknownModel { .. }
            | Self::UnknownReply { .. }
            | Self::ModelNotPriced { .. }
            | Self::ToolNotPriced { .. }
            | Self::NoProviderCredential
            | Self::NoOwnCredential
            | Self::Unavailable { .. }
            | Self::UpstreamFailed { .. }
            | Self::UpstreamRateLimited { .. }
            | Self::UpstreamTimedOut { .. }
            | Self::Internal => self.without_provider(),
        }
    }

    /// The answer if no provider serves the request, or each one failed.
    fn without_provider(&self) -> RefusalReply {
        match self {
            Self::NoGroup { exists: true } => {
                forbidden("no provider is within reach of this key's groups")
            }
            Self::NoGroup { exists: false } => {
                forbidden("no provider is enabled yet: an administrator adds one")
            }
            Self::UnknownModel { model } => {
                not_found(format!("no provider serves the model {model}")).code("model_not_found")
            }
            Self::UnknownReply { item, id } => not_found(format!(
                "{item} with id '{id}' not found: this gateway knows no provider that stores it \
                 for this key"
            )),
            // 403 and not 400: the request is valid, and is served once a price is set.
            Self::ModelNotPriced { model } => forbidden(not_priced(model)).code("model_not_priced"),
            Self::ToolNotPriced { feature, member, fee, model } => {
                tool_not_priced(*feature, member, *fee, model)
            }
            // No matter of permissions: it is served once the credential is there.
            Self::NoProviderCredential => {
                overloaded(NO_PROVIDER_CREDENTIAL).retry_after(Some(SOON_MS.unsigned_abs()))
            }
            Self::NoOwnCredential => {
                RefusalReply::new(401, "authentication_error", NO_OWN_CREDENTIAL)
            }
            Self::Unavailable { retry_after_ms } => {
                let wait = retry_after_ms.unwrap_or(SOON_MS.unsigned_abs());
                overloaded("no provider can take the request now").retry_after(Some(wait))
            }
            Self::UpstreamFailed { message } | Self::UpstreamTimedOut { message } => {
                RefusalReply::new(502, "api_error", message.as_str())
            }
            Self::UpstreamRateLimited { retry_after_ms } => {
                let wait_s = retry_after_ms.map(|ms| ms.div_ceil(1000).max(1));
                let message = words::rate_limited("every provider is rate limited", wait_s);
                RefusalReply::new(429, "rate_limit_error", message)
                    .code("rate_limit_exceeded")
                    .retry_after(*retry_after_ms)
                    .extra("retry_delay_s", wait_s)
            }
            _ => RefusalReply::new(
                500,
                "api_error",
                "the gateway failed; the request id names the log entry",
            ),
        }
    }

    /// The text for administrators in the decision chain, if it is more than the client receives.
    pub fn detail(&self) -> Option<String> {
        match self {
            Self::SensitiveWord { id } => Some(format!("a text holds the sensitive word {id}")),
            Self::FeatureNotAllowed { feature, member, by } => {
                let (name, by) = (feature.as_str(), by.as_str());
                Some(format!("`{member}` asks for {name}: {by}"))
            }
            _ => None,
        }
    }

    /// Whether the caller could not be identified.
    pub const fn is_of_identity(&self) -> bool {
        matches!(
            self,
            Self::MissingCredential
                | Self::ConflictingCredentials
                | Self::UnknownKey
                | Self::KeyDisabled
                | Self::KeyExpired
                | Self::UserDisabled
        )
    }

    /// The reason's short name in metrics.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::UnknownRoute => "unknown_route",
            Self::WrongMethod { .. } => "wrong_method",
            Self::UpgradeUnsupported => "upgrade",
            Self::MalformedHead(_) => "malformed_head",
            Self::TransferCoding => "transfer_coding",
            Self::MissingCredential => "missing_credential",
            Self::ConflictingCredentials => "conflicting_credentials",
            Self::UnknownKey => "unknown_key",
            Self::KeyDisabled => "key_disabled",
            Self::KeyExpired => "key_expired",
            Self::UserDisabled => "user_disabled",
            Self::BodyTooLarge { .. } => "body_too_large",
            Self::BodyTimedOut { .. } => "body_timed_out",
            Self::BodyBudgetExceeded => "body_budget_exceeded",
            Self::ConversionTimedOut => "conversion_timed_out",
            Self::UnknownEncoding | Self::DamagedEncoding => "encoding",
            Self::ContentType { .. } => "content_type",
            Self::BadRequest(_) => "bad_request",
            Self::ModelNotAllowed { .. } => "model_not_allowed",
            Self::FeatureNotAllowed { .. } => "feature_not_allowed",
            Self::ClientNotAllowed => "client_not_allowed",
            Self::ClientOutdated { .. } => "client_outdated",
            Self::SensitiveWord { .. } => "sensitive_word",
            Self::Limit(_) => "limit",
            Self::JournalFull => "journal_full",
            Self::BackgroundFull => "background_full",
            Self::CountersUnreachable => "counters_unreachable",
            Self::NoGroup { .. } => "no_group",
            Self::UnknownModel { .. } => "unknown_model",
            Self::UnknownReply { .. } => "unknown_reply",
            Self::ModelNotPriced { .. } => "model_not_priced",
            Self::ToolNotPriced { .. } => "tool_not_priced",
            Self::NoProviderCredential => "no_provider_credential",
            Self::NoOwnCredential => "no_own_credential",
            Self::Unavailable { .. } => "unavailable",
            Self::UpstreamFailed { .. } => "upstream_failed",
            Self::UpstreamRateLimited { .. } => "upstream_rate_limited",
            Self::UpstreamTimedOut { .. } => "upstream_timed_out",
            Self::Internal => "internal",
        }
    }
}

fn not_found(message: impl Into<String>) -> RefusalReply {
    RefusalReply::new(404, "not_found_error", message)
}

fn body_timed_out(ms: Option<u64>) -> String {
    ms.map_or_else(
        || "the body did not arrive in time".to_owned(),
        |ms| format!("the body did not arrive within {ms} ms"),
    )
}

fn invalid(status: u16, message: impl Into<String>) -> RefusalReply {
    RefusalReply::new(status, "invalid_request_error", message)
}

fn unauthorized(message: &str) -> RefusalReply {
    RefusalReply::new(401, "authentication_error", message)
}

fn forbidden(message: impl Into<String>) -> RefusalReply {
    RefusalReply::new(403, "permission_error", message)
}

fn overloaded(message: &str) -> RefusalReply {
    RefusalReply::new(503, "overloaded_error", message)
}

/// The gateway itself cannot accept a request now.
fn busy(message: &str, again_after_s: u32) -> RefusalReply {
    overloaded(message).header("retry-after", again_after_s)
}

fn model_denied(model: &str, member: Option<&str>) -> RefusalReply {
    let of = member.map(|member| format!(", which `{member}` names")).unwrap_or_default();
    forbidden(format!("this key may not use the model {model}{of}"))
}

fn feature_refused(feature: Feature, member: &str, by: DeniedBy) -> RefusalReply {
    match (by, feature.row().sort) {
        (DeniedBy::Providers, Sort::Endpoint) => not_served(feature, member),
        _ => feature_denied(feature, member),
    }
}

fn feature_denied(feature: Feature, member: &str) -> RefusalReply {
    let name = feature.as_str();
    let message = format!(
        "this key may not use {name}, which `{member}` asks for: leave it out, or ask an \
         administrator to allow it"
    );
    let mut reply = forbidden(message).code("feature_not_allowed");
    reply.extra = vec![("field", json!(member)), ("feature", json!(name))];
    reply
}

/// No provider of the model has the endpoint.
fn not_served(feature: Feature, path: &str) -> RefusalReply {
    let name = feature.as_str();
    let message = format!(
        "no provider of this key that has the model serves `{path}`: an administrator can add one, \
         or allow {name} at one whose service has it"
    );
    let mut reply = not_found(message).code("endpoint_not_served");
    reply.extra = vec![("feature", json!(name))];
    reply
}

fn wrong_type(takes_form: bool) -> &'static str {
    if takes_form {
        "this path takes a form: send `content-type: multipart/form-data` with a boundary"
    } else {
        "this path takes JSON: send `content-type: application/json`"
    }
}

fn tool_not_priced(feature: Feature, member: &str, fee: Fee, model: &str) -> RefusalReply {
    let name = feature.as_str();
    let entry = |field, entry: &str| format!("to add `{field}` to the price of {entry}, ");
    let add = match fee {
        Fee::Rate(CostKind::FileSearch) => entry("file_search_cost_per_1k_calls", model),
        Fee::Rate(CostKind::Maps) => entry("google_maps_grounding_cost_per_query", model),
        Fee::Rate(_) => entry("search_context_cost_per_query", model),
        Fee::Container(of) => entry("code_interpreter_cost_per_session", of),
        Fee::Images => format!("to add a price for {IMAGES}, "),
        Fee::Free | Fee::Unknown => String::new(),
    };
    let message = format!(
        "there is no price for {name}, which `{member}` asks for, with the model {model}, and this \
         gateway does not serve it to this key without one: leave it out, or ask an administrator \
         {add}to allow `unpriced_tools` or to set `prices.unpriced` to `serve`"
    );
    let mut reply = forbidden(message).code("tool_not_priced");
    reply.extra = vec![("field", json!(member)), ("feature", json!(name))];
    reply
}

fn not_priced(model: &str) -> String {
    format!(
        "there is no price for the model {model}, and this gateway does not serve it to this key \
         without one: use a model that has one, or ask an administrator to add a price for it or \
         to set `prices.unpriced` to `serve`"
    )
}

fn outdated(client: Client, current: Version, required: Version) -> RefusalReply {
    let name = client.name();
    let message =
        format!("{name} {current} is too old for this gateway: update it to {required} or newer");
    let mut reply = invalid(400, message).code("client_upgrade_required");
    reply.extra = vec![
        ("client", json!(client.as_str())),
        ("current_version", json!(current.to_string())),
        ("required_version", json!(required.to_string())),
    ];
    reply
}
