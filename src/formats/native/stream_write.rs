//! Writes a native stream.

use super::reply_write::{write_head, write_stop};
use super::usage;
use crate::domain::usage::Usage;
use crate::formats::conversation::frame::typed;
use crate::formats::conversation::json::Object;
use crate::formats::conversation::{Block, Event, Finish, Origin, ReplyContext, StreamProblem};
use crate::formats::names::call_id;

/// The kind of the open block, for the name of its deltas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Text,
    Thinking,
    Tool,
}

/// State of one stream. Keeps nothing that grows.
#[derive(Debug, Default)]
pub struct Writer {
    open: Option<Open>,
    index: u64,
}

impl Writer {
    /// Writes the event.
    ///
    /// # Errors
    /// None; other formats' writers can fail.
    pub fn event(
        &mut self,
        event: &Event<'_>,
        context: &ReplyContext,
        out: &mut Vec<u8>,
    ) -> Result<(), StreamProblem> {
        match event {
            Event::Start { usage } => write_start(out, context, usage),
            Event::Open(block) => self.open(block, out),
            Event::Delta(text) => self.delta(text, out),
            Event::Signature(signature) => {
                let sealed = signature.seal(Origin::Native);
                self.write_delta(out, "signature_delta", "signature", &sealed);
            }
            Event::Close => {
                typed(out, "content_block_stop", |o| o.uint("index", self.index));
                self.index += 1;
                self.open = None;
            }
            Event::Finish { finish, usage } => write_end(out, finish, usage),
        }
        Ok(())
    }

    fn open(&mut self, block: &Block<'_>, out: &mut Vec<u8>) {
        let (open, kind) = match block {
            Block::Text | Block::Refusal => (Open::Text, "text"),
            Block::Thinking => (Open::Thinking, "thinking"),
            Block::Tool { .. } => (Open::Tool, "tool_use"),
        };
        self.open = Some(open);
        typed(out, "content_block_start", |o| {
            o.uint("index", self.index);
            o.object("content_block", |o| {
                o.str("type", kind);
                match block {
                    Block::Text | Block::Refusal => o.str("text", ""),
                    Block::Thinking => {
                        o.str("thinking", "");
                        o.str("signature", "");
                    }
                    Block::Tool { id, name } => {
                        o.str("id", &call_id(id));
                        o.str("name", &name.name);
                        o.raw("input", "{}");
                    }
                }
            });
        });
    }

    fn delta(&self, text: &str, out: &mut Vec<u8>) {
        match self.open {
            Some(Open::Thinking) => self.write_delta(out, "thinking_delta", "thinking", text),
            Some(Open::Tool) => self.write_delta(out, "input_json_delta", "partial_json", text),
            _ => self.write_delta(out, "text_delta", "text", text),
        }
    }

    fn write_delta(&self, out: &mut Vec<u8>, kind: &'static str, member: &'static str, text: &str) {
        typed(out, "content_block_delta", |o| {
            o.uint("index", self.index);
            o.object("delta", |o| {
                o.word("type", kind);
                o.str(member, text);
            });
        });
    }
}

fn write_start(out: &mut Vec<u8>, context: &ReplyContext, usage: &Usage) {
    typed(out, "message_start", |o| {
        o.object("message", |o: &mut Object<'_>| {
            write_head(o, context);
            o.raw("content", "[]");
            o.null("stop_reason");
            o.null("stop_sequence");
            usage::write(o, usage);
        });
    });
}

fn write_end(out: &mut Vec<u8>, finish: &Finish, usage: &Usage) {
    typed(out, "message_delta", |o| {
        o.object("delta", |o| write_stop(o, finish));
        usage::write(o, usage);
    });
    typed(out, "message_stop", |_| {});
}
