//! Reads tools and tool choice.

use serde::Deserialize;

use crate::formats::conversation::{
    Content, Rule, Rules, Str, Text, Tool, ToolChoice, ToolKind, ToolName, Unsupported, WebSearch,
    schema,
};
use crate::formats::json_read::{self, Json};

/// A tool, or a namespace of tools.
#[derive(Deserialize)]
pub(super) struct WireTool<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Str<'a>>,
    #[serde(borrow)]
    name: Option<Str<'a>>,
    #[serde(borrow)]
    description: Option<Str<'a>>,
    #[serde(borrow)]
    parameters: Option<Json<'a>>,
    strict: Option<bool>,
    #[serde(borrow)]
    format: Option<Json<'a>>,
    #[serde(borrow)]
    tools: Option<Vec<WireTool<'a>>>,
    #[serde(borrow)]
    filters: Option<Json<'a>>,
    #[serde(borrow)]
    user_location: Option<Json<'a>>,
    external_web_access: Option<bool>,
    #[serde(borrow)]
    search_context_size: Option<Json<'a>>,
}

#[derive(Deserialize, Default)]
struct Filters<'a> {
    #[serde(borrow, default)]
    allowed_domains: Option<Vec<Str<'a>>>,
    #[serde(borrow, default)]
    blocked_domains: Option<Vec<Str<'a>>>,
}

/// A choice that is not just a word.
#[derive(Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Str<'a>>,
    #[serde(borrow)]
    name: Option<Str<'a>>,
    #[serde(borrow)]
    mode: Option<Str<'a>>,
    #[serde(borrow)]
    tools: Option<Vec<Choice<'a>>>,
}

/// Reads a list of tools, the one at `field`, into `all`; those of a namespace carry its name.
///
/// # Errors
/// The tool that has no name.
pub(super) fn read<'a>(
    tools: Vec<WireTool<'a>>,
    (field, namespace): (&str, Option<&Str<'a>>),
    all: &mut Vec<Tool<'a>>,
    rules: &mut Rules,
) -> Result<(), Unsupported> {
    for (index, tool) in tools.into_iter().enumerate() {
        let kind = match tool.kind.as_deref() {
            Some("function") | None => ToolKind::Function {
                schema: schema::read_tool(tool.parameters, rules),
                strict: tool.strict,
            },
            Some("custom") => ToolKind::FreeText { format: tool.format },
            Some("namespace") => {
                rules.note(Rule::Namespaces);
                let inner = (&*format!("{field}.{index}.tools"), tool.name.as_ref());
                read(tool.tools.unwrap_or_default(), inner, all, rules)?;
                continue;
            }
            // A search without external access exists only at this vendor.
            Some(kind)
                if kind.starts_with("web_search") && tool.external_web_access != Some(false) =>
            {
                ToolKind::WebSearch(read_search(&tool))
            }
            Some(_) => {
                rules.note(Rule::VendorTools);
                continue;
            }
        };
        let name = match (tool.name, &kind) {
            (Some(name), _) => name.into_text(),
            (None, ToolKind::WebSearch(_)) => "web_search".into(),
            (None, _) => return Err(Unsupported::missing(format!("{field}.{index}.name"))),
        };
        let namespace = namespace.map(|space| space.clone().into_text());
        all.push(Tool { name: ToolName { namespace, name }, description: tool.description, kind });
    }
    Ok(())
}

fn read_search<'a>(tool: &WireTool<'a>) -> WebSearch<'a> {
    let filters: Filters<'a> = tool
        .filters
        .and_then(|filters| json_read::from_str(filters.get()).ok())
        .unwrap_or_default();
    WebSearch {
        allowed_domains: domains(filters.allowed_domains),
        blocked_domains: domains(filters.blocked_domains),
        user_location: tool
            .user_location
            .filter(|location| location.get() != "null")
            .map(schema::validated),
        has_more: tool.search_context_size.is_some(),
        max_uses: None,
    }
}

fn domains(list: Option<Vec<Str<'_>>>) -> Vec<Text<'_>> {
    list.into_iter().flatten().map(Str::into_text).collect()
}

/// Reads a tool choice. A namespaced tool is chosen by its bare name.
pub(super) fn read_choice<'a>(
    choice: Content<'a, Choice<'a>>,
    tools: &[Tool<'a>],
    rules: &mut Rules,
) -> Option<ToolChoice<'a>> {
    let choice = match choice {
        Content::Text(word) => {
            return match &*word {
                "auto" => Some(ToolChoice::Auto),
                "required" => Some(ToolChoice::Required),
                "none" => Some(ToolChoice::None),
                _ => None,
            };
        }
        Content::Parts(choices) => choices.into_iter().next()?,
    };
    match choice.kind.as_deref() {
        Some("function" | "custom") => Some(ToolChoice::Tool(known_name(choice.name?, tools))),
        Some("allowed_tools") => {
            let names = choice
                .tools
                .into_iter()
                .flatten()
                .filter_map(|tool| Some(known_name(tool.name?, tools)));
            Some(ToolChoice::Allowed {
                names: names.collect(),
                required: choice.mode.as_deref() == Some("required"),
            })
        }
        Some(kind) if kind.starts_with("web_search") => Some(ToolChoice::WebSearch),
        _ => {
            rules.note(Rule::VendorTools);
            None
        }
    }
}

fn known_name<'a>(name: Str<'a>, tools: &[Tool<'a>]) -> ToolName<'a> {
    let known = tools.iter().find(|tool| *tool.name.name == *name);
    known.map_or_else(|| ToolName::plain(name.into_text()), |tool| tool.name.clone())
}
