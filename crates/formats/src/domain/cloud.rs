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
            _ => Self::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cloud_is_known_by_the_address_of_a_native_provider() {
        use ClaudeCloud::{Bedrock, None, Vertex};
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
            ("https://bedrock-runtime.us-east-1.amazonaws.com/model", Bedrock),
            ("https://bedrock-runtime.us-east-1.amazonaws.com", Bedrock),
        ] {
            let plain = ClaudeCloud::of(ProviderType::Native, ProviderAuth::Auto, url);
            assert_eq!(plain, cloud, "{url}");
        }
    }
}
