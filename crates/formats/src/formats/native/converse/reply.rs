//! A reply of `Converse` as one of the native format, without its id and model, which the service
//! does not say.

use serde::Deserialize;

use super::stop_reason;
use super::usage::WireUsage;
use crate::formats::conversation::json::{self, Array};
use crate::formats::conversation::{ReplyProblem, Str, locate};
use crate::formats::json_read::{self, Json, List};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConverseBody<'a> {
    #[serde(borrow)]
    output: Output<'a>,
    #[serde(borrow)]
    stop_reason: Option<Str<'a>>,
    #[serde(borrow)]
    usage: Option<WireUsage<'a>>,
}

#[derive(Deserialize)]
struct Output<'a> {
    #[serde(borrow)]
    message: ConverseMessage<'a>,
}

#[derive(Deserialize)]
struct ConverseMessage<'a> {
    #[serde(borrow)]
    content: List<'a, Block<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Block<'a> {
    #[serde(borrow)]
    text: Option<Str<'a>>,
    #[serde(borrow)]
    tool_use: Option<ToolUse<'a>>,
    #[serde(borrow)]
    reasoning_content: Option<ReasoningContent<'a>>,
    #[serde(borrow)]
    citations_content: Option<Citations<'a>>,
}

/// The beginning of a call, or all of it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolUse<'a> {
    #[serde(borrow)]
    pub tool_use_id: Option<Str<'a>>,
    #[serde(borrow)]
    pub name: Option<Str<'a>>,
    #[serde(borrow)]
    input: Option<Json<'a>>,
    /// `server_tool_use`: a tool that the vendor runs.
    #[serde(borrow, rename = "type")]
    pub kind: Option<Str<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReasoningContent<'a> {
    #[serde(borrow)]
    reasoning_text: Option<ReasoningText<'a>>,
    #[serde(borrow)]
    redacted_content: Option<Str<'a>>,
}

#[derive(Deserialize)]
struct ReasoningText<'a> {
    #[serde(borrow)]
    text: Option<Str<'a>>,
    #[serde(borrow)]
    signature: Option<Str<'a>>,
}

/// Text with its sources, which are not kept.
#[derive(Deserialize)]
struct Citations<'a> {
    #[serde(borrow)]
    content: Option<List<'a, Cited<'a>>>,
}

#[derive(Deserialize)]
struct Cited<'a> {
    #[serde(borrow)]
    text: Option<Str<'a>>,
}

/// The body of a reply in the native format.
///
/// # Errors
/// It is not a reply of `Converse`.
pub fn native(body: &[u8]) -> Result<Vec<u8>, ReplyProblem> {
    let problem = |message: String| ReplyProblem::NotAReply { format: "Converse", message };
    let reply: ConverseBody<'_> = json_read::read(body)
        .map_err(|error| problem(locate::problem(body, &error).to_string()))?;
    let blocks = reply.output.message.content.collect(Some);
    let blocks = blocks.map_err(|error| problem(locate::unread(&error).to_string()))?;
    Ok(json::document_of(body.len() + 128, |o| {
        o.word("type", "message");
        o.word("role", "assistant");
        o.array("content", |a| blocks.into_iter().for_each(|block| write_block(a, block)));
        match reply.stop_reason.as_deref().and_then(stop_reason) {
            Some(reason) => o.str("stop_reason", reason),
            None => o.null("stop_reason"),
        }
        o.null("stop_sequence");
        if let Some(usage) = &reply.usage {
            usage.write(o);
        }
    }))
}

fn write_block(a: &mut Array<'_>, block: Block<'_>) {
    let mut text = |text: Option<Str<'_>>| {
        if let Some(text) = text {
            a.typed("text", |o| o.text("text", &text));
        }
    };
    text(block.text);
    let cited = block.citations_content.and_then(|citations| citations.content);
    cited.into_iter().flatten().filter_map(Result::ok).for_each(|cited| text(cited.text));
    if let Some(call) = block.tool_use {
        a.typed(if call.kind.is_some() { "server_tool_use" } else { "tool_use" }, |o| {
            o.opt_text("id", call.tool_use_id.as_ref());
            o.opt_text("name", call.name.as_ref());
            o.raw("input", call.input.map_or("{}", Json::get));
        });
    }
    let Some(reasoning) = block.reasoning_content else { return };
    if let Some(said) = reasoning.reasoning_text {
        a.typed("thinking", |o| {
            o.text("thinking", &said.text.unwrap_or_default());
            o.opt_text("signature", said.signature.as_ref());
        });
    }
    if let Some(data) = reasoning.redacted_content {
        a.typed("redacted_thinking", |o| o.text("data", &data));
    }
}
