//! Reads a native request into the neutral conversation.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Number;

use super::request_parts::{self, RequestBlock};
use crate::formats::conversation::locate::{self, parse, texts};
use crate::formats::conversation::request::ReasoningMode;
use crate::formats::conversation::{
    Content, Effort, OutputFormat, Reasoning, Request, Role, Rule, Rules, Sampling, Str, Tool,
    ToolChoice, ToolKind, ToolName, Turn, Unsupported, WebSearch, number, schema,
};
use crate::formats::json_read::{Json, List};

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    model: Option<Str<'a>>,
    #[serde(borrow)]
    messages: List<'a, Message<'a>>,
    #[serde(borrow)]
    system: Option<Content<'a, RequestBlock<'a>>>,
    #[serde(default, deserialize_with = "number::whole")]
    max_tokens: Option<u64>,
    stream: Option<bool>,
    #[serde(borrow)]
    tools: Option<List<'a, WireTool<'a>>>,
    #[serde(borrow)]
    tool_choice: Option<NativeToolChoice<'a>>,
    temperature: Option<Number>,
    top_p: Option<Number>,
    #[serde(default, deserialize_with = "number::counted")]
    top_k: Option<Number>,
    #[serde(borrow)]
    stop_sequences: Option<List<'a, Str<'a>>>,
    #[serde(borrow)]
    thinking: Option<ThinkingConfig<'a>>,
    #[serde(borrow)]
    output_config: Option<OutputConfig<'a>>,
    /// The older place of `output_config.format`.
    #[serde(borrow)]
    output_format: Option<Format<'a>>,
    #[serde(borrow)]
    metadata: Option<Metadata<'a>>,
    cache_control: Option<IgnoredAny>,
    service_tier: Option<IgnoredAny>,
    container: Option<IgnoredAny>,
    context_management: Option<IgnoredAny>,
    mcp_servers: Option<IgnoredAny>,
    speed: Option<IgnoredAny>,
    inference_geo: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    role: Str<'a>,
    #[serde(borrow)]
    content: Option<Content<'a, RequestBlock<'a>>>,
}

#[derive(Deserialize)]
struct WireTool<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Str<'a>>,
    #[serde(borrow)]
    name: Option<Str<'a>>,
    #[serde(borrow)]
    description: Option<Str<'a>>,
    #[serde(borrow)]
    input_schema: Option<Json<'a>>,
    strict: Option<bool>,
    #[serde(borrow)]
    allowed_domains: Option<List<'a, Str<'a>>>,
    #[serde(borrow)]
    blocked_domains: Option<List<'a, Str<'a>>>,
    #[serde(default, deserialize_with = "number::whole")]
    max_uses: Option<u64>,
    #[serde(borrow)]
    user_location: Option<Json<'a>>,
    cache_control: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct NativeToolChoice<'a> {
    #[serde(borrow, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow)]
    name: Option<Str<'a>>,
    disable_parallel_tool_use: Option<bool>,
}

#[derive(Deserialize)]
struct ThinkingConfig<'a> {
    #[serde(borrow, rename = "type")]
    kind: Str<'a>,
    #[serde(default, deserialize_with = "number::whole")]
    budget_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct OutputConfig<'a> {
    #[serde(borrow)]
    effort: Option<Str<'a>>,
    #[serde(borrow)]
    format: Option<Format<'a>>,
}

#[derive(Deserialize)]
struct Format<'a> {
    #[serde(borrow)]
    schema: Option<Json<'a>>,
}

#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(borrow)]
    user_id: Option<Str<'a>>,
}

/// Reads the body of `POST /v1/messages`.
///
/// # Errors
/// The field that is invalid, or that no other format can express.
pub fn read(body: &[u8]) -> Result<Request<'_>, Unsupported> {
    let body: Body<'_> = parse(body)?;
    let mut rules = Rules::default();
    note_vendor_fields(&body, &mut rules);
    let mut turns = Vec::with_capacity(body.messages.room());
    for (index, message) in body.messages.into_iter().enumerate() {
        let message =
            message.map_err(|unread| locate::element(&format!("messages.{index}"), &unread))?;
        turns.push(read_message(message, index, &mut rules)?);
    }
    let parallel_tools =
        body.tool_choice.as_ref().and_then(|choice| choice.disable_parallel_tool_use).map(|no| !no);
    let own = body.tools.unwrap_or_default();
    let mut tools = Vec::with_capacity(own.room());
    for (index, tool) in own.into_iter().enumerate() {
        let tool = tool.map_err(|unread| locate::element(&format!("tools.{index}"), &unread))?;
        tools.extend(read_tool(tool, index, &mut rules)?);
    }
    let effort =
        body.output_config.as_ref().and_then(|config| Effort::parse(config.effort.as_deref()?));
    let format = body.output_config.and_then(|config| config.format).or(body.output_format);
    Ok(Request {
        model: body.model.unwrap_or_default().into_text(),
        system: request_parts::texts(body.system.unwrap_or_default(), "system", &mut rules)?,
        turns,
        tool_choice: body.tool_choice.and_then(|choice| read_choice(choice, &tools, &mut rules)),
        tools,
        parallel_tools,
        max_tokens: body.max_tokens,
        sampling: Sampling {
            temperature: body.temperature,
            top_p: body.top_p,
            top_k: body.top_k,
            ..Sampling::default()
        },
        stop: texts(body.stop_sequences, "stop_sequences")?,
        reasoning: Reasoning { mode: read_thinking(body.thinking.as_ref())?, effort },
        output: format.and_then(|format| format.schema).map_or(OutputFormat::Text, |schema| {
            OutputFormat::Schema {
                name: None,
                description: None,
                schema: schema::validated(schema),
                strict: None,
            }
        }),
        user: body.metadata.and_then(|metadata| metadata.user_id).map(Str::into_text),
        stream: body.stream.unwrap_or(false),
        dropped: rules,
        ..Request::default()
    })
}

fn note_vendor_fields(body: &Body<'_>, rules: &mut Rules) {
    let fields = [
        &body.service_tier,
        &body.container,
        &body.context_management,
        &body.mcp_servers,
        &body.speed,
        &body.inference_geo,
    ];
    rules.note_if(fields.iter().any(|field| field.is_some()), Rule::VendorFields);
    rules.note_if(body.cache_control.is_some(), Rule::CacheMarks);
}

fn read_message<'a>(
    message: Message<'a>,
    index: usize,
    rules: &mut Rules,
) -> Result<Turn<'a>, Unsupported> {
    let role = match &*message.role {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" => Role::System,
        _ => return Err(Rule::Unknown.refuse(format!("messages.{index}.role"))),
    };
    let field = format!("messages.{index}.content");
    let Some(content) = message.content else {
        return Err(Unsupported::missing(field));
    };
    let parts = request_parts::read(content, &field, rules)?;
    Ok(Turn { role, parts })
}

/// `None` for a tool that only this vendor runs.
fn read_tool<'a>(
    tool: WireTool<'a>,
    index: usize,
    rules: &mut Rules,
) -> Result<Option<Tool<'a>>, Unsupported> {
    rules.note_if(tool.cache_control.is_some(), Rule::CacheMarks);
    if tool.name.is_none() && matches!(tool.kind.as_deref(), None | Some("custom")) {
        return Err(Unsupported::missing(format!("tools.{index}.name")));
    }
    let name = ToolName::plain(tool.name.unwrap_or_default().into_text());
    let kind = match tool.kind.as_deref() {
        None | Some("custom") => ToolKind::Function {
            schema: schema::read_tool(tool.input_schema, rules),
            strict: tool.strict,
        },
        Some(kind) if kind.starts_with("web_search") => ToolKind::WebSearch(Box::new(WebSearch {
            allowed_domains: texts(tool.allowed_domains, "tools")?,
            blocked_domains: texts(tool.blocked_domains, "tools")?,
            max_uses: tool.max_uses,
            user_location: tool.user_location.map(schema::validated),
            has_more: false,
        })),
        Some(_) => {
            rules.note(Rule::VendorTools);
            return Ok(None);
        }
    };
    Ok(Some(Tool { name, description: tool.description, kind }))
}

fn read_choice<'a>(
    choice: NativeToolChoice<'a>,
    tools: &[Tool<'_>],
    rules: &mut Rules,
) -> Option<ToolChoice<'a>> {
    match &*choice.kind {
        "auto" => Some(ToolChoice::Auto),
        "any" => Some(ToolChoice::Required),
        "none" => Some(ToolChoice::None),
        _ => {
            let name = choice.name.unwrap_or_default().into_text();
            match tools.iter().find(|tool| tool.name.name == name) {
                Some(Tool { kind: ToolKind::WebSearch(_), .. }) => Some(ToolChoice::WebSearch),
                Some(_) => Some(ToolChoice::Tool(ToolName::plain(name))),
                None => {
                    rules.note(Rule::VendorTools);
                    None
                }
            }
        }
    }
}

fn read_thinking(config: Option<&ThinkingConfig<'_>>) -> Result<ReasoningMode, Unsupported> {
    let Some(config) = config else { return Ok(ReasoningMode::Unset) };
    Ok(match &*config.kind {
        "disabled" => ReasoningMode::OffByDefault,
        "enabled" => {
            ReasoningMode::Budget(config.budget_tokens.ok_or_else(|| {
                Unsupported::new("thinking.budget_tokens", "this field is required")
            })?)
        }
        _ => ReasoningMode::Adaptive,
    })
}
