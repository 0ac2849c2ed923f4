//! Reads a responses request into the neutral conversation.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Number;

use super::request_items::{self, Item};
use super::request_tools::{self, Choice, WireTool};
use crate::formats::conversation::locate::parse;
use crate::formats::conversation::{
    Content, Effort, OutputFormat, Part, Reasoning, Request, Rule, Rules, Sampling, Str, ToolName,
    Unsupported, number, schema,
};
use crate::formats::json_read::{Json, List};

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    model: Option<Str<'a>>,
    #[serde(borrow)]
    input: Content<'a, Item<'a>>,
    #[serde(borrow)]
    instructions: Option<Str<'a>>,
    stream: Option<bool>,
    #[serde(default, deserialize_with = "number::whole")]
    max_output_tokens: Option<u64>,
    temperature: Option<Number>,
    top_p: Option<Number>,
    #[serde(borrow)]
    tools: Option<List<'a, WireTool<'a>>>,
    #[serde(borrow)]
    tool_choice: Option<Content<'a, Choice<'a>>>,
    parallel_tool_calls: Option<bool>,
    #[serde(borrow)]
    reasoning: Option<WireReasoning<'a>>,
    #[serde(borrow)]
    text: Option<TextConfig<'a>>,
    #[serde(borrow)]
    user: Option<Str<'a>>,
    #[serde(borrow)]
    safety_identifier: Option<Str<'a>>,
    #[serde(borrow)]
    prompt_cache_key: Option<Str<'a>>,
    previous_response_id: Option<IgnoredAny>,
    conversation: Option<IgnoredAny>,
    prompt: Option<IgnoredAny>,
    background: Option<bool>,
    store: Option<bool>,
    metadata: Option<IgnoredAny>,
    service_tier: Option<IgnoredAny>,
    truncation: Option<IgnoredAny>,
    top_logprobs: Option<IgnoredAny>,
    max_tool_calls: Option<IgnoredAny>,
    context_management: Option<IgnoredAny>,
    moderation: Option<IgnoredAny>,
    prompt_cache_retention: Option<IgnoredAny>,
}

#[derive(Deserialize)]
pub(super) struct WireReasoning<'a> {
    #[serde(borrow)]
    effort: Option<Str<'a>>,
}

impl WireReasoning<'_> {
    /// The effort; `None` if there is none, or an unknown one.
    pub(super) fn effort(&self) -> Option<Effort> {
        self.effort.as_deref().and_then(Effort::parse)
    }
}

#[derive(Deserialize)]
pub(super) struct TextConfig<'a> {
    #[serde(borrow)]
    pub format: Option<Format<'a>>,
    #[serde(borrow)]
    verbosity: Option<Str<'a>>,
}

#[derive(Deserialize)]
pub(super) struct Format<'a> {
    #[serde(borrow, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow)]
    name: Option<Str<'a>>,
    #[serde(borrow)]
    description: Option<Str<'a>>,
    #[serde(borrow)]
    schema: Option<Json<'a>>,
    strict: Option<bool>,
}

/// Reads the body of `POST /v1/responses`.
///
/// # Errors
/// The field that is invalid, or that no other format can express.
pub fn read(body: &[u8]) -> Result<Request<'_>, Unsupported> {
    let body: Body<'_> = parse(body)?;
    let mut rules = Rules::default();
    refuse(&body)?;
    note_vendor_fields(&body, &mut rules);
    let input = request_items::read(body.input, &mut rules)?;
    let mut tools = Vec::new();
    let own = body.tools.unwrap_or_default();
    request_tools::read(own, "tools", None, &mut tools, &mut rules)?;
    tools.extend(input.tools);
    let known: Vec<ToolName<'_>> = match body.tool_choice {
        Some(_) => {
            let parts = input.turns.iter().flat_map(|turn| &turn.parts);
            let added = parts.flat_map(Part::new_tools);
            tools.iter().chain(added).map(|tool| tool.name.clone()).collect()
        }
        None => Vec::new(),
    };
    let mut system: Vec<_> = body.instructions.into_iter().collect();
    system.extend(input.system);
    let (format, verbosity) = body.text.map_or((None, None), |text| (text.format, text.verbosity));
    Ok(Request {
        model: body.model.unwrap_or_default().into_text(),
        system,
        turns: input.turns,
        tool_choice: body
            .tool_choice
            .map(|choice| request_tools::read_choice(choice, &known, &mut rules))
            .transpose()?
            .flatten(),
        tools,
        parallel_tools: body.parallel_tool_calls,
        max_tokens: body.max_output_tokens,
        sampling: Sampling {
            temperature: body.temperature,
            top_p: body.top_p,
            ..Sampling::default()
        },
        reasoning: Reasoning::of_effort(
            input.effort.or_else(|| body.reasoning.as_ref().and_then(WireReasoning::effort)),
        ),
        output: input.format.or(format).map_or(OutputFormat::Text, read_format),
        verbosity: verbosity.map(Str::into_text),
        user: body.safety_identifier.or(body.user).map(Str::into_text),
        cache_key: body.prompt_cache_key.map(Str::into_text),
        stream: body.stream.unwrap_or(false),
        dropped: rules,
        ..Request::default()
    })
}

fn refuse(body: &Body<'_>) -> Result<(), Unsupported> {
    let stored = [
        ("previous_response_id", body.previous_response_id.is_some()),
        ("conversation", body.conversation.is_some()),
        ("prompt", body.prompt.is_some()),
        ("background", body.background == Some(true)),
    ];
    match stored.iter().find(|(_, used)| *used) {
        Some((field, _)) => Err(Rule::Stored.refuse(*field)),
        None => Ok(()),
    }
}

fn note_vendor_fields(body: &Body<'_>, rules: &mut Rules) {
    let fields = [
        &body.metadata,
        &body.service_tier,
        &body.truncation,
        &body.top_logprobs,
        &body.max_tool_calls,
        &body.context_management,
        &body.moderation,
    ];
    rules.note_if(
        body.store == Some(true) || fields.iter().any(|field| field.is_some()),
        Rule::VendorFields,
    );
    rules.note_if(body.prompt_cache_retention.is_some(), Rule::CacheMarks);
}

fn read_format(format: Format<'_>) -> OutputFormat<'_> {
    match (&*format.kind, format.schema) {
        ("json_schema", Some(schema)) => OutputFormat::Schema {
            name: format.name.map(Str::into_text),
            description: format.description.map(Str::into_text),
            schema: schema::validated(schema),
            strict: format.strict,
        },
        ("json_object" | "json_schema", _) => OutputFormat::Json,
        _ => OutputFormat::Text,
    }
}
