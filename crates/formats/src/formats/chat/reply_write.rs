//! Writes a chat-compatible reply.

use super::usage;
use crate::formats::conversation::json::{self, Array, Object};
use crate::formats::conversation::{Finish, Reply, ReplyContext, ReplyPart, Str, ToolCall, schema};
use crate::formats::names::call_id;

/// Writes a completion.
pub fn write(reply: &Reply<'_>, context: &ReplyContext) -> Vec<u8> {
    json::document_of(reply.size(), |o| {
        write_head(o, context, "chat.completion");
        o.array("choices", |a| {
            a.object(|o| {
                o.uint("index", 0);
                o.object("message", |o| write_message(o, reply, context));
                o.null("logprobs");
                o.str("finish_reason", finish_word(&reply.finish));
            });
        });
        usage::write(o, &reply.usage);
    })
}

/// The first members of a completion and of a chunk.
pub fn write_head(o: &mut Object<'_>, context: &ReplyContext, object: &str) {
    o.str("id", &context.id("chatcmpl-"));
    o.str("object", object);
    o.raw("created", &context.created.to_string());
    o.str("model", &context.model);
}

/// The `finish_reason` for a neutral reason, such as `tool_calls`.
pub fn finish_word(finish: &Finish) -> &'static str {
    match finish {
        Finish::Stop | Finish::StopSequence(_) => "stop",
        Finish::Length => "length",
        Finish::ToolCalls => "tool_calls",
        Finish::Refusal => "content_filter",
    }
}

fn write_message(o: &mut Object<'_>, reply: &Reply<'_>, context: &ReplyContext) {
    let (mut texts, mut refusals, mut reasoning) = (Vec::new(), Vec::new(), Vec::new());
    let mut calls = Vec::new();
    for part in &reply.parts {
        match part {
            ReplyPart::Text(text) => texts.push(text),
            ReplyPart::Refusal(text) => refusals.push(text),
            ReplyPart::Thinking(thinking) => reasoning.push(&thinking.text),
            ReplyPart::ToolCall(call) => calls.push(call),
        }
    }
    o.word("role", "assistant");
    write_or_null(o, "content", texts);
    write_or_null(o, "refusal", refusals);
    if reasoning.iter().any(|text| !text.is_empty()) {
        json::joined(o.key("reasoning_content"), reasoning, "");
    }
    if !calls.is_empty() {
        o.array("tool_calls", |a| calls.iter().for_each(|call| write_call(a, call, context)));
    }
}

fn write_or_null<'t>(o: &mut Object<'_>, key: &'static str, texts: Vec<&'t Str<'t>>) {
    if texts.is_empty() {
        o.null(key);
    } else {
        json::joined(o.key(key), texts, "");
    }
}

fn write_call(a: &mut Array<'_>, call: &ToolCall<'_>, context: &ReplyContext) {
    a.object(|o| {
        o.str("id", &call_id(&call.id));
        if context.names.is_free_text(&call.name) {
            o.word("type", "custom");
            o.object("custom", |o| {
                o.str("name", &call.name.name);
                o.str("input", &schema::free_text_input(&call.arguments));
            });
        } else {
            o.word("type", "function");
            o.object("function", |o| {
                o.str("name", &call.name.name);
                o.str("arguments", &schema::as_text(&call.arguments));
            });
        }
    });
}
