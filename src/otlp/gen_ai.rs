//! Names of OpenTelemetry's GenAI conventions: provider, operation, parameters of the request.

use serde_json::Number;

use super::proto::Attributes;
use crate::domain::aws_host::AwsHost;
use crate::domain::format::WireFormat;
use crate::domain::part::Part;
use crate::domain::usage::Usage;
use crate::formats::conversation::Request;
use crate::formats::route::Operation;

/// Providers that are known by their address: the end of the host name, and the conventions' name.
const HOSTS: [(&str, &str); 13] = [
    (".openai.azure.com", "azure.ai.openai"),
    (".cognitiveservices.azure.com", "azure.ai.openai"),
    (".services.ai.azure.com", "azure.ai.inference"),
    (".models.ai.azure.com", "azure.ai.inference"),
    ("aiplatform.googleapis.com", "gcp.vertex_ai"),
    ("generativelanguage.googleapis.com", "gcp.gemini"),
    ("api.deepseek.com", "deepseek"),
    ("api.x.ai", "x_ai"),
    ("api.mistral.ai", "mistral_ai"),
    ("api.groq.com", "groq"),
    ("api.perplexity.ai", "perplexity"),
    ("api.cohere.com", "cohere"),
    ("api.cohere.ai", "cohere"),
];

/// `gen_ai.provider.name`: by the provider's host, else by its format.
pub(super) fn provider_name(host: &str, format: WireFormat) -> &'static str {
    let is_bedrock = AwsHost::of(host).is_some_and(|host| host.service.starts_with("bedrock"));
    if let Some((_, name)) = HOSTS.iter().find(|(end, _)| host.ends_with(end)) {
        return name;
    }
    match format {
        _ if is_bedrock => "aws.bedrock",
        WireFormat::Native => "anthropic",
        WireFormat::Responses | WireFormat::Chat => "openai",
        WireFormat::AltCli => "gcp.gemini",
    }
}

/// `gen_ai.operation.name` of a call in a provider's format.
pub(super) const fn operation_name(operation: &Operation, format: WireFormat) -> &'static str {
    match (operation, format) {
        (Operation::Generate, WireFormat::AltCli) => "generate_content",
        (Operation::Generate, _) => "chat",
        (Operation::Endpoint(endpoint), _) => endpoint.name,
        (Operation::CountTokens, _) => "count_tokens",
        (Operation::Stored(call), _) => match call.collection.item.as_bytes() {
            b"Response" => "stored_response",
            b"Batch" => "stored_batch",
            _ => "stored_file",
        },
        (Operation::Upload(_), _) => "upload",
        (Operation::ListStored(_), _) => "list_stored",
        (Operation::ListModels | Operation::GetModel(_), _) => "list_models",
    }
}

/// The parameters of a request.
#[derive(Debug, Default)]
pub(super) struct Parameters {
    max_tokens: Option<u64>,
    temperature: Option<Number>,
    top_p: Option<Number>,
    top_k: Option<Number>,
    seed: Option<Number>,
    stop: Vec<String>,
}

impl Parameters {
    /// Those that the client has set.
    pub(super) fn of(request: &Request<'_>) -> Self {
        let sampling = &request.sampling;
        Self {
            max_tokens: request.max_tokens,
            temperature: sampling.temperature.clone(),
            top_p: sampling.top_p.clone(),
            top_k: sampling.top_k.clone(),
            seed: sampling.seed.clone(),
            stop: request.stop.iter().map(ToString::to_string).collect(),
        }
    }

    /// Adds them as attributes.
    pub(super) fn add(&self, to: &mut Attributes) {
        if let Some(tokens) = self.max_tokens {
            to.number("gen_ai.request.max_tokens", tokens);
        }
        for (name, number) in [
            ("gen_ai.request.temperature", &self.temperature),
            ("gen_ai.request.top_p", &self.top_p),
            ("gen_ai.request.top_k", &self.top_k),
        ] {
            if let Some(number) = number.as_ref().and_then(Number::as_f64) {
                to.float(name, number);
            }
        }
        if let Some(seed) = self.seed.as_ref().and_then(Number::as_i64) {
            to.number("gen_ai.request.seed", seed);
        }
        if !self.stop.is_empty() {
            to.texts("gen_ai.request.stop_sequences", self.stop.iter().cloned());
        }
    }
}

/// Adds token counts. Unlike the native format's own figure, `input_tokens` includes cached tokens.
pub(super) fn usage(usage: &Usage, to: &mut Attributes) {
    to.number("gen_ai.usage.input_tokens", usage.total_input());
    to.number("gen_ai.usage.output_tokens", usage.output);
    for (name, tokens) in [
        ("gen_ai.usage.cache_read.input_tokens", usage.cache_read),
        ("gen_ai.usage.cache_creation.input_tokens", usage.cache_write_5m + usage.cache_write_1h),
        ("gen_ai.usage.reasoning.output_tokens", usage.reasoning),
    ] {
        if tokens > 0 {
            to.number(name, tokens);
        }
    }
}

/// Adds the parts of the cost that have their own price.
pub(super) fn parts(parts: &[Part], to: &mut Attributes) {
    if !parts.is_empty() {
        to.texts("tollgate.cost.parts", parts.iter().map(Part::summary));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_are_named_by_their_host_and_else_by_their_format() {
        for (host, format, name) in [
            ("api.anthropic.com", WireFormat::Native, "anthropic"),
            ("api.openai.com", WireFormat::Responses, "openai"),
            ("10.0.0.1", WireFormat::Chat, "openai"),
            ("generativelanguage.googleapis.com", WireFormat::AltCli, "gcp.gemini"),
            ("europe-west1-aiplatform.googleapis.com", WireFormat::Native, "gcp.vertex_ai"),
            ("bedrock-runtime.eu-west-1.amazonaws.com", WireFormat::Native, "aws.bedrock"),
            ("bedrock-mantle.eu-west-1.api.aws", WireFormat::Chat, "aws.bedrock"),
            ("me.openai.azure.com", WireFormat::Chat, "azure.ai.openai"),
            ("me.services.ai.azure.com", WireFormat::Chat, "azure.ai.inference"),
            ("api.deepseek.com", WireFormat::Native, "deepseek"),
            ("api.x.ai", WireFormat::Chat, "x_ai"),
        ] {
            assert_eq!(provider_name(host, format), name, "{host}");
        }
    }
}
