//! Channels of new-api and one-api as providers. The numbers of their types differ from 26 on.

use std::collections::{HashMap, HashSet};

use rust_decimal::Decimal;
use serde_json::Value;

use super::model::{Form, Mapped, MappedLimits, MappedProvider, UniqueNames, csv};
use crate::store::peer::PeerRow;

/// How a type of channel is spoken to, and its usual address.
fn kind(number: i64, is_new_api: bool) -> Option<(&'static str, &'static str)> {
    let chat = |address| Some(("chat-compatible", address));
    match (number, is_new_api) {
        (1, _) => chat("https://api.openai.com"),
        (8, false) => chat(""),
        (14, _) => Some(("native", "https://api.anthropic.com")),
        (20, _) => chat("https://openrouter.ai/api"),
        (24, _) => Some(("alt-cli", "https://generativelanguage.googleapis.com")),
        (25, _) => chat("https://api.moonshot.cn"),
        (31, _) => chat("https://api.lingyiwanwu.com"),
        (40, true) => chat("https://api.siliconflow.cn"),
        (42, true) | (28, false) => chat("https://api.mistral.ai"),
        (43, true) | (36, false) => chat("https://api.deepseek.com"),
        (48, true) => chat("https://api.x.ai"),
        (29, false) => chat("https://api.groq.com/openai"),
        (39, false) => chat("https://api.together.xyz"),
        _ => None,
    }
}

/// Adds a provider for each credential of each channel.
pub(super) fn map(
    rows: &[PeerRow],
    options: &HashMap<&str, &str>,
    is_new_api: bool,
    mapped: &mut Mapped,
) {
    let ratios: HashMap<String, Decimal> = options
        .get("GroupRatio")
        .and_then(|text| serde_json::from_str::<HashMap<String, Value>>(text).ok())
        .unwrap_or_default()
        .into_iter()
        .filter_map(|(group, ratio)| Some((group, ratio.to_string().parse().ok()?)))
        .collect();
    let highest = rows.iter().filter_map(|row| row.int("priority")).max().unwrap_or(0);
    let mut names = UniqueNames::default();
    for row in rows {
        let wanted = row.text("name").unwrap_or_default();
        let id = row.text("id").unwrap_or_default();
        let number = row.int("type").unwrap_or(0);
        let Some((kind, usual)) = kind(number, is_new_api) else {
            let why = "tollgate does not speak to this type of channel, or knows no address for it";
            mapped.notes.add(why, format!("channel {wanted:?} (type {number})"));
            continue;
        };
        let address = row.text("base_url").unwrap_or(usual);
        let keys = credentials(row.text("key").unwrap_or_default());
        if address.is_empty() || keys.is_empty() {
            mapped
                .notes
                .add("the channel has no address or no credential", format!("channel {wanted:?}"));
            continue;
        }
        let base = provider(row, kind, address, highest, mapped);
        leftovers(row, wanted, mapped);
        let multiplier = multiplier(row, &ratios, mapped);
        for (nth, key) in keys.iter().enumerate() {
            let name = match keys.len() {
                1 => names.unique(wanted, id),
                _ => names.unique(&format!("{wanted} {}", nth + 1), id),
            };
            let mut form = base.clone();
            form.insert("key".to_owned(), key.as_str().into());
            form.insert("cost_multiplier".to_owned(), multiplier.clone());
            mapped.providers.push(MappedProvider { name, form, limits: MappedLimits::default() });
        }
    }
}

/// One credential, one a line, or a JSON list.
fn credentials(text: &str) -> Vec<String> {
    let listed: Vec<String> = match serde_json::from_str::<Vec<Value>>(text) {
        Ok(list) => list.iter().filter_map(|key| key.as_str().map(str::to_owned)).collect(),
        Err(_) => text.lines().map(str::to_owned).collect(),
    };
    let mut seen = HashSet::new();
    let keys = listed.into_iter().map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
    keys.filter(|key| seen.insert(key.clone())).collect()
}

fn provider(row: &PeerRow, kind: &str, address: &str, highest: i64, mapped: &mut Mapped) -> Form {
    let mut form = Form::new();
    let mut put = |field: &str, value: Value| drop(form.insert(field.to_owned(), value));
    put("url", address.trim_end_matches('/').into());
    put("provider_type", kind.into());
    let proxied = ["setting", "settings"].iter().filter_map(|column| row.json(column));
    let proxied = proxied
        .filter_map(|setting| setting["proxy"].as_str().map(str::len))
        .any(|length| length > 0);
    put("is_enabled", (row.int("status").unwrap_or(1) == 1 && !proxied).into());
    put("weight", row.int("weight").unwrap_or(0).clamp(1, 100).into());
    // There the highest is first, here the lowest.
    put(
        "priority",
        highest.saturating_sub(row.int("priority").unwrap_or(0)).clamp(0, 1_000_000).into(),
    );
    put("group_tag", row.text("group").unwrap_or_default().into());
    put("allowed_models", csv(row.text("models")).into());
    let redirects = match row.json("model_mapping") {
        Some(Value::Object(map)) => map.into_iter().filter(|(_, to)| to.is_string()).collect(),
        _ => Form::new(),
    };
    put("model_redirects", redirects.into());
    let name = format!("channel {:?}", row.text("name").unwrap_or_default());
    if row.int("status") == Some(3) {
        mapped
            .notes
            .add("the peer had disabled the channel by itself: it is disabled here", name.clone());
    }
    if proxied {
        let why = "the channel has a proxy: the provider is disabled until you set its proxy_url";
        mapped.notes.add(why, name);
    }
    form
}

/// The ratio of the channel's groups, if they have one and the same.
fn multiplier(row: &PeerRow, ratios: &HashMap<String, Decimal>, mapped: &mut Mapped) -> Value {
    let groups = csv(row.text("group"));
    let mut of_groups: Vec<Decimal> =
        groups.iter().map(|group| ratios.get(group).copied().unwrap_or(Decimal::ONE)).collect();
    of_groups.sort_unstable();
    of_groups.dedup();
    match of_groups.as_slice() {
        [] => 1.into(),
        [ratio] => ratio
            .clamp(&Decimal::ZERO, &Decimal::ONE_THOUSAND)
            .round_dp(4)
            .normalize()
            .to_string()
            .into(),
        _ => {
            let why =
                "its groups have different ratios, and a provider here has one multiplier: it is 1";
            mapped.notes.add(why, format!("channel {:?}", row.text("name").unwrap_or_default()));
            1.into()
        }
    }
}

fn leftovers(row: &PeerRow, name: &str, mapped: &mut Mapped) {
    for (column, what) in [
        ("header_override", "headers"),
        ("param_override", "parameters"),
        ("system_prompt", "a system prompt"),
        ("openai_organization", "an organization"),
        ("open_ai_organization", "an organization"),
        ("status_code_mapping", "mapped status codes"),
    ] {
        if row.text(column).is_some_and(|text| !matches!(text, "{}" | "null" | "[]")) {
            let why = "tollgate's providers do not override requests or statuses";
            mapped.notes.add(why, format!("channel {name:?}: {what}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_one_or_several() {
        assert_eq!(credentials(" sk-1 "), ["sk-1"]);
        assert_eq!(credentials("sk-1\nsk-2\n\nsk-1"), ["sk-1", "sk-2"]);
        assert_eq!(credentials(r#"["sk-1", "sk-2"]"#), ["sk-1", "sk-2"]);
        assert!(credentials(" \n").is_empty());
    }
}
