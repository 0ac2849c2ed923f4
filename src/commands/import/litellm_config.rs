//! LiteLLM's `config.yaml`: its model list as providers and prices. Deployments that share address
//! and credential are one provider.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::model::{Form, Mapped, MappedLimits, MappedProvider, UniqueNames};

/// LiteLLM's name of a provider, how it is spoken to, and its usual address.
const KNOWN: [(&str, &str, &str); 16] = [
    ("openai", "chat-compatible", "https://api.openai.com"),
    ("text-completion-openai", "chat-compatible", "https://api.openai.com"),
    ("anthropic", "native", "https://api.anthropic.com"),
    ("gemini", "alt-cli", "https://generativelanguage.googleapis.com"),
    ("deepseek", "chat-compatible", "https://api.deepseek.com"),
    ("groq", "chat-compatible", "https://api.groq.com/openai"),
    ("mistral", "chat-compatible", "https://api.mistral.ai"),
    ("openrouter", "chat-compatible", "https://openrouter.ai/api"),
    ("together_ai", "chat-compatible", "https://api.together.xyz"),
    ("xai", "chat-compatible", "https://api.x.ai"),
    ("fireworks_ai", "chat-compatible", "https://api.fireworks.ai/inference"),
    ("cerebras", "chat-compatible", "https://api.cerebras.ai"),
    ("hosted_vllm", "chat-compatible", ""),
    ("openai_like", "chat-compatible", ""),
    ("custom_openai", "chat-compatible", ""),
    ("litellm_proxy", "chat-compatible", ""),
];

/// What makes deployments one provider: kind, address, credential, weight, order.
type Same = (&'static str, String, String, i64, i64);

/// Maps the file. `variable` reads an environment variable.
pub(super) fn map(config: &Value, variable: &dyn Fn(&str) -> Option<String>) -> Mapped {
    let mut mapped = Mapped::default();
    let mut found: BTreeMap<Same, Vec<(String, String)>> = BTreeMap::new();
    for entry in config["model_list"].as_array().map_or(&[][..], Vec::as_slice) {
        let Some(model) = entry["model_name"].as_str() else { continue };
        prices(model, entry, &mut mapped);
        rates(model, entry, &mut mapped);
        match deployment(entry, variable) {
            Ok((same, upstream)) => {
                found.entry(same).or_default().push((model.to_owned(), upstream))
            }
            Err(why) => mapped.notes.add(&why, format!("model {model:?}")),
        }
    }
    let mut names = UniqueNames::default();
    let mut counts: HashMap<String, usize> = HashMap::new();
    for ((kind, url, key, weight, order), models) in found {
        let host = url
            .split("://")
            .nth(1)
            .and_then(|rest| rest.split(['/', ':']).next())
            .unwrap_or(&url)
            .to_owned();
        let count = counts.entry(host.clone()).or_default();
        *count += 1;
        let name = names.unique(&host, &count.to_string());
        let mut form = Form::new();
        let mut put = |field: &str, value: Value| drop(form.insert(field.to_owned(), value));
        put("url", url.into());
        put("key", key.into());
        put("provider_type", kind.into());
        put("weight", weight.into());
        put("priority", order.into());
        let (allowed, redirects) = lists(&name, models, &mut mapped);
        put("allowed_models", allowed.into());
        put("model_redirects", redirects.into());
        mapped.providers.push(MappedProvider { name, form, limits: MappedLimits::default() });
    }
    leftovers(config, &mut mapped);
    mapped
}

/// Which provider a deployment belongs to, and its model there; else why it cannot be one.
fn deployment(
    entry: &Value,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<(Same, String), String> {
    let params = &entry["litellm_params"];
    let text = |name: &str| -> Result<Option<String>, String> {
        let Some(text) = params[name].as_str().map(str::trim).filter(|text| !text.is_empty())
        else {
            return Ok(None);
        };
        match text.strip_prefix("os.environ/") {
            None => Ok(Some(text.to_owned())),
            Some(name) => variable(name).map(Some).ok_or_else(|| {
                format!("the environment variable {name} is not set where `tollgate import` runs")
            }),
        }
    };
    let model = text("model")?.ok_or("the entry has no litellm_params.model")?;
    let (provider, upstream) = match text("custom_llm_provider")? {
        Some(provider) => (provider, model),
        None => match model.split_once('/') {
            Some((provider, rest)) => (provider.to_owned(), rest.to_owned()),
            None if model.starts_with("claude") => ("anthropic".to_owned(), model),
            None if model.starts_with("gemini") => ("gemini".to_owned(), model),
            None => ("openai".to_owned(), model),
        },
    };
    let known = KNOWN.iter().find(|(name, ..)| *name == provider);
    let Some((_, kind, usual)) = known else {
        return Err(format!(
            "tollgate does not speak to LiteLLM's provider {provider:?}, or knows no address for it"
        ));
    };
    let address = text("api_base")?.or(text("base_url")?).unwrap_or_else(|| (*usual).to_owned());
    if address.is_empty() {
        return Err("the entry has no litellm_params.api_base".to_owned());
    }
    let key = text("api_key")?.ok_or("the entry has no litellm_params.api_key")?;
    let weight = params["weight"].as_i64().unwrap_or(1).clamp(1, 100);
    let order = params["order"].as_i64().unwrap_or(0).clamp(0, 1_000_000);
    Ok(((kind, address.trim_end_matches('/').to_owned(), key, weight, order), upstream))
}

/// The models of a provider, and which of them it knows by another name.
fn lists(
    provider: &str,
    models: Vec<(String, String)>,
    mapped: &mut Mapped,
) -> (Vec<String>, Form) {
    let (mut allowed, mut redirects) = (Vec::new(), Form::new());
    for (asked, upstream) in models {
        // `anthropic/*` means every model of the provider.
        let asked = match asked.split_once('/') {
            Some((_, rest)) if asked.contains('*') => rest.to_owned(),
            _ => asked,
        };
        if asked.trim_end_matches('*').contains('*')
            || (asked.contains('*') && asked != upstream && upstream != "*")
        {
            let why =
                "tollgate's lists of models have whole names and names with a trailing * only";
            mapped.notes.add(why, format!("provider {provider:?}: {asked}"));
            continue;
        }
        if asked != upstream && !asked.contains('*') {
            let before = redirects.insert(asked.clone(), upstream.into());
            if before.is_some() {
                let why = "a provider has one upstream name for a model: the last one of the file \
                    is used";
                mapped.notes.add(why, format!("provider {provider:?}: {asked}"));
            }
        }
        if !allowed.contains(&asked) {
            allowed.push(asked);
        }
    }
    if allowed.iter().any(|model| model == "*") {
        allowed.clear();
    }
    (allowed, redirects)
}

/// Prices that the file sets itself.
fn prices(model: &str, entry: &Value, mapped: &mut Mapped) {
    let mut price = Form::new();
    for part in [&entry["model_info"], &entry["litellm_params"]] {
        for (name, value) in part.as_object().into_iter().flatten() {
            if name.contains("cost_per_token") || name.contains("_token_cost") {
                price.insert(name.clone(), value.clone());
            }
        }
    }
    if price.contains_key("input_cost_per_token") {
        mapped.prices.insert(model.to_owned(), price.into());
    }
}

fn rates(model: &str, entry: &Value, mapped: &mut Mapped) {
    for name in ["rpm", "tpm", "max_parallel_requests", "max_budget"] {
        let limit = &entry["litellm_params"][name];
        if !limit.is_null() {
            let why = "tollgate has no such limit of one model of a provider";
            mapped.notes.add(why, format!("model {model:?}: {name} {limit}"));
        }
    }
}

fn leftovers(config: &Value, mapped: &mut Mapped) {
    let has = |section: &str, name: &str| !config[section][name].is_null();
    for (section, name, why) in [
        (
            "general_settings",
            "master_key",
            "tollgate has its own administrator's token (docs/administration.md)",
        ),
        (
            "general_settings",
            "database_url",
            "import the database too: tollgate import litellm --from ADDRESS",
        ),
        (
            "litellm_settings",
            "fallbacks",
            "tollgate tries all providers of a model in order, and no other models",
        ),
        (
            "router_settings",
            "fallbacks",
            "tollgate tries all providers of a model in order, and no other models",
        ),
        ("router_settings", "routing_strategy", "tollgate selects by priority and weight"),
        ("router_settings", "model_group_alias", "add the alias to the redirects of the providers"),
        ("litellm_settings", "callbacks", "tollgate has no callbacks"),
        ("litellm_settings", "success_callback", "tollgate has no callbacks"),
        ("litellm_settings", "cache", "tollgate does not cache replies"),
    ] {
        if has(section, name) {
            mapped.notes.add(why, format!("{section}.{name}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn mapped(models: Value) -> Mapped {
        let variable = |name: &str| (name == "KEY").then(|| "from-the-environment".to_owned());
        map(
            &json!({"model_list": models, "general_settings": {"master_key": "sk-master"}}),
            &variable,
        )
    }

    #[test]
    fn deployments_of_one_credential_are_one_provider() {
        let mapped = mapped(json!([
            {"model_name": "sonnet", "litellm_params": {"model": "anthropic/claude-sonnet-4-5", "api_key": "os.environ/KEY"}},
            {"model_name": "claude-haiku-4-5", "litellm_params": {"model": "claude-haiku-4-5", "api_key": "os.environ/KEY"}},
            {"model_name": "gpt", "litellm_params": {"model": "openai/gpt-5", "api_key": "sk-1", "order": 2, "weight": 7}},
            {"model_name": "house", "litellm_params": {"model": "openai/house", "api_key": "sk-2", "api_base": "https://llm.example.com/v1/"},
             "model_info": {"input_cost_per_token": 0.000001, "output_cost_per_token": 0.000002}},
        ]));
        let reported: Vec<(&str, &Form)> =
            mapped.providers.iter().map(|p| (p.name.as_str(), &p.form)).collect();
        assert_eq!(reported.len(), 3, "{reported:?}");
        let of = |name: &str| {
            reported.iter().find(|(n, _)| *n == name).map(|(_, form)| (*form).clone()).unwrap()
        };
        let anthropic = of("api.anthropic.com");
        assert_eq!(
            (&anthropic["provider_type"], &anthropic["key"]),
            (&json!("native"), &json!("from-the-environment"))
        );
        assert_eq!(anthropic["allowed_models"], json!(["sonnet", "claude-haiku-4-5"]));
        assert_eq!(anthropic["model_redirects"], json!({"sonnet": "claude-sonnet-4-5"}));
        let openai = of("api.openai.com");
        assert_eq!((&openai["priority"], &openai["weight"]), (&json!(2), &json!(7)));
        assert_eq!(of("llm.example.com")["url"], "https://llm.example.com/v1");
        assert_eq!(mapped.prices["house"]["output_cost_per_token"], json!(0.000002));
        let notes = mapped.notes.into_lines();
        assert!(notes.iter().any(|(_, of)| of == &["general_settings.master_key"]), "{notes:?}");
    }

    #[test]
    fn what_cannot_be_a_provider_is_reported_with_the_reason() {
        let notes = mapped(json!([
            {"model_name": "a", "litellm_params": {"model": "bedrock/anthropic.claude", "api_key": "x"}},
            {"model_name": "b", "litellm_params": {"model": "openai/gpt-5", "api_key": "os.environ/ABSENT", "rpm": 5}},
            {"model_name": "c", "litellm_params": {"model": "hosted_vllm/x", "api_key": "x"}},
            {"model_name": "d", "litellm_params": {"model": "openai/x"}},
        ]));
        assert!(notes.providers.is_empty());
        let lines: Vec<String> = notes
            .notes
            .into_lines()
            .into_iter()
            .map(|(why, of)| format!("{why}: {of:?}"))
            .collect();
        for part in ["\"bedrock\"", "ABSENT is not set", "api_base", "api_key", "rpm 5"] {
            assert!(lines.iter().any(|line| line.contains(part)), "{part} in {lines:?}");
        }
    }

    #[test]
    fn a_star_stands_for_all_models_of_a_provider() {
        let all = mapped(json!([
            {"model_name": "anthropic/*", "litellm_params": {"model": "anthropic/*", "api_key": "x"}},
            {"model_name": "gpt-*", "litellm_params": {"model": "openai/gpt-*", "api_key": "y"}},
        ]));
        let lists: Vec<&Value> = all.providers.iter().map(|p| &p.form["allowed_models"]).collect();
        assert!(lists.contains(&&json!([])) && lists.contains(&&json!(["gpt-*"])), "{lists:?}");
    }
}
