//! Clouds that serve Claude by paths and bodies of their own, known by a provider's address.

use super::aws_host::AwsHost;
use super::format::WireFormat;
use super::provider::ProviderType;
use super::provider_auth::ProviderAuth;

/// The form of a provider's calls, where it is not as the format has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClaudeCloud {
    /// As the format has it.
    #[default]
    None,
    /// Google's Vertex AI: the address ends with `/publishers/anthropic`.
    Vertex,
    /// Amazon Bedrock's `InvokeModel`: the address ends with `/model`, or is that of Bedrock's
    /// runtime alone.
    Bedrock,
    /// Amazon Bedrock's `Converse` for every model: the address ends with `/converse`.
    Converse,
}

impl ClaudeCloud {
    /// The form of calls to a provider of this type at this address. At a host that is not AWS's
    /// own, an address that ends with `/model` is Bedrock's only if requests are signed.
    pub fn of(kind: ProviderType, auth: ProviderAuth, url: &str) -> Self {
        let url = url.trim_end_matches('/');
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let host = authority.split(':').next().unwrap_or_default();
        let is_runtime = AwsHost::of(host).is_some_and(|host| host.is_runtime);
        let is_signed = auth == ProviderAuth::AwsSigv4;
        match kind.format() {
            WireFormat::Native if url.ends_with("/publishers/anthropic") => Self::Vertex,
            WireFormat::Native if path.is_empty() && is_runtime => Self::Bedrock,
            WireFormat::Native if url.ends_with("/model") && (is_signed || is_runtime) => {
                Self::Bedrock
            }
            WireFormat::Native if url.ends_with("/converse") && (is_signed || is_runtime) => {
                Self::Converse
            }
            _ => Self::None,
        }
    }

    /// The form of calls about this model: at Bedrock, other vendors' models have `Converse`.
    #[must_use]
    pub fn for_model(self, model: &str) -> Self {
        if self == Self::Bedrock && is_of_another_vendor(model) { Self::Converse } else { self }
    }
}

/// Whether the name begins with a vendor, perhaps after a region, and none is Anthropic:
/// `us.amazon.nova-pro-v1:0`. Names without a vendor (profiles and deployments of one's own) do not
/// say what they are.
fn is_of_another_vendor(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    // The one region with a hyphen.
    let name = name.strip_prefix("us-gov.").unwrap_or(name);
    let Some((first, rest)) = name.split_once('.') else { return false };
    !first.is_empty()
        && first.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        && first != "anthropic"
        && !rest.starts_with("anthropic.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cloud_is_known_by_the_address_of_a_native_provider() {
        use ClaudeCloud::{Bedrock, Converse, None, Vertex};
        let signed = ProviderAuth::AwsSigv4;
        for (kind, url, cloud) in [
            ("native", "https://api.anthropic.com", None),
            ("native", "https://x/v1/publishers/anthropic/", Vertex),
            ("alt-cli", "https://x/v1/publishers/anthropic", None),
            ("native", "https://bedrock-runtime.us-east-1.amazonaws.com/", Bedrock),
            ("native", "https://bedrock-runtime-fips.us-east-1.amazonaws.com:443", Bedrock),
            ("native", "https://bedrock-runtime.us-east-1.amazonaws.com/anthropic", None),
            ("native", "https://bedrock-mantle.us-east-1.api.aws", None),
            ("native-auth", "http://127.0.0.1:1/model", Bedrock),
            ("native", "https://relay.example/model/v1", None),
            ("native", "http://127.0.0.1:1/converse/", Converse),
            ("native", "https://bedrock-runtime.us-east-1.amazonaws.com/converse", Converse),
            ("chat-compatible", "https://bedrock-runtime.us-east-1.amazonaws.com/converse", None),
            ("chat-compatible", "https://bedrock-runtime.us-east-1.amazonaws.com", None),
            ("native", "https://bedrock-runtime.us-east-1.amazonaws.com.example.org", None),
        ] {
            assert_eq!(
                ClaudeCloud::of(ProviderType::parse(kind).unwrap(), signed, url),
                cloud,
                "{url}"
            );
        }
        for (url, cloud) in [
            ("https://relay.example/api/model", None),
            ("https://relay.example/converse", None),
            ("https://bedrock-runtime.us-east-1.amazonaws.com/model", Bedrock),
            ("https://bedrock-runtime.us-east-1.amazonaws.com", Bedrock),
        ] {
            let plain = ClaudeCloud::of(ProviderType::Native, ProviderAuth::Auto, url);
            assert_eq!(plain, cloud, "{url}");
        }
    }

    #[test]
    fn models_of_other_vendors_have_converse() {
        use ClaudeCloud::{Bedrock, Converse, None, Vertex};
        for (model, cloud) in [
            ("anthropic.claude-x-v1:0", Bedrock),
            ("us.anthropic.claude-x-v1:0", Bedrock),
            ("us-gov.anthropic.claude-x-v1:0", Bedrock),
            ("us-gov.meta.llama3-8b-instruct-v1:0", Converse),
            ("amazon.nova-pro-v1:0", Converse),
            ("us.amazon.nova-pro-v1:0", Converse),
            ("ai21.jamba-1-5-large-v1:0", Converse),
            ("arn:aws:bedrock:us-east-1::foundation-model/meta.llama3-8b-instruct-v1:0", Converse),
            ("arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-x", Bedrock),
            ("arn:aws:bedrock:us-east-1:1:application-inference-profile/abc123", Bedrock),
            ("claude-3.5-sonnet", Bedrock),
            ("m", Bedrock),
            ("", Bedrock),
        ] {
            assert_eq!(Bedrock.for_model(model), cloud, "{model}");
            for other in [None, Vertex, Converse] {
                assert_eq!(other.for_model(model), other, "{model}");
            }
        }
    }
}
