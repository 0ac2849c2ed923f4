//! Writes `toolConfig`.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::Value;

use super::model::ConverseModel;
use super::request::write_point;
use crate::domain::format::WireFormat;
use crate::formats::conversation::json::Object;
use crate::formats::conversation::{
    CacheMark, Part, Request, Rule, Rules, Tool, ToolChoice, ToolKind, schema,
};
use crate::formats::names::wire_name;

/// The schema of a tool of which only calls in the history are known.
const ANY_ARGUMENTS: &str = r#"{"type":"object"}"#;

/// Writes the tools and the choice among them. The service refuses calls in the history without a
/// list of tools: if the request has none, those that were called are listed.
pub(super) fn write(
    o: &mut Object<'_>,
    request: &Request<'_>,
    row: &ConverseModel,
    point: Option<CacheMark>,
    rules: &mut Rules,
) {
    let allowed = request.allowed_tools();
    rules.note_if(allowed.is_some(), Rule::AllowedTools);
    let is_sent = |tool: &&Tool<'_>| {
        let is_search = matches!(tool.kind, ToolKind::WebSearch(_));
        rules.note_if(is_search, Rule::WebSearchChat);
        !is_search && allowed.as_ref().is_none_or(|names| names.contains(&tool.name))
    };
    let mut tools: Vec<&Tool<'_>> = request.tools.iter().filter(is_sent).collect();
    let called = called(request);
    let is_forbidden = request.tool_choice == Some(ToolChoice::None);
    if is_forbidden && called.is_empty() {
        tools.clear();
    }
    rules.note_if(is_forbidden && !called.is_empty(), Rule::NoToolChoice);
    if tools.is_empty() && called.is_empty() {
        return;
    }
    rules.note_if(request.parallel_tools == Some(false), Rule::ParallelTools);
    rules.note_if(tools.is_empty(), Rule::CalledTools);
    o.object("toolConfig", |o| {
        o.array("tools", |a| {
            for tool in &tools {
                a.object(|o| o.object("toolSpec", |o| write_tool(o, tool, row, rules)));
            }
            for name in called.iter().filter(|_| tools.is_empty()) {
                a.object(|o| {
                    o.object("toolSpec", |o| {
                        o.str("name", name);
                        o.object("inputSchema", |o| o.raw("json", ANY_ARGUMENTS));
                    });
                });
            }
            if let Some(point) = point {
                write_point(a, point, row);
            }
        });
        if !tools.is_empty() {
            write_choice(o, request, row, rules);
        }
    });
}

/// The names of the calls in the history, each once.
fn called<'r>(request: &'r Request<'_>) -> Vec<Cow<'r, str>> {
    let mut known = HashSet::new();
    let parts = request.turns.iter().flat_map(|turn| &turn.parts);
    let names = parts.filter_map(|part| match part {
        Part::ToolCall(call) => Some(wire_name(&call.name, WireFormat::Native)),
        _ => None,
    });
    names.filter(|name| known.insert(name.clone())).collect()
}

fn write_choice(o: &mut Object<'_>, request: &Request<'_>, row: &ConverseModel, rules: &mut Rules) {
    let name = match &request.tool_choice {
        None | Some(ToolChoice::Auto | ToolChoice::None) => return,
        Some(ToolChoice::Allowed { required: false, .. }) => return,
        Some(ToolChoice::Tool(name)) => Some(wire_name(name, WireFormat::Native)),
        Some(ToolChoice::Required | ToolChoice::WebSearch | ToolChoice::Allowed { .. }) => None,
    };
    let kind = if name.is_some() { "tool" } else { "any" };
    if !row.takes_choice(kind) {
        return rules.note(Rule::ForcedTool);
    }
    o.object("toolChoice", |o| match name {
        Some(name) => o.object("tool", |o| o.str("name", &name)),
        None => o.object("any", |_| {}),
    });
}

fn write_tool(o: &mut Object<'_>, tool: &Tool<'_>, row: &ConverseModel, rules: &mut Rules) {
    o.str("name", &wire_name(&tool.name, WireFormat::Native));
    let description = tool.description.as_ref().filter(|text| !text.is_blank());
    match &tool.kind {
        ToolKind::FreeText { format } => {
            rules.note(Rule::FreeTextTools);
            let text = schema::free_text_description(description.map(|text| &**text), *format);
            o.str("description", &text);
            o.object("inputSchema", |o| o.raw("json", &taken(schema::FREE_TEXT, row, rules)));
        }
        ToolKind::Function { schema, strict } => {
            o.opt_text("description", description);
            let given = schema.as_deref().unwrap_or(schema::NO_ARGUMENTS);
            let is_strict = *strict == Some(true);
            let strictly =
                (is_strict && row.is_claude).then(|| schema::for_native_tool(given)).flatten();
            rules.note_if(is_strict && strictly.is_none(), Rule::StrictTools);
            let Some((schema, changed)) = strictly else {
                return o.object("inputSchema", |o| o.raw("json", &taken(given, row, rules)));
            };
            rules.note_if(changed, Rule::SchemaKeywords);
            o.object("inputSchema", |o| o.raw("json", &schema));
            o.bool("strict", true);
        }
        // Left out before.
        ToolKind::WebSearch(_) => {}
    }
}

/// The schema with the members at its top that the model takes.
fn taken<'s>(schema: &'s str, row: &ConverseModel, rules: &mut Rules) -> Cow<'s, str> {
    if row.schema_members.is_empty() {
        return schema.into();
    }
    let Ok(Value::Object(mut members)) = serde_json::from_str(schema) else { return schema.into() };
    let before = members.len();
    members.retain(|name, _| row.schema_members.iter().any(|taken| taken == name));
    if members.len() == before {
        return schema.into();
    }
    rules.note(Rule::SchemaKeywords);
    Value::Object(members).to_string().into()
}
