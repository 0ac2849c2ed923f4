//! Reads a chat-compatible request into the neutral conversation.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Number;

use super::request_parts::{self, ChatMessage};
use crate::formats::conversation::locate::{self, parse, texts};
use crate::formats::conversation::{
    Content, Effort, OutputFormat, Reasoning, Request, Rule, Rules, Sampling, Str, Text, Tool,
    ToolChoice, ToolKind, ToolName, Unsupported, WebSearch, number, schema,
};
use crate::formats::json_read::{Json, List, Unread};

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    model: Option<Str<'a>>,
    #[serde(borrow)]
    messages: List<'a, ChatMessage<'a>>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    #[serde(default, deserialize_with = "number::whole")]
    max_tokens: Option<u64>,
    #[serde(default, deserialize_with = "number::whole")]
    max_completion_tokens: Option<u64>,
    temperature: Option<Number>,
    top_p: Option<Number>,
    #[serde(default, deserialize_with = "number::counted")]
    top_k: Option<Number>,
    frequency_penalty: Option<Number>,
    presence_penalty: Option<Number>,
    #[serde(default, deserialize_with = "number::counted")]
    seed: Option<Number>,
    #[serde(borrow)]
    stop: Option<Content<'a, Str<'a>>>,
    #[serde(borrow)]
    tools: Option<List<'a, WireTool<'a>>>,
    #[serde(borrow)]
    tool_choice: Option<Content<'a, ChatToolChoice<'a>>>,
    parallel_tool_calls: Option<bool>,
    #[serde(borrow)]
    response_format: Option<ResponseFormat<'a>>,
    #[serde(borrow)]
    reasoning_effort: Option<Str<'a>>,
    #[serde(borrow)]
    verbosity: Option<Str<'a>>,
    #[serde(borrow)]
    user: Option<Str<'a>>,
    #[serde(borrow)]
    safety_identifier: Option<Str<'a>>,
    #[serde(borrow)]
    prompt_cache_key: Option<Str<'a>>,
    #[serde(borrow)]
    modalities: Option<List<'a, Str<'a>>>,
    #[serde(borrow)]
    web_search_options: Option<SearchOptions<'a>>,
    #[serde(default, deserialize_with = "number::whole")]
    n: Option<u64>,
    functions: Option<IgnoredAny>,
    function_call: Option<IgnoredAny>,
    logprobs: Option<bool>,
    top_logprobs: Option<IgnoredAny>,
    logit_bias: Option<IgnoredAny>,
    service_tier: Option<IgnoredAny>,
    prediction: Option<IgnoredAny>,
    metadata: Option<IgnoredAny>,
    store: Option<bool>,
    moderation: Option<IgnoredAny>,
    prompt_cache_retention: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

#[derive(Deserialize)]
struct WireTool<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Str<'a>>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
    #[serde(borrow)]
    custom: Option<Custom<'a>>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow)]
    name: Str<'a>,
    #[serde(borrow)]
    description: Option<Str<'a>>,
    #[serde(borrow)]
    parameters: Option<Json<'a>>,
    strict: Option<bool>,
}

#[derive(Deserialize)]
struct Custom<'a> {
    #[serde(borrow)]
    name: Str<'a>,
    #[serde(borrow)]
    description: Option<Str<'a>>,
    #[serde(borrow)]
    format: Option<Json<'a>>,
}

#[derive(Deserialize)]
struct ChatToolChoice<'a> {
    #[serde(borrow)]
    function: Option<Named<'a>>,
    #[serde(borrow)]
    custom: Option<Named<'a>>,
    #[serde(borrow)]
    allowed_tools: Option<Allowed<'a>>,
}

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    name: Str<'a>,
}

#[derive(Deserialize)]
struct Allowed<'a> {
    #[serde(borrow)]
    mode: Option<Str<'a>>,
    #[serde(borrow)]
    tools: List<'a, ChatToolChoice<'a>>,
}

#[derive(Deserialize)]
struct ResponseFormat<'a> {
    #[serde(borrow, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow)]
    json_schema: Option<JsonSchema<'a>>,
}

#[derive(Deserialize)]
struct JsonSchema<'a> {
    #[serde(borrow)]
    name: Option<Str<'a>>,
    #[serde(borrow)]
    description: Option<Str<'a>>,
    #[serde(borrow)]
    schema: Option<Json<'a>>,
    strict: Option<bool>,
}

/// Reads the body of `POST /v1/chat/completions`.
///
/// # Errors
/// The field that is invalid, or that no other format can express.
pub fn read(body: &[u8]) -> Result<Request<'_>, Unsupported> {
    let mut body: Body<'_> = parse(body)?;
    let mut rules = Rules::default();
    refuse(&mut body)?;
    note_vendor_fields(&body, &mut rules);
    let (system, turns) = request_parts::read(body.messages, &mut rules)?;
    let own = body.tools.unwrap_or_default();
    let mut tools = Vec::with_capacity(own.room());
    for (index, tool) in own.into_iter().enumerate() {
        let tool = tool.map_err(|unread| locate::element(&format!("tools.{index}"), &unread))?;
        tools.extend(read_tool(tool, index, &mut rules)?);
    }
    tools.extend(body.web_search_options.map(|options| web_search(options.read())));
    Ok(Request {
        model: body.model.unwrap_or_default().into_text(),
        system,
        turns,
        tools,
        tool_choice: body.tool_choice.map(read_choice).transpose()?.flatten(),
        parallel_tools: body.parallel_tool_calls,
        max_tokens: body.max_completion_tokens.or(body.max_tokens),
        sampling: Sampling {
            temperature: body.temperature,
            top_p: body.top_p,
            top_k: body.top_k,
            frequency_penalty: body.frequency_penalty,
            presence_penalty: body.presence_penalty,
            seed: body.seed,
        },
        stop: match body.stop {
            None => Vec::new(),
            Some(Content::Text(text)) => vec![text.into_text()],
            Some(Content::Parts(list)) => texts(Some(list), "stop")?,
        },
        reasoning: Reasoning::of_effort(body.reasoning_effort.as_deref().and_then(Effort::parse)),
        output: body.response_format.map_or(OutputFormat::Text, read_format),
        verbosity: body.verbosity.map(Str::into_text),
        user: body.safety_identifier.or(body.user).map(Str::into_text),
        cache_key: body.prompt_cache_key.map(Str::into_text),
        stream: body.stream.unwrap_or(false),
        include_usage: body
            .stream_options
            .and_then(|options| options.include_usage)
            .unwrap_or(false),
        dropped: rules,
        ..Request::default()
    })
}

fn refuse(body: &mut Body<'_>) -> Result<(), Unsupported> {
    if body.functions.is_some() || body.function_call.is_some() {
        return Err(Rule::LegacyFunctions.refuse("functions"));
    }
    if body.n.is_some_and(|n| n > 1) {
        return Err(Rule::SeveralAnswers.refuse("n"));
    }
    if texts(body.modalities.take(), "modalities")?.iter().any(|modality| modality != "text") {
        return Err(Rule::Modalities.refuse("modalities"));
    }
    Ok(())
}

fn note_vendor_fields(body: &Body<'_>, rules: &mut Rules) {
    let fields = [
        &body.top_logprobs,
        &body.logit_bias,
        &body.service_tier,
        &body.prediction,
        &body.metadata,
        &body.moderation,
    ];
    let asked = body.logprobs == Some(true) || body.store == Some(true);
    rules.note_if(asked || fields.iter().any(|field| field.is_some()), Rule::VendorFields);
    rules.note_if(body.prompt_cache_retention.is_some(), Rule::CacheMarks);
}

/// `web_search_options`.
#[derive(Deserialize)]
struct SearchOptions<'a> {
    #[serde(borrow)]
    user_location: Option<SearchLocation<'a>>,
    #[serde(borrow)]
    search_context_size: Option<Json<'a>>,
}

#[derive(Deserialize)]
struct SearchLocation<'a> {
    #[serde(borrow)]
    approximate: Option<Json<'a>>,
}

impl<'a> SearchOptions<'a> {
    fn read(self) -> WebSearch<'a> {
        // The members of `approximate` stand beside the type in the other formats.
        let place = self.user_location.and_then(|location| location.approximate);
        let place = place.map(schema::validated);
        let members = place.as_deref().and_then(|place| place.strip_prefix('{'));
        let user_location = members
            .filter(|members| !members.trim_start().starts_with('}'))
            .map(|members| Text::Owned(format!("{{\"type\":\"approximate\",{members}")));
        let has_more = self.search_context_size.is_some();
        WebSearch { user_location, has_more, ..WebSearch::default() }
    }
}

fn web_search(search: WebSearch<'_>) -> Tool<'_> {
    Tool {
        name: ToolName::plain("web_search"),
        description: None,
        kind: ToolKind::WebSearch(Box::new(search)),
    }
}

/// `None` for a tool that only its vendor runs.
fn read_tool<'a>(
    tool: WireTool<'a>,
    index: usize,
    rules: &mut Rules,
) -> Result<Option<Tool<'a>>, Unsupported> {
    if let Some(function) = tool.function {
        return Ok(Some(Tool {
            name: ToolName::plain(function.name.into_text()),
            description: function.description,
            kind: ToolKind::Function {
                schema: schema::read_tool(function.parameters, rules),
                strict: function.strict,
            },
        }));
    }
    if let Some(custom) = tool.custom {
        return Ok(Some(Tool {
            name: ToolName::plain(custom.name.into_text()),
            description: custom.description,
            kind: ToolKind::FreeText { format: custom.format },
        }));
    }
    match tool.kind.as_deref() {
        None | Some("function") => Err(Unsupported::missing(format!("tools.{index}.function"))),
        Some("custom") => Err(Unsupported::missing(format!("tools.{index}.custom"))),
        Some(kind) if kind.starts_with("web_search") => Ok(Some(web_search(WebSearch::default()))),
        Some(_) => {
            rules.note(Rule::VendorTools);
            Ok(None)
        }
    }
}

fn read_choice<'a>(
    choice: Content<'a, ChatToolChoice<'a>>,
) -> Result<Option<ToolChoice<'a>>, Unsupported> {
    Ok(match choice {
        Content::Text(word) => match &*word {
            "auto" => Some(ToolChoice::Auto),
            "required" | "any" => Some(ToolChoice::Required),
            "none" => Some(ToolChoice::None),
            _ => None,
        },
        Content::Parts(choices) => {
            let wrong = |unread: Unread<'_>| locate::element("tool_choice", &unread);
            let Some(choice) = choices.first().map_err(wrong)? else { return Ok(None) };
            if let Some(allowed) = choice.allowed_tools {
                let required = allowed.mode.as_deref() == Some("required");
                let names = allowed.tools.collect(named).map_err(wrong)?;
                return Ok(Some(ToolChoice::Allowed { names, required }));
            }
            named(choice).map(ToolChoice::Tool)
        }
    })
}

fn named<'a>(choice: ChatToolChoice<'a>) -> Option<ToolName<'a>> {
    choice.function.or(choice.custom).map(|tool| ToolName::plain(tool.name.into_text()))
}

fn read_format(format: ResponseFormat<'_>) -> OutputFormat<'_> {
    match (&*format.kind, format.json_schema) {
        ("json_schema", Some(JsonSchema { name, description, schema: Some(schema), strict })) => {
            OutputFormat::Schema {
                name: name.map(Str::into_text),
                description: description.map(Str::into_text),
                schema: schema::validated(schema),
                strict,
            }
        }
        ("json_object" | "json_schema", _) => OutputFormat::Json,
        _ => OutputFormat::Text,
    }
}
