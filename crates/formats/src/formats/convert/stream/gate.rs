//! What a reader gives on its way to the writer.

use super::super::seeded;
use super::blocks::Blocks;
use crate::domain::format::WireFormat;
use crate::formats::conversation::reply::NAMELESS_CALL;
use crate::formats::conversation::surrogates::SurrogatePieces;
use crate::formats::conversation::{Block, Event, ReplyContext, StreamProblem, Text};
use crate::formats::names::CallIds;
use crate::formats::usage::UsageReader;

/// Calls whose ids are kept.
const MAX_CALLS: usize = 10_000;

/// Takes an event to the writer.
type Write<'w> = dyn FnMut(&Event<'_>) -> Result<(), StreamProblem> + 'w;

/// The step between reader and writer: puts mixed blocks in order, restores names and ids, adds
/// usage, leaves out hidden and empty blocks.
#[derive(Debug)]
pub(super) struct Gate {
    blocks: Blocks,
    /// The ids of the reply's calls.
    ids: CallIds<'static>,
    /// The open block is a call: its arguments are a text that contains JSON.
    arguments: Option<SurrogatePieces>,
    /// The open block is not shown.
    hidden: bool,
    /// A text block that is opened once it has text.
    held: Option<Block<'static>>,
    pub(super) content: bool,
    /// The provider has sent some of the reply, shown to the client or not.
    pub(super) seen: bool,
    /// The provider's stream has reached its end.
    pub(super) end: bool,
    /// The usage that is billed, and reported to the client.
    pub(super) usage: UsageReader,
}

impl Gate {
    pub(super) fn new(from: WireFormat) -> Self {
        let usage = UsageReader::of_events(from);
        Self {
            blocks: Blocks::default(),
            ids: CallIds::default(),
            arguments: None,
            hidden: false,
            held: None,
            content: false,
            seen: false,
            end: false,
            usage,
        }
    }

    /// Passes on an event of the reader, or not.
    ///
    /// # Errors
    /// A call without a name, and those of [`Blocks::pass`] and of `write`.
    pub(super) fn pass(
        &mut self,
        event: Event<'_>,
        context: &ReplyContext,
        write: &mut Write<'_>,
    ) -> Result<(), StreamProblem> {
        self.seen |= event.is_content();
        if self.blocks.is_idle() && !matches!(event, Event::Turn(_)) {
            return self.pass_in_order(event, context, write);
        }
        let mut blocks = std::mem::take(&mut self.blocks);
        let passed = blocks.pass(event, &mut |event| self.pass_in_order(event, context, write));
        self.blocks = blocks;
        passed
    }

    fn pass_in_order(
        &mut self,
        event: Event<'_>,
        context: &ReplyContext,
        write: &mut Write<'_>,
    ) -> Result<(), StreamProblem> {
        let event = match event {
            Event::Start { .. } => Event::Start { usage: self.usage.usage().unwrap_or_default() },
            Event::Finish { finish, .. } => {
                self.end = true;
                Event::Finish { finish, usage: self.usage.estimate(context.estimated_input) }
            }
            Event::Open(Block::Thinking) if context.hide_thinking => {
                self.hidden = true;
                return Ok(());
            }
            Event::Open(Block::Text) => {
                self.held = Some(Block::Text);
                return Ok(());
            }
            Event::Open(Block::Refusal) => {
                self.held = Some(Block::Refusal);
                return Ok(());
            }
            Event::Close if std::mem::take(&mut self.hidden) || self.held.take().is_some() => {
                return Ok(());
            }
            _ if self.hidden => return Ok(()),
            Event::Open(Block::Tool { name, .. }) if name.name.is_empty() => {
                return Err(StreamProblem::malformed(NAMELESS_CALL));
            }
            Event::Open(Block::Tool { id, name }) => {
                self.arguments = Some(SurrogatePieces::default());
                if self.ids.len() >= MAX_CALLS {
                    return Err(StreamProblem::TooLarge { what: "the number of tool calls" });
                }
                let id = Text::Owned(seeded(id, context).into_owned());
                Event::Open(Block::Tool {
                    id: self.ids.take_in_reply(id, &context.names),
                    name: context.names.restore(name),
                })
            }
            Event::Close => {
                let rest = self.arguments.take().map(|mut pieces| pieces.rest());
                if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
                    write(&Event::Delta(rest.into()))?;
                }
                Event::Close
            }
            Event::Delta(text) => {
                if let Some(block) = self.held.take() {
                    write(&Event::Open(block))?;
                }
                match &mut self.arguments {
                    None => Event::Delta(text),
                    Some(pieces) => match pieces.next(text) {
                        text if text.is_empty() => return Ok(()),
                        text => Event::Delta(text),
                    },
                }
            }
            event => event,
        };
        self.content |= event.is_content();
        write(&event)
    }
}
