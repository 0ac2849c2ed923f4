//! Writes turns as contents.

use super::generation::GeminiGeneration;
use super::steps;
use crate::domain::format::WireFormat;
use crate::formats::conversation::json::{self, Array, Object};
use crate::formats::conversation::{
    Media, MediaSource, Origin, Part, Request, Role, Rule, Rules, TargetModel, ToolCall, ToolName,
    ToolResult, Turn, schema,
};
use crate::formats::names::{call_id, wire_name};

/// Stands for earlier messages if the format requires a user message first.
const OPENING: &str = "(continued)";

/// The vendor's documented text for "do not verify this call's proof of thought".
const SKIP_PROOF: &str = "skip_thought_signature_validator";

/// What the target takes in the history.
#[derive(Clone, Copy)]
struct Takes {
    /// Calls only with a proof of thought.
    proofs: bool,
    /// Steps of a search beside functions.
    steps: bool,
}

/// Writes `contents`. `steps`: with the steps of searches beside functions.
pub(super) fn write(
    o: &mut Object<'_>,
    request: &Request<'_>,
    (model, steps): (&TargetModel<'_>, bool),
    rules: &mut Rules,
) {
    let proofs = GeminiGeneration::of(model).is_some_and(|generation| generation.demands_proof);
    let takes = Takes { proofs, steps };
    o.array("contents", |a| {
        if request.turns.first().is_none_or(|turn| turn.role == Role::Assistant) {
            rules.note(Rule::FirstTurn);
            write_content(a, "user", |a| a.object(|o| o.str("text", OPENING)));
        }
        for turn in &request.turns {
            let mut parts = Vec::new();
            json::array(&mut parts, |a| match turn.role {
                Role::Assistant => write_model_parts(a, turn, takes, rules),
                _ => write_user_parts(a, turn, rules),
            });
            if parts == b"[]" {
                continue;
            }
            a.object(|o| {
                o.str("role", if turn.role == Role::Assistant { "model" } else { "user" });
                o.key("parts").extend_from_slice(&parts);
            });
        }
    });
}

fn write_content(a: &mut Array<'_>, role: &str, parts: impl FnOnce(&mut Array<'_>)) {
    a.object(|o| {
        o.str("role", role);
        o.array("parts", parts);
    });
}

fn write_user_parts(a: &mut Array<'_>, turn: &Turn<'_>, rules: &mut Rules) {
    let results = || {
        turn.parts.iter().filter_map(|part| match part {
            Part::ToolResult(result) => Some(result),
            _ => None,
        })
    };
    for result in results() {
        write_result(a, result, rules);
    }
    for part in results().flat_map(|result| &result.parts) {
        if let Part::Media(media) = part {
            rules.note(Rule::ResultMedia);
            write_media(a, media);
        }
    }
    for part in &turn.parts {
        match part {
            Part::Text(text) if text.is_empty() => rules.note(Rule::EmptyText),
            Part::Text(text) => a.object(|o| o.text("text", text)),
            Part::Media(media) => write_media(a, media),
            _ => {}
        }
    }
}

fn write_model_parts(a: &mut Array<'_>, turn: &Turn<'_>, takes: Takes, rules: &mut Rules) {
    // A proof belongs to the part that followed the thought.
    let mut proof: Option<&str> = None;
    let mut proven = false;
    for part in &turn.parts {
        match part {
            Part::Thinking(thinking) => match &thinking.signature {
                Some(signature) if signature.origin == Origin::AltCliStep => {
                    match steps::unseal(&signature.value).filter(|_| takes.steps) {
                        Some(step) => a.raw(&step),
                        None => rules.note(Rule::VendorHistory),
                    }
                }
                Some(signature)
                    if signature.origin == Origin::AltCli && !signature.value.is_empty() =>
                {
                    proof = Some(&signature.value);
                }
                _ => rules.note(Rule::ForeignReasoning),
            },
            Part::Text(text) if text.is_empty() => rules.note(Rule::EmptyText),
            Part::Text(text) => a.object(|o| {
                o.text("text", text);
                o.opt_str("thoughtSignature", proof.take());
            }),
            Part::ToolCall(call) => {
                let stands_in = takes.proofs && !proven && proof.is_none();
                rules.note_if(stands_in, Rule::ProofStandIn);
                proven = true;
                write_call(a, call, if stands_in { Some(SKIP_PROOF) } else { proof.take() }, rules);
            }
            Part::Media(_) | Part::ToolResult(_) => rules.note(Rule::ReplyMedia),
            Part::NewTools(_) | Part::CacheMark(_) => {}
        }
    }
}

fn write_call(a: &mut Array<'_>, call: &ToolCall<'_>, proof: Option<&str>, rules: &mut Rules) {
    let (arguments, wrapped) = schema::as_object(&call.arguments);
    rules.note_if(wrapped, Rule::BadArguments);
    a.object(|o| {
        o.object("functionCall", |o| {
            o.str("id", &call_id(&call.id));
            o.str("name", &wire_name(&call.name, WireFormat::AltCli));
            o.raw("args", &arguments);
        });
        o.opt_str("thoughtSignature", proof);
    });
}

fn write_result(a: &mut Array<'_>, result: &ToolResult<'_>, rules: &mut Rules) {
    rules.note_if(result.is_error, Rule::ResultError);
    a.object(|o| {
        o.object("functionResponse", |o| {
            o.str("id", &call_id(&result.id));
            // A result without its call has no name.
            let unnamed = ToolName::plain(&*result.id);
            let name = if result.name.name.is_empty() { &unnamed } else { &result.name };
            o.str("name", &wire_name(name, WireFormat::AltCli));
            o.object("response", |o| {
                let key = if result.is_error { "error" } else { "output" };
                json::joined(o.key(key), result.texts(), "\n");
            });
        });
    });
}

fn write_media(a: &mut Array<'_>, media: &Media<'_>) {
    a.object(|o| match &media.source {
        MediaSource::Base64 { media_type, data } => o.object("inlineData", |o| {
            o.str("mimeType", media_type);
            o.str("data", data);
        }),
        MediaSource::Url { url, .. } => o.object("fileData", |o| {
            o.str("mimeType", media.media_type());
            o.str("fileUri", url);
        }),
    });
}
