//! Writes a responses reply.

use super::envelope::{self, Item, State};
use crate::formats::conversation::json;
use crate::formats::conversation::{Origin, Reply, ReplyContext, ReplyPart, ToolCall, schema};
use crate::formats::names::call_id;

/// Writes a whole response.
#[must_use]
pub fn write(reply: &Reply<'_>, context: &ReplyContext) -> Vec<u8> {
    let mut items = Vec::new();
    for (index, part) in reply.parts.iter().enumerate() {
        if index > 0 {
            items.push(b',');
        }
        items.extend(match part {
            ReplyPart::Text(text) => {
                to_json(Item::Message { text: Some(text), refusal: false }, index, context)
            }
            ReplyPart::Refusal(text) => {
                to_json(Item::Message { text: Some(text), refusal: true }, index, context)
            }
            ReplyPart::Thinking(thinking) => {
                let proof =
                    thinking.signature.as_ref().map(|signature| signature.seal(Origin::Responses));
                to_json(
                    Item::Reasoning { text: &thinking.text, proof: proof.as_deref() },
                    index,
                    context,
                )
            }
            ReplyPart::ToolCall(call) => call_json(call, index, context),
        });
    }
    let state = State::Ended { finish: &reply.finish, usage: &reply.usage };
    json::document_of(reply.size(), |o| envelope::write(o, context, state, &items))
}

fn to_json(item: Item<'_>, index: usize, context: &ReplyContext) -> Vec<u8> {
    item.to_json(&context.nth_id(item.prefix(), index), "completed")
}

fn call_json(call: &ToolCall<'_>, index: usize, context: &ReplyContext) -> Vec<u8> {
    let (id, namespace) = (call_id(&call.id), call.name.namespace.as_deref());
    let name = &call.name.name;
    if context.names.is_free_text(&call.name) {
        let input = schema::free_text_input(&call.arguments);
        return to_json(Item::FreeText { id: &id, name, namespace, input: &input }, index, context);
    }
    let arguments = &schema::as_text(&call.arguments);
    to_json(Item::Call { id: &id, name, namespace, arguments }, index, context)
}
