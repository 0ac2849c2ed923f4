//! Fields that take one of a few words.

use schemars::SchemaGenerator;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::from_json::{FromJson, from_json};
use super::{Fault, Faults};
use crate::domain::endpoint::{ApiEndpoint, ENDPOINTS};
use crate::domain::error_rule::{AppliesTo, ErrorCategory};
use crate::domain::feature::Feature;
use crate::domain::format::WireFormat;
use crate::domain::invoice::InvoiceKind;
use crate::domain::key::CacheTtl;
use crate::domain::limits::ResetMode;
use crate::domain::matching::MatchType;
use crate::domain::provider::{AnthropicHost, InstructionsStrategy, ProviderType};
use crate::domain::provider_auth::ProviderAuth;
use crate::domain::strategy::Strategy;
use crate::domain::user::Role;
use crate::formats::invoice::FileKind;
use crate::reasons::Reason;

/// A type whose values have words on the wire.
pub trait Word: Copy + 'static {
    /// Every value that is taken.
    const ALL: &'static [Self];

    /// The value's word.
    fn word(self) -> &'static str;
}

fn all<T: Word>() -> Vec<&'static str> {
    T::ALL.iter().map(|value| value.word()).collect()
}

/// One of the words of `T`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OneOf<T>(pub T);

impl<T: Word> FromJson for OneOf<T> {
    fn take(json: &Value) -> Result<Self, Faults> {
        let text = json.as_str().ok_or_else(|| Fault::wrong_type(Reason::MustBeText))?;
        let known = T::ALL.iter().find(|value| value.word() == text);
        known
            .map(|value| Self(*value))
            .ok_or_else(|| Fault::format(Reason::MustBeOneOf).with("allowed", all::<T>()).into())
    }

    fn describe(_: &mut SchemaGenerator) -> Value {
        json!({ "type": "string", "enum": all::<T>() })
    }
}

from_json!([T: Word] OneOf<T> => T);

impl<T: Word> Serialize for OneOf<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.word())
    }
}

/// Implements [`Word`] by the type's own `as_str`.
macro_rules! words {
    ($($type:ty: $($value:ident),+;)+) => {
        $(impl Word for $type {
            const ALL: &'static [Self] = &[$(Self::$value),+];

            fn word(self) -> &'static str {
                self.as_str()
            }
        })+
    };
}

impl Word for Feature {
    const ALL: &'static [Self] = Self::ALL;

    fn word(self) -> &'static str {
        self.as_str()
    }
}

impl Word for &'static ApiEndpoint {
    const ALL: &'static [Self] = &{
        let mut all = [&ENDPOINTS[0]; ENDPOINTS.len()];
        let mut at = 0;
        while at < all.len() {
            all[at] = &ENDPOINTS[at];
            at += 1;
        }
        all
    };

    fn word(self) -> &'static str {
        self.name
    }
}

words! {
    AppliesTo: ClientErrors, AllErrors;
    CacheTtl: Inherit, FiveMinutes, OneHour;
    ErrorCategory:
        PromptLimit, ContentFilter, PdfLimit, ThinkingError, ParameterError, InvalidRequest, CacheLimit;
    FileKind: Aws, Google;
    AnthropicHost: Auto, Yes, No;
    InstructionsStrategy: Auto, ForceOfficial, KeepOriginal;
    InvoiceKind: Anthropic, OpenAi;
    MatchType: Contains, Exact, Regex;
    ProviderAuth: Auto, XApiKey, Bearer, XGoogApiKey, ApiKey, GcpServiceAccount, AzureEntra,
        AwsSigv4, Client, None;
    ProviderType: Native, NativeAuth, Responses, Chat, AltCli;
    ResetMode: Fixed, Rolling;
    Role: Admin, User;
    WireFormat: AltCli, Chat, Native, Responses;
    Strategy: Weighted, Cheapest, Fastest;
}
