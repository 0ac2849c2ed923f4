//! Where the parts of a prompt are that providers cache: tools, system texts and messages.
//!
//! Of two ways to write a message that clients change between turns, only the content counts: cache
//! marks are noted to be left out, and so is what stands around the only text of a message, which
//! may be a block or a plain string.

use std::ops::Range;

use super::place::PeekPlace;
use crate::domain::prompt_print::PromptPrint;
use crate::formats::scan::{Found, Kind};

/// Cache marks that are noted: providers accept four.
const MOST_MARKS: usize = 64;

/// The parts of a prompt, as ranges of the body.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PromptParts {
    /// The list of tools.
    pub tools: Option<Range<usize>>,
    /// System texts, and the messages at the beginning that stand for one.
    pub system: Vec<Range<usize>>,
    /// How many messages are among `system`.
    pub leading: u32,
    /// The model wrote one of the messages or items.
    pub is_continued: bool,
    /// The other messages or items.
    pub messages: Vec<Range<usize>>,
    /// Values of cache marks: their members do not count.
    pub marks: Vec<Range<usize>>,
    /// Ranges that do not count, in order.
    pub wrappers: Vec<Range<usize>>,
    /// Of the message that is being read.
    open: OpenMessage,
}

/// Who wrote a message. Calls and reasoning of the model are items without a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Role {
    #[default]
    Unsaid,
    System,
    Model,
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct OpenMessage {
    role: Role,
    /// The last type that was read is `text`.
    is_text: bool,
    /// The text of the block that is being read.
    text: Option<Range<usize>>,
    /// Cache marks before this block.
    marks: usize,
    /// The text of the last block, if that is a text block with nothing else in it.
    plain: Option<Range<usize>>,
    /// Both ends of a content that is one text block.
    wrapper: Option<[Range<usize>; 2]>,
}

impl PromptParts {
    pub(super) fn role(&mut self, role: &[u8]) {
        self.open.role = match role {
            b"system" | b"developer" => Role::System,
            b"assistant" | b"model" => Role::Model,
            _ => Role::Other,
        };
    }

    pub(super) const fn kind(&mut self, is_text: bool) {
        self.open.is_text = is_text;
    }

    pub(super) fn mark(&mut self, span: Range<usize>) {
        if self.marks.len() < MOST_MARKS {
            self.marks.push(span);
        }
    }

    /// A message's content, or the text of a block.
    pub(super) fn content(&mut self, found: &Found<'_, PeekPlace>) {
        match found.kind {
            Kind::String => self.open.text = Some(found.span.clone()),
            Kind::Array if found.len == 1 => {
                let wrapper =
                    |text: Range<usize>| [found.span.start..text.start, text.end..found.span.end];
                self.open.wrapper = self.open.plain.take().map(wrapper);
            }
            _ => {}
        }
    }

    pub(super) fn block_ends(&mut self, members: usize) {
        let marks = self.marks.len() - std::mem::replace(&mut self.open.marks, self.marks.len());
        let text = self.open.text.take();
        self.open.plain = text.filter(|_| self.open.is_text && members - marks.min(members) == 2);
    }

    /// A system text outside of the messages, of any kind.
    pub(super) fn system(&mut self, found: &Found<'_, PeekPlace>) {
        if found.kind != Kind::Null {
            self.system.push(found.span.clone());
        }
    }

    /// A message is complete; `user_if_unsaid`: one without a role is the user's.
    pub(super) fn message_ends(&mut self, span: Range<usize>, user_if_unsaid: bool) {
        let open = std::mem::take(&mut self.open);
        self.open.marks = self.marks.len();
        self.is_continued |=
            open.role == Role::Model || (open.role == Role::Unsaid && !user_if_unsaid);
        if open.role == Role::System && self.messages.is_empty() {
            self.system.push(span);
            self.leading += 1;
        } else if self.messages.len() < PromptPrint::MOST {
            self.messages.push(span);
        } else {
            return;
        }
        self.wrappers.extend(open.wrapper.into_iter().flatten());
    }
}
