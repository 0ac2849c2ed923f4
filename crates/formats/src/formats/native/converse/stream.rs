//! Events of `ConverseStream` as those of the native format.
//!
//! The service announces only blocks that are calls; readers of the native format begin the others
//! with their first delta. Why the model stopped comes before the figures: both are said in one
//! event, after which nothing is missing.

use serde::Deserialize;

use super::reply::ToolUse;
use super::stop_reason;
use super::usage::WireUsage;
use crate::formats::conversation::Str;
use crate::formats::conversation::frame::typed;
use crate::formats::conversation::json::Object;
use crate::formats::json_read;

/// State of one stream.
#[derive(Debug, Default)]
pub struct ConverseStream {
    /// Why the model stopped.
    stop: Option<String>,
    stopped: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireEvent<'a> {
    #[serde(default)]
    content_block_index: u64,
    #[serde(borrow)]
    start: Option<Start<'a>>,
    #[serde(borrow)]
    delta: Option<BlockDelta<'a>>,
    #[serde(borrow)]
    stop_reason: Option<Str<'a>>,
    #[serde(borrow)]
    usage: Option<WireUsage<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Start<'a> {
    #[serde(borrow)]
    tool_use: Option<ToolUse<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BlockDelta<'a> {
    #[serde(borrow)]
    text: Option<Str<'a>>,
    #[serde(borrow)]
    tool_use: Option<Arguments<'a>>,
    #[serde(borrow)]
    reasoning_content: Option<ReasoningDelta<'a>>,
}

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    input: Str<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReasoningDelta<'a> {
    #[serde(borrow)]
    text: Option<Str<'a>>,
    #[serde(borrow)]
    signature: Option<Str<'a>>,
    #[serde(borrow)]
    redacted_content: Option<Str<'a>>,
}

impl ConverseStream {
    /// Writes what an event of this name says.
    ///
    /// # Errors
    /// Its payload is not that of such an event.
    pub fn event(
        &mut self,
        name: &str,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> serde_json::Result<()> {
        if name == "messageStart" {
            typed(out, "message_start", |o| {
                o.object("message", |o| o.word("role", "assistant"));
            });
            return Ok(());
        }
        let names = [
            "contentBlockStart",
            "contentBlockDelta",
            "contentBlockStop",
            "messageStop",
            "metadata",
        ];
        if !names.contains(&name) {
            return Ok(());
        }
        let event: WireEvent<'_> = json_read::read(payload)?;
        let index = event.content_block_index;
        match name {
            "contentBlockStart" => write_start(out, index, event.start),
            "contentBlockDelta" => write_delta(out, index, event.delta),
            "contentBlockStop" => typed(out, "content_block_stop", |o| o.uint("index", index)),
            "messageStop" => {
                self.stopped = true;
                self.stop = event.stop_reason.as_deref().and_then(stop_reason).map(str::to_owned);
            }
            _ => self.write_end(out, event.usage),
        }
        Ok(())
    }

    fn write_end(&self, out: &mut Vec<u8>, usage: Option<WireUsage<'_>>) {
        typed(out, "message_delta", |o| {
            o.object("delta", |o| o.opt_str("stop_reason", self.stop.as_deref()));
            if let Some(usage) = usage {
                usage.write(o);
            }
        });
        if self.stopped {
            typed(out, "message_stop", |_| {});
        }
    }
}

/// A call; blocks of other kinds are not shown.
fn write_start(out: &mut Vec<u8>, index: u64, start: Option<Start<'_>>) {
    let call = start.and_then(|start| start.tool_use);
    begin(out, index, |o| match call {
        Some(call) if call.kind.is_none() => {
            o.word("type", "tool_use");
            o.opt_text("id", call.tool_use_id.as_ref());
            o.opt_text("name", call.name.as_ref());
            o.raw("input", "{}");
        }
        _ => o.word("type", "server_tool_use"),
    });
}

fn begin(out: &mut Vec<u8>, index: u64, fill: impl FnOnce(&mut Object<'_>)) {
    typed(out, "content_block_start", |o| {
        o.uint("index", index);
        o.object("content_block", fill);
    });
}

fn write_delta(out: &mut Vec<u8>, index: u64, delta: Option<BlockDelta<'_>>) {
    let Some(delta) = delta else { return };
    let mut write = |kind: &'static str, member: &'static str, text: Option<Str<'_>>| {
        let Some(text) = text else { return };
        typed(out, "content_block_delta", |o| {
            o.uint("index", index);
            o.object("delta", |o| {
                o.word("type", kind);
                o.text(member, &text);
            });
        });
    };
    write("text_delta", "text", delta.text);
    write("input_json_delta", "partial_json", delta.tool_use.map(|call| call.input));
    let Some(reasoning) = delta.reasoning_content else { return };
    write("thinking_delta", "thinking", reasoning.text);
    write("signature_delta", "signature", reasoning.signature);
    if let Some(data) = reasoning.redacted_content {
        begin(out, index, |o| {
            o.word("type", "redacted_thinking");
            o.text("data", &data);
        });
    }
}
