//! Puts blocks whose pieces come mixed one after the other.
//!
//! Targets have one open block at a time. A block is passed on as it arrives. Another one that
//! begins before the first one has ended is kept until it does: until the reader says so
//! ([`Event::Done`]), a call's arguments are complete JSON, or all blocks end. Only where a reader
//! announces turns ([`Event::Turn`]) are blocks mixed; other events pass through.
//!
//! A call that was announced without its name begins with its first argument, or with its end:
//! until then its name may grow ([`Event::Head`]), and text passes it. Calls keep their order. A
//! chat-compatible stream has no event for a call's end, so a call without arguments delays the
//! calls after it there: some services begin all calls before the first arguments, and its own may
//! still come.

#[cfg(test)]
mod tests;

use crate::formats::conversation::{
    Block, Event, GENERATED, Signature, StreamProblem, Text, ToolName,
};

/// Bytes of blocks that are kept.
const MAX_WAITING: usize = 16 << 20;
/// Blocks that are kept.
const MAX_BLOCKS: usize = 1024;

/// Receives the events in order.
type Next<'n> = dyn FnMut(Event<'_>) -> Result<(), StreamProblem> + 'n;

/// The blocks of a stream that have begun and not ended.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// The provider's number of the block whose turn it is.
    turn: Option<u64>,
    /// The block that is being passed on.
    open: Option<Lane>,
    /// Those after it, in the order in which they began.
    waiting: Vec<WaitingBlock>,
    /// The size of all that wait.
    size: usize,
}

/// What arrives under one number.
#[derive(Debug)]
struct Lane {
    number: u64,
    kind: BlockKind,
    /// Of a call.
    arguments: Json,
    /// A call whose name was not known when it was announced: it may come in pieces.
    grows: bool,
    /// The reader said that nothing more comes.
    is_done: bool,
    /// The proofs of reasoning, which follow all of its text.
    signatures: Vec<Signature<'static>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    Text,
    Refusal,
    Thinking,
    Call,
    /// It began before blocks were mixed.
    Unknown,
}

#[derive(Debug)]
struct WaitingBlock {
    lane: Lane,
    block: Block<'static>,
    text: String,
}

impl Lane {
    fn of(number: u64, block: &Block<'_>) -> Self {
        let kind = match block {
            Block::Text => BlockKind::Text,
            Block::Refusal => BlockKind::Refusal,
            Block::Thinking => BlockKind::Thinking,
            Block::Tool { .. } => BlockKind::Call,
        };
        let grows = matches!(block, Block::Tool { name, .. } if name.name.is_empty());
        let (arguments, signatures) = (Json::default(), Vec::new());
        Self { number, kind, arguments, grows, is_done: false, signatures }
    }

    /// One whose beginning was passed on before: its JSON does not tell its end.
    fn begun(number: u64) -> Self {
        Self { kind: BlockKind::Unknown, ..Self::of(number, &Block::Text) }
    }

    fn is_over(&self) -> bool {
        self.is_done || self.kind == BlockKind::Call && self.arguments.is_over
    }

    fn take(&mut self, text: &str) {
        if self.kind == BlockKind::Call {
            self.arguments.take(text);
        }
    }
}

impl WaitingBlock {
    /// Whether it can be passed on: a call once it has a name, which may grow until the first
    /// argument; a text once it is more than the line break that some services send while they
    /// write a call.
    fn is_ready(&self) -> bool {
        match &self.block {
            Block::Tool { name, .. } => {
                self.lane.is_done
                    || !(name.name.is_empty() || self.lane.grows && self.text.is_empty())
            }
            Block::Text => !self.text.trim().is_empty(),
            Block::Thinking | Block::Refusal => true,
        }
    }

    /// Whether nothing of it can be passed on.
    fn is_nothing(&self) -> bool {
        match &self.block {
            Block::Tool { name, .. } => name.name.is_empty() && self.text.is_empty(),
            Block::Text => self.text.trim().is_empty(),
            Block::Thinking | Block::Refusal => false,
        }
    }

    /// Takes more of a call's head. Returns by how much it grew. A name that is repeated does not
    /// grow.
    fn head(&mut self, more_id: Option<Text<'_>>, more_name: Option<Text<'_>>) -> usize {
        let Block::Tool { id, name } = &mut self.block else { return 0 };
        let mut grown = 0;
        if let Some(more) = more_id.filter(|_| id.is_empty() || id.starts_with(GENERATED)) {
            grown += more.len();
            *id = more.into_owned().into();
        }
        if let Some(more) = more_name.filter(|more| **more != *name.name) {
            grown += more.len();
            name.name.to_mut().push_str(&more);
        }
        grown
    }
}

impl Blocks {
    /// Whether every event but a turn passes through.
    pub(super) const fn is_idle(&self) -> bool {
        self.turn.is_none()
    }

    /// Passes an event on, or keeps it.
    ///
    /// # Errors
    /// More of a call that has ended, more blocks than can be kept, and those of `next`.
    pub(super) fn pass(
        &mut self,
        event: Event<'_>,
        next: &mut Next<'_>,
    ) -> Result<(), StreamProblem> {
        match (event, self.turn) {
            (Event::Turn(number), before) => {
                self.turn = Some(number);
                if let Some(first) = before
                    && self.open.is_none()
                    && self.waiting.is_empty()
                {
                    self.open = Some(Lane::begun(first));
                }
                Ok(())
            }
            (Event::Done(number), _) => {
                self.nothing_more_for(number);
                self.advance(next)
            }
            (Event::Open(block), Some(number)) => self.begin(number, block, next),
            (Event::Head { id, name }, Some(number)) => {
                let its = self.waiting.iter_mut().rfind(|waiting| waiting.lane.number == number);
                let grown = its.map_or(0, |its| its.head(id, name));
                self.grow(grown)?;
                self.advance(next)
            }
            (Event::Head { .. }, None) => Ok(()),
            (Event::Delta(text), Some(number)) => self.more(number, text, next),
            (Event::Signature(signature), Some(number)) => self.prove(number, signature),
            (Event::Close, Some(_)) => self.end(next),
            (event, _) => next(event),
        }
    }

    /// All blocks that have not ended, the open one first.
    fn lanes(&mut self) -> impl Iterator<Item = &mut Lane> {
        self.open.iter_mut().chain(self.waiting.iter_mut().map(|waiting| &mut waiting.lane))
    }

    fn begin(
        &mut self,
        number: u64,
        block: Block<'_>,
        next: &mut Next<'_>,
    ) -> Result<(), StreamProblem> {
        let lane = Lane::of(number, &block);
        let is_same = |its: &&mut Lane| {
            its.number == number && (its.kind == lane.kind || its.kind == BlockKind::Unknown)
        };
        // A text that goes on after a piece of another block.
        if lane.kind != BlockKind::Call
            && let Some(its) = self.lanes().filter(is_same).last()
        {
            its.is_done = false;
            return Ok(());
        }
        // An earlier block of this number: the number is another one's now.
        self.nothing_more_for(number);
        if self.waiting.len() >= MAX_BLOCKS {
            return Err(StreamProblem::TooLarge { what: "the number of mixed blocks" });
        }
        if let Block::Tool { id, name } = &block {
            self.grow(id.len() + name.name.len())?;
        }
        self.waiting.push(WaitingBlock { lane, block: owned(block), text: String::new() });
        self.advance(next)
    }

    fn grow(&mut self, by: usize) -> Result<(), StreamProblem> {
        self.size += by;
        if self.size > MAX_WAITING {
            return Err(StreamProblem::TooLarge { what: "the content of mixed blocks" });
        }
        Ok(())
    }

    fn nothing_more_for(&mut self, number: u64) {
        for lane in self.lanes().filter(|lane| lane.number == number) {
            lane.is_done = true;
        }
    }

    fn more(
        &mut self,
        number: u64,
        text: Text<'_>,
        next: &mut Next<'_>,
    ) -> Result<(), StreamProblem> {
        let its = self.waiting.iter_mut().rfind(|waiting| waiting.lane.number == number);
        if let Some(waiting) = its {
            waiting.lane.take(&text);
            waiting.text.push_str(&text);
            self.grow(text.len())?;
            return self.advance(next);
        }
        match self.open.as_mut().filter(|open| open.number == number) {
            Some(open) => {
                open.take(&text);
                next(Event::Delta(text))?;
                self.advance(next)
            }
            // Of a call that has ended.
            None if text.trim().is_empty() => Ok(()),
            None => Err(StreamProblem::mixed_calls()),
        }
    }

    fn prove(&mut self, number: u64, signature: Signature<'_>) -> Result<(), StreamProblem> {
        let len = signature.value.len();
        if let Some(lane) = self.lanes().filter(|lane| lane.number == number).last() {
            let value = signature.value.into_owned();
            lane.signatures.push(Signature::new(signature.origin, value));
        }
        self.grow(len)
    }

    /// Ends the open block, and begins the next one, as long as the open one is complete.
    fn advance(&mut self, next: &mut Next<'_>) -> Result<(), StreamProblem> {
        while self.open.as_ref().is_none_or(Lane::is_over) {
            let Some(at) = self.next_ready() else { break };
            self.begin_waiting(at, next)?;
        }
        Ok(())
    }

    /// The first that can be passed on. A call passes no call before it.
    fn next_ready(&self) -> Option<usize> {
        let is_call = |waiting: &&WaitingBlock| waiting.lane.kind == BlockKind::Call;
        let first_call = self.waiting.iter().position(|waiting| is_call(&waiting));
        let may_begin = |(at, waiting): &(usize, &WaitingBlock)| {
            (first_call == Some(*at) || !is_call(waiting)) && waiting.is_ready()
        };
        self.waiting.iter().enumerate().find(may_begin).map(|(at, _)| at)
    }

    fn begin_waiting(&mut self, at: usize, next: &mut Next<'_>) -> Result<(), StreamProblem> {
        let waiting = self.waiting.remove(at);
        if waiting.is_nothing() {
            return Ok(());
        }
        let WaitingBlock { lane, block, text } = waiting;
        self.size = self.size.saturating_sub(text.len());
        self.close(next)?;
        self.open = Some(lane);
        next(Event::Open(block))?;
        if text.is_empty() { Ok(()) } else { next(Event::Delta(text.into())) }
    }

    fn close(&mut self, next: &mut Next<'_>) -> Result<(), StreamProblem> {
        let Some(lane) = self.open.take() else { return Ok(()) };
        for signature in lane.signatures {
            next(Event::Signature(signature))?;
        }
        next(Event::Close)
    }

    fn end(&mut self, next: &mut Next<'_>) -> Result<(), StreamProblem> {
        while !self.waiting.is_empty() {
            self.begin_waiting(0, next)?;
        }
        self.turn = None;
        self.size = 0;
        self.close(next)
    }
}

fn owned(block: Block<'_>) -> Block<'static> {
    match block {
        Block::Text => Block::Text,
        Block::Refusal => Block::Refusal,
        Block::Thinking => Block::Thinking,
        Block::Tool { id, name } => Block::Tool {
            id: id.into_owned().into(),
            name: ToolName {
                namespace: name.namespace.map(|space| space.into_owned().into()),
                name: name.name.into_owned().into(),
            },
        },
    }
}

/// How far the JSON text of a call's arguments has come.
#[derive(Debug, Default)]
struct Json {
    depth: u32,
    in_string: bool,
    escaped: bool,
    /// The object or array has ended.
    is_over: bool,
}

impl Json {
    fn take(&mut self, text: &str) {
        for byte in text.bytes() {
            match (self.in_string, byte) {
                (true, _) if self.escaped => self.escaped = false,
                (true, b'\\') => self.escaped = true,
                (_, b'"') => self.in_string = !self.in_string,
                (true, _) => {}
                (false, b'{' | b'[') => self.depth = self.depth.saturating_add(1),
                (false, b'}' | b']') => {
                    self.depth = self.depth.saturating_sub(1);
                    self.is_over |= self.depth == 0;
                }
                (false, _) => {}
            }
        }
    }
}
