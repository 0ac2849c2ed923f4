//! A native reply on its way to the client that waits for the verdicts on its tool calls.
//!
//! A stream passes until the event that ends its message; a reply in one piece is kept. Then it
//! waits, and the verdicts are put in.

use serde::Deserialize;

use super::CheckedCall;
use super::verdict::CheckResult;
use crate::formats::conversation::Str;
use crate::formats::json_read::{self, Json};
use crate::formats::sse::{Piece, Splitter};

/// A larger event, or reply in one piece, passes without verdicts.
const MOST_HELD: usize = 8 * 1024 * 1024;
/// Calls of a reply that are judged.
const MOST_CALLS: usize = 64;
/// Bytes of the arguments of all calls that are kept.
const MOST_INPUT: usize = 256 * 1024;

/// Follows one reply.
#[derive(Debug)]
pub struct CheckedReply {
    /// What the calls are for: the user's last message, shortened.
    pub task: String,
    stage: CheckStage,
    splitter: Splitter,
    /// Of the current event: its bytes so far, and its data.
    event: Vec<u8>,
    data: Vec<u8>,
    calls: Vec<OpenCall>,
    input: usize,
}

#[derive(Debug)]
struct OpenCall {
    index: u64,
    call: CheckedCall,
}

#[derive(Debug)]
enum CheckStage {
    /// Nothing but white space so far.
    Begin(Vec<u8>),
    /// Of a stream.
    Events,
    /// Of a reply in one piece, so far.
    Whole(Vec<u8>),
    /// The verdicts go into this object; `rest`: what follows it.
    Waiting {
        object: String,
        is_event: bool,
        rest: Vec<u8>,
    },
    Passing,
}

#[derive(Deserialize)]
struct CheckedEvent<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Str<'a>>,
    index: Option<u64>,
    #[serde(borrow)]
    content_block: Option<Json<'a>>,
    #[serde(borrow)]
    delta: Option<Json<'a>>,
    /// Of a reply in one piece.
    #[serde(borrow)]
    content: Option<Vec<Json<'a>>>,
}

#[derive(Deserialize)]
struct CheckedBlock<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Str<'a>>,
    #[serde(borrow)]
    id: Option<Str<'a>>,
    #[serde(borrow)]
    name: Option<Str<'a>>,
    #[serde(borrow)]
    input: Option<Json<'a>>,
    #[serde(borrow)]
    partial_json: Option<Str<'a>>,
    #[serde(borrow)]
    stop_reason: Option<Json<'a>>,
}

impl CheckedReply {
    /// A reply that begins: a stream or one piece, as its first bytes say.
    pub fn new(task: String) -> Self {
        Self {
            task,
            stage: CheckStage::Begin(Vec::new()),
            splitter: Splitter::new(),
            event: Vec::new(),
            data: Vec::new(),
            calls: Vec::new(),
            input: 0,
        }
    }

    /// Takes the next bytes for the client. Returns those that may pass.
    pub fn feed(&mut self, chunk: &[u8]) -> Vec<u8> {
        match &mut self.stage {
            CheckStage::Begin(space) => {
                space.extend_from_slice(chunk);
                let begun = std::mem::take(space);
                self.stage = match begun.trim_ascii_start().first() {
                    None => CheckStage::Begin(begun),
                    Some(b'{') => CheckStage::Whole(begun),
                    Some(_) => {
                        self.stage = CheckStage::Events;
                        return self.events(&begun);
                    }
                };
                Vec::new()
            }
            CheckStage::Passing => chunk.to_vec(),
            CheckStage::Waiting { rest, .. } => {
                rest.extend_from_slice(chunk);
                Vec::new()
            }
            CheckStage::Whole(collected) => {
                collected.extend_from_slice(chunk);
                if collected.len() <= MOST_HELD {
                    return Vec::new();
                }
                let passed = std::mem::take(collected);
                self.stage = CheckStage::Passing;
                passed
            }
            CheckStage::Events => self.events(chunk),
        }
    }

    fn events(&mut self, chunk: &[u8]) -> Vec<u8> {
        let (mut out, mut rest, mut from) = (Vec::with_capacity(chunk.len()), chunk, 0);
        while let Some(piece) = self.splitter.next(&mut rest) {
            match piece {
                Piece::Data(part) => self.data.extend_from_slice(part),
                Piece::End => {
                    let end = chunk.len() - rest.len();
                    let is_last = self.event_ends();
                    self.data.clear();
                    if let Some(object) = is_last {
                        self.event.clear();
                        let rest = rest.to_vec();
                        self.stage = CheckStage::Waiting { object, is_event: true, rest };
                        return out;
                    }
                    out.append(&mut self.event);
                    out.extend_from_slice(&chunk[from..end]);
                    from = end;
                }
            }
        }
        self.event.extend_from_slice(&chunk[from..]);
        if self.event.len() > MOST_HELD {
            out.append(&mut self.event);
            self.data = Vec::new();
            self.stage = CheckStage::Passing;
        }
        out
    }

    /// Reads the event that is complete. If it ends the message, its data.
    fn event_ends(&mut self) -> Option<String> {
        let data = std::mem::take(&mut self.data);
        let is_relevant = |name: &str| memchr::memmem::find(&data, name.as_bytes()).is_some();
        let last = is_relevant("message_delta");
        if last || is_relevant("tool_use") || is_relevant("input_json_delta") {
            let event: CheckedEvent<'_> = json_read::read(&data).ok()?;
            let block = |json: Option<Json<'_>>| json.map(|json| json.get().to_owned());
            match event.kind.as_deref() {
                Some("content_block_start") => {
                    let block = block(event.content_block).unwrap_or_default();
                    self.block(&block, event.index.unwrap_or_default());
                }
                Some("content_block_delta") => {
                    let delta = block(event.delta).unwrap_or_default();
                    self.argument(&delta, event.index.unwrap_or_default());
                }
                Some("message_delta") => {
                    let delta = event.delta?;
                    let known: CheckedBlock<'_> = json_read::from_str(delta.get()).ok()?;
                    known.stop_reason.filter(|reason| reason.get() != "null")?;
                    return String::from_utf8(data).ok();
                }
                _ => {}
            }
        }
        self.data = data;
        None
    }

    /// A block begins, or is complete.
    fn block(&mut self, block: &str, index: u64) {
        let Ok(block) = json_read::from_str::<CheckedBlock<'_>>(block) else { return };
        let (Some("tool_use"), Some(id)) = (block.kind.as_deref(), block.id) else { return };
        if self.calls.len() >= MOST_CALLS {
            return;
        }
        let input = block.input.map_or("", |input| input.get());
        // A stream begins with an empty object, and brings the arguments later.
        let input = if input == "{}" { "" } else { input };
        self.input += input.len();
        self.calls.push(OpenCall {
            index,
            call: CheckedCall {
                id: id.to_string(),
                name: block.name.map(|name| name.to_string()).unwrap_or_default(),
                input: input.to_owned(),
            },
        });
    }

    fn argument(&mut self, delta: &str, index: u64) {
        let Ok(delta) = json_read::from_str::<CheckedBlock<'_>>(delta) else { return };
        let Some(part) = delta.partial_json else { return };
        let part = part.to_string();
        self.input += part.len();
        let open = self.calls.iter_mut().rev().find(|open| open.index == index);
        if let Some(open) = open.filter(|_| self.input <= MOST_INPUT) {
            open.call.input.push_str(&part);
        }
    }

    /// The reply has ended. Returns the bytes that may pass.
    pub fn finish(&mut self) -> Vec<u8> {
        match &mut self.stage {
            CheckStage::Begin(space) => std::mem::take(space),
            CheckStage::Events => {
                self.stage = CheckStage::Passing;
                std::mem::take(&mut self.event)
            }
            CheckStage::Whole(collected) => {
                let whole = std::mem::take(collected);
                self.stage = CheckStage::Passing;
                match self.message(&whole) {
                    Some(object) => {
                        let rest = Vec::new();
                        self.stage = CheckStage::Waiting { object, is_event: false, rest };
                        Vec::new()
                    }
                    None => whole,
                }
            }
            CheckStage::Waiting { .. } | CheckStage::Passing => Vec::new(),
        }
    }

    /// Reads a reply in one piece; `None` if it is not one.
    fn message(&mut self, whole: &[u8]) -> Option<String> {
        let message: CheckedEvent<'_> = json_read::read(whole).ok()?;
        for (index, block) in message.content?.into_iter().enumerate() {
            self.block(block.get(), index as u64);
        }
        String::from_utf8(whole.to_vec()).ok()
    }

    /// Whether the reply waits for its verdicts.
    pub const fn waits(&self) -> bool {
        matches!(self.stage, CheckStage::Waiting { .. })
    }

    /// The calls to be judged.
    pub fn calls(&self) -> impl ExactSizeIterator<Item = &CheckedCall> {
        self.calls.iter().map(|open| &open.call)
    }

    /// Whether arguments are missing, because there were too many.
    pub const fn is_too_long(&self) -> bool {
        self.input > MOST_INPUT
    }

    /// Puts the verdicts in. Returns what was held back.
    pub fn answer(&mut self, result: &CheckResult) -> Vec<u8> {
        let stage = std::mem::replace(&mut self.stage, CheckStage::Passing);
        let CheckStage::Waiting { object, is_event, rest } = stage else { return Vec::new() };
        let place = if is_event { delta_of(&object) } else { Some(0) };
        let place = place.and_then(|from| object[from..].find('{').map(|at| from + at + 1));
        let mut out = Vec::with_capacity(object.len() + 256);
        if is_event {
            out.extend_from_slice(b"event: message_delta\ndata: ");
        }
        match place {
            None => out.extend_from_slice(object.as_bytes()),
            Some(place) => {
                let (head, tail) = object.split_at(place);
                out.extend_from_slice(head.as_bytes());
                out.extend_from_slice(result.member().as_bytes());
                if !tail.trim_start().starts_with('}') {
                    out.push(b',');
                }
                out.extend_from_slice(tail.as_bytes());
            }
        }
        if is_event {
            out.extend_from_slice(b"\n\n");
        }
        out.extend_from_slice(&rest);
        out
    }
}

/// Where the `delta` of an event begins.
fn delta_of(event: &str) -> Option<usize> {
    let parsed: CheckedEvent<'_> = json_read::from_str(event).ok()?;
    (parsed.delta?.get().as_ptr() as usize).checked_sub(event.as_ptr() as usize)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::verdict::{JudgedCall, Verdict};
    use super::*;

    const STREAM: &str = concat!(
        ": hello\n\n",
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"content\":[]}}\n\n",
        "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,",
        "\"content_block\":{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"Bash\",\"input\":{}}}\n\n",
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,",
        "\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"command\\\":\"}}\n\n",
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,",
        "\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"\\\"ls\\\"}\"}}\n\n",
    );
    const END: &str = concat!(
        "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":",
        "\"tool_use\"},\"usage\":{\"output_tokens\":1}}\n\n",
    );
    const STOP: &str = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

    fn judged() -> CheckResult {
        let verdict = Verdict::Flagged("it lists".into());
        CheckResult::Judged(vec![JudgedCall { id: "t1".into(), verdict }])
    }

    #[test]
    fn a_stream_waits_at_its_last_event_wherever_it_is_cut() {
        let whole = [STREAM, END, STOP].concat();
        for size in [1, 2, 3, 7, 50, whole.len()] {
            let mut reply = CheckedReply::new(String::new());
            let mut out = Vec::new();
            for chunk in whole.as_bytes().chunks(size) {
                out.extend(reply.feed(chunk));
            }
            assert!(reply.waits());
            assert_eq!(String::from_utf8(out.clone()).unwrap(), STREAM, "in pieces of {size}");
            let calls: Vec<&CheckedCall> = reply.calls().collect();
            assert_eq!((calls.len(), calls[0].input.as_str()), (1, "{\"command\":\"ls\"}"));
            let end = String::from_utf8(reply.answer(&judged())).unwrap();
            let data = end.strip_prefix("event: message_delta\ndata: ").unwrap();
            let (data, rest) = data.split_once("\n\n").unwrap();
            assert_eq!(rest, STOP);
            let event: Value = serde_json::from_str(data).unwrap();
            assert_eq!(event["delta"]["stop_reason"], "tool_use");
            let result = &event["delta"]["safeguard_results"][0];
            assert_eq!(
                result["status"]["tool_uses"]["t1"],
                json!({"type": "evaluated", "outcome": "flagged", "explanation": "it lists"})
            );
            assert_eq!(reply.feed(b"x"), b"x");
        }
    }

    #[test]
    fn a_reply_in_one_piece_gets_its_verdicts_on_top() {
        let body = json!({"type": "message", "content": [{"type": "text", "text": "a"},
            {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}]});
        let mut reply = CheckedReply::new(String::new());
        assert_eq!(reply.feed(body.to_string().as_bytes()), b"");
        assert_eq!(reply.finish(), b"");
        assert_eq!(reply.calls().next().unwrap().input, "{\"command\":\"ls\"}");
        let out: Value = serde_json::from_slice(&reply.answer(&CheckResult::Unsupported)).unwrap();
        assert_eq!(out["content"], body["content"]);
        assert_eq!(out["safeguard_results"][0]["status"], json!({"type": "unsupported"}));
        // What is not a message passes.
        let mut reply = CheckedReply::new(String::new());
        reply.feed(b"not JSON");
        assert_eq!((reply.finish().as_slice(), reply.waits()), (b"not JSON".as_slice(), false));
    }

    #[test]
    fn a_stream_that_ends_early_passes() {
        let mut reply = CheckedReply::new(String::new());
        assert_eq!(reply.feed(b"event: message_del"), b"");
        assert_eq!(reply.finish(), b"event: message_del");
        assert!(!reply.waits());
    }
}
