//! Writes the neutral conversation as a native request.
//!
//! The service is strict: roles alternate and begin with the user, results come first and answer
//! the calls before them, no text is blank, thinking excludes some other fields. Violations are
//! fixed here, by the rules.

use super::generation::{ClaudeGeneration, Mode};
use super::message_write;
use super::thinking::{self, ThinkingMode};
use crate::domain::format::WireFormat;
use crate::formats::conversation::json::{self, Object};
use crate::formats::conversation::{
    OutputFormat, Request, Rule, Rules, Str, Target, Tool, ToolChoice, ToolKind, Unsupported,
    schema,
};
use crate::formats::names::wire_name;

/// Requests a JSON object, if there is no schema.
pub(super) const JSON_LINE: &str =
    "Answer with exactly one JSON object and nothing else: no introduction, no code fence.";

/// Writes the body of `POST /v1/messages`. Turns alternate already.
pub fn write(
    request: &Request<'_>,
    target: &Target<'_>,
    rules: &mut Rules,
) -> Result<Vec<u8>, Unsupported> {
    let max_tokens = request.max_tokens.unwrap_or(target.default_max_tokens);
    message_write::refuse_sound(request)?;
    let generation = ClaudeGeneration::of(target.model);
    let thinking = thinking::of(request, max_tokens, generation, rules);
    note_losses(request, rules);
    Ok(json::document_of(target.size, |o| {
        o.str("model", target.model);
        o.uint("max_tokens", max_tokens);
        write_system(o, request, rules);
        message_write::write(o, request, generation.takes_prefill, rules);
        write_tools(o, request, (target, generation), rules);
        write_thinking(o, &thinking, generation);
        write_sampling_of(o, request, (&thinking, generation), target, rules);
        write_stops(o, request, rules);
        write_output(o, request, &thinking, rules);
        if let Some(user) = &request.user {
            o.object("metadata", |o| o.str("user_id", user));
        }
        if let Some(ttl) = target.cache_ttl {
            o.object("cache_control", |o| {
                o.word("type", "ephemeral");
                o.str("ttl", ttl);
            });
        }
        if request.stream {
            o.bool("stream", true);
        }
    }))
}

pub(super) fn write_thinking(
    o: &mut Object<'_>,
    thinking: &ThinkingMode,
    generation: ClaudeGeneration,
) {
    let is_unset = matches!(thinking, ThinkingMode::Unset | ThinkingMode::Effort(_));
    let is_shown = match thinking {
        ThinkingMode::Adaptive(_) => true,
        ThinkingMode::Unset => generation.mode == Mode::Always,
        _ => false,
    };
    let binds = generation.binds_thinking && !matches!(thinking, ThinkingMode::Off);
    if is_unset && !is_shown && !binds {
        return;
    }
    o.object("thinking", |o| {
        match thinking {
            ThinkingMode::Off => o.word("type", "disabled"),
            ThinkingMode::On(budget) => {
                o.word("type", "enabled");
                o.uint("budget_tokens", *budget);
            }
            // Which these models do unasked.
            ThinkingMode::Adaptive(_) | ThinkingMode::Unset | ThinkingMode::Effort(_) => {
                o.word("type", "adaptive");
            }
        }
        if is_shown {
            // Otherwise the thinking's text is empty, and so is that between tool calls.
            o.word("display", "summarized");
        }
        if binds {
            // Thinking that was made after other messages is left out by the service, not refused.
            o.object("block_binding", |o| o.word("prefix_mismatch_behavior", "drop_block"));
        }
    });
}

/// Notes the fields that the format has none for.
pub(super) fn note_losses(request: &Request<'_>, rules: &mut Rules) {
    let sampling = &request.sampling;
    rules.note_if(
        sampling.frequency_penalty.is_some() || sampling.presence_penalty.is_some(),
        Rule::Penalties,
    );
    rules.note_if(sampling.seed.is_some(), Rule::Seed);
    rules.note_if(request.verbosity.is_some(), Rule::Verbosity);
    rules.note_if(request.cache_key.is_some(), Rule::CacheMarks);
}

fn write_system(o: &mut Object<'_>, request: &Request<'_>, rules: &mut Rules) {
    let json_line = Str::from(JSON_LINE);
    let mut texts: Vec<&Str<'_>> = request.system.iter().filter(|text| !text.is_blank()).collect();
    if request.output == OutputFormat::Json {
        rules.note(Rule::JsonMode);
        texts.push(&json_line);
    }
    match texts.as_slice() {
        [] => {}
        [text] => o.text("system", text),
        texts => o.array("system", |a| {
            for text in texts {
                a.typed("text", |o| o.text("text", text));
            }
        }),
    }
}

fn write_tools(
    o: &mut Object<'_>,
    request: &Request<'_>,
    (target, generation): (&Target<'_>, ClaudeGeneration),
    rules: &mut Rules,
) {
    let allowed = request.allowed_tools();
    rules.note_if(allowed.is_some(), Rule::AllowedTools);
    let allowed = allowed.filter(|_| !generation.binds_thinking);
    let is_sent =
        |tool: &&Tool<'_>| allowed.as_ref().is_none_or(|names| names.contains(&tool.name));
    let tools: Vec<&Tool<'_>> = request.tools.iter().filter(is_sent).collect();
    if tools.is_empty() {
        return;
    }
    o.array("tools", |a| {
        for tool in &tools {
            a.object(|o| write_tool(o, tool, rules));
        }
    });
    let single = request.parallel_tools == Some(false);
    let choice = match &request.tool_choice {
        None => single.then_some(("auto", None)),
        Some(ToolChoice::Auto) => Some(("auto", None)),
        Some(ToolChoice::Required) => Some(("any", None)),
        Some(ToolChoice::Allowed { required, .. }) => {
            Some((if *required { "any" } else { "auto" }, None))
        }
        Some(ToolChoice::None) if target.unset_no_choice => {
            rules.note(Rule::NoToolChoice);
            None
        }
        Some(ToolChoice::None) => Some(("none", None)),
        Some(ToolChoice::Tool(name)) => Some(("tool", Some(wire_name(name, WireFormat::Native)))),
        Some(ToolChoice::WebSearch) => Some(("tool", Some("web_search".into()))),
    };
    let choice = match choice {
        Some(("any" | "tool", _)) if !generation.takes_forced_tools => {
            rules.note(Rule::ForcedTool);
            Some(("auto", None))
        }
        choice => choice,
    };
    let Some((kind, name)) = choice else { return };
    o.object("tool_choice", |o| {
        o.str("type", kind);
        o.opt_str("name", name.as_deref());
        if single && kind != "none" {
            o.bool("disable_parallel_tool_use", true);
        }
    });
}

pub(super) fn write_tool(o: &mut Object<'_>, tool: &Tool<'_>, rules: &mut Rules) {
    match &tool.kind {
        ToolKind::WebSearch(search) => {
            rules.note(Rule::WebSearch);
            o.str("type", "web_search_20250305");
            o.str("name", "web_search");
            let (allowed, blocked) = (&search.allowed_domains, &search.blocked_domains);
            // The service takes one list.
            let is_one = allowed.is_empty() || blocked.is_empty();
            rules.note_if(search.has_more || !is_one, Rule::SearchFields);
            let domains = if allowed.is_empty() {
                ("blocked_domains", blocked)
            } else {
                ("allowed_domains", allowed)
            };
            if !domains.1.is_empty() {
                o.array(domains.0, |a| domains.1.iter().for_each(|domain| a.str(domain)));
            }
            if let Some(uses) = search.max_uses {
                o.uint("max_uses", uses);
            }
            if let Some(location) = &search.user_location {
                o.raw("user_location", location);
            }
        }
        ToolKind::Function { schema, strict } => {
            o.str("name", &wire_name(&tool.name, WireFormat::Native));
            o.opt_text("description", tool.description.as_ref());
            let given = schema.as_deref().unwrap_or(schema::NO_ARGUMENTS);
            let is_strict = *strict == Some(true);
            let Some((taken, changed)) =
                is_strict.then(|| schema::for_native_tool(given)).flatten()
            else {
                rules.note_if(is_strict, Rule::StrictTools);
                o.raw("input_schema", given);
                return;
            };
            rules.note_if(changed, Rule::SchemaKeywords);
            o.raw("input_schema", &taken);
            o.bool("strict", true);
        }
        ToolKind::FreeText { format } => {
            rules.note(Rule::FreeTextTools);
            o.str("name", &wire_name(&tool.name, WireFormat::Native));
            o.str(
                "description",
                &schema::free_text_description(tool.description.as_deref(), *format),
            );
            o.raw("input_schema", schema::FREE_TEXT);
        }
    }
}

/// Writes the sampling fields that the model takes beside its thinking.
pub(super) fn write_sampling_of(
    o: &mut Object<'_>,
    request: &Request<'_>,
    (thinking, generation): (&ThinkingMode, ClaudeGeneration),
    target: &Target<'_>,
    rules: &mut Rules,
) {
    if generation.is_adaptive() {
        leave_sampling_out(request, rules);
    } else {
        let thinks = matches!(thinking, ThinkingMode::On(_));
        write_sampling(o, request, (thinks, target.keep_top_p), rules);
    }
}

fn leave_sampling_out(request: &Request<'_>, rules: &mut Rules) {
    let sampling = &request.sampling;
    rules.note_if(
        sampling.temperature.is_some() || sampling.top_p.is_some() || sampling.top_k.is_some(),
        Rule::AdaptiveSampling,
    );
}

fn write_sampling(
    o: &mut Object<'_>,
    request: &Request<'_>,
    (thinking, keep_top_p): (bool, bool),
    rules: &mut Rules,
) {
    let sampling = &request.sampling;
    if thinking {
        let is_one = |number: &serde_json::Number| number.as_f64() == Some(1.0);
        let high =
            sampling.top_p.as_ref().is_some_and(|top_p| top_p.as_f64().is_some_and(|p| p >= 0.95));
        let lost = sampling.temperature.as_ref().is_some_and(|t| !is_one(t));
        rules.note_if(
            lost || sampling.top_k.is_some() || (sampling.top_p.is_some() && !high),
            Rule::ThinkingSampling,
        );
        o.number("top_p", sampling.top_p.as_ref().filter(|_| high));
    } else {
        let one = serde_json::Number::from(1);
        let high =
            sampling.temperature.as_ref().is_some_and(|t| t.as_f64().is_some_and(|t| t > 1.0));
        rules.note_if(high, Rule::HighTemperature);
        o.number("temperature", if high { Some(&one) } else { sampling.temperature.as_ref() });
        let both = sampling.temperature.is_some() && sampling.top_p.is_some() && !keep_top_p;
        rules.note_if(both, Rule::TopPBesideTemperature);
        o.number("top_p", sampling.top_p.as_ref().filter(|_| !both));
        o.number("top_k", sampling.top_k.as_ref());
    }
}

fn write_stops(o: &mut Object<'_>, request: &Request<'_>, rules: &mut Rules) {
    let stops: Vec<&str> = request
        .stop
        .iter()
        .map(AsRef::as_ref)
        .filter(|stop: &&str| !stop.trim().is_empty())
        .collect();
    rules.note_if(stops.len() != request.stop.len(), Rule::BlankStop);
    if !stops.is_empty() {
        o.array("stop_sequences", |a| stops.iter().for_each(|stop| a.str(stop)));
    }
}

fn write_output(
    o: &mut Object<'_>,
    request: &Request<'_>,
    thinking: &ThinkingMode,
    rules: &mut Rules,
) {
    let effort = thinking.effort().map(|effort| effort.as_str());
    let format = match &request.output {
        OutputFormat::Schema { schema, .. } => Some(schema::for_native_output(schema)),
        _ => None,
    };
    if effort.is_none() && format.is_none() {
        return;
    }
    o.object("output_config", |o| {
        o.opt_str("effort", effort);
        if let Some((text, changed)) = format {
            rules.note_if(changed, Rule::SchemaKeywords);
            o.object("format", |o| {
                o.word("type", "json_schema");
                o.raw("schema", &text);
            });
        }
    });
}
