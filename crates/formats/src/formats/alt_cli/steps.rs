//! Steps of a search that the service runs beside functions: the parts `toolCall` and
//! `toolResponse`. They must come back with the next turn as they were, proof and all. So they go
//! to the client as what it sends back unchanged: a proof of reasoning.

use super::request_contents::WirePart;
use crate::formats::conversation::json::{self, Object};
use crate::formats::conversation::{Origin, Signature, Text};
use crate::formats::json_read;

/// A part of a reply for the client; `None` if it is no step.
pub(super) fn seal<'a>(part: &WirePart<'_>) -> Option<Signature<'a>> {
    if !part.is_step() {
        return None;
    }
    let text = String::from_utf8(json::document(|o| write_members(o, part))).ok()?;
    Some(Signature::new(Origin::AltCliStep, Text::Owned(text)))
}

/// The part that came back, as JSON; `None` if it is no step. No other member is taken over.
pub(super) fn unseal(value: &str) -> Option<String> {
    let part = json_read::from_str::<WirePart<'_>>(value).ok()?;
    seal(&part).map(|step| step.value.into_owned())
}

fn write_members(o: &mut Object<'_>, part: &WirePart<'_>) {
    let steps = [("toolCall", part.vendor_call), ("toolResponse", part.vendor_result)];
    for (name, step) in steps {
        if let Some(step) = step {
            o.raw(name, &json::one_line(step.get()));
        }
    }
    o.opt_text("thoughtSignature", part.signature.as_ref());
}
