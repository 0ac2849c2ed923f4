//! The data types of the gateway: ids, money, keys, users, providers, prices, usage, records.
//!
//! Pure data with its own small rules. No I/O, no clock, no dependency on any other module.

pub mod batch;
pub mod cache_miss;
pub mod clock;
pub mod credentials;
pub mod effort;
pub mod endpoint;
pub mod error_rule;
pub mod fast_map;
pub mod feature;
pub mod feature_policy;
pub mod fee;
pub mod format;
pub mod group;
pub mod ids;
pub mod invoice;
pub mod key;
pub mod limit_type;
pub mod limits;
pub mod matching;
pub mod model_facts;
pub mod model_rows;
pub mod money;
pub mod named_model;
pub mod network;
pub mod notifications;
pub mod part;
pub mod path_template;
pub mod price;
pub mod prompt_length;
pub mod prompt_print;
pub mod provider;
pub mod provider_auth;
pub mod provider_credential;
pub mod record;
pub mod secret;
pub mod settings;
pub mod strategy;
pub mod trace;
pub mod usage;
pub mod user;
pub mod version;
pub mod word;

#[cfg(test)]
mod tests {
    use crate::domain::cache_miss::CacheMissCause;
    use crate::domain::format::WireFormat;
    use crate::domain::key::CacheTtl;
    use crate::domain::limits::ResetMode;
    use crate::domain::part::PartKind;
    use crate::domain::price::PriceSource;
    use crate::domain::provider::{InstructionsStrategy, ProviderType};
    use crate::domain::provider_auth::ProviderAuth;
    use crate::domain::record::RequestOutcome;
    use crate::domain::usage::ServiceTier;
    use crate::domain::user::Role;

    #[test]
    fn names_in_json_are_those_of_as_str() {
        macro_rules! check {
            ($($values:expr),+ $(,)?) => {
                $(for value in $values {
                    assert_eq!(serde_json::json!(value), value.as_str());
                })+
            };
        }
        check!(
            WireFormat::ALL,
            ServiceTier::ALL,
            RequestOutcome::ALL,
            PartKind::ALL,
            CacheMissCause::ALL,
            [CacheTtl::Inherit, CacheTtl::FiveMinutes, CacheTtl::OneHour],
            [ResetMode::Fixed, ResetMode::Rolling],
            [PriceSource::Manual, PriceSource::Sync, PriceSource::Seed],
            [ProviderType::Native, ProviderType::NativeAuth, ProviderType::Responses],
            [ProviderType::Chat, ProviderType::AltCli],
            [ProviderAuth::Auto, ProviderAuth::XApiKey, ProviderAuth::XGoogApiKey],
            [ProviderAuth::GcpServiceAccount, ProviderAuth::AzureEntra, ProviderAuth::Client],
            [InstructionsStrategy::Auto, InstructionsStrategy::ForceOfficial],
            [InstructionsStrategy::KeepOriginal],
            [Role::Admin, Role::User],
        );
    }
}
