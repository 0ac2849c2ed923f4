//! The smallest request for a reply: of the provider test, and of probes.

use std::time::Duration;

use serde_json::{Value, json};

use super::endpoint::ProviderCall;
use super::probe::{ProbeError, Probed, probe};
use crate::domain::cloud::ClaudeCloud;
use crate::domain::format::WireFormat;
use crate::domain::provider::Provider;
use crate::formats::conversation::{GptGeneration, TargetModel};
use crate::formats::convert::{self, RequestOptions};
use crate::formats::native::{bedrock, converse::ConverseOptions, vertex};

/// Sends it. `model`: the provider's name of it.
///
/// # Errors
/// As [`probe`].
pub async fn send(
    provider: &Provider,
    model: &str,
    time_limit: Duration,
) -> Result<Probed, ProbeError> {
    let asked = ProviderCall::Generate { model, stream: false };
    probe(provider, asked, Some(request(provider, model)), time_limit).await
}

/// The smallest sensible request.
fn request(provider: &Provider, model: &str) -> String {
    let body = body(provider.kind.format(), model).to_string();
    let edited = match provider.cloud.for_model(model) {
        ClaudeCloud::Converse => {
            let converse = Some(ConverseOptions::default());
            let options = RequestOptions { converse, ..RequestOptions::new(model, false) };
            let native = WireFormat::Native;
            let converted = convert::request(native, native, body.as_bytes(), &options);
            converted.ok().map(|request| vec![request.body.into()])
        }
        ClaudeCloud::None => return body,
        ClaudeCloud::Vertex => vertex::body(&[body.clone().into()], None, None),
        ClaudeCloud::Bedrock => {
            bedrock::body(&[body.clone().into()], bedrock::InHeaders::default())
        }
    };
    edited.map_or(body, |edited| String::from_utf8_lossy(&edited.concat()).into_owned())
}

fn body(format: WireFormat, model: &str) -> Value {
    const TEXT: &str = "Reply with the one word: ok";
    let message = json!([{ "role": "user", "content": TEXT }]);
    match format {
        WireFormat::Native => json!({ "model": model, "max_tokens": 32, "messages": message }),
        WireFormat::Chat => {
            let target = TargetModel { name: model, facts: None };
            let is_modern = GptGeneration::of(&target).is_some_and(|gpt| gpt.is_modern);
            // These refuse the old member, and a bound that their reasoning exceeds.
            let (member, most) =
                if is_modern { ("max_completion_tokens", 512) } else { ("max_tokens", 32) };
            json!({ "model": model, member: most, "messages": message })
        }
        WireFormat::Responses => {
            json!({ "model": model, "max_output_tokens": 32, "input": message })
        }
        WireFormat::AltCli => json!({
            "contents": [{ "role": "user", "parts": [{ "text": TEXT }] }],
            "generationConfig": { "maxOutputTokens": 32 },
        }),
    }
}

/// The text of a reply; `None` if it is not a reply of the format. One without text (only
/// reasoning) is empty.
pub fn text(format: WireFormat, reply: &Value) -> Option<String> {
    let blocks = match format {
        WireFormat::Native => {
            // Converse's is within another object.
            let message =
                if reply["output"].is_object() { &reply["output"]["message"] } else { reply };
            message["content"].as_array()?.clone()
        }
        WireFormat::Chat => {
            let message = &reply["choices"].as_array()?.first()?["message"];
            return message
                .is_object()
                .then(|| message["content"].as_str().unwrap_or_default().to_owned());
        }
        WireFormat::Responses => {
            let items = reply["output"].as_array()?;
            items.iter().filter_map(|item| item["content"].as_array()).flatten().cloned().collect()
        }
        WireFormat::AltCli => {
            let first = reply["candidates"].as_array()?.first()?;
            first["content"]["parts"].as_array().cloned().unwrap_or_default()
        }
    };
    Some(blocks.iter().filter_map(|block| block["text"].as_str()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasoning_models_of_openai_get_the_member_that_they_take() {
        for (model, member) in [
            ("gpt-5", "max_completion_tokens"),
            ("relay/o3", "max_completion_tokens"),
            ("gpt-3.5-turbo", "max_tokens"),
            ("deepseek-chat", "max_tokens"),
        ] {
            let body = body(WireFormat::Chat, model);
            let bounds = ["max_tokens", "max_completion_tokens"];
            let sent: Vec<_> = bounds.into_iter().filter(|one| body[one].is_u64()).collect();
            assert_eq!(sent, [member], "{model}");
        }
    }
}
