//! Reads tools and the choice among them.

use serde::Deserialize;

use crate::formats::conversation::locate::texts;
use crate::formats::conversation::{
    Rule, Rules, Str, Tool, ToolChoice, ToolKind, ToolName, Unsupported, WebSearch, number, schema,
};
use crate::formats::json_read::{Json, List};

/// A tool as the request lists it.
#[derive(Deserialize)]
pub(super) struct WireTool<'a> {
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
    #[serde(borrow)]
    pub cache_control: Option<Json<'a>>,
}

/// Which tools the model must or may call.
#[derive(Deserialize)]
pub(super) struct NativeToolChoice<'a> {
    #[serde(borrow, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow)]
    name: Option<Str<'a>>,
    pub disable_parallel_tool_use: Option<bool>,
}

/// Reads one tool, which stands at `field`. `None` for one that only this vendor runs.
///
/// # Errors
/// It has no name.
pub(super) fn read<'a>(
    tool: WireTool<'a>,
    field: impl FnOnce() -> String,
    rules: &mut Rules,
) -> Result<Option<Tool<'a>>, Unsupported> {
    if tool.name.is_none() && matches!(tool.kind.as_deref(), None | Some("custom")) {
        return Err(Unsupported::missing(format!("{}.name", field())));
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

/// Reads the choice among these tools.
pub(super) fn read_choice<'a, 't>(
    choice: NativeToolChoice<'a>,
    mut tools: impl Iterator<Item = &'t Tool<'a>>,
    rules: &mut Rules,
) -> Option<ToolChoice<'a>>
where
    'a: 't,
{
    match &*choice.kind {
        "auto" => Some(ToolChoice::Auto),
        "any" => Some(ToolChoice::Required),
        "none" => Some(ToolChoice::None),
        _ => {
            let name = choice.name.unwrap_or_default().into_text();
            match tools.find(|tool| tool.name.name == name) {
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
