//! Writes a native reply.

use super::usage;
use crate::formats::conversation::json::{self, Array, Object};
use crate::formats::conversation::{
    Finish, Origin, Reply, ReplyContext, ReplyPart, Thinking, schema,
};
use crate::formats::names::call_id;

/// Writes a message.
pub fn write(reply: &Reply<'_>, context: &ReplyContext) -> Vec<u8> {
    json::document_of(reply.size(), |o| {
        write_head(o, context);
        o.array("content", |a| {
            for part in &reply.parts {
                write_part(a, part);
            }
        });
        write_stop(o, &reply.finish);
        usage::write(o, &reply.usage);
    })
}

/// The first members of a message, in a reply and in `message_start`.
pub fn write_head(o: &mut Object<'_>, context: &ReplyContext) {
    o.str("id", &context.id("msg_"));
    o.word("type", "message");
    o.word("role", "assistant");
    o.str("model", &context.model);
}

/// `stop_reason` and `stop_sequence`.
pub fn write_stop(o: &mut Object<'_>, finish: &Finish) {
    let (reason, sequence) = match finish {
        Finish::Stop => ("end_turn", None),
        Finish::StopSequence(sequence) => ("stop_sequence", sequence.as_deref()),
        Finish::Length => ("max_tokens", None),
        Finish::ToolCalls => ("tool_use", None),
        Finish::Refusal => ("refusal", None),
    };
    o.str("stop_reason", reason);
    match sequence {
        Some(sequence) => o.str("stop_sequence", sequence),
        None => o.null("stop_sequence"),
    }
}

fn write_part(a: &mut Array<'_>, part: &ReplyPart<'_>) {
    match part {
        ReplyPart::Text(text) | ReplyPart::Refusal(text) => {
            a.typed("text", |o| o.text("text", text))
        }
        ReplyPart::Thinking(thinking) => write_thinking(a, thinking),
        ReplyPart::ToolCall(call) => a.typed("tool_use", |o| {
            o.str("id", &call_id(&call.id));
            o.str("name", &call.name.name);
            o.raw("input", &schema::as_object(&call.arguments).0);
        }),
    }
}

fn write_thinking(a: &mut Array<'_>, thinking: &Thinking<'_>) {
    match &thinking.signature {
        Some(signature) if signature.origin == Origin::NativeRedacted => {
            a.typed("redacted_thinking", |o| o.str("data", &signature.value));
        }
        signature => a.typed("thinking", |o| {
            o.text("thinking", &thinking.text);
            o.str(
                "signature",
                &signature.as_ref().map_or("".into(), |signature| signature.seal(Origin::Native)),
            );
        }),
    }
}
