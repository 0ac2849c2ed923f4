//! Writes a responses reply.

use super::envelope::{self, Item, Phase, ResponseState};
use crate::formats::conversation::json::{self, Object};
use crate::formats::conversation::{Finish, Origin, Reply, ReplyContext, ReplyPart, schema};
use crate::formats::names::call_id;

/// Writes a whole response.
pub fn write(reply: &Reply<'_>, context: &ReplyContext) -> Vec<u8> {
    let state = ResponseState::Ended { finish: &reply.finish, usage: &reply.usage };
    json::document_of(reply.size(), |o| {
        envelope::write(o, context, state, |items| {
            for (index, part) in reply.parts.iter().enumerate() {
                let next = reply.parts.get(index + 1);
                let calls = next.map_or(reply.finish == Finish::ToolCalls, ReplyPart::is_tool_call);
                items.object(|o| write_part(o, part, index, Phase::before(calls), context));
            }
        });
    })
}

fn write_part(
    o: &mut Object<'_>,
    part: &ReplyPart<'_>,
    index: usize,
    phase: Phase,
    context: &ReplyContext,
) {
    let mut write = |item: Item<'_>| {
        item.write(o, &context.nth_id(item.prefix(), index), "completed");
    };
    match part {
        ReplyPart::Text(text) => {
            write(Item::Message { text: Some(text), refusal: false, phase: Some(phase) })
        }
        ReplyPart::Refusal(text) => {
            write(Item::Message { text: Some(text), refusal: true, phase: None })
        }
        ReplyPart::Thinking(thinking) => {
            let proof =
                thinking.signature.as_ref().map(|signature| signature.seal(Origin::Responses));
            write(Item::Reasoning { text: &thinking.text, proof: proof.as_deref() });
        }
        ReplyPart::ToolCall(call) => {
            let (id, namespace) = (&*call_id(&call.id), call.name.namespace.as_deref());
            let name = &call.name.name;
            if context.names.is_free_text(&call.name) {
                let input = &schema::free_text_input(&call.arguments);
                write(Item::FreeText { id, name, namespace, input });
            } else {
                let arguments = &schema::as_text(&call.arguments);
                write(Item::Call { id, name, namespace, arguments });
            }
        }
    }
}
