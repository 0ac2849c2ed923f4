//! Reads input items: messages, calls, results, reasoning, and single parts in place of items.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::request_read::{Format, TextConfig, WireReasoning};
use super::request_tools::{self, WireTool};
use crate::formats::conversation::media::is_data_url;
use crate::formats::conversation::{
    Arguments, Content, Effort, Media, MediaKind, Origin, Part, Role, Rule, Rules, Signature, Str,
    Text, Thinking, Tool, ToolCall, ToolName, ToolResult, Turn, Unsupported, json, locate,
    signature,
};
use crate::formats::json_read::{Json, List};

/// The members of all kinds of items and parts; so each is read in one pass.
#[derive(Deserialize, Default)]
pub(super) struct Item<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Str<'a>>,
    #[serde(borrow)]
    id: Option<Str<'a>>,
    #[serde(borrow)]
    role: Option<Str<'a>>,
    #[serde(borrow)]
    content: Option<Content<'a, Item<'a>>>,
    /// A part's text, or the object of a `configuration_update`.
    #[serde(borrow)]
    text: Option<Content<'a, TextConfig<'a>>>,
    /// Of a `configuration_update`.
    #[serde(borrow)]
    reasoning: Option<Content<'a, WireReasoning<'a>>>,
    #[serde(borrow)]
    refusal: Option<Str<'a>>,
    #[serde(borrow)]
    image_url: Option<Str<'a>>,
    #[serde(borrow)]
    detail: Option<Str<'a>>,
    #[serde(borrow)]
    file_data: Option<Str<'a>>,
    #[serde(borrow)]
    file_url: Option<Str<'a>>,
    #[serde(borrow)]
    filename: Option<Str<'a>>,
    #[serde(borrow)]
    call_id: Option<Str<'a>>,
    #[serde(borrow)]
    name: Option<Str<'a>>,
    #[serde(borrow)]
    namespace: Option<Str<'a>>,
    #[serde(borrow)]
    arguments: Option<Arguments<'a>>,
    #[serde(borrow)]
    input: Option<Content<'a, IgnoredAny>>,
    #[serde(borrow)]
    output: Option<Content<'a, Item<'a>>>,
    #[serde(borrow)]
    summary: Option<List<'a, Item<'a>>>,
    #[serde(borrow)]
    encrypted_content: Option<Str<'a>>,
    #[serde(borrow)]
    tools: Option<List<'a, WireTool<'a>>>,
    prompt_cache_breakpoint: Option<IgnoredAny>,
    /// What a shell or a patch tool of the client does, as JSON.
    #[serde(borrow, alias = "operation")]
    action: Option<Json<'a>>,
    /// Of one command of a shell.
    #[serde(borrow)]
    stdout: Option<Str<'a>>,
    #[serde(borrow)]
    stderr: Option<Str<'a>>,
    #[serde(borrow)]
    outcome: Option<Json<'a>>,
}

/// The content of the input.
#[derive(Default)]
pub(super) struct Input<'a> {
    /// Instructions before the first other item.
    pub system: Vec<Str<'a>>,
    pub turns: Vec<Turn<'a>>,
    /// Tools that were added before the conversation.
    pub tools: Vec<Tool<'a>>,
    /// The last update of the effort.
    pub effort: Option<Effort>,
    /// The last update of the output's format.
    pub format: Option<Format<'a>>,
    /// The last turn consists of results, which are collected in one turn.
    in_results: bool,
}

/// Reads `input`.
///
/// # Errors
/// An item that cannot be converted, by its path.
pub(super) fn read<'a>(
    input: Content<'a, Item<'a>>,
    rules: &mut Rules,
) -> Result<Input<'a>, Unsupported> {
    let mut all = Input::default();
    match input {
        Content::Text(text) => {
            all.turns.push(Turn { role: Role::User, parts: vec![Part::Text(text)] })
        }
        Content::Parts(items) => {
            for (index, item) in items.into_iter().enumerate() {
                let field = format!("input.{index}");
                let item = item.map_err(|unread| locate::element(&field, &unread))?;
                all.add(item, &field, rules)?;
            }
        }
    }
    Ok(all)
}

impl<'a> Input<'a> {
    fn add(&mut self, item: Item<'a>, field: &str, rules: &mut Rules) -> Result<(), Unsupported> {
        let kind = match (item.kind.as_deref(), &item.role) {
            (Some(kind), _) => kind.to_owned(),
            (None, Some(_)) => "message".to_owned(),
            (None, None) => "item_reference".to_owned(),
        };
        match kind.as_str() {
            "message" => self.add_message(item, field, rules)?,
            "input_text" | "input_image" | "input_file" | "text" => {
                let part = read_part(item, field, rules)?;
                self.push(Role::User, part, false);
            }
            "output_text" | "refusal" => {
                let part = read_part(item, field, rules)?;
                self.push(Role::Assistant, part, true);
            }
            "function_call" | "custom_tool_call" => {
                let call = read_call(item, &kind, field)?;
                self.push(Role::Assistant, Part::ToolCall(call), true);
            }
            "shell_call" | "local_shell_call" | "apply_patch_call" if item.call_id.is_some() => {
                let call = read_own_call(item, &kind);
                self.push(Role::Assistant, Part::ToolCall(call), true);
            }
            "function_call_output"
            | "custom_tool_call_output"
            | "shell_call_output"
            | "local_shell_call_output"
            | "apply_patch_call_output" => {
                let result = read_result(item, field, rules)?;
                let joins = self.in_results;
                self.push(Role::User, Part::ToolResult(result), joins);
                self.in_results = true;
                return Ok(());
            }
            "reasoning" => {
                let thinking = read_reasoning(item, field)?;
                self.push(Role::Assistant, Part::Thinking(thinking), true);
            }
            "additional_tools" => {
                let place = format!("{field}.tools");
                let tools = item.tools.unwrap_or_default();
                if self.turns.is_empty() {
                    request_tools::read(tools, &place, None, &mut self.tools, rules)?;
                } else {
                    let mut new = Vec::new();
                    request_tools::read(tools, &place, None, &mut new, rules)?;
                    let parts = vec![Part::NewTools(new)];
                    self.turns.push(Turn { role: Role::System, parts });
                }
            }
            "configuration_update" => self.update(item, field)?,
            "item_reference" => return Err(Rule::Stored.refuse(field)),
            // Steps of tools that the vendor runs, and other items that only the vendor can read.
            _ => rules.note(Rule::VendorHistory),
        }
        self.in_results = false;
        Ok(())
    }

    fn add_message(
        &mut self,
        item: Item<'a>,
        field: &str,
        rules: &mut Rules,
    ) -> Result<(), Unsupported> {
        let role = match item.role.as_deref() {
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            Some("system" | "developer") => Role::System,
            _ => return Err(Rule::Unknown.refuse(format!("{field}.role"))),
        };
        let parts =
            read_content(item.content.unwrap_or_default(), &format!("{field}.content"), rules)?;
        match role {
            Role::System if self.turns.is_empty() => {
                self.system.extend(parts.into_iter().filter_map(Part::into_text))
            }
            Role::Assistant => {
                parts.into_iter().for_each(|part| self.push(Role::Assistant, part, true))
            }
            role => self.turns.push(Turn { role, parts }),
        }
        Ok(())
    }

    /// Each setting holds until a later update of it: for the reply, the last one.
    fn update(&mut self, item: Item<'a>, field: &str) -> Result<(), Unsupported> {
        if let Some(text) = object(item.text, || format!("{field}.text"))? {
            self.format = text.format.or(self.format.take());
        }
        if let Some(reasoning) = object(item.reasoning, || format!("{field}.reasoning"))? {
            self.effort = reasoning.effort().or(self.effort);
        }
        Ok(())
    }

    /// Adds a part to the last turn if it may join it and the role is the same; otherwise to a new
    /// one.
    fn push(&mut self, role: Role, part: Part<'a>, joins: bool) {
        match self.turns.last_mut() {
            Some(last) if joins && last.role == role => last.parts.push(part),
            _ => self.turns.push(Turn { role, parts: vec![part] }),
        }
    }
}

/// The object of a member that other kinds of items have too, as a string.
fn object<'a, T: Deserialize<'a>>(
    member: Option<Content<'a, T>>,
    field: impl Fn() -> String,
) -> Result<Option<T>, Unsupported> {
    match member {
        None => Ok(None),
        Some(Content::Text(_)) => Err(Unsupported::new(field(), "an object is expected")),
        Some(Content::Parts(parts)) => {
            parts.first().map_err(|unread| locate::element(&field(), &unread))
        }
    }
}

fn read_content<'a>(
    content: Content<'a, Item<'a>>,
    field: &str,
    rules: &mut Rules,
) -> Result<Vec<Part<'a>>, Unsupported> {
    match content {
        Content::Text(text) => Ok(vec![Part::Text(text)]),
        Content::Parts(parts) => {
            let mut all = Vec::with_capacity(parts.room());
            for (index, part) in parts.into_iter().enumerate() {
                let field = format!("{field}.{index}");
                let part = part.map_err(|unread| locate::element(&field, &unread))?;
                all.push(read_part(part, &field, rules)?);
            }
            Ok(all)
        }
    }
}

fn read_part<'a>(part: Item<'a>, field: &str, rules: &mut Rules) -> Result<Part<'a>, Unsupported> {
    if part.outcome.is_some() || part.stdout.is_some() {
        return Ok(Part::Text(command_output(&part).into()));
    }
    rules.note_if(part.prompt_cache_breakpoint.is_some(), Rule::CacheMarks);
    let missing =
        |name: &str| Unsupported::new(format!("{field}.{name}"), "this field is required");
    match part.kind.as_deref() {
        None | Some("input_text" | "output_text" | "text" | "summary_text" | "reasoning_text") => {
            match part.text {
                Some(Content::Text(text)) => Ok(Part::Text(text)),
                None => Err(missing("text")),
                Some(_) => Err(Unsupported::new(format!("{field}.text"), "a string is expected")),
            }
        }
        Some("refusal") => Ok(Part::Text(part.refusal.ok_or_else(|| missing("refusal"))?)),
        Some("input_image") => {
            let url =
                part.image_url.ok_or_else(|| Rule::FileIds.refuse(format!("{field}.file_id")))?;
            let media =
                Media::from_url(url.into_text(), MediaKind::Image, &format!("{field}.image_url"))?;
            Ok(Part::Media(Media { detail: part.detail.map(Str::into_text), ..media }))
        }
        Some("input_file") => {
            let name = part.filename.map(Str::into_text);
            let media = match (part.file_data, part.file_url) {
                (Some(data), _) if is_data_url(&data) => Media::from_url(
                    data.into_text(),
                    MediaKind::Document,
                    &format!("{field}.file_data"),
                )?,
                (Some(data), _) => Media::base64("application/pdf".into(), data.into_text()),
                (None, Some(url)) => Media::from_url(
                    url.into_text(),
                    MediaKind::Document,
                    &format!("{field}.file_url"),
                )?,
                (None, None) => return Err(Rule::FileIds.refuse(format!("{field}.file_id"))),
            };
            Ok(Part::Media(Media { name, ..media }))
        }
        Some(_) => Err(Rule::Unknown.refuse(format!("{field}.type"))),
    }
}

fn read_call<'a>(item: Item<'a>, kind: &str, field: &str) -> Result<ToolCall<'a>, Unsupported> {
    let missing =
        |name: &str| Unsupported::new(format!("{field}.{name}"), "this field is required");
    let text = |content: Option<Content<'a, IgnoredAny>>| match content {
        Some(Content::Text(text)) => text.into_text(),
        _ => Text::default(),
    };
    let arguments = if kind == "custom_tool_call" {
        let bytes = json::document(|o| o.str("input", &text(item.input)));
        Text::Owned(String::from_utf8(bytes).unwrap_or_default())
    } else {
        item.arguments.unwrap_or_default().into_text()
    };
    Ok(ToolCall {
        id: item.call_id.ok_or_else(|| missing("call_id"))?.into_text(),
        name: ToolName {
            namespace: item.namespace.map(Str::into_text),
            name: item.name.ok_or_else(|| missing("name"))?.into_text(),
        },
        arguments,
    })
}

/// A call of one of the format's own tools, whose arguments are an object. For other formats it is a
/// function of the same name.
fn read_own_call<'a>(item: Item<'a>, kind: &str) -> ToolCall<'a> {
    ToolCall {
        id: item.call_id.map(Str::into_text).unwrap_or_default(),
        name: ToolName::plain(kind.trim_end_matches("_call").to_owned()),
        arguments: item.action.map_or("{}", |action| action.get()).into(),
    }
}

/// What one command wrote, and how it ended unless that was well.
fn command_output(item: &Item<'_>) -> String {
    let texts = [&item.stdout, &item.stderr].into_iter().flatten();
    let mut lines: Vec<String> = texts.map(|text| text.to_string()).collect();
    let outcome = item.outcome.map(|outcome| outcome.get()).unwrap_or_default();
    if !outcome.contains("\"exit_code\":0") && !outcome.contains("\"exit_code\": 0") {
        lines.push(outcome.to_owned());
    }
    lines.retain(|line| !line.is_empty());
    lines.join("\n")
}

fn read_result<'a>(
    item: Item<'a>,
    field: &str,
    rules: &mut Rules,
) -> Result<ToolResult<'a>, Unsupported> {
    let id = item
        .call_id
        .or(item.id)
        .ok_or_else(|| Unsupported::new(format!("{field}.call_id"), "this field is required"))?;
    let parts = read_content(item.output.unwrap_or_default(), &format!("{field}.output"), rules)?;
    Ok(ToolResult { id: id.into_text(), name: ToolName::default(), parts, is_error: false })
}

fn read_reasoning<'a>(item: Item<'a>, field: &str) -> Result<Thinking<'a>, Unsupported> {
    let texts = |parts: List<'a, Item<'a>>| {
        let text = |part: Item<'a>| match part.text {
            Some(Content::Text(text)) => Some(text),
            _ => None,
        };
        parts.collect(text).map_err(|unread| locate::element(field, &unread))
    };
    let mut texts_of_it = texts(item.summary.unwrap_or_default())?;
    if texts_of_it.is_empty()
        && let Some(Content::Parts(parts)) = item.content
    {
        texts_of_it = texts(parts)?;
    }
    let texts = texts_of_it;
    let text = Str::join(texts, "\n\n");
    let signature = item.encrypted_content.map(|proof| {
        let proof = proof.into_text();
        match (proof.starts_with(signature::MARK), item.id) {
            // The service binds its own proof to the item's id: both must be sent back.
            (false, Some(id)) => Signature::new(Origin::Responses, format!("{}.{proof}", &*id)),
            _ => Signature::open(proof, Origin::Responses),
        }
    });
    Ok(Thinking { text, signature })
}
