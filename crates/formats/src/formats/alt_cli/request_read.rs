//! Reads an alt-cli request into the neutral conversation.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Number;

use super::request_contents::{self, WireContent};
use crate::formats::conversation::locate::{self, parse, texts};
use crate::formats::conversation::request::ReasoningMode;
use crate::formats::conversation::{
    Content, Effort, OutputFormat, Reasoning, Request, Rule, Rules, Sampling, Str, Tool,
    ToolChoice, ToolKind, ToolName, Unsupported, WebSearch, number, schema,
};
use crate::formats::json_read::{Json, List, Unread};

#[derive(Deserialize, Default)]
struct Body<'a> {
    #[serde(borrow)]
    model: Option<Str<'a>>,
    /// The wrapper's content.
    #[serde(borrow)]
    request: Option<Box<Body<'a>>>,
    #[serde(borrow)]
    contents: Option<Content<'a, WireContent<'a>>>,
    #[serde(borrow, rename = "systemInstruction", alias = "system_instruction")]
    system: Option<Content<'a, WireContent<'a>>>,
    #[serde(borrow)]
    tools: Option<List<'a, WireTool<'a>>>,
    #[serde(borrow, rename = "toolConfig", alias = "tool_config")]
    tool_config: Option<ToolConfig<'a>>,
    #[serde(borrow, rename = "generationConfig", alias = "generation_config")]
    config: Option<Config<'a>>,
    #[serde(borrow, rename = "cachedContent", alias = "cached_content")]
    cached_content: Option<Str<'a>>,
    #[serde(rename = "safetySettings", alias = "safety_settings")]
    safety: Option<IgnoredAny>,
    labels: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct WireTool<'a> {
    #[serde(borrow, rename = "functionDeclarations", alias = "function_declarations")]
    functions: Option<List<'a, Declaration<'a>>>,
    #[serde(borrow, rename = "googleSearch", alias = "google_search")]
    search: Option<Json<'a>>,
    #[serde(borrow, rename = "googleSearchRetrieval", alias = "google_search_retrieval")]
    old_search: Option<Json<'a>>,
}

#[derive(Deserialize)]
struct Declaration<'a> {
    #[serde(borrow)]
    name: Str<'a>,
    #[serde(borrow)]
    description: Option<Str<'a>>,
    #[serde(borrow)]
    parameters: Option<Json<'a>>,
    #[serde(borrow, rename = "parametersJsonSchema", alias = "parameters_json_schema")]
    json_schema: Option<Json<'a>>,
}

#[derive(Deserialize)]
struct ToolConfig<'a> {
    #[serde(borrow, rename = "functionCallingConfig", alias = "function_calling_config")]
    calling: Option<Calling<'a>>,
}

#[derive(Deserialize)]
struct Calling<'a> {
    #[serde(borrow)]
    mode: Option<Str<'a>>,
    #[serde(borrow, rename = "allowedFunctionNames", alias = "allowed_function_names")]
    allowed: Option<List<'a, Str<'a>>>,
}

#[derive(Deserialize, Default)]
struct Config<'a> {
    temperature: Option<Number>,
    #[serde(rename = "topP", alias = "top_p")]
    top_p: Option<Number>,
    #[serde(default, rename = "topK", alias = "top_k", deserialize_with = "number::counted")]
    top_k: Option<Number>,
    #[serde(
        default,
        rename = "candidateCount",
        alias = "candidate_count",
        deserialize_with = "number::whole"
    )]
    candidates: Option<u64>,
    #[serde(
        default,
        rename = "maxOutputTokens",
        alias = "max_output_tokens",
        deserialize_with = "number::whole"
    )]
    max_tokens: Option<u64>,
    #[serde(borrow, rename = "stopSequences", alias = "stop_sequences")]
    stop: Option<List<'a, Str<'a>>>,
    #[serde(rename = "presencePenalty", alias = "presence_penalty")]
    presence: Option<Number>,
    #[serde(rename = "frequencyPenalty", alias = "frequency_penalty")]
    frequency: Option<Number>,
    #[serde(default, deserialize_with = "number::counted")]
    seed: Option<Number>,
    #[serde(borrow, rename = "responseMimeType", alias = "response_mime_type")]
    mime_type: Option<Str<'a>>,
    #[serde(borrow, rename = "responseSchema", alias = "response_schema")]
    schema: Option<Json<'a>>,
    #[serde(borrow, rename = "responseJsonSchema", alias = "response_json_schema")]
    json_schema: Option<Json<'a>>,
    #[serde(borrow, rename = "responseModalities", alias = "response_modalities")]
    modalities: Option<List<'a, Str<'a>>>,
    #[serde(borrow, rename = "thinkingConfig", alias = "thinking_config")]
    thinking: Option<ThinkingConfig<'a>>,
    #[serde(rename = "responseLogprobs", alias = "response_logprobs")]
    logprobs: Option<bool>,
    #[serde(rename = "mediaResolution", alias = "media_resolution")]
    resolution: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct ThinkingConfig<'a> {
    #[serde(rename = "includeThoughts", alias = "include_thoughts")]
    include: Option<bool>,
    #[serde(
        default,
        rename = "thinkingBudget",
        alias = "thinking_budget",
        deserialize_with = "number::whole"
    )]
    budget: Option<i64>,
    #[serde(borrow, rename = "thinkingLevel", alias = "thinking_level")]
    level: Option<Str<'a>>,
}

/// Reads the body of `…:generateContent`, plain or wrapped.
///
/// # Errors
/// The field that is invalid, or that no other format can express.
pub fn read(body: &[u8]) -> Result<Request<'_>, Unsupported> {
    let mut body: Body<'_> = parse(body)?;
    let wrapped = body.request.is_some();
    if let Some(inner) = body.request.take() {
        body = Body { model: body.model, ..*inner };
    }
    let mut rules = Rules::default();
    let mut config = body.config.unwrap_or_default();
    refuse(&mut config, body.cached_content.is_some())?;
    let vendor = body.safety.is_some() || body.labels.is_some() || config.resolution.is_some();
    rules.note_if(vendor || config.logprobs == Some(true), Rule::VendorFields);
    let contents =
        body.contents.ok_or_else(|| Unsupported::new("contents", "this field is required"))?;
    let thinking = config.thinking.as_ref();
    Ok(Request {
        model: body.model.unwrap_or_default().into_text(),
        system: body.system.map(request_contents::texts).transpose()?.unwrap_or_default(),
        turns: request_contents::read(contents, &mut rules)?,
        tools: read_tools(body.tools.unwrap_or_default(), &mut rules)?,
        tool_choice: body
            .tool_config
            .and_then(|config| config.calling)
            .map(read_choice)
            .transpose()?
            .flatten(),
        max_tokens: config.max_tokens,
        sampling: Sampling {
            temperature: config.temperature,
            top_p: config.top_p,
            top_k: config.top_k.map(whole),
            frequency_penalty: config.frequency,
            presence_penalty: config.presence,
            seed: config.seed,
        },
        stop: texts(config.stop, "generationConfig.stopSequences")?,
        reasoning: thinking.map(read_thinking).unwrap_or_default(),
        show_reasoning: thinking.and_then(|thinking| thinking.include),
        output: read_output(config.mime_type.as_deref(), config.json_schema.or(config.schema)),
        wrapped,
        dropped: rules,
        ..Request::default()
    })
}

fn refuse(config: &mut Config<'_>, cached: bool) -> Result<(), Unsupported> {
    if cached {
        return Err(Rule::Stored.refuse("cachedContent"));
    }
    if config.candidates.is_some_and(|count| count > 1) {
        return Err(Rule::SeveralAnswers.refuse("generationConfig.candidateCount"));
    }
    let field = "generationConfig.responseModalities";
    let modalities = texts(config.modalities.take(), field)?;
    if modalities.iter().any(|modality| !modality.eq_ignore_ascii_case("text")) {
        return Err(Rule::Modalities.refuse(field));
    }
    Ok(())
}

/// Counts come as floating-point numbers here.
fn whole(number: Number) -> Number {
    match number.as_f64() {
        Some(value) if number.as_u64().is_none() && (0.0..=1e9).contains(&value) => {
            Number::from(value.round() as u64)
        }
        _ => number,
    }
}

fn read_tools<'a>(
    tools: List<'a, WireTool<'a>>,
    rules: &mut Rules,
) -> Result<Vec<Tool<'a>>, Unsupported> {
    let wrong = |unread: Unread<'_>| locate::element("tools", &unread);
    let mut all = Vec::new();
    for tool in tools {
        let tool = tool.map_err(wrong)?;
        let searches = tool.search.is_some() || tool.old_search.is_some();
        if searches {
            let options = [tool.search, tool.old_search].into_iter().flatten();
            let has_more = options.map(Json::get).any(|options| options.len() > "{}".len());
            let kind =
                ToolKind::WebSearch(Box::new(WebSearch { has_more, ..WebSearch::default() }));
            all.push(Tool { name: ToolName::plain("web_search"), description: None, kind });
        }
        rules.note_if(!searches && tool.functions.is_none(), Rule::VendorTools);
        let functions = tool.functions.unwrap_or_default();
        all.reserve_exact(functions.room());
        for function in functions {
            let function = function.map_err(wrong)?;
            rules.note_if(function.parameters.is_some(), Rule::SchemaDialect);
            let schema =
                function.json_schema.or(function.parameters).and_then(schema::from_alt_cli);
            all.push(Tool {
                name: ToolName::plain(function.name.into_text()),
                description: function.description,
                kind: ToolKind::Function {
                    schema: schema.map(schema::with_properties),
                    strict: None,
                },
            });
        }
    }
    Ok(all)
}

fn read_choice(calling: Calling<'_>) -> Result<Option<ToolChoice<'_>>, Unsupported> {
    let field = "toolConfig.functionCallingConfig.allowedFunctionNames";
    let allowed = texts(calling.allowed, field)?;
    let mut names: Vec<ToolName<'_>> = allowed.into_iter().map(ToolName::plain).collect();
    let mode = calling.mode.as_deref().unwrap_or("AUTO").to_ascii_uppercase();
    let required = mode == "ANY";
    Ok(match (mode.as_str(), names.len()) {
        ("NONE", _) => Some(ToolChoice::None),
        ("ANY", 1) => Some(ToolChoice::Tool(names.remove(0))),
        ("ANY", 0) => Some(ToolChoice::Required),
        (_, 0) => Some(ToolChoice::Auto),
        _ => Some(ToolChoice::Allowed { names, required }),
    })
}

fn read_thinking(thinking: &ThinkingConfig<'_>) -> Reasoning {
    let level = thinking.level.as_deref().and_then(Effort::parse);
    match (thinking.budget, level) {
        (Some(0), _) => Reasoning { mode: ReasoningMode::Off, effort: None },
        (Some(tokens), _) if tokens > 0 => {
            Reasoning { mode: ReasoningMode::Budget(tokens.unsigned_abs()), effort: None }
        }
        (_, Some(level)) => Reasoning::of_effort(Some(level)),
        // A budget below zero lets the model decide, and so does a request to show thoughts without
        // any amount.
        (Some(_), None) => Reasoning { mode: ReasoningMode::Adaptive, effort: None },
        (None, None) if thinking.include == Some(true) => {
            Reasoning { mode: ReasoningMode::Adaptive, effort: None }
        }
        (None, None) => Reasoning::default(),
    }
}

fn read_output<'a>(mime_type: Option<&str>, schema: Option<Json<'a>>) -> OutputFormat<'a> {
    match (mime_type, schema.and_then(schema::from_alt_cli)) {
        (_, Some(schema)) => {
            OutputFormat::Schema { name: None, description: None, schema, strict: None }
        }
        (Some("application/json"), None) => OutputFormat::Json,
        _ => OutputFormat::Text,
    }
}
