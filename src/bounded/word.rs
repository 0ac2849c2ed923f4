//! One of a few words.

use schemars::SchemaGenerator;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::from_json::{FromJson, from_json};
use super::{Fault, Faults, FromText, Wrong};
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
use crate::limits::OnRedisLoss;
use crate::policy::reservation::Reservation;
use crate::policy::unpriced::Unpriced;
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

/// Letter case does not count.
impl<T: Word> FromText for OneOf<T> {
    type Out = T;

    fn read(text: &str) -> Result<T, Wrong> {
        let known = T::ALL.iter().find(|value| value.word().eq_ignore_ascii_case(text));
        known.copied().ok_or_else(|| "is not one of the choices".into())
    }

    fn text(value: &T) -> String {
        value.word().to_owned()
    }

    fn shape() -> String {
        format!("write one of {}", all::<T>().join(", "))
    }
}

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

/// Declares types of words: each value with its word.
macro_rules! choices {
    ($($(#[doc = $about:literal])* $name:ident {
        $($(#[doc = $each:literal])* $value:ident = $word:literal,)+
    })+) => {$(
        $(#[doc = $about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $($(#[doc = $each])* $value,)+
        }

        impl $name {
            /// The word that is written for it.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)+
                }
            }
        }

        impl $crate::bounded::Word for $name {
            const ALL: &'static [Self] = &[$(Self::$value),+];

            fn word(self) -> &'static str {
                self.as_str()
            }
        }
    )+};
}
pub(crate) use choices;

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
    OnRedisLoss: Local, Open, Closed;
    ProviderAuth: Auto, XApiKey, Bearer, XGoogApiKey, ApiKey, GcpServiceAccount, AzureEntra,
        AwsSigv4, Client, None;
    ProviderType: Native, NativeAuth, Responses, Chat, AltCli;
    Reservation: Expected, Strict, Off;
    ResetMode: Fixed, Rolling;
    Role: Admin, User;
    WireFormat: AltCli, Chat, Native, Responses;
    Strategy: Weighted, Cheapest, Fastest;
    Unpriced: Serve, RefuseWhenLimited, Refuse;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_are_written() {
        fn each<T: Word + PartialEq + std::fmt::Debug>() {
            for value in T::ALL {
                assert_eq!(OneOf::<T>::read(value.word()).ok(), Some(*value));
                assert_eq!(OneOf::<T>::take(&value.word().into()), Ok(OneOf(*value)));
            }
            assert!(OneOf::<T>::read("another word").is_err());
        }
        each::<Reservation>();
        each::<Unpriced>();
        each::<Strategy>();
    }
}
