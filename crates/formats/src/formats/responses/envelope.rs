//! Writes the response object and its items: completely in replies, one by one in streams.

use super::usage;
use crate::domain::usage::Usage;
use crate::formats::conversation::json::{self, Array, Object};
use crate::formats::conversation::{Finish, ReplyContext, Str};

/// The state of the response.
#[derive(Debug, Clone, Copy)]
pub(super) enum ResponseState<'s> {
    InProgress,
    Ended { finish: &'s Finish, usage: &'s Usage },
}

/// Writes a response object with every member that the SDKs require. `items` writes the output's
/// items with the commas between them.
///
/// The request's tools and instructions are not repeated: they would be sent three times in each
/// stream, and clients already have them.
pub(super) fn write(
    o: &mut Object<'_>,
    context: &ReplyContext,
    state: ResponseState<'_>,
    items: impl FnOnce(&mut Array<'_>),
) {
    let (status, reason) = status(state);
    o.str("id", &context.id("resp_"));
    o.word("object", "response");
    o.raw("created_at", &context.created.to_string());
    o.str("status", status);
    o.bool("background", false);
    o.null("error");
    match reason {
        Some(reason) => o.object("incomplete_details", |o| o.str("reason", reason)),
        None => o.null("incomplete_details"),
    }
    o.null("instructions");
    o.null("max_output_tokens");
    o.raw("metadata", "{}");
    o.str("model", &context.model);
    o.array("output", items);
    o.bool("parallel_tool_calls", context.parallel_tools);
    o.null("previous_response_id");
    o.raw("reasoning", r#"{"effort":null,"summary":null}"#);
    o.bool("store", false);
    o.null("temperature");
    o.raw("text", r#"{"format":{"type":"text"}}"#);
    o.str("tool_choice", "auto");
    o.raw("tools", "[]");
    o.null("top_p");
    o.str("truncation", "disabled");
    match state {
        ResponseState::Ended { usage, .. } => usage::write(o, usage),
        ResponseState::InProgress => o.null("usage"),
    }
    o.null("user");
}

/// The status word, and the reason of an incomplete response.
pub(super) fn status(state: ResponseState<'_>) -> (&'static str, Option<&'static str>) {
    match state {
        ResponseState::InProgress => ("in_progress", None),
        ResponseState::Ended { finish: Finish::Length, .. } => {
            ("incomplete", Some("max_output_tokens"))
        }
        ResponseState::Ended { finish: Finish::Refusal, .. } => {
            ("incomplete", Some("content_filter"))
        }
        ResponseState::Ended { .. } => ("completed", None),
    }
}

/// What a text of the reply is. Codex shows the two in different ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// A call follows.
    Commentary,
    /// The reply ends with it, or more of the answer follows.
    FinalAnswer,
}

impl Phase {
    /// The phase of a text, given whether a call follows it.
    pub(super) const fn before(call: bool) -> Self {
        if call { Self::Commentary } else { Self::FinalAnswer }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Commentary => "commentary",
            Self::FinalAnswer => "final_answer",
        }
    }
}

/// One output item, as far as it is known.
#[derive(Debug, Clone, Copy)]
pub(super) enum Item<'i> {
    /// `None`: without its part yet.
    Message {
        text: Option<&'i Str<'i>>,
        refusal: bool,
        phase: Option<Phase>,
    },
    /// `proof` is what the client must send back.
    Reasoning {
        text: &'i Str<'i>,
        proof: Option<&'i str>,
    },
    Call {
        id: &'i str,
        name: &'i str,
        namespace: Option<&'i str>,
        arguments: &'i str,
    },
    FreeText {
        id: &'i str,
        name: &'i str,
        namespace: Option<&'i str>,
        input: &'i str,
    },
}

impl Item<'_> {
    /// The usual beginning of the item's id.
    pub(super) const fn prefix(&self) -> &'static str {
        match self {
            Self::Message { .. } => "msg_",
            Self::Reasoning { .. } => "rs_",
            Self::Call { .. } => "fc_",
            Self::FreeText { .. } => "ctc_",
        }
    }

    /// Writes the item.
    pub(super) fn write(&self, o: &mut Object<'_>, id: &str, status: &str) {
        o.str("id", id);
        match self {
            Self::Message { text, refusal, phase } => {
                o.word("type", "message");
                o.str("status", status);
                o.word("role", "assistant");
                if let Some(phase) = phase {
                    o.word("phase", phase.as_str());
                }
                o.array("content", |a| {
                    if let Some(text) = text {
                        a.object(|o| write_part(o, text, *refusal));
                    }
                });
            }
            Self::Reasoning { text, proof } => {
                o.word("type", "reasoning");
                o.array("summary", |a| {
                    if !text.is_empty() {
                        a.typed("summary_text", |o| o.text("text", text));
                    }
                });
                o.opt_str("encrypted_content", *proof);
            }
            Self::Call { id, name, namespace, arguments } => {
                o.word("type", "function_call");
                o.str("status", status);
                o.str("arguments", arguments);
                o.str("call_id", id);
                o.str("name", name);
                o.opt_str("namespace", *namespace);
            }
            Self::FreeText { id, name, namespace, input } => {
                o.word("type", "custom_tool_call");
                o.str("status", status);
                o.str("call_id", id);
                o.str("input", input);
                o.str("name", name);
                o.opt_str("namespace", *namespace);
            }
        }
    }

    /// The item as JSON text.
    pub(super) fn to_json(self, id: &str, status: &str) -> Vec<u8> {
        json::document(|o| self.write(o, id, status))
    }
}

/// A message's only part.
pub(super) fn write_part(o: &mut Object<'_>, text: &Str<'_>, refusal: bool) {
    if refusal {
        o.word("type", "refusal");
        o.text("refusal", text);
    } else {
        o.word("type", "output_text");
        o.raw("annotations", "[]");
        o.raw("logprobs", "[]");
        o.text("text", text);
    }
}
