//! The fields of a request beside its content: the common ones (`inferenceConfig`), and those of
//! the model's own (`additionalModelRequestFields`).

use serde_json::{Map, Number, Value};

use super::super::generation::ClaudeGeneration;
use super::super::{request_write, thinking};
use super::ConverseOptions;
use super::model::ConverseModel;
use crate::formats::conversation::json::{self, Object};
use crate::formats::conversation::{Effort, Request, Rule, Rules, Target};

/// What a request says.
#[derive(Default)]
pub(super) struct Fields {
    max_tokens: Option<u64>,
    temperature: Option<Number>,
    top_p: Option<Number>,
    stop: Vec<String>,
    /// For `outputConfig`, of Claude.
    pub effort: Option<&'static str>,
    own: Map<String, Value>,
}

/// Decides, by the rules.
pub(super) fn decide(
    request: &Request<'_>,
    target: &Target<'_>,
    options: &ConverseOptions<'_>,
    row: &ConverseModel,
    rules: &mut Rules,
) -> Fields {
    let mut fields = match row.is_claude {
        true => of_claude(request, target, options, rules),
        false => of_another(request, row, rules),
    };
    fields.max_tokens = request.max_tokens;
    let stops = request.stop.iter().filter(|stop| !stop.trim().is_empty());
    fields.stop = stops.map(ToString::to_string).collect();
    rules.note_if(fields.stop.len() != request.stop.len(), Rule::BlankStop);
    fields
}

/// As the native format has them.
fn of_claude(
    request: &Request<'_>,
    target: &Target<'_>,
    options: &ConverseOptions<'_>,
    rules: &mut Rules,
) -> Fields {
    let max_tokens = request.max_tokens.unwrap_or(target.default_max_tokens);
    let generation = ClaudeGeneration::of(target.model);
    let thinking = thinking::of(request, max_tokens, generation, rules);
    let native = json::document(|o| {
        request_write::write_thinking(o, &thinking, generation);
        request_write::write_sampling_of(o, request, (&thinking, generation), target, rules);
    });
    let mut own: Map<String, Value> = serde_json::from_slice(&native).unwrap_or_default();
    let mut number = |name| match own.shift_remove(name) {
        Some(Value::Number(number)) => Some(number),
        _ => None,
    };
    let (temperature, top_p) = (number("temperature"), number("top_p"));
    if !options.betas.is_empty() {
        own.insert("anthropic_beta".to_owned(), options.betas.into());
    }
    let effort = thinking.effort().map(Effort::as_str);
    Fields { temperature, top_p, effort, own, ..Fields::default() }
}

fn of_another(request: &Request<'_>, row: &ConverseModel, rules: &mut Rules) -> Fields {
    let sampling = &request.sampling;
    let is_high = |number: &&Number| number.as_f64().is_some_and(|number| number > 1.0);
    let high = sampling.temperature.as_ref().filter(is_high);
    rules.note_if(high.is_some(), Rule::HighTemperature);
    let top_k = sampling.top_k.as_ref();
    let top_k = top_k.and_then(|top_k| {
        let members = row.top_k(top_k);
        rules.note_if(members.is_none(), Rule::TopK);
        members
    });
    let effort = request.reasoning.effort_word().filter(|effort| *effort != Effort::None);
    let effort = effort.and_then(|effort| {
        rules.note_if(row.effort(effort).is_none(), Rule::Effort);
        row.effort(effort)
    });
    Fields {
        temperature: high.map(|_| Number::from(1)).or_else(|| sampling.temperature.clone()),
        top_p: sampling.top_p.clone(),
        own: top_k.into_iter().chain(effort).flatten().collect(),
        ..Fields::default()
    }
}

impl Fields {
    /// Writes `inferenceConfig`.
    pub(super) fn write_common(&self, o: &mut Object<'_>) {
        let has_none = self.max_tokens.is_none()
            && self.temperature.is_none()
            && self.top_p.is_none()
            && self.stop.is_empty();
        if has_none {
            return;
        }
        o.object("inferenceConfig", |o| {
            if let Some(limit) = self.max_tokens {
                o.uint("maxTokens", limit);
            }
            o.number("temperature", self.temperature.as_ref());
            o.number("topP", self.top_p.as_ref());
            if !self.stop.is_empty() {
                o.array("stopSequences", |a| self.stop.iter().for_each(|stop| a.str(stop)));
            }
        });
    }

    /// Writes `additionalModelRequestFields`.
    pub(super) fn write_own(&self, o: &mut Object<'_>) {
        if !self.own.is_empty() {
            let own = serde_json::to_vec(&self.own).unwrap_or_default();
            o.key("additionalModelRequestFields").extend_from_slice(&own);
        }
    }
}
