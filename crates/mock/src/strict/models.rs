//! What single models refuse, by their name: efforts, and fields beside reasoning.

use serde_json::Value;

use super::names::text;
use crate::ask::either;
use crate::wire::WireFault;
use tollgate_formats::domain::format::WireFormat;

/// The efforts that models of these names take; the first name that fits counts.
const EFFORTS: [(&str, &[&str]); 9] = [
    ("gpt-4o", &[]),
    ("o3", &["low", "medium", "high"]),
    ("gpt-5.1-codex", &["low", "medium", "high"]),
    ("gpt-5.1", &["none", "low", "medium", "high"]),
    ("gpt-5.2-pro", &["medium", "high", "xhigh"]),
    ("gpt-5.2", &["none", "low", "medium", "high", "xhigh"]),
    ("gpt-5.6", &["none", "low", "medium", "high", "xhigh", "max"]),
    ("gpt-5", &["minimal", "low", "medium", "high"]),
    ("gpt-6", &["low", "medium", "high", "xhigh", "max"]),
];

pub(super) fn check(format: WireFormat, model: &str, body: &Value) -> Result<(), WireFault> {
    match format {
        WireFormat::Native => Ok(()),
        WireFormat::Chat => effort(model, &body["reasoning_effort"], "reasoning_effort", body),
        WireFormat::Responses => {
            effort(model, &body["reasoning"]["effort"], "reasoning.effort", body)
        }
        WireFormat::AltCli => thinking(model, either(body, "generationConfig")),
    }
}

fn effort(model: &str, asked: &Value, field: &str, body: &Value) -> Result<(), WireFault> {
    let Some((_, taken)) = EFFORTS.iter().find(|(name, _)| model.starts_with(name)) else {
        return Ok(());
    };
    let unsupported = |field: &str| {
        let message = format!("Unsupported parameter: '{field}' is not supported with this model.");
        Err(WireFault::bad(message).param(field).code("unsupported_parameter"))
    };
    if !asked.is_null() && taken.is_empty() {
        return unsupported(field);
    }
    if !asked.is_null() && !taken.contains(&text(asked)) {
        let message = format!(
            "Unsupported value: '{}' is not supported with the '{model}' model. Supported values \
             are: {}.",
            text(asked),
            taken.join(", ")
        );
        return Err(WireFault::bad(message).param(field).code("unsupported_value"));
    }
    let has_functions = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    if field == "reasoning_effort"
        && has_functions
        && model.starts_with("gpt-5.6")
        && text(asked) != "none"
    {
        let message = format!(
            "Function tools with reasoning_effort are not supported for {model} in \
             /v1/chat/completions. To use function tools, use /v1/responses or set \
             reasoning_effort to 'none'."
        );
        return Err(WireFault::bad(message).param(field));
    }
    let is_off = asked.is_null() && taken.contains(&"none") || text(asked) == "none";
    let refused: &[&str] = match (taken.is_empty(), is_off) {
        (true, _) => &[],
        (false, true) => &["stop", "presence_penalty"],
        (false, false) => &["stop", "presence_penalty", "temperature", "top_p"],
    };
    match refused.iter().find(|field| !body[**field].is_null()) {
        Some(field) => unsupported(field),
        None => Ok(()),
    }
}

fn thinking(model: &str, config: &Value) -> Result<(), WireFault> {
    let config = either(config, "thinkingConfig");
    let (budget, level) = (either(config, "thinkingBudget"), either(config, "thinkingLevel"));
    if !budget.is_null() && !level.is_null() {
        return Err(WireFault::bad("You can only set one of thinking budget and thinking level."));
    }
    let is_pro = model.contains("pro");
    let takes_levels = model.starts_with("gemini-3");
    if takes_levels && !budget.is_null() {
        return Err(WireFault::bad("Thinking budget is not supported for this model."));
    }
    if !takes_levels && !level.is_null() {
        return Err(WireFault::bad("Thinking level is not supported for this model."));
    }
    let tokens = budget.as_i64().unwrap_or(-1);
    if tokens == 0 && is_pro {
        let message = "Budget 0 is invalid. This model only works in thinking mode.";
        return Err(WireFault::bad(message));
    }
    let least = if model == "gemini-2.5-pro" { 128 } else { 0 };
    let most = if is_pro { 32_768 } else { 24_576 };
    if tokens != -1 && !(least..=most).contains(&tokens) {
        return Err(WireFault::bad(format!("The thinking budget ({tokens}) is invalid.")));
    }
    let missing: &[&str] = match model {
        "gemini-3-pro-preview" => &["MINIMAL", "MEDIUM"],
        "gemini-3.1-pro-preview" | "gemini-3.7-flash" => &["MINIMAL"],
        _ => &[],
    };
    match missing.contains(&text(level)) {
        true => {
            let message =
                format!("Thinking level {} is not supported for this model.", text(level));
            Err(WireFault::bad(message))
        }
        false => Ok(()),
    }
}
