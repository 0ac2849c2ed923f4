//! Puts calls whose pieces come mixed one after the other.
//!
//! Targets have one open block at a time. A call is passed on as it arrives. Another one that
//! begins before the first one has ended is kept until it does: until the reader says so
//! ([`Event::Done`]), its arguments are complete JSON, or all calls end. Only where a reader
//! announces turns ([`Event::Turn`]) are calls mixed; other events pass through.
//!
//! A chat-compatible stream has no event for a call's end. A call without arguments delays those
//! after it there: some services begin all calls before the first arguments, so that its own may
//! still come, and a block that was closed takes none.

use crate::formats::conversation::{Block, Event, StreamProblem, Text, ToolName};

/// Bytes of calls that are kept.
const MAX_WAITING: usize = 16 << 20;
/// Calls that are kept.
const MAX_CALLS: usize = 1024;

/// Receives the events in order.
type Next<'n> = dyn FnMut(Event<'_>) -> Result<(), StreamProblem> + 'n;

/// The calls of a stream that have begun and not ended.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// The provider's number of the call whose turn it is.
    turn: Option<u64>,
    /// The call that is being passed on.
    open: Option<Call>,
    /// Those after it, in the order in which they began.
    waiting: Vec<Waiting>,
    /// The size of all that wait.
    size: usize,
}

#[derive(Debug)]
struct Call {
    number: u64,
    arguments: Json,
}

#[derive(Debug)]
struct Waiting {
    call: Call,
    block: Block<'static>,
    text: String,
}

impl Calls {
    /// Whether every event but a turn passes through.
    pub(super) const fn is_idle(&self) -> bool {
        self.turn.is_none()
    }

    /// Passes an event on, or keeps it.
    ///
    /// # Errors
    /// More of a call that has ended, more calls than can be kept, and those of `next`.
    pub(super) fn pass(
        &mut self,
        event: Event<'_>,
        next: &mut Next<'_>,
    ) -> Result<(), StreamProblem> {
        match event {
            Event::Turn(number) => {
                if let Some(first) = self.turn.replace(number)
                    && self.open.is_none()
                {
                    self.open = Some(Call { number: first, arguments: Json::unknown() });
                }
                Ok(())
            }
            Event::Done(number) => {
                self.nothing_more_for(number);
                self.advance(next)
            }
            Event::Open(block) if self.turn.is_some() => self.begin(block, next),
            Event::Delta(text) if self.turn.is_some() => self.more(text, next),
            Event::Close if self.turn.is_some() => self.end(next),
            event => next(event),
        }
    }

    fn begin(&mut self, block: Block<'_>, next: &mut Next<'_>) -> Result<(), StreamProblem> {
        let call = Call { number: self.turn.unwrap_or_default(), arguments: Json::default() };
        if self.open.is_none() {
            self.open = Some(call);
            return next(Event::Open(block));
        }
        // An earlier call of this number: the number is another call's now.
        self.nothing_more_for(call.number);
        if self.waiting.len() >= MAX_CALLS {
            return Err(StreamProblem::TooLarge { what: "the number of mixed tool calls" });
        }
        self.waiting.push(Waiting { call, block: owned(block), text: String::new() });
        self.advance(next)
    }

    fn nothing_more_for(&mut self, number: u64) {
        let waiting = self.waiting.iter_mut().map(|waiting| &mut waiting.call);
        for call in waiting.chain(&mut self.open).filter(|call| call.number == number) {
            call.arguments.is_over = true;
        }
    }

    fn more(&mut self, text: Text<'_>, next: &mut Next<'_>) -> Result<(), StreamProblem> {
        let is_its = |call: &Call| Some(call.number) == self.turn;
        if let Some(waiting) = self.waiting.iter_mut().rfind(|waiting| is_its(&waiting.call)) {
            self.size += text.len();
            if self.size > MAX_WAITING {
                return Err(StreamProblem::TooLarge { what: "the arguments of mixed tool calls" });
            }
            waiting.call.arguments.take(&text);
            waiting.text.push_str(&text);
            return Ok(());
        }
        match self.open.as_mut().filter(|open| is_its(open)) {
            Some(open) => {
                open.arguments.take(&text);
                next(Event::Delta(text))?;
                self.advance(next)
            }
            // Of a call that has ended.
            None if text.trim().is_empty() => Ok(()),
            None => Err(StreamProblem::mixed_calls()),
        }
    }

    /// Ends the open call, and begins the next one, as long as the open one is complete.
    fn advance(&mut self, next: &mut Next<'_>) -> Result<(), StreamProblem> {
        while !self.waiting.is_empty()
            && self.open.as_ref().is_none_or(|open| open.arguments.is_over())
        {
            self.begin_waiting(next)?;
        }
        Ok(())
    }

    fn begin_waiting(&mut self, next: &mut Next<'_>) -> Result<(), StreamProblem> {
        let Waiting { call, block, text } = self.waiting.remove(0);
        self.size = self.size.saturating_sub(text.len());
        next(Event::Close)?;
        self.open = Some(call);
        next(Event::Open(block))?;
        if text.is_empty() { Ok(()) } else { next(Event::Delta(text.into())) }
    }

    fn end(&mut self, next: &mut Next<'_>) -> Result<(), StreamProblem> {
        while !self.waiting.is_empty() {
            self.begin_waiting(next)?;
        }
        self.turn = None;
        self.open = None;
        next(Event::Close)
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
    /// The object or array has ended, or nothing more can come.
    is_over: bool,
}

impl Json {
    /// Of arguments whose beginning was passed on before: their end is not recognised.
    fn unknown() -> Self {
        Self { depth: u32::MAX / 2, ..Self::default() }
    }

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

    const fn is_over(&self) -> bool {
        self.is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Event::{Close, Delta, Done, Open, Turn};

    fn call(id: &'static str) -> Event<'static> {
        Open(Block::Tool { id: id.into(), name: ToolName::plain(id) })
    }

    /// The calls as `id(arguments)`, in the order in which they are passed on; `|` ends each event.
    fn passed(events: Vec<Event<'static>>) -> Result<String, StreamProblem> {
        let (mut calls, mut out) = (Calls::default(), String::new());
        for event in events {
            calls.pass(event, &mut |event| {
                match event {
                    Open(Block::Tool { id, .. }) => out.extend([&*id, "("]),
                    Open(_) => out.push('('),
                    Delta(text) => out.push_str(&text),
                    Close => out.push(')'),
                    _ => out.push('?'),
                }
                Ok(())
            })?;
            out.push('|');
        }
        Ok(out)
    }

    #[test]
    fn mixed_calls_come_one_after_the_other() {
        let piece = |number, text: &'static str| [Turn(number), Delta(text.into())];
        let begin = |number, id| [Turn(number), call(id)];
        let cases: [(Vec<Event<'static>>, &str); 5] = [
            // In order: each piece is passed on at once.
            (
                [
                    &begin(0, "a")[..],
                    &[Delta("{".into()), Delta("}".into())],
                    &begin(1, "b"),
                    &[Delta("{}".into()), Close],
                ]
                .concat(),
                "|a(|{|}||)b(|{}|)|",
            ),
            (
                [
                    &begin(0, "a")[..],
                    &begin(1, "b"),
                    &piece(0, "{\"x"),
                    &piece(1, "{"),
                    &piece(0, "}\\\"\":1}"),
                    &piece(1, "}"),
                    &[Close],
                ]
                .concat(),
                "|a(||||{\"x||||}\\\"\":1})b({||}|)|",
            ),
            // One whose arguments never end.
            (
                [&begin(0, "a")[..], &begin(5, "b"), &piece(5, "{}"), &[Close]].concat(),
                "|a(|||||)b({})|",
            ),
            // The number of an earlier call.
            (
                [&begin(0, "a")[..], &begin(0, "b"), &piece(0, "1"), &[Close]].concat(),
                "|a(||)b(||1|)|",
            ),
            // White space after a call's end.
            (
                [
                    &begin(0, "a")[..],
                    &[Delta("[]".into())],
                    &begin(1, "b"),
                    &piece(0, " "),
                    &[Close],
                ]
                .concat(),
                "|a(|[]||)b(|||)|",
            ),
        ];
        for (events, expected) in cases {
            assert_eq!(passed(events).unwrap(), expected);
        }
        let late = [&begin(0, "a")[..], &[Delta("{}".into())], &begin(1, "b"), &piece(0, "x")];
        assert_eq!(passed(late.concat()), Err(StreamProblem::mixed_calls()));
        assert_eq!(passed(vec![Open(Block::Text), Delta("{".into()), Close]).unwrap(), "(|{|)|");
    }

    /// The first had begun before the calls were mixed, so that its JSON does not tell its end.
    #[test]
    fn a_call_that_ends_before_the_others_makes_way_for_the_next() {
        let events = vec![
            Turn(0),
            Turn(1),
            call("b"),
            Delta("{".into()),
            Done(0),
            Delta("}".into()),
            Done(1),
            Turn(2),
            call("c"),
            Close,
        ];
        assert_eq!(passed(events).unwrap(), "||||)b({|}|||)c(|)|");
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut events = vec![Turn(0), call("a"), Turn(1), call("b")];
        let large: Text<'static> = "x".repeat(MAX_WAITING / 2 + 1).into();
        events.extend([Delta(large.clone()), Delta(large)]);
        assert!(matches!(passed(events), Err(StreamProblem::TooLarge { .. })));
    }
}
