//! Writes the neutral conversation as a chat-compatible request.
//!
//! Many services use this format, and some refuse fields that the vendor added later. Such fields
//! are sent only for models whose names show that they are that vendor's newer ones.

use super::message_write;
use crate::domain::format::WireFormat;
use crate::formats::conversation::json::{self, Object};
use crate::formats::conversation::{
    Effort, GptGeneration, OutputFormat, Request, Rule, Rules, Target, Tool, ToolChoice, ToolKind,
    Unsupported, schema,
};
use crate::formats::names::{user_id, wire_name};

/// Maximum stop sequences of the format.
const MAX_STOPS: usize = 4;

/// Writes the body of `POST /v1/chat/completions`.
///
/// # Errors
/// Documents by address, video, too many stop sequences.
pub fn write(
    request: &Request<'_>,
    target: &Target<'_>,
    rules: &mut Rules,
) -> Result<Vec<u8>, Unsupported> {
    message_write::refuse(request)?;
    if request.stop.len() > MAX_STOPS {
        return Err(Rule::StopCount.refuse("stop_sequences"));
    }
    let generation = GptGeneration::of(target.model);
    let modern = generation.is_some_and(|generation| generation.is_modern);
    let asked = request.reasoning.effort_word();
    // The strongest is taken in the responses format only.
    let (mut effort, mut is_other) = GptGeneration::settle(generation, asked, Effort::XHigh);
    let has_functions =
        request.tools.iter().any(|tool| !matches!(tool.kind, ToolKind::WebSearch(_)));
    if let Some(model) = generation.filter(|model| has_functions && model.separates_tools)
        && model.refuses_sampling(effort)
    {
        (effort, is_other) = (Some(Effort::None), true);
    }
    rules.note_if(is_other, Rule::Effort);
    note_losses(request, modern, rules);
    Ok(json::document_of(target.size, |o| {
        o.str("model", target.model);
        message_write::write(o, request, rules);
        write_tools(o, request, rules);
        if let Some(limit) = request.max_tokens {
            o.uint(if modern { "max_completion_tokens" } else { "max_tokens" }, limit);
        }
        write_sampling(o, request, generation, effort, rules);
        if let Some(effort) = effort {
            o.str("reasoning_effort", effort.as_str());
        }
        write_format(o, request);
        if modern {
            o.opt_str("verbosity", request.verbosity.as_deref());
            o.opt_str("prompt_cache_key", request.cache_key.as_deref());
        }
        if let Some(user) = &request.user {
            o.str("user", &user_id(user));
        }
        if request.stream {
            o.bool("stream", true);
            o.object("stream_options", |o| o.bool("include_usage", true));
        }
    }))
}

fn note_losses(request: &Request<'_>, modern: bool, rules: &mut Rules) {
    rules.note_if(request.sampling.top_k.is_some(), Rule::TopK);
    rules.note_if(request.verbosity.is_some() && !modern, Rule::Verbosity);
    rules.note_if(request.cache_key.is_some() && !modern, Rule::CacheMarks);
    rules.note_if(request.user.as_ref().is_some_and(|user| user_id(user) != *user), Rule::LongUser);
}

fn write_tools(o: &mut Object<'_>, request: &Request<'_>, rules: &mut Rules) {
    let allowed = request.allowed_tools();
    rules.note_if(allowed.is_some(), Rule::AllowedTools);
    let is_sent = |tool: &&Tool<'_>| {
        let wanted = allowed.as_ref().is_none_or(|names| names.contains(&tool.name));
        wanted && !matches!(tool.kind, ToolKind::WebSearch(_))
    };
    let tools: Vec<&Tool<'_>> = request.tools.iter().filter(is_sent).collect();
    rules.note_if(
        request.tools.iter().any(|tool| matches!(tool.kind, ToolKind::WebSearch(_))),
        Rule::WebSearchChat,
    );
    if tools.is_empty() {
        return;
    }
    o.array("tools", |a| {
        for tool in &tools {
            a.typed("function", |o| o.object("function", |o| write_tool(o, tool, rules)));
        }
    });
    match &request.tool_choice {
        None | Some(ToolChoice::WebSearch) => {}
        Some(ToolChoice::Auto | ToolChoice::Allowed { required: false, .. }) => {
            o.str("tool_choice", "auto")
        }
        Some(ToolChoice::Required | ToolChoice::Allowed { required: true, .. }) => {
            o.str("tool_choice", "required")
        }
        Some(ToolChoice::None) => o.str("tool_choice", "none"),
        Some(ToolChoice::Tool(name)) => o.object("tool_choice", |o| {
            o.word("type", "function");
            o.object("function", |o| o.str("name", &wire_name(name, WireFormat::Chat)));
        }),
    }
    if let Some(parallel) = request.parallel_tools {
        o.bool("parallel_tool_calls", parallel);
    }
}

fn write_tool(o: &mut Object<'_>, tool: &Tool<'_>, rules: &mut Rules) {
    o.str("name", &wire_name(&tool.name, WireFormat::Chat));
    match &tool.kind {
        ToolKind::FreeText { format } => {
            rules.note(Rule::FreeTextTools);
            o.str(
                "description",
                &schema::free_text_description(tool.description.as_deref(), *format),
            );
            o.raw("parameters", schema::FREE_TEXT);
        }
        ToolKind::Function { schema, strict } => {
            o.opt_text("description", tool.description.as_ref());
            o.raw("parameters", schema.as_deref().unwrap_or(schema::NO_ARGUMENTS));
            if let Some(strict) = strict {
                o.bool("strict", *strict);
            }
        }
        ToolKind::WebSearch(_) => {}
    }
}

fn write_sampling(
    o: &mut Object<'_>,
    request: &Request<'_>,
    generation: Option<&GptGeneration>,
    effort: Option<Effort>,
    rules: &mut Rules,
) {
    let sampling = &request.sampling;
    if generation.is_some_and(|model| model.refuses_sampling(effort)) {
        let sampled = sampling.temperature.is_some() || sampling.top_p.is_some();
        rules.note_if(sampled, Rule::ReasoningSampling);
    } else {
        o.number("temperature", sampling.temperature.as_ref());
        o.number("top_p", sampling.top_p.as_ref());
    }
    o.number("seed", sampling.seed.as_ref());
    let penalties = [
        ("frequency_penalty", sampling.frequency_penalty.as_ref()),
        ("presence_penalty", sampling.presence_penalty.as_ref()),
    ];
    if generation.is_some_and(GptGeneration::refuses_stops) {
        let penalised = penalties.iter().any(|(_, penalty)| penalty.is_some());
        rules.note_if(penalised, Rule::Penalties);
        rules.note_if(!request.stop.is_empty(), Rule::Stop);
        return;
    }
    penalties.into_iter().for_each(|(field, penalty)| o.number(field, penalty));
    if !request.stop.is_empty() {
        o.array("stop", |a| request.stop.iter().for_each(|stop| a.str(stop)));
    }
}

fn write_format(o: &mut Object<'_>, request: &Request<'_>) {
    match &request.output {
        OutputFormat::Text => {}
        OutputFormat::Json => o.object("response_format", |o| o.word("type", "json_object")),
        OutputFormat::Schema { name, description, schema: text, strict } => {
            o.object("response_format", |o| {
                o.word("type", "json_schema");
                o.object("json_schema", |o| {
                    o.str("name", name.as_deref().unwrap_or("reply"));
                    o.opt_str("description", description.as_deref());
                    o.bool("strict", strict.unwrap_or_else(|| schema::is_strict(text)));
                    o.raw("schema", text);
                });
            })
        }
    }
}
