//! Writes a native stream.

use super::reply_write::{write_head, write_stop};
use super::usage;
use crate::domain::usage::Usage;
use crate::formats::conversation::frame::typed;
use crate::formats::conversation::json::Object;
use crate::formats::conversation::template::{GapValue, Template};
use crate::formats::conversation::{Block, Event, Finish, Origin, ReplyContext, StreamProblem};
use crate::formats::names::call_id;

/// State of one stream. Keeps nothing that grows.
#[derive(Debug, Default)]
pub struct Writer {
    index: u64,
    /// A delta of the open block.
    delta: Option<Template>,
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
            Event::Delta(text) => {
                if let Some(delta) = &self.delta {
                    delta.write(out, &[GapValue::Text(text)]);
                }
            }
            Event::Signature(signature) => {
                let sealed = signature.seal(Origin::Native);
                let delta = self.delta("signature_delta", "signature");
                delta.write(out, &[GapValue::Text(&sealed)]);
            }
            Event::Close => {
                typed(out, "content_block_stop", |o| o.uint("index", self.index));
                self.index += 1;
                self.delta = None;
            }
            Event::Turn(_) | Event::Head { .. } | Event::Done(_) => {}
            Event::Finish { finish, usage } => write_end(out, finish, usage),
        }
        Ok(())
    }

    fn open(&mut self, block: &Block<'_>, out: &mut Vec<u8>) {
        let (kind, delta, member) = match block {
            Block::Text | Block::Refusal => ("text", "text_delta", "text"),
            Block::Thinking => ("thinking", "thinking_delta", "thinking"),
            Block::Tool { .. } => ("tool_use", "input_json_delta", "partial_json"),
        };
        self.delta = Some(self.delta(delta, member));
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

    fn delta(&self, kind: &'static str, member: &'static str) -> Template {
        Template::new(|out, gaps| {
            typed(out, "content_block_delta", |o| {
                o.uint("index", self.index);
                o.object("delta", |o| {
                    o.word("type", kind);
                    o.gap(member, gaps);
                });
            });
        })
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
