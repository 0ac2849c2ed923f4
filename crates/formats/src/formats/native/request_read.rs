//! Reads a native request into the neutral conversation.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Number;

use super::request_parts::{self, RequestBlock};
use super::request_tools::{self, NativeToolChoice, WireTool};
use crate::formats::conversation::locate::{self, parse, texts};
use crate::formats::conversation::request::{CacheMark, ReasoningMode};
use crate::formats::conversation::{
    CacheMarks, Content, Effort, OutputFormat, Part, Reasoning, Request, Role, Rule, Rules,
    Sampling, Str, Tool, Turn, Unsupported, number, schema,
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
    #[serde(borrow)]
    cache_control: Option<Json<'a>>,
    service_tier: Option<IgnoredAny>,
    container: Option<IgnoredAny>,
    context_management: Option<IgnoredAny>,
    mcp_servers: Option<IgnoredAny>,
    speed: Option<IgnoredAny>,
    inference_geo: Option<IgnoredAny>,
    safeguards: Option<IgnoredAny>,
    fallbacks: Option<IgnoredAny>,
    compaction: Option<IgnoredAny>,
    diagnostics: Option<IgnoredAny>,
    billing_policy: Option<IgnoredAny>,
    #[serde(borrow)]
    thread: Option<Thread<'a>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    role: Str<'a>,
    #[serde(borrow)]
    content: Option<Content<'a, RequestBlock<'a>>>,
    /// How long a system message is shown: `next_user_message`, or always.
    #[serde(borrow)]
    clear_at: Option<Str<'a>>,
    /// Of a system message: for this turn.
    #[serde(borrow)]
    output_config: Option<OutputConfig<'a>>,
}

/// History at the service.
#[derive(Deserialize)]
struct Thread<'a> {
    #[serde(borrow, rename = "type")]
    kind: Str<'a>,
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
    read_by(body, Rules::default())
}

/// As [`read`], with the marks for the prompt cache.
///
/// # Errors
/// As [`read`].
pub fn keeping_marks(body: &[u8]) -> Result<Request<'_>, Unsupported> {
    read_by(body, Rules::keeping_marks())
}

/// `rules` says whether marks for the prompt cache are kept.
fn read_by(body: &[u8], mut rules: Rules) -> Result<Request<'_>, Unsupported> {
    let body: Body<'_> = parse(body)?;
    note_vendor_fields(&body, &mut rules);
    if body.thread.as_ref().is_some_and(|thread| &*thread.kind == "continue") {
        return Err(Rule::Stored.refuse("thread"));
    }
    let mut turns = Vec::with_capacity(body.messages.room());
    let mut instructions = Inside::default();
    for (index, message) in body.messages.into_iter().enumerate() {
        let message =
            message.map_err(|unread| locate::element(&format!("messages.{index}"), &unread))?;
        instructions.note(&message, turns.len());
        turns.push(read_message(message, index, &mut rules)?);
    }
    instructions.clear(&mut turns, &mut rules);
    let parallel_tools =
        body.tool_choice.as_ref().and_then(|choice| choice.disable_parallel_tool_use).map(|no| !no);
    let mut marks = CacheMarks::default();
    let tools;
    (tools, marks.tools) = read_tools(body.tools.unwrap_or_default(), &mut rules)?;
    let tool_choice = body.tool_choice.and_then(|choice| {
        let parts = turns.iter().flat_map(|turn| &turn.parts);
        let added = parts.flat_map(Part::new_tools);
        request_tools::read_choice(choice, tools.iter().chain(added), &mut rules)
    });
    marks.last = request_parts::read_mark(body.cache_control, &mut rules);
    let system;
    (system, marks.system) = request_parts::system(body.system.unwrap_or_default(), &mut rules)?;
    let effort = instructions.effort.or_else(|| effort_of(body.output_config.as_ref()));
    let format = body.output_config.and_then(|config| config.format).or(body.output_format);
    Ok(Request {
        model: body.model.unwrap_or_default().into_text(),
        system,
        marks,
        turns,
        tool_choice,
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

/// The tools, and the cache mark after them.
fn read_tools<'a>(
    own: List<'a, WireTool<'a>>,
    rules: &mut Rules,
) -> Result<(Vec<Tool<'a>>, Option<CacheMark>), Unsupported> {
    let mut tools = Vec::with_capacity(own.room());
    let mut mark = None;
    for (index, tool) in own.into_iter().enumerate() {
        let tool = tool.map_err(|unread| locate::element(&format!("tools.{index}"), &unread))?;
        mark = request_parts::read_mark(tool.cache_control, rules).or(mark);
        tools.extend(request_tools::read(tool, || format!("tools.{index}"), rules)?);
    }
    Ok((tools, mark))
}

/// What messages of the role `system` say beside their text.
#[derive(Default)]
struct Inside {
    /// The turns that are shown until the user's next message.
    passing: Vec<usize>,
    /// The effort for the turn that the request ends with.
    effort: Option<Effort>,
}

impl Inside {
    /// Looks at the message that becomes the turn at this place.
    fn note(&mut self, message: &Message<'_>, at: usize) {
        match &*message.role {
            "assistant" => self.effort = None,
            "system" => {
                self.effort = effort_of(message.output_config.as_ref()).or(self.effort);
                if message.clear_at.as_deref() == Some("next_user_message") {
                    self.passing.push(at);
                }
            }
            _ => {}
        }
    }

    /// Removes the instructions that the model is no longer shown: a message of the user follows.
    fn clear(&self, turns: &mut Vec<Turn<'_>>, rules: &mut Rules) {
        let last = turns.iter().rposition(|turn| turn.role == Role::User).unwrap_or_default();
        let mut place = 0..;
        turns.retain_mut(|turn| {
            let at = place.next().unwrap_or_default();
            if at >= last || self.passing.binary_search(&at).is_err() {
                return true;
            }
            rules.note(Rule::ClearedSystem);
            turn.parts.retain(|part| !matches!(part, Part::Text(_)));
            !turn.parts.is_empty()
        });
    }
}

fn effort_of(config: Option<&OutputConfig<'_>>) -> Option<Effort> {
    Effort::parse(config?.effort.as_deref()?)
}

fn note_vendor_fields(body: &Body<'_>, rules: &mut Rules) {
    let fields = [
        &body.service_tier,
        &body.container,
        &body.context_management,
        &body.mcp_servers,
        &body.speed,
        &body.inference_geo,
        &body.safeguards,
        &body.fallbacks,
        &body.compaction,
        &body.diagnostics,
        &body.billing_policy,
    ];
    let is_used = fields.iter().any(|field| field.is_some()) || body.thread.is_some();
    rules.note_if(is_used, Rule::VendorFields);
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
