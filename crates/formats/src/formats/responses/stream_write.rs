//! Writes a responses stream: numbered events, part by part and item by item, and the complete
//! response at its end.
//!
//! The last event repeats the complete reply, as the format requires; so this writer keeps what it
//! wrote, up to a bound.

use super::envelope::{self, Item, Phase, ResponseState, write_part};
use crate::domain::usage::Usage;
use crate::formats::conversation::frame;
use crate::formats::conversation::json::Object;
use crate::formats::conversation::template::{GapValue, Template};
use crate::formats::conversation::{
    Block, Event, Finish, Origin, ReplyContext, Str, StreamProblem, ToolName, schema,
};
use crate::formats::names::call_id;

/// Bytes of a reply that are kept for the last event.
pub const MAX_REPLY: usize = 16 << 20;

#[derive(Debug)]
enum OpenItem {
    Text { refusal: bool },
    Thinking { proof: Option<String> },
    Call { call: String, name: ToolName<'static>, free_text: bool },
}

/// State of one stream. Keeps the finished items and the open item's text.
#[derive(Debug, Default)]
pub struct Writer {
    sequence: u64,
    /// The open item's position.
    index: usize,
    open: Option<OpenItem>,
    /// A delta of the open item: its number and its text.
    delta: Option<Template>,
    item_id: String,
    text: String,
    /// The text is that of a message which waits for its last event: the next block tells whether
    /// it is the answer.
    waits: bool,
    /// JSON texts of the finished items, comma-separated.
    items: Vec<u8>,
}

impl Writer {
    /// The number of the next event.
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Writes the event.
    ///
    /// # Errors
    /// [`StreamProblem::TooLarge`] when the reply is above the bound.
    pub fn event(
        &mut self,
        event: &Event<'_>,
        context: &ReplyContext,
        out: &mut Vec<u8>,
    ) -> Result<(), StreamProblem> {
        match event {
            Event::Start { .. } => {
                for name in ["response.created", "response.in_progress"] {
                    self.emit(out, name, |o| {
                        o.object("response", |o| {
                            envelope::write(o, context, ResponseState::InProgress, |_| {})
                        });
                    });
                }
            }
            Event::Open(block) => {
                self.end_message(matches!(block, Block::Tool { .. }), out);
                self.open(block, context, out);
            }
            Event::Delta(text) => self.delta(text, out)?,
            Event::Signature(signature) => {
                if let Some(OpenItem::Thinking { proof }) = &mut self.open {
                    *proof = Some(signature.seal(Origin::Responses).into_owned());
                }
            }
            Event::Close => self.close(out),
            Event::Turn(_) | Event::Head { .. } | Event::Done(_) => {}
            Event::Finish { finish, usage } => {
                self.end_message(*finish == Finish::ToolCalls, out);
                self.end(finish, usage, context, out);
            }
        }
        Ok(())
    }

    fn emit(&mut self, out: &mut Vec<u8>, name: &'static str, fill: impl FnOnce(&mut Object<'_>)) {
        let sequence = self.sequence;
        self.sequence += 1;
        frame::typed(out, name, |o| {
            o.uint("sequence_number", sequence);
            fill(o);
        });
    }

    /// An event about the open item.
    fn emit_of_item(
        &mut self,
        out: &mut Vec<u8>,
        name: &'static str,
        fill: impl FnOnce(&mut Object<'_>),
    ) {
        let (index, id) = (self.index as u64, std::mem::take(&mut self.item_id));
        self.emit(out, name, |o| {
            o.str("item_id", &id);
            o.uint("output_index", index);
            fill(o);
        });
        self.item_id = id;
    }

    fn open(&mut self, block: &Block<'_>, context: &ReplyContext, out: &mut Vec<u8>) {
        let (open, item_id) = match block {
            Block::Text | Block::Refusal => {
                (OpenItem::Text { refusal: *block == Block::Refusal }, "msg_")
            }
            Block::Thinking => (OpenItem::Thinking { proof: None }, "rs_"),
            Block::Tool { id, name } => {
                let free_text = context.names.is_free_text(name);
                let name = ToolName {
                    namespace: name.namespace.as_deref().map(|space| space.to_owned().into()),
                    name: name.name.to_string().into(),
                };
                let prefix = if free_text { "ctc_" } else { "fc_" };
                (OpenItem::Call { call: call_id(id).into_owned(), name, free_text }, prefix)
            }
        };
        self.item_id = context.nth_id(item_id, self.index);
        self.text.clear();
        let empty = Str::default();
        let item = open.item(None, &empty);
        let (index, id) = (self.index as u64, self.item_id.clone());
        self.emit(out, "response.output_item.added", |o| {
            o.uint("output_index", index);
            o.object("item", |o| item.write(o, &id, "in_progress"));
        });
        if let OpenItem::Text { refusal } = open {
            self.emit_of_item(out, "response.content_part.added", |o| {
                o.uint("content_index", 0);
                o.object("part", |o| write_part(o, &empty, refusal));
            });
        }
        self.delta = self.delta_of(&open);
        self.open = Some(open);
    }

    /// Free text has no deltas: it can only be extracted when the arguments are complete.
    fn delta_of(&self, open: &OpenItem) -> Option<Template> {
        let (name, index) = match open {
            OpenItem::Text { refusal: false } => {
                ("response.output_text.delta", Some("content_index"))
            }
            OpenItem::Text { refusal: true } => ("response.refusal.delta", Some("content_index")),
            OpenItem::Thinking { .. } => {
                ("response.reasoning_summary_text.delta", Some("summary_index"))
            }
            OpenItem::Call { free_text: false, .. } => {
                ("response.function_call_arguments.delta", None)
            }
            OpenItem::Call { free_text: true, .. } => return None,
        };
        Some(Template::new(|out, gaps| {
            frame::typed(out, name, |o| {
                o.gap("sequence_number", gaps);
                o.str("item_id", &self.item_id);
                o.uint("output_index", self.index as u64);
                if let Some(index) = index {
                    o.uint(index, 0);
                }
                o.gap("delta", gaps);
                if matches!(open, OpenItem::Text { refusal: false }) {
                    o.raw("logprobs", "[]");
                }
            });
        }))
    }

    fn delta(&mut self, text: &str, out: &mut Vec<u8>) -> Result<(), StreamProblem> {
        if self.items.len() + self.text.len() + text.len() > MAX_REPLY {
            return Err(StreamProblem::TooLarge { what: "the whole reply" });
        }
        let first = self.text.is_empty();
        self.text.push_str(text);
        if first && matches!(self.open, Some(OpenItem::Thinking { .. })) {
            self.emit_of_item(out, "response.reasoning_summary_part.added", |o| {
                o.uint("summary_index", 0);
                o.object("part", |o| write_summary(o, ""));
            });
        }
        if let Some(delta) = &self.delta {
            delta.write(out, &[GapValue::Uint(self.sequence), GapValue::Text(text)]);
            self.sequence += 1;
        }
        Ok(())
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        let Some(open) = self.open.take() else { return };
        self.delta = None;
        let text = std::mem::take(&mut self.text);
        let said = match &open {
            OpenItem::Call { free_text: true, .. } => schema::free_text_input(&text),
            OpenItem::Call { .. } if text.is_empty() => "{}".into(),
            _ => text.as_str().into(),
        };
        let said = Str::from(said);
        self.emit_done(&open, &said, out);
        if matches!(open, OpenItem::Text { refusal: false }) {
            (self.text, self.waits) = (text, true);
            return;
        }
        self.item_done(open.item(Some(&said), &said), out);
    }

    /// Ends the message that waits, if one does. `call`: whether a tool call follows.
    fn end_message(&mut self, call: bool, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.waits) {
            let text = Str::from(std::mem::take(&mut self.text));
            let phase = Some(Phase::before(call));
            self.item_done(Item::Message { text: Some(&text), refusal: false, phase }, out);
        }
    }

    fn item_done(&mut self, item: Item<'_>, out: &mut Vec<u8>) {
        let json = item.to_json(&self.item_id, "completed");
        let index = self.index as u64;
        self.emit(out, "response.output_item.done", |o| {
            o.uint("output_index", index);
            o.key("item").extend_from_slice(&json);
        });
        if !self.items.is_empty() {
            self.items.push(b',');
        }
        self.items.extend_from_slice(&json);
        self.index += 1;
    }

    fn emit_done(&mut self, open: &OpenItem, said: &Str<'_>, out: &mut Vec<u8>) {
        match open {
            OpenItem::Text { refusal } => {
                let (name, member) = if *refusal {
                    ("response.refusal.done", "refusal")
                } else {
                    ("response.output_text.done", "text")
                };
                self.emit_of_item(out, name, |o| {
                    o.uint("content_index", 0);
                    if !refusal {
                        o.raw("logprobs", "[]");
                    }
                    o.str(member, said);
                });
                self.emit_of_item(out, "response.content_part.done", |o| {
                    o.uint("content_index", 0);
                    o.object("part", |o| write_part(o, said, *refusal));
                });
            }
            OpenItem::Thinking { .. } if said.is_empty() => {}
            OpenItem::Thinking { .. } => {
                self.emit_of_item(out, "response.reasoning_summary_text.done", |o| {
                    o.uint("summary_index", 0);
                    o.str("text", said);
                });
                self.emit_of_item(out, "response.reasoning_summary_part.done", |o| {
                    o.uint("summary_index", 0);
                    o.object("part", |o| write_summary(o, said));
                });
            }
            OpenItem::Call { free_text: true, .. } => {
                self.emit_of_item(out, "response.custom_tool_call_input.delta", |o| {
                    o.str("delta", said)
                });
                self.emit_of_item(out, "response.custom_tool_call_input.done", |o| {
                    o.str("input", said)
                });
            }
            OpenItem::Call { .. } => {
                self.emit_of_item(out, "response.function_call_arguments.done", |o| {
                    o.str("arguments", said)
                });
            }
        }
    }

    fn end(&mut self, finish: &Finish, usage: &Usage, context: &ReplyContext, out: &mut Vec<u8>) {
        let state = ResponseState::Ended { finish, usage };
        let complete = envelope::status(state).1.is_none();
        let items = std::mem::take(&mut self.items);
        self.emit(out, if complete { "response.completed" } else { "response.incomplete" }, |o| {
            o.object("response", |o| {
                envelope::write(o, context, state, |a| {
                    if !items.is_empty() {
                        a.element().extend_from_slice(&items);
                    }
                });
            });
        });
    }
}

impl OpenItem {
    /// The item with its text so far; a message has no part before it has text.
    fn item<'i>(&'i self, message: Option<&'i Str<'i>>, text: &'i Str<'i>) -> Item<'i> {
        match self {
            Self::Text { refusal } => {
                Item::Message { text: message, refusal: *refusal, phase: None }
            }
            Self::Thinking { proof } => Item::Reasoning { text, proof: proof.as_deref() },
            Self::Call { call, name, free_text: false } => Item::Call {
                id: call,
                name: &name.name,
                namespace: name.namespace.as_deref(),
                arguments: text,
            },
            Self::Call { call, name, free_text: true } => Item::FreeText {
                id: call,
                name: &name.name,
                namespace: name.namespace.as_deref(),
                input: text,
            },
        }
    }
}

fn write_summary(o: &mut Object<'_>, text: &str) {
    o.word("type", "summary_text");
    o.str("text", text);
}
