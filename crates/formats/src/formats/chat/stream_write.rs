//! Writes a chat-compatible stream.

use super::reply_write::{finish_word, write_head};
use super::usage;
use crate::domain::usage::Usage;
use crate::formats::conversation::frame;
use crate::formats::conversation::json::{self, Object};
use crate::formats::conversation::template::{GapValue, Gaps, Template};
use crate::formats::conversation::{Block, Event, ReplyContext, StreamProblem, schema};
use crate::formats::names::call_id;

/// Bytes of a free-text tool's arguments that are kept until they are complete.
const MAX_FREE_TEXT: usize = 4 << 20;

/// The open block.
#[derive(Debug, Default)]
enum OpenChatBlock {
    #[default]
    Nothing,
    /// Text, refusal or reasoning: a chunk of it.
    Text(Template),
    /// A chunk of its arguments.
    Call { chunk: Template, empty: bool },
    /// The arguments so far: the free text can only be extracted when they are complete.
    FreeText(String),
}

/// State of one stream. Nothing in it grows except one free-text call's arguments, which are
/// bounded.
#[derive(Debug, Default)]
pub struct Writer {
    open: OpenChatBlock,
    calls: u64,
    /// The constant part of a chunk before its delta.
    head: Vec<u8>,
}

impl Writer {
    /// Writes the event.
    ///
    /// # Errors
    /// [`StreamProblem::TooLarge`] for a free-text call above the bound.
    pub fn event(
        &mut self,
        event: &Event<'_>,
        context: &ReplyContext,
        out: &mut Vec<u8>,
    ) -> Result<(), StreamProblem> {
        match event {
            Event::Start { .. } => {
                self.head = json::document(|o| {
                    write_head(o, context, "chat.completion.chunk");
                });
                // The object stays open: choices follow.
                self.head.pop();
                self.chunk(out, |o| {
                    o.word("role", "assistant");
                    o.str("content", "");
                });
            }
            Event::Open(block) => self.open(block, context, out),
            Event::Delta(text) => self.delta(text, out)?,
            // The format has no field for a proof.
            Event::Signature(_) => {}
            Event::Close => self.close(out),
            Event::Turn(_) | Event::Head { .. } | Event::Done(_) => {}
            Event::Finish { finish, usage } => {
                self.write_choice(out, |o| {
                    o.raw("delta", "{}");
                    o.str("finish_reason", finish_word(finish));
                });
                if context.include_usage {
                    write_usage(out, context, usage);
                }
                out.extend_from_slice(b"data: [DONE]\n\n");
            }
        }
        Ok(())
    }

    fn open(&mut self, block: &Block<'_>, context: &ReplyContext, out: &mut Vec<u8>) {
        let Block::Tool { id, name } = block else {
            let member = match block {
                Block::Thinking => "reasoning_content",
                Block::Refusal => "refusal",
                _ => "content",
            };
            self.open = OpenChatBlock::Text(Template::new(|out, gaps| {
                self.chunk(out, |o| o.gap(member, gaps));
            }));
            return;
        };
        let free = context.names.is_free_text(name);
        self.open = if free {
            OpenChatBlock::FreeText(String::new())
        } else {
            OpenChatBlock::Call { chunk: self.arguments(), empty: true }
        };
        self.call(out, |o| {
            o.str("id", &call_id(id));
            let (kind, argument) =
                if free { ("custom", "input") } else { ("function", "arguments") };
            o.str("type", kind);
            o.object(kind, |o| {
                o.str("name", &name.name);
                o.str(argument, "");
            });
        });
    }

    fn delta(&mut self, text: &str, out: &mut Vec<u8>) -> Result<(), StreamProblem> {
        match &mut self.open {
            OpenChatBlock::FreeText(arguments) => {
                if arguments.len() + text.len() > MAX_FREE_TEXT {
                    return Err(StreamProblem::TooLarge { what: "the arguments of a tool call" });
                }
                arguments.push_str(text);
            }
            OpenChatBlock::Call { chunk, empty } => {
                *empty = false;
                chunk.write(out, &[GapValue::Text(text)]);
            }
            OpenChatBlock::Text(chunk) => chunk.write(out, &[GapValue::Text(text)]),
            OpenChatBlock::Nothing => {}
        }
        Ok(())
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        match std::mem::take(&mut self.open) {
            OpenChatBlock::FreeText(arguments) => {
                let input = schema::free_text_input(&arguments);
                self.call(out, |o| o.object("custom", |o| o.str("input", &input)));
                self.calls += 1;
            }
            OpenChatBlock::Call { chunk, empty } => {
                if empty {
                    // Clients parse the arguments, and an empty text is not JSON.
                    chunk.write(out, &[GapValue::Text("{}")]);
                }
                self.calls += 1;
            }
            _ => {}
        }
    }

    fn arguments(&self) -> Template {
        Template::new(|out, gaps: &mut Gaps| {
            self.call(out, |o| o.object("function", |o| o.gap("arguments", gaps)));
        })
    }

    fn call(&self, out: &mut Vec<u8>, fill: impl FnOnce(&mut Object<'_>)) {
        self.chunk(out, |o| {
            o.array("tool_calls", |a| {
                a.object(|o| {
                    o.uint("index", self.calls);
                    fill(o);
                });
            });
        });
    }

    fn chunk(&self, out: &mut Vec<u8>, delta: impl FnOnce(&mut Object<'_>)) {
        self.write_choice(out, |o| {
            o.object("delta", delta);
            o.null("finish_reason");
        });
    }

    fn write_choice(&self, out: &mut Vec<u8>, fill: impl FnOnce(&mut Object<'_>)) {
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(&self.head);
        out.extend_from_slice(b",\"choices\":");
        json::array(out, |a| {
            a.object(|o| {
                o.uint("index", 0);
                fill(o);
            });
        });
        out.extend_from_slice(b"}\n\n");
    }
}

fn write_usage(out: &mut Vec<u8>, context: &ReplyContext, total: &Usage) {
    frame::event(out, None, |o| {
        write_head(o, context, "chat.completion.chunk");
        o.raw("choices", "[]");
        usage::write(o, total);
    });
}
