//! What a model takes by `Converse`: a row of `conf/bedrock.json`.

use serde::Deserialize;
use serde_json::{Map, Number, Value};

use crate::formats::conversation::Effort;

/// Where a request may have cache points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::formats::native) enum CachePlace {
    /// After instructions.
    System,
    /// After the tools.
    Tools,
    /// In messages.
    Messages,
}

/// One row.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(in crate::formats::native) struct ConverseModel {
    /// Parts of names. The first row of which a part is in the model's name counts.
    names: Vec<String>,
    /// It takes the native format's own fields beside the common ones.
    pub(in crate::formats::native) is_claude: bool,
    cache_points: Vec<CachePlace>,
    /// A cache point may last an hour.
    pub(in crate::formats::native) takes_hour: bool,
    /// The choices beside `auto`: `any`, `tool`.
    tool_choices: Vec<String>,
    /// A tool's result may have a status.
    pub(in crate::formats::native) result_status: bool,
    /// The conversation may end with the assistant.
    pub(in crate::formats::native) takes_prefill: bool,
    /// The members that the schema of a tool may have at its top; empty = all.
    pub(in crate::formats::native) schema_members: Vec<String>,
    /// Its own field for `top_k`, with `"$"` in the place of the number.
    top_k: Option<Value>,
    /// Its own field for the effort, with `"$"` in the place of the word.
    effort: Option<Value>,
    /// The words that it may have, from the weakest on.
    efforts: Vec<String>,
}

impl ConverseModel {
    pub(in crate::formats::native) fn is_of(&self, model: &str) -> bool {
        self.names.iter().any(|name| model.contains(name.as_str()))
    }

    /// Whether the place may have cache points.
    pub(in crate::formats::native) fn caches(&self, place: CachePlace) -> bool {
        self.cache_points.contains(&place)
    }

    /// Whether a demand for tools of this kind is taken.
    pub(in crate::formats::native) fn takes_choice(&self, kind: &str) -> bool {
        self.tool_choices.iter().any(|known| known == kind)
    }

    /// The members that say `top_k`; `None` if it has none for it.
    pub(in crate::formats::native) fn top_k(&self, number: &Number) -> Option<Map<String, Value>> {
        filled(self.top_k.as_ref()?, &Value::Number(number.clone()))
    }

    /// The members that say the effort, or the nearest one; `None` if it has none for it.
    pub(in crate::formats::native) fn effort(&self, effort: Effort) -> Option<Map<String, Value>> {
        let efforts = || self.efforts.iter().filter(|word| Effort::parse(word).is_some());
        let fits = |word: &&String| Effort::parse(word).is_some_and(|known| known <= effort);
        let word = efforts().rfind(fits).or_else(|| efforts().next())?;
        filled(self.effort.as_ref()?, &Value::from(word.as_str()))
    }
}

fn filled(template: &Value, value: &Value) -> Option<Map<String, Value>> {
    let mut members = template.as_object()?.clone();
    members.values_mut().for_each(|member| fill(member, value));
    Some(members)
}

fn fill(template: &mut Value, value: &Value) {
    match template {
        Value::Object(members) => members.values_mut().for_each(|member| fill(member, value)),
        Value::String(text) if text == "$" => *template = value.clone(),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::bedrock::converse_model;
    use super::*;

    #[test]
    fn fields_of_a_models_own_are_those_of_its_row() {
        let top_k = |model| converse_model(model).top_k(&Number::from(7)).map(Value::Object);
        let effort = |model, effort| converse_model(model).effort(effort).map(Value::Object);
        let nova = "us.amazon.nova-2-lite-v1:0";
        assert_eq!(top_k(nova), Some(json!({"inferenceConfig": {"topK": 7}})));
        assert_eq!(top_k("cohere.command-r-plus-v1:0"), Some(json!({"k": 7})));
        assert_eq!(top_k("meta.llama3-8b-instruct-v1:0"), None);
        let of_nova = |word| {
            Some(json!({"reasoningConfig": {"type": "enabled", "maxReasoningEffort": word}}))
        };
        for (asked, word) in
            [(Effort::Minimal, "low"), (Effort::Medium, "medium"), (Effort::Max, "medium")]
        {
            assert_eq!(effort(nova, asked), of_nova(word), "{asked:?}");
        }
        assert_eq!(effort("amazon.nova-pro-v1:0", Effort::High), None);
        let gpt = effort("openai.gpt-oss-120b-1:0", Effort::Max);
        assert_eq!(gpt, Some(json!({"reasoning_effort": "high"})));
    }
}
