//! Writes a complete reply in the alt-cli format (Gemini). Streams use its parts.

use super::usage;
use crate::formats::conversation::json::{self, Array, Object};
use crate::formats::conversation::{Finish, Origin, Reply, ReplyContext, ReplyPart, schema};
use crate::formats::names::call_id;

/// Writes a complete reply as a JSON body.
pub fn write(reply: &Reply<'_>, context: &ReplyContext) -> Vec<u8> {
    json::document_of(reply.size(), |o| {
        in_wrapper(o, context, |o| {
            write_candidate(o, Some(&reply.finish), |a| {
                reply.parts.iter().for_each(|part| write_part(a, part))
            });
            usage::write(o, &reply.usage);
            write_tail(o, context);
        });
    })
}

/// Puts the reply into `{"response": …}` if the client's request was wrapped.
pub fn in_wrapper(o: &mut Object<'_>, context: &ReplyContext, fill: impl FnOnce(&mut Object<'_>)) {
    if context.wrapped { o.object("response", fill) } else { fill(o) }
}

/// `candidates` with one candidate.
pub fn write_candidate(
    o: &mut Object<'_>,
    finish: Option<&Finish>,
    parts: impl FnOnce(&mut Array<'_>),
) {
    o.array("candidates", |a| {
        a.object(|o| {
            o.object("content", |o| {
                o.array("parts", parts);
                o.word("role", "model");
            });
            if let Some(finish) = finish {
                o.str("finishReason", finish_reason(finish));
            }
            o.uint("index", 0);
        });
    });
}

/// The last members of a reply and of a chunk.
pub fn write_tail(o: &mut Object<'_>, context: &ReplyContext) {
    o.str("modelVersion", &context.model);
    o.str("responseId", &context.seed);
}

fn finish_reason(finish: &Finish) -> &'static str {
    match finish {
        Finish::Stop | Finish::StopSequence(_) | Finish::ToolCalls => "STOP",
        Finish::Length => "MAX_TOKENS",
        Finish::Refusal => "SAFETY",
    }
}

fn write_part(a: &mut Array<'_>, part: &ReplyPart<'_>) {
    match part {
        ReplyPart::Text(text) | ReplyPart::Refusal(text) => a.object(|o| o.text("text", text)),
        ReplyPart::Thinking(thinking) => a.object(|o| {
            let signature =
                thinking.signature.as_ref().map(|signature| signature.seal_base64(Origin::AltCli));
            write_thought(o, &thinking.text, signature.as_deref());
        }),
        ReplyPart::ToolCall(call) => {
            a.object(|o| write_call(o, &call.id, &call.name.name, &call.arguments))
        }
    }
}

/// The members of a part with reasoning.
pub fn write_thought(o: &mut Object<'_>, text: &str, signature: Option<&str>) {
    o.str("text", text);
    o.bool("thought", true);
    o.opt_str("thoughtSignature", signature);
}

/// The `functionCall` member of a part.
pub fn write_call(o: &mut Object<'_>, id: &str, name: &str, arguments: &str) {
    o.object("functionCall", |o| {
        o.str("id", &call_id(id));
        o.str("name", name);
        o.raw("args", &json::one_line(&schema::as_object(arguments).0));
    });
}
