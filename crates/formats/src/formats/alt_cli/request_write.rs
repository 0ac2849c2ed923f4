//! Writes the neutral conversation as an alt-cli request. The model and the choice to stream are in
//! the path.

use super::content_write;
use super::generation::{GeminiGeneration, ThinkingStyle};
use crate::domain::format::WireFormat;
use crate::formats::conversation::json::{self, Object};
use crate::formats::conversation::request::{Reasoning, ReasoningMode};
use crate::formats::conversation::{
    Effort, OutputFormat, Request, Rule, Rules, Target, TargetModel, Tool, ToolChoice, ToolKind,
    Unsupported, schema,
};
use crate::formats::names::wire_name;

/// Maximum stop sequences of the format.
const MAX_STOPS: usize = 5;

/// Writes the body of `…:generateContent`. Turns alternate already, and results know their tool's
/// name.
///
/// # Errors
/// Too many stop sequences.
pub fn write(
    request: &Request<'_>,
    target: &Target<'_>,
    rules: &mut Rules,
) -> Result<Vec<u8>, Unsupported> {
    if request.stop.len() > MAX_STOPS {
        return Err(Rule::StopCount.refuse("stop"));
    }
    rules.note_if(request.parallel_tools == Some(false), Rule::ParallelTools);
    rules.note_if(request.verbosity.is_some(), Rule::Verbosity);
    rules.note_if(request.user.is_some(), Rule::User);
    rules.note_if(request.cache_key.is_some(), Rule::CacheMarks);
    Ok(json::document_of(target.size, |o| {
        let combines = combines(request, target);
        content_write::write(o, request, (target.model, combines), rules);
        let system = request.instructions();
        if !system.is_empty() {
            o.object("systemInstruction", |o| {
                o.array("parts", |a| {
                    system.iter().for_each(|text| a.object(|o| o.text("text", text)))
                });
            });
        }
        write_tools(o, request, combines, rules);
        o.object("generationConfig", |o| write_config(o, request, target, rules));
    }))
}

/// Whether a search may stand beside functions: its steps come back, and the model decides what it
/// calls.
fn combines(request: &Request<'_>, target: &Target<'_>) -> bool {
    let is_free = match &request.tool_choice {
        None | Some(ToolChoice::Auto | ToolChoice::WebSearch) => true,
        Some(ToolChoice::Allowed { required, .. }) => !required,
        Some(ToolChoice::Required | ToolChoice::None | ToolChoice::Tool(_)) => false,
    };
    let takes = |model: &GeminiGeneration| model.takes_search_beside_functions;
    let searches = |tool: &Tool<'_>| matches!(tool.kind, ToolKind::WebSearch(_));
    is_free
        && target.returns_steps
        && GeminiGeneration::of(target.model).is_some_and(takes)
        && request.tools.iter().any(searches)
        && !functions(request).is_empty()
}

/// The functions that are declared.
fn functions<'r, 'a>(request: &'r Request<'a>) -> Vec<&'r Tool<'a>> {
    let allowed = request.allowed_tools();
    let is_sent = |tool: &&Tool<'_>| {
        let wanted = allowed.as_ref().is_none_or(|names| names.contains(&tool.name));
        wanted && !matches!(tool.kind, ToolKind::WebSearch(_))
    };
    request.tools.iter().filter(is_sent).collect()
}

fn write_tools(o: &mut Object<'_>, request: &Request<'_>, combines: bool, rules: &mut Rules) {
    rules.note_if(request.allowed_tools().is_some(), Rule::AllowedTools);
    let mut search = request.tools.iter().filter_map(|tool| match &tool.kind {
        ToolKind::WebSearch(search) => Some(search),
        _ => None,
    });
    let is_bounded = search.clone().any(|search| search.is_bounded());
    let searches = search.next().is_some();
    rules.note_if(searches, Rule::WebSearch);
    rules.note_if(is_bounded, Rule::SearchFields);
    let functions = functions(request);
    if functions.is_empty() {
        if searches {
            o.array("tools", |a| a.object(|o| o.object("googleSearch", |_| {})));
        }
        return;
    }
    o.array("tools", |a| {
        a.object(|o| {
            o.array("functionDeclarations", |a| {
                for tool in &functions {
                    a.object(|o| write_function(o, tool, rules));
                }
            });
        });
        if combines {
            a.object(|o| o.object("googleSearch", |_| {}));
        }
    });
    if combines {
        // The service has a mode of its own for both, and refuses `AUTO`.
        o.object("toolConfig", |o| o.bool("includeServerSideToolInvocations", true));
        return;
    }
    let (mode, name) = match &request.tool_choice {
        None | Some(ToolChoice::WebSearch) => return,
        Some(ToolChoice::Auto | ToolChoice::Allowed { required: false, .. }) => ("AUTO", None),
        Some(ToolChoice::Required | ToolChoice::Allowed { required: true, .. }) => ("ANY", None),
        Some(ToolChoice::None) => ("NONE", None),
        Some(ToolChoice::Tool(name)) => ("ANY", Some(name)),
    };
    o.object("toolConfig", |o| {
        o.object("functionCallingConfig", |o| {
            o.str("mode", mode);
            if let Some(name) = name {
                o.array("allowedFunctionNames", |a| a.str(&wire_name(name, WireFormat::AltCli)));
            }
        });
    });
}

fn write_function(o: &mut Object<'_>, tool: &Tool<'_>, rules: &mut Rules) {
    o.str("name", &wire_name(&tool.name, WireFormat::AltCli));
    match &tool.kind {
        ToolKind::FreeText { format } => {
            rules.note(Rule::FreeTextTools);
            o.str(
                "description",
                &schema::free_text_description(tool.description.as_deref(), *format),
            );
            o.raw("parametersJsonSchema", schema::FREE_TEXT);
        }
        ToolKind::Function { schema, .. } => {
            o.opt_text("description", tool.description.as_ref());
            o.raw("parametersJsonSchema", schema.as_deref().unwrap_or(schema::NO_ARGUMENTS));
        }
        ToolKind::WebSearch(_) => {}
    }
}

fn write_config(o: &mut Object<'_>, request: &Request<'_>, target: &Target<'_>, rules: &mut Rules) {
    let sampling = &request.sampling;
    if let Some(limit) = request.max_tokens {
        o.uint("maxOutputTokens", limit);
    }
    o.number("temperature", sampling.temperature.as_ref());
    o.number("topP", sampling.top_p.as_ref());
    o.number("topK", sampling.top_k.as_ref());
    o.number("frequencyPenalty", sampling.frequency_penalty.as_ref());
    o.number("presencePenalty", sampling.presence_penalty.as_ref());
    o.number("seed", sampling.seed.as_ref());
    if !request.stop.is_empty() {
        o.array("stopSequences", |a| request.stop.iter().for_each(|stop| a.str(stop)));
    }
    match &request.output {
        OutputFormat::Text => {}
        OutputFormat::Json => o.str("responseMimeType", "application/json"),
        OutputFormat::Schema { schema, .. } => {
            o.str("responseMimeType", "application/json");
            o.raw("responseJsonSchema", schema);
        }
    }
    write_thinking(o, &request.reasoning, target.model, rules);
}

fn write_thinking(
    o: &mut Object<'_>,
    asked: &Reasoning,
    model: &TargetModel<'_>,
    rules: &mut Rules,
) {
    let Some(budget) = asked.budget() else { return };
    let Some(generation) = GeminiGeneration::of(model) else { return };
    let is_open = asked.mode == ReasoningMode::Adaptive && asked.effort.is_none();
    o.object("thinkingConfig", |o| {
        o.bool("includeThoughts", budget > 0);
        match &generation.thinking {
            ThinkingStyle::Budget { .. } if is_open => o.raw("thinkingBudget", "-1"),
            ThinkingStyle::Budget { least, most, can_stop } => {
                let is_off = budget == 0 && *can_stop;
                let taken = if is_off { 0 } else { budget.clamp(*least, *most) };
                rules.note_if(taken != budget, Rule::ThinkingBudget);
                o.uint("thinkingBudget", taken);
            }
            // The model decides.
            ThinkingStyle::Level(_) if is_open => {}
            ThinkingStyle::Level(levels) => {
                let level = Effort::of_budget(budget).nearest(levels).unwrap_or(Effort::Low);
                rules.note_if(level.budget() != budget, Rule::ThinkingLevel);
                o.str("thinkingLevel", &level.as_str().to_ascii_uppercase());
            }
        }
    });
}
