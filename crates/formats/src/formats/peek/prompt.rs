//! Where the parts of a prompt are that providers cache: tools, system texts and messages.
//!
//! Clients write the same message in other ways on later turns: they move cache marks, which are
//! noted to be left out, and write a text as a string or as a block. So of a message that is only a
//! text, the range is that of the text.

use std::ops::Range;

use super::place::PeekPlace;
use crate::domain::prompt_print::PromptPrint;
use crate::formats::scan::{Found, Kind};

/// Cache marks that are noted: providers accept four.
const MOST_MARKS: usize = 64;
/// Messages for which there is space from the first one on.
const FIRST_MESSAGES: usize = 32;

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
    pub messages: Vec<MessagePart>,
    /// Values of cache marks, in order: their members do not count.
    pub marks: Vec<Range<usize>>,
    /// Of the message that is being read.
    open: OpenMessage,
}

/// A message or an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessagePart {
    /// The message, or its text if it has nothing else.
    pub span: Range<usize>,
    /// Who wrote the text; 0 = it is the complete message.
    pub writer: u8,
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

/// What is known of the text of the message that is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum TextStage {
    /// There is none, or other content beside it.
    #[default]
    Missing,
    /// It is the message's content, or in the block that is being read.
    Read,
    /// It is the last block, which has nothing else in it.
    Block,
    /// It is the only block.
    Only,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct OpenMessage {
    role: Role,
    /// The last type that was read is `text`.
    is_text: bool,
    stage: TextStage,
    /// Where the text is.
    start: usize,
    end: usize,
    /// Cache marks before this block.
    marks: usize,
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
    pub(super) const fn content(&mut self, found: &Found<'_, PeekPlace>) {
        let open = &mut self.open;
        open.stage = match (found.kind, open.stage) {
            (Kind::String, _) => {
                (open.start, open.end) = (found.span.start, found.span.end);
                TextStage::Read
            }
            (Kind::Array, TextStage::Block) if found.len == 1 => TextStage::Only,
            _ => TextStage::Missing,
        };
    }

    pub(super) fn block_ends(&mut self, members: usize) {
        let open = &mut self.open;
        let marks = self.marks.len() - std::mem::replace(&mut open.marks, self.marks.len());
        let is_plain = open.stage == TextStage::Read && open.is_text && members == 2 + marks;
        open.stage = if is_plain { TextStage::Block } else { TextStage::Missing };
    }

    /// A system text outside of the messages, of any kind.
    pub(super) fn system(&mut self, found: &Found<'_, PeekPlace>) {
        if found.kind != Kind::Null {
            self.system.push(found.span.clone());
        }
    }

    /// A message is complete, with so many members; `user_if_unsaid`: one without a role is the
    /// user's.
    pub(super) fn message_ends(
        &mut self,
        span: Range<usize>,
        members: usize,
        user_if_unsaid: bool,
    ) {
        let OpenMessage { role, stage, start, end, .. } = self.open;
        self.open = OpenMessage { marks: self.marks.len(), ..OpenMessage::default() };
        self.is_continued |= role == Role::Model || (role == Role::Unsaid && !user_if_unsaid);
        if role == Role::System && self.messages.is_empty() {
            self.system.push(span);
            self.leading += 1;
        } else if self.messages.len() < PromptPrint::MOST {
            if self.messages.capacity() == 0 {
                self.messages.reserve(FIRST_MESSAGES);
            }
            // The other member is the role.
            let is_text = matches!(stage, TextStage::Read | TextStage::Only)
                && members == 2
                && role != Role::Unsaid;
            self.messages.push(match is_text {
                true => MessagePart { span: start..end, writer: role as u8 },
                false => MessagePart { span, writer: 0 },
            });
        }
    }
}
