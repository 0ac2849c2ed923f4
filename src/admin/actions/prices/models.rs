//! `model-prices/getAvailableModelsByProviderType`: model names to choose from, for a provider's
//! form and for tests.
//!
//! They come from the configuration: the lists and redirects of providers of the type, and the
//! price table, whose entries name their vendor. An entry without a vendor fits every type.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::admin::bodies::OneOf;
use crate::admin::call::Call;
use crate::admin::envelope::ApiError;
use crate::domain::price::Price;
use crate::domain::provider::ProviderType;

/// Which models.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfType {
    /// Left out: the models of all types.
    pub provider_type: Option<OneOf<ProviderType>>,
}

/// The names of all models with a price of this type, in alphabetical order.
///
/// # Errors
/// 500 if the database cannot be read.
pub async fn available(call: Call, body: OfType) -> Result<Vec<String>, ApiError> {
    let asked = body.provider_type.map(|kind| kind.0);
    let snapshot = call.ctx.node.state.snapshot();
    let mut names = BTreeSet::new();
    for provider in snapshot
        .providers
        .iter()
        .filter(|p| asked.is_none_or(|kind| p.kind.format() == kind.format()))
    {
        names.extend(provider.allowed_models.iter().filter(|name| !name.ends_with('*')).cloned());
        names.extend(provider.model_redirects.iter().map(|(from, _)| from.clone()));
    }
    let priced =
        snapshot.prices.values().filter(|price| asked.is_none_or(|kind| fits(price, kind)));
    names.extend(priced.map(|price| price.model.clone()));
    names.remove("");
    Ok(names.into_iter().collect())
}

/// Whether the entry's vendor serves the format of the type. A chat-compatible address may serve
/// every vendor's models.
fn fits(price: &Price, kind: ProviderType) -> bool {
    let entry = price.data.parse();
    let talks = entry.get("mode").and_then(serde_json::Value::as_str);
    if talks.is_some_and(|mode| !["chat", "completion", "responses"].contains(&mode)) {
        return false;
    }
    let Some(vendor) = entry.get("litellm_provider").and_then(serde_json::Value::as_str) else {
        return true;
    };
    let of = |vendors: &[&str]| vendors.iter().any(|known| vendor.starts_with(known));
    match kind {
        ProviderType::Native | ProviderType::NativeAuth => {
            of(&["anthropic", "bedrock", "vertex_ai-anthropic"])
        }
        ProviderType::Responses => of(&["openai", "azure"]),
        ProviderType::Chat => true,
        ProviderType::AltCli => of(&["gemini", "vertex_ai"]),
    }
}
