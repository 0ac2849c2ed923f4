//! Reads a native reply.

use serde::Deserialize;

use crate::domain::usage::Usage;
use crate::formats::conversation::{
    Finish, Origin, Reply, ReplyPart, ReplyProblem, Signature, Str, Thinking, ToolCall, ToolName,
    locate,
};
use crate::formats::json_read::{self, Json, List};

/// What is wrong with a reply that has nothing for the client: neither content nor a stop reason,
/// or only content of kinds that are not read.
pub const NOTHING: &str = "no content that can be read";

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Str<'a>>,
    #[serde(borrow)]
    content: Option<List<'a, ReplyBlock<'a>>>,
    #[serde(borrow)]
    stop_reason: Option<Str<'a>>,
    #[serde(borrow)]
    stop_sequence: Option<Str<'a>>,
    #[serde(borrow)]
    error: Option<WireError<'a>>,
}

/// The error object of a reply or of a stream.
#[derive(Debug, Deserialize)]
pub struct WireError<'a> {
    /// The error's type, such as `overloaded_error`.
    #[serde(borrow, rename = "type")]
    pub kind: Option<Str<'a>>,
    /// The provider's message.
    #[serde(borrow)]
    pub message: Option<Str<'a>>,
}

#[derive(Deserialize)]
struct ReplyBlock<'a> {
    #[serde(borrow, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow)]
    text: Option<Str<'a>>,
    #[serde(borrow)]
    thinking: Option<Str<'a>>,
    #[serde(borrow)]
    signature: Option<Str<'a>>,
    #[serde(borrow)]
    data: Option<Str<'a>>,
    #[serde(borrow)]
    id: Option<Str<'a>>,
    #[serde(borrow)]
    name: Option<Str<'a>>,
    #[serde(borrow)]
    input: Option<Json<'a>>,
}

/// Reads the body of a success status.
///
/// # Errors
/// Not a message, or an error in a message's place.
pub fn read(body: &[u8]) -> Result<Reply<'_>, ReplyProblem> {
    let problem = |message: String| ReplyProblem::NotAReply { format: "native", message };
    let body: Body<'_> = json_read::read(body)
        .map_err(|error| problem(locate::problem(body, &error).to_string()))?;
    if body.error.is_some() || body.kind.as_deref() == Some("error") {
        let error = body.error.unwrap_or(WireError { kind: None, message: None });
        return Err(ReplyProblem::Upstream {
            kind: error.kind.map(|kind| kind.to_string()),
            message: error
                .message
                .map_or_else(|| "no message".to_owned(), |message| message.to_string()),
        });
    }
    let content = body.content.ok_or_else(|| problem("no `content`".to_owned()))?;
    let is_empty = content.is_empty();
    let parts =
        content.collect(read_block).map_err(|error| problem(locate::unread(&error).to_string()))?;
    let finish = finish(body.stop_reason.as_deref(), body.stop_sequence.as_deref());
    // An empty message with a stop reason is a model's end of its turn.
    if parts.is_empty() && finish == Finish::Stop && (!is_empty || body.stop_reason.is_none()) {
        return Err(problem(NOTHING.to_owned()));
    }
    Ok(Reply { parts, finish, usage: Usage::default() })
}

/// The stop reason as the neutral one. A pause for the vendor's own tools has no equivalent: it
/// becomes a plain stop.
pub fn finish(reason: Option<&str>, sequence: Option<&str>) -> Finish {
    match reason {
        Some("max_tokens" | "model_context_window_exceeded") => Finish::Length,
        Some("stop_sequence") => Finish::StopSequence(sequence.map(str::to_owned)),
        Some("tool_use") => Finish::ToolCalls,
        Some("refusal") => Finish::Refusal,
        _ => Finish::Stop,
    }
}

fn read_block(block: ReplyBlock<'_>) -> Option<ReplyPart<'_>> {
    Some(match &*block.kind {
        "text" => ReplyPart::Text(block.text?),
        "thinking" => ReplyPart::Thinking(Thinking {
            text: block.thinking.unwrap_or_default(),
            signature: block
                .signature
                .map(|signature| Signature::new(Origin::Native, signature.into_text())),
        }),
        "redacted_thinking" => ReplyPart::Thinking(
            Signature::new(Origin::NativeRedacted, block.data?.into_text()).into(),
        ),
        "tool_use" => ReplyPart::ToolCall(ToolCall {
            id: block.id.unwrap_or_default().into_text(),
            name: ToolName::plain(block.name.unwrap_or_default().into_text()),
            arguments: block.input.map_or("{}", Json::get).into(),
        }),
        // Steps of tools that the vendor runs; their result is in the text.
        _ => return None,
    })
}
