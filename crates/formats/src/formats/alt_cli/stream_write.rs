//! Writes an alt-cli stream: chunks as server-sent events, or as the elements of one JSON array.
//!
//! A call is one part here, so its arguments are kept until they are complete, up to a bound.

use super::reply_write::{in_wrapper, write_call, write_candidate, write_tail, write_thought};
use super::usage;
use crate::formats::conversation::json::{self, Object};
use crate::formats::conversation::template::{GapValue, Gaps, Template};
use crate::formats::conversation::{Block, Event, Origin, ReplyContext, StreamProblem};

/// Bytes of one call's arguments that are kept.
const MAX_ARGUMENTS: usize = 16 << 20;

#[derive(Debug, Default)]
enum OpenPart {
    #[default]
    Nothing,
    /// Text or reasoning: a chunk of it, without what separates chunks.
    Text(Template),
    Call {
        id: String,
        name: String,
        arguments: String,
    },
}

/// State of one stream.
#[derive(Debug, Default)]
pub struct Writer {
    open: OpenPart,
    /// A chunk was written.
    began: bool,
}

impl Writer {
    /// Whether a chunk was written.
    pub const fn began(&self) -> bool {
        self.began
    }

    /// Writes the event.
    ///
    /// # Errors
    /// [`StreamProblem::TooLarge`] for a call above the bound.
    pub fn event(
        &mut self,
        event: &Event<'_>,
        context: &ReplyContext,
        out: &mut Vec<u8>,
    ) -> Result<(), StreamProblem> {
        match event {
            // The format has no opening event.
            Event::Start { .. } => {}
            Event::Open(block) => {
                self.open = match block {
                    Block::Text | Block::Refusal => {
                        OpenPart::Text(template(context, |o, gaps| o.gap("text", gaps)))
                    }
                    Block::Thinking => OpenPart::Text(template(context, |o, gaps| {
                        o.gap("text", gaps);
                        o.bool("thought", true);
                    })),
                    Block::Tool { id, name } => OpenPart::Call {
                        id: id.to_string(),
                        name: name.name.to_string(),
                        arguments: String::new(),
                    },
                };
            }
            Event::Delta(text) => self.delta(text, context, out)?,
            Event::Signature(signature) => {
                let proof = signature.seal_base64(Origin::AltCli);
                self.part(context, out, |o| write_thought(o, "", Some(&proof)));
            }
            Event::Close => {
                if let OpenPart::Call { id, name, arguments } = std::mem::take(&mut self.open) {
                    self.part(context, out, |o| write_call(o, &id, &name, &arguments));
                }
            }
            Event::Turn(_) | Event::Head { .. } | Event::Done(_) => {}
            Event::Finish { finish, usage: total } => self.chunk(context, out, |o| {
                write_candidate(o, Some(finish), |a| a.object(|o| o.str("text", "")));
                usage::write(o, total);
            }),
        }
        Ok(())
    }

    fn delta(
        &mut self,
        text: &str,
        context: &ReplyContext,
        out: &mut Vec<u8>,
    ) -> Result<(), StreamProblem> {
        match &mut self.open {
            OpenPart::Call { arguments, .. } => {
                if arguments.len() + text.len() > MAX_ARGUMENTS {
                    return Err(StreamProblem::TooLarge { what: "the arguments of a tool call" });
                }
                arguments.push_str(text);
            }
            OpenPart::Text(chunk) => {
                begin_chunk(&mut self.began, context, out);
                chunk.write(out, &[GapValue::Text(text)]);
            }
            OpenPart::Nothing => {}
        }
        Ok(())
    }

    fn part(
        &mut self,
        context: &ReplyContext,
        out: &mut Vec<u8>,
        fill: impl FnOnce(&mut Object<'_>),
    ) {
        self.chunk(context, out, |o| write_candidate(o, None, |a| a.object(fill)));
    }

    fn chunk(
        &mut self,
        context: &ReplyContext,
        out: &mut Vec<u8>,
        fill: impl FnOnce(&mut Object<'_>),
    ) {
        begin_chunk(&mut self.began, context, out);
        write_chunk(context, out, fill);
    }
}

/// What precedes a chunk.
fn begin_chunk(began: &mut bool, context: &ReplyContext, out: &mut Vec<u8>) {
    let first = !std::mem::replace(began, true);
    let before: &[u8] = match (context.json_array, first) {
        (false, _) => b"data: ",
        (true, true) => b"[",
        (true, false) => b",\r\n",
    };
    out.extend_from_slice(before);
}

fn write_chunk(context: &ReplyContext, out: &mut Vec<u8>, fill: impl FnOnce(&mut Object<'_>)) {
    json::object(out, |o| {
        in_wrapper(o, context, |o| {
            fill(o);
            write_tail(o, context);
        });
    });
    if !context.json_array {
        out.extend_from_slice(b"\r\n\r\n");
    }
}

/// A chunk with one part.
fn template(context: &ReplyContext, part: impl FnOnce(&mut Object<'_>, &mut Gaps)) -> Template {
    Template::new(|out, gaps| {
        write_chunk(context, out, |o| {
            write_candidate(o, None, |a| a.object(|o| part(o, gaps)));
        });
    })
}
