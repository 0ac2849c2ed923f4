//! Reads an alt-cli reply.

use serde::Deserialize;

use super::request_contents::WirePart;
use super::steps;
use crate::domain::format::BROKEN_CALLS;
use crate::domain::usage::Usage;
use crate::formats::conversation::{
    Finish, GENERATED, Origin, Reply, ReplyPart, ReplyProblem, Signature, Str, Text, Thinking,
    ToolCall, ToolName, locate, number,
};
use crate::formats::json_read::{self, List, Unread};

/// What is wrong with a reply that has nothing for the client: neither content nor a finish reason,
/// or only content of kinds that are not read.
pub const NOTHING: &str = "no content that can be read";

/// A reply, or one chunk of a stream: they have the same shape.
#[derive(Deserialize)]
pub struct Body<'a> {
    /// The wrapper's content.
    #[serde(borrow)]
    response: Option<Box<Body<'a>>>,
    /// The answers. Only the first is converted; absent if the prompt was blocked.
    #[serde(borrow)]
    pub candidates: Option<List<'a, Candidate<'a>>>,
    /// What the vendor's filter says about the prompt; absent if it says nothing.
    #[serde(borrow, rename = "promptFeedback", alias = "prompt_feedback")]
    pub feedback: Option<Feedback<'a>>,
    /// An error in place of the reply, or as a chunk of a stream.
    #[serde(borrow)]
    pub error: Option<WireError<'a>>,
}

/// One answer.
#[derive(Deserialize)]
pub struct Candidate<'a> {
    /// What the model wrote; absent in a chunk that only ends the answer.
    #[serde(borrow)]
    pub content: Option<WireContent<'a>>,
    /// Why the answer ended, such as `STOP`; absent while it goes on.
    #[serde(borrow, rename = "finishReason", alias = "finish_reason")]
    pub reason: Option<Str<'a>>,
    /// The reason in words; absent for most.
    #[serde(borrow, rename = "finishMessage", alias = "finish_message")]
    pub message: Option<Str<'a>>,
    /// Number of the answer, from 0; absent = 0.
    #[serde(default, deserialize_with = "number::whole")]
    pub index: Option<u64>,
}

/// The answer's parts.
#[derive(Deserialize)]
pub struct WireContent<'a> {
    /// Text, reasoning and tool calls, in order.
    #[serde(borrow)]
    pub parts: Option<List<'a, WirePart<'a>>>,
}

/// The verdict of the vendor's filter about the prompt.
#[derive(Deserialize)]
pub struct Feedback<'a> {
    /// Why the prompt was blocked, such as `SAFETY`; absent if it was not.
    #[serde(borrow, rename = "blockReason", alias = "block_reason")]
    pub block_reason: Option<Str<'a>>,
}

/// The error object of a reply or of a chunk.
#[derive(Debug, Deserialize)]
pub struct WireError<'a> {
    #[serde(borrow)]
    status: Option<Str<'a>>,
    #[serde(borrow)]
    message: Option<Str<'a>>,
}

impl WireError<'_> {
    /// The error's status name, if it has one, and its message.
    pub fn kind_and_message(&self) -> (Option<String>, String) {
        let message = self
            .message
            .as_ref()
            .map_or_else(|| "no message".to_owned(), |message| message.to_string());
        (self.status.as_ref().map(|status| status.to_string()), message)
    }
}

impl<'a> Body<'a> {
    /// Reads the bytes, and takes the reply out of its wrapper if it has one.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, String> {
        let body: Self =
            json_read::read(bytes).map_err(|error| locate::problem(bytes, &error).to_string())?;
        Ok(match body.response {
            Some(inner) => *inner,
            None => body,
        })
    }

    /// Whether the prompt was blocked.
    pub fn is_blocked(&self) -> bool {
        self.feedback.as_ref().is_some_and(|feedback| feedback.block_reason.is_some())
    }
}

/// Reads the body of a success status.
///
/// # Errors
/// Not a reply, or an error in its place.
pub fn read(bytes: &[u8]) -> Result<Reply<'_>, ReplyProblem> {
    read_as(bytes, true)
}

/// As [`read`], but a call that the service dropped is not a problem: for a client that knows the
/// format's own finish reasons.
///
/// # Errors
/// As [`read`].
pub fn read_own(bytes: &[u8]) -> Result<Reply<'_>, ReplyProblem> {
    read_as(bytes, false)
}

fn read_as(bytes: &[u8], strict: bool) -> Result<Reply<'_>, ReplyProblem> {
    let problem = |message: String| ReplyProblem::NotAReply { format: "alt-cli", message };
    let body = Body::parse(bytes).map_err(problem)?;
    if let Some(error) = &body.error {
        let (kind, message) = error.kind_and_message();
        return Err(ReplyProblem::Upstream { kind, message });
    }
    let blocked = body.is_blocked();
    let usage = Usage::default();
    let unread = |error: Unread<'_>| problem(locate::unread(&error).to_string());
    let Some(candidate) = body.candidates.unwrap_or_default().first().map_err(unread)? else {
        if blocked {
            return Ok(Reply { parts: Vec::new(), finish: Finish::Refusal, usage });
        }
        return Err(problem("no `candidates`".to_owned()));
    };
    let broken = broken_call(&candidate);
    let mut parts = Vec::new();
    let reason = candidate.reason;
    let (mut foreign, mut calls) = (false, 0);
    for part in candidate.content.and_then(|content| content.parts).into_iter().flatten() {
        let part = part.map_err(unread)?;
        foreign |= part.is_foreign();
        add_part(part, &mut calls, &mut parts);
    }
    let nothing = if foreign { strict } else { reason.is_none() };
    let is_step =
        |part: &ReplyPart<'_>| matches!(part, ReplyPart::Thinking(step) if step.is_step());
    if nothing && parts.iter().all(is_step) {
        return Err(problem(NOTHING.to_owned()));
    }
    let any_call = calls > 0;
    if let Some((kind, message)) = broken.filter(|_| strict && !parts.iter().any(is_answer)) {
        return Err(ReplyProblem::Upstream { kind, message });
    }
    let finish = finish(reason.as_deref()).with_calls(any_call);
    Ok(Reply { parts, finish, usage })
}

/// Adds a part. `calls`: how many calls there are.
fn add_part<'a>(part: WirePart<'a>, calls: &mut usize, parts: &mut Vec<ReplyPart<'a>>) {
    if let Some(step) = steps::seal(&part) {
        parts.push(ReplyPart::Thinking(step.into()));
        return;
    }
    if let Some(call) = part.call {
        if let Some(proof) = part.signature {
            prove(proof.into_text(), parts);
        }
        let index = *calls;
        *calls += 1;
        let arguments = call.arguments().into();
        let id =
            call.id.filter(|id| !id.is_empty()).map_or_else(|| generated_id(index), Str::into_text);
        let name = ToolName::plain(call.name.unwrap_or_default().into_text());
        parts.push(ReplyPart::ToolCall(ToolCall { id, name, arguments }));
        return;
    }
    let Some(text) = part.text else { return };
    match (part.thought == Some(true), parts.last_mut()) {
        (true, Some(ReplyPart::Thinking(thinking))) if !thinking.is_step() => {
            thinking.text.push_str(&text)
        }
        (true, _) => {
            let proof = part.signature.map_or(Text::default(), Str::into_text);
            let signature = Some(Signature::new(Origin::AltCli, proof));
            parts.push(ReplyPart::Thinking(Thinking { text, signature }));
        }
        (false, Some(ReplyPart::Text(last))) => last.push_str(&text),
        (false, _) => parts.push(ReplyPart::Text(text)),
    }
}

/// The proof of a call is attached to the thought before it, which is its place in other formats.
fn prove<'a>(proof: Text<'a>, parts: &mut Vec<ReplyPart<'a>>) {
    let signature = Signature::new(Origin::AltCli, proof);
    match parts.last_mut() {
        Some(ReplyPart::Thinking(thinking)) if !thinking.is_step() => {
            thinking.signature = Some(signature);
        }
        _ => parts.push(ReplyPart::Thinking(signature.into())),
    }
}

fn is_answer(part: &ReplyPart<'_>) -> bool {
    match part {
        ReplyPart::Thinking(_) => false,
        ReplyPart::Text(text) => !text.is_empty(),
        _ => true,
    }
}

/// Kind and message if the service dropped the call that the model wrote, because it was none. If
/// nothing else came, that is not an answer: shown as one, it would silently end an agent's work.
pub fn broken_call(candidate: &Candidate<'_>) -> Option<(Option<String>, String)> {
    let reason = candidate.reason.as_deref()?;
    let broken = BROKEN_CALLS.contains(&reason);
    let message = || match &candidate.message {
        Some(message) if !message.is_empty() => message.to_string(),
        _ => format!("the answer ended with {reason}"),
    };
    broken.then(|| (Some(reason.to_owned()), message()))
}

/// The marker of an id that the provider did not send.
pub fn generated_id(index: usize) -> Text<'static> {
    format!("{GENERATED}{index}").into()
}

/// The finish reason as the neutral one.
pub fn finish(reason: Option<&str>) -> Finish {
    match reason {
        Some("MAX_TOKENS" | "CONTINUATION" | "TOO_MANY_TOOL_CALLS") => Finish::Length,
        Some(
            "SAFETY"
            | "RECITATION"
            | "LANGUAGE"
            | "BLOCKLIST"
            | "PROHIBITED_CONTENT"
            | "SPII"
            | "IMAGE_SAFETY"
            | "IMAGE_PROHIBITED_CONTENT"
            | "IMAGE_RECITATION"
            | "MODEL_ARMOR"
            | "ESCALATION"
            | "PUP_LIMITED_DISABLED",
        ) => Finish::Refusal,
        _ => Finish::Stop,
    }
}
