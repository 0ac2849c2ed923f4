//! Writes the neutral conversation as a responses request. Nothing is stored at the vendor.

use super::item_write;
use crate::domain::format::WireFormat;
use crate::formats::conversation::json::{self, Object};
use crate::formats::conversation::{
    Effort, GptGeneration, OutputFormat, Request, Rule, Rules, Target, Tool, ToolChoice, ToolKind,
    Unsupported, schema,
};
use crate::formats::names::{user_id, wire_name};

/// The service's minimum limit.
const MIN_OUTPUT: u64 = 16;

/// Writes the body of `POST /v1/responses`.
///
/// # Errors
/// Audio and video.
pub fn write(
    request: &Request<'_>,
    target: &Target<'_>,
    rules: &mut Rules,
) -> Result<Vec<u8>, Unsupported> {
    item_write::refuse(request)?;
    let generation = GptGeneration::of(target.model);
    let asked = request.reasoning.effort_word();
    let (mut effort, mut is_other) = GptGeneration::settle(generation, asked, Effort::Max);
    let searches = request.tools.iter().any(|tool| matches!(tool.kind, ToolKind::WebSearch(_)));
    if generation.is_some() && searches && effort == Some(Effort::Minimal) {
        // The service refuses its search beside the least effort.
        (effort, is_other) = (Some(Effort::Low), true);
    }
    rules.note_if(is_other, Rule::Effort);
    let reasons = effort.is_some_and(|effort| effort != Effort::None);
    let samples = !generation.map_or(reasons, |generation| generation.refuses_sampling(effort));
    note_losses(request, samples, rules);
    Ok(json::document_of(target.size, |o| {
        o.str("model", target.model);
        let system = request.instructions();
        if !system.is_empty() {
            json::joined(o.key("instructions"), system, "\n\n");
        }
        item_write::write(o, request, rules);
        write_tools(o, request, rules);
        if let Some(limit) = request.max_tokens {
            o.uint("max_output_tokens", limit.max(MIN_OUTPUT));
        }
        if samples {
            o.number("temperature", request.sampling.temperature.as_ref());
            o.number("top_p", request.sampling.top_p.as_ref());
        }
        if let Some(effort) = effort {
            o.object("reasoning", |o| {
                o.str("effort", effort.as_str());
                if reasons {
                    o.str("summary", "auto");
                }
            });
        }
        if reasons {
            o.array("include", |a| a.str("reasoning.encrypted_content"));
        }
        write_text(o, request);
        o.opt_str("prompt_cache_key", request.cache_key.as_deref().or(target.cache_key));
        if let Some(user) = &request.user {
            o.str("user", &user_id(user));
        }
        o.bool("store", false);
        if request.stream {
            o.bool("stream", true);
        }
    }))
}

fn note_losses(request: &Request<'_>, samples: bool, rules: &mut Rules) {
    let sampling = &request.sampling;
    rules.note_if(sampling.top_k.is_some(), Rule::TopK);
    rules.note_if(
        sampling.frequency_penalty.is_some() || sampling.presence_penalty.is_some(),
        Rule::Penalties,
    );
    rules.note_if(sampling.seed.is_some(), Rule::Seed);
    rules.note_if(
        !samples && (sampling.temperature.is_some() || sampling.top_p.is_some()),
        Rule::ReasoningSampling,
    );
    rules.note_if(!request.stop.is_empty(), Rule::Stop);
    rules.note_if(request.max_tokens.is_some_and(|limit| limit < MIN_OUTPUT), Rule::MinOutput);
    rules.note_if(request.user.as_ref().is_some_and(|user| user_id(user) != *user), Rule::LongUser);
}

fn write_tools(o: &mut Object<'_>, request: &Request<'_>, rules: &mut Rules) {
    if request.tools.is_empty() {
        return;
    }
    o.array("tools", |a| {
        for tool in &request.tools {
            a.object(|o| write_tool(o, tool, rules));
        }
    });
    match &request.tool_choice {
        None => {}
        Some(ToolChoice::Auto) => o.str("tool_choice", "auto"),
        // The vendor's own tools cannot all be named; with one tool the effect is the same.
        Some(ToolChoice::Required | ToolChoice::WebSearch) => o.str("tool_choice", "required"),
        Some(ToolChoice::None) => o.str("tool_choice", "none"),
        Some(ToolChoice::Tool(name)) => o.object("tool_choice", |o| {
            o.word("type", "function");
            o.str("name", &wire_name(name, WireFormat::Responses));
        }),
        Some(ToolChoice::Allowed { names, required }) => o.object("tool_choice", |o| {
            o.word("type", "allowed_tools");
            o.str("mode", if *required { "required" } else { "auto" });
            o.array("tools", |a| {
                for name in names {
                    a.typed("function", |o| o.str("name", &wire_name(name, WireFormat::Responses)));
                }
            });
        }),
    }
    if let Some(parallel) = request.parallel_tools {
        o.bool("parallel_tool_calls", parallel);
    }
}

fn write_tool(o: &mut Object<'_>, tool: &Tool<'_>, rules: &mut Rules) {
    match &tool.kind {
        ToolKind::WebSearch(search) => {
            rules.note(Rule::WebSearch);
            o.word("type", "web_search");
            rules.note_if(search.has_more || search.max_uses.is_some(), Rule::SearchFields);
            let lists = [
                ("allowed_domains", &search.allowed_domains),
                ("blocked_domains", &search.blocked_domains),
            ];
            if lists.iter().any(|(_, domains)| !domains.is_empty()) {
                o.object("filters", |o| {
                    for (key, domains) in lists.iter().filter(|(_, domains)| !domains.is_empty()) {
                        o.array(key, |a| domains.iter().for_each(|domain| a.str(domain)));
                    }
                });
            }
            if let Some(location) = &search.user_location {
                o.raw("user_location", location);
            }
        }
        ToolKind::Function { schema, strict } => {
            o.word("type", "function");
            o.str("name", &wire_name(&tool.name, WireFormat::Responses));
            o.opt_text("description", tool.description.as_ref());
            o.raw("parameters", schema.as_deref().unwrap_or(schema::NO_ARGUMENTS));
            rules.note_if(strict.is_none(), Rule::StrictTools);
            o.bool("strict", strict.unwrap_or(false));
        }
        ToolKind::FreeText { format } => {
            rules.note(Rule::FreeTextTools);
            o.word("type", "function");
            o.str("name", &wire_name(&tool.name, WireFormat::Responses));
            o.str(
                "description",
                &schema::free_text_description(tool.description.as_deref(), *format),
            );
            o.raw("parameters", schema::FREE_TEXT);
            o.bool("strict", false);
        }
    }
}

fn write_text(o: &mut Object<'_>, request: &Request<'_>) {
    if request.output == OutputFormat::Text && request.verbosity.is_none() {
        return;
    }
    o.object("text", |o| {
        match &request.output {
            OutputFormat::Text => {}
            OutputFormat::Json => o.object("format", |o| o.word("type", "json_object")),
            OutputFormat::Schema { name, description, schema: text, strict } => {
                o.object("format", |o| {
                    o.word("type", "json_schema");
                    o.str("name", name.as_deref().unwrap_or("reply"));
                    o.opt_str("description", description.as_deref());
                    o.bool("strict", strict.unwrap_or_else(|| schema::is_strict(text)));
                    o.raw("schema", text);
                })
            }
        }
        o.opt_str("verbosity", request.verbosity.as_deref());
    });
}
