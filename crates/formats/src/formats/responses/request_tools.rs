//! Reads tools and tool choice.

use std::collections::HashMap;

use serde::Deserialize;

use crate::formats::conversation::locate::texts;
use crate::formats::conversation::{
    Content, Rule, Rules, Str, Tool, ToolChoice, ToolKind, ToolName, Unsupported, WebSearch,
    locate, schema,
};
use crate::formats::json_read::{self, Json, List, Unread};

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
    tools: Option<List<'a, WireTool<'a>>>,
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
    allowed_domains: Option<List<'a, Str<'a>>>,
    #[serde(borrow, default)]
    blocked_domains: Option<List<'a, Str<'a>>>,
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
    tools: Option<List<'a, Choice<'a>>>,
}

/// Reads a list of tools, the one at `field`, into `all`; those of a namespace carry its name.
///
/// # Errors
/// The tool that has no name.
pub(super) fn read<'a>(
    tools: List<'a, WireTool<'a>>,
    field: &str,
    namespace: Option<&Str<'a>>,
    all: &mut Vec<Tool<'a>>,
    rules: &mut Rules,
) -> Result<(), Unsupported> {
    all.reserve_exact(tools.room());
    for (index, tool) in tools.into_iter().enumerate() {
        let tool = tool.map_err(|unread| locate::element(&format!("{field}.{index}"), &unread))?;
        let kind = match tool.kind.as_deref() {
            Some("function") | None => ToolKind::Function {
                schema: schema::read_tool(tool.parameters, rules),
                strict: tool.strict,
            },
            Some("custom") => ToolKind::FreeText { format: tool.format },
            Some("namespace") => {
                rules.note(Rule::Namespaces);
                let inner = format!("{field}.{index}.tools");
                read(tool.tools.unwrap_or_default(), &inner, tool.name.as_ref(), all, rules)?;
                continue;
            }
            // A search without external access exists only at this vendor.
            Some(kind)
                if kind.starts_with("web_search") && tool.external_web_access != Some(false) =>
            {
                ToolKind::WebSearch(Box::new(read_search(&tool)?))
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

fn read_search<'a>(tool: &WireTool<'a>) -> Result<WebSearch<'a>, Unsupported> {
    let filters: Filters<'a> = tool
        .filters
        .and_then(|filters| json_read::from_str(filters.get()).ok())
        .unwrap_or_default();
    Ok(WebSearch {
        allowed_domains: texts(filters.allowed_domains, "tools")?,
        blocked_domains: texts(filters.blocked_domains, "tools")?,
        user_location: tool
            .user_location
            .filter(|location| location.get() != "null")
            .map(schema::validated),
        has_more: tool.search_context_size.is_some(),
        max_uses: None,
    })
}

/// Reads a tool choice. A namespaced tool is chosen by its bare name.
pub(super) fn read_choice<'a>(
    choice: Content<'a, Choice<'a>>,
    tools: &[ToolName<'a>],
    rules: &mut Rules,
) -> Result<Option<ToolChoice<'a>>, Unsupported> {
    let wrong = |unread: Unread<'_>| locate::element("tool_choice", &unread);
    let choice = match choice {
        Content::Text(word) => {
            return Ok(match &*word {
                "auto" => Some(ToolChoice::Auto),
                "required" => Some(ToolChoice::Required),
                "none" => Some(ToolChoice::None),
                _ => None,
            });
        }
        Content::Parts(choices) => match choices.first().map_err(wrong)? {
            Some(choice) => choice,
            None => return Ok(None),
        },
    };
    Ok(match choice.kind.as_deref() {
        Some("function" | "custom") => {
            choice.name.map(|name| ToolChoice::Tool(known_name(name, tools)))
        }
        Some("allowed_tools") => {
            let all = choice.tools.unwrap_or_default();
            // Of tools with the same name in two namespaces, the first one.
            let known: HashMap<&str, &ToolName<'a>> =
                tools.iter().rev().map(|name| (&*name.name, name)).collect();
            Some(ToolChoice::Allowed {
                names: all
                    .collect(|tool| {
                        let name = tool.name?;
                        let its = known.get(&*name).copied().cloned();
                        Some(its.unwrap_or_else(|| ToolName::plain(name.into_text())))
                    })
                    .map_err(wrong)?,
                required: choice.mode.as_deref() == Some("required"),
            })
        }
        Some(kind) if kind.starts_with("web_search") => Some(ToolChoice::WebSearch),
        _ => {
            rules.note(Rule::VendorTools);
            None
        }
    })
}

fn known_name<'a>(name: Str<'a>, tools: &[ToolName<'a>]) -> ToolName<'a> {
    let known = tools.iter().find(|tool| *tool.name == *name).cloned();
    known.unwrap_or_else(|| ToolName::plain(name.into_text()))
}
