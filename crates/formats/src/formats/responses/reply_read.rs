//! Reads a responses reply.

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::domain::usage::Usage;
use crate::formats::conversation::{
    Arguments, Content, Finish, Origin, Reply, ReplyPart, ReplyProblem, Signature, Str, Text,
    Thinking, ToolCall, ToolName, json, locate,
};
use crate::formats::json_read::{self, List, Unread};

/// What is wrong with a complete response that has nothing for the client.
pub const NOTHING: &str = "a complete response without output that can be read";

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    output: Option<List<'a, OutputItem<'a>>>,
    #[serde(borrow)]
    status: Option<Str<'a>>,
    #[serde(borrow)]
    error: Option<WireError<'a>>,
    #[serde(borrow)]
    incomplete_details: Option<Incomplete<'a>>,
}

/// The error object of a response or of an `error` event.
#[derive(Debug, Default, Deserialize)]
pub struct WireError<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Str<'a>>,
    #[serde(borrow)]
    code: Option<Content<'a, IgnoredAny>>,
    #[serde(borrow)]
    message: Option<Str<'a>>,
}

/// Why a response is incomplete.
#[derive(Debug, Deserialize)]
pub struct Incomplete<'a> {
    /// The reason in the provider's words: `max_output_tokens` or `content_filter`.
    #[serde(borrow)]
    pub reason: Option<Str<'a>>,
}

/// One item of a reply; kinds without an equivalent are skipped.
#[derive(Deserialize)]
pub struct OutputItem<'a> {
    /// The item's type, such as `message`, `reasoning` or `function_call`.
    #[serde(borrow, rename = "type")]
    pub kind: Option<Str<'a>>,
    #[serde(borrow)]
    id: Option<Str<'a>>,
    #[serde(borrow)]
    content: Option<Content<'a, OutputPart<'a>>>,
    /// Id of a tool call, which its result repeats. Another id than the item's own.
    #[serde(borrow)]
    pub call_id: Option<Str<'a>>,
    /// Name of the tool of a call.
    #[serde(borrow)]
    pub name: Option<Str<'a>>,
    #[serde(borrow)]
    arguments: Option<Arguments<'a>>,
    #[serde(borrow)]
    input: Option<Content<'a, IgnoredAny>>,
    #[serde(borrow)]
    summary: Option<List<'a, OutputPart<'a>>>,
    #[serde(borrow)]
    encrypted_content: Option<Str<'a>>,
}

#[derive(Deserialize)]
struct OutputPart<'a> {
    #[serde(borrow)]
    text: Option<Str<'a>>,
    #[serde(borrow)]
    refusal: Option<Str<'a>>,
}

impl WireError<'_> {
    /// The error's type, else its code, if it has one; and its message.
    pub fn kind_and_message(&self) -> (Option<String>, String) {
        let code = match &self.code {
            Some(Content::Text(code)) => Some(code.to_string()),
            _ => None,
        };
        let kind =
            self.kind.as_ref().map(|kind| kind.to_string()).filter(|kind| kind != "error").or(code);
        (
            kind,
            self.message
                .as_ref()
                .map_or_else(|| "no message".to_owned(), |message| message.to_string()),
        )
    }
}

impl<'a> OutputItem<'a> {
    /// The parts of the item, in order.
    ///
    /// # Errors
    /// An element of one of its lists that is not a part.
    pub fn into_parts(self) -> Result<Vec<ReplyPart<'a>>, Unread<'a>> {
        Ok(match self.kind.as_deref() {
            Some("message") => message_parts(self.content)?,
            Some("reasoning") => vec![ReplyPart::Thinking(self.into_thinking()?)],
            Some("function_call") => self.into_call(false),
            Some("custom_tool_call") => self.into_call(true),
            _ => Vec::new(),
        })
    }

    fn into_call(self, free_text: bool) -> Vec<ReplyPart<'a>> {
        let text = |content: Option<Content<'a, IgnoredAny>>| match content {
            Some(Content::Text(text)) => text.into_text(),
            _ => Text::default(),
        };
        let arguments = if free_text {
            let bytes = json::document(|o| o.str("input", &text(self.input)));
            Text::Owned(String::from_utf8(bytes).unwrap_or_default())
        } else {
            self.arguments.unwrap_or_default().into_text()
        };
        let id = self.call_id.or(self.id).unwrap_or_default().into_text();
        let name = ToolName::plain(self.name.unwrap_or_default().into_text());
        vec![ReplyPart::ToolCall(ToolCall { id, name, arguments })]
    }

    fn into_thinking(self) -> Result<Thinking<'a>, Unread<'a>> {
        let texts = |parts: List<'a, OutputPart<'a>>| parts.collect(|part| part.text);
        let mut all = texts(self.summary.unwrap_or_default())?;
        if all.is_empty()
            && let Some(Content::Parts(parts)) = self.content
        {
            all = texts(parts)?;
        }
        let text = Str::join(all, "\n\n");
        let proof = proof(self.id.as_deref(), self.encrypted_content.as_deref());
        Ok(Thinking { text, signature: Some(Signature::new(Origin::Responses, proof)) })
    }
}

/// The service binds the encrypted reasoning to its item's id: both must be sent back.
fn proof(id: Option<&str>, encrypted: Option<&str>) -> String {
    match (id, encrypted) {
        (Some(id), Some(encrypted)) if !encrypted.is_empty() => format!("{id}.{encrypted}"),
        _ => String::new(),
    }
}

fn message_parts<'a>(
    content: Option<Content<'a, OutputPart<'a>>>,
) -> Result<Vec<ReplyPart<'a>>, Unread<'a>> {
    match content {
        Some(Content::Text(text)) => Ok(vec![ReplyPart::Text(text)]),
        Some(Content::Parts(parts)) => parts.collect(|part| match (part.text, part.refusal) {
            (Some(text), _) => Some(ReplyPart::Text(text)),
            (None, Some(refusal)) => Some(ReplyPart::Refusal(refusal)),
            (None, None) => None,
        }),
        None => Ok(Vec::new()),
    }
}

/// Reads the body of a success status.
///
/// # Errors
/// Not a response, or a failed one.
pub fn read(body: &[u8]) -> Result<Reply<'_>, ReplyProblem> {
    let problem = |message: String| ReplyProblem::NotAReply { format: "responses", message };
    let body: Body<'_> = json_read::read(body)
        .map_err(|error| problem(locate::problem(body, &error).to_string()))?;
    if let Some(error) = &body.error {
        let (kind, message) = error.kind_and_message();
        return Err(ReplyProblem::Upstream { kind, message });
    }
    let output = body.output.ok_or_else(|| problem("no `output`".to_owned()))?;
    if matches!(body.status.as_deref(), Some("failed" | "cancelled")) {
        return Err(ReplyProblem::Upstream {
            kind: None,
            message: "the response failed".to_owned(),
        });
    }
    let mut parts: Vec<ReplyPart<'_>> = Vec::with_capacity(output.room());
    for item in output {
        let read = item.and_then(OutputItem::into_parts);
        parts.append(&mut read.map_err(|error| problem(locate::unread(&error).to_string()))?);
    }
    let incomplete = body.status.as_deref() == Some("incomplete");
    if parts.is_empty() && !incomplete {
        return Err(problem(NOTHING.to_owned()));
    }
    let reason = body.incomplete_details.as_ref().and_then(|details| details.reason.as_deref());
    let any_call = parts.iter().any(ReplyPart::is_tool_call);
    let refused = parts.iter().any(|part| matches!(part, ReplyPart::Refusal(_)));
    Ok(Reply {
        finish: finish(incomplete, reason, refused).with_calls(any_call),
        parts,
        usage: Usage::default(),
    })
}

/// Why the response ended, as the neutral reason.
pub fn finish(incomplete: bool, reason: Option<&str>, refused: bool) -> Finish {
    match reason {
        Some("content_filter") if incomplete => Finish::Refusal,
        // The client sent other instructions meanwhile: another reply follows.
        Some("steered") if incomplete => Finish::Stop,
        _ if incomplete => Finish::Length,
        _ if refused => Finish::Refusal,
        _ => Finish::Stop,
    }
}
