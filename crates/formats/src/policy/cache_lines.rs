//! Judges why a provider read less of a prompt from its cache than it had there.
//!
//! A session is often several conversations: a coding agent's own, those of its sub-agents, and
//! short requests for titles. Each is a *line*: a request belongs to the line whose messages begin
//! like its own. It is compared with the last request of its line. What the provider's cache had
//! after that one is what the provider reported as read and written; a provider that reports no
//! writes is taken to have cached the complete input once it has reported reads.

use std::sync::Arc;

use crate::domain::cache_miss::CacheMissCause;
use crate::domain::clock::Timestamp;
use crate::domain::format::WireFormat;
use crate::domain::ids::ProviderId;
use crate::domain::prompt_print::PromptPrint;
use crate::domain::usage::Usage;

/// Fewer tokens are no miss: no vendor caches prompts below this, and caches work in blocks.
pub const LEAST: u64 = 1024;
/// Lines of one session: the least recently used one is dropped.
const MOST_LINES: usize = 8;
const MINUTE_MS: i64 = 60_000;

/// A request whose usage its provider has reported.
#[derive(Debug, Clone)]
pub struct Turn {
    /// The fingerprint of its prompt.
    pub print: PromptPrint,
    /// The model that the provider was asked for.
    pub model: Arc<str>,
    /// The provider that served it: each has one account.
    pub provider: ProviderId,
    /// The provider's format.
    pub format: WireFormat,
    /// As reported.
    pub usage: Usage,
    /// The reply's id, if its provider may be asked about it.
    pub reply: Option<Arc<str>>,
    /// When the request began, and when its usage was known.
    pub started: Timestamp,
    /// See `started`.
    pub ended: Timestamp,
}

/// What was missed, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missed {
    /// Why.
    pub cause: CacheMissCause,
    /// The first message that changed, counted from 1; 0 for other causes.
    pub message: u32,
    /// Tokens.
    pub tokens: u64,
}

/// The last request of a conversation.
#[derive(Debug, Clone)]
struct Line {
    turn: Turn,
    /// The provider has reported reads, and never writes.
    is_automatic: bool,
    /// It has reported writes to the cache of the longer lifetime.
    is_long: bool,
}

/// The conversations of one session, the latest last.
#[derive(Debug, Clone, Default)]
pub struct CacheLines(Vec<Line>);

impl CacheLines {
    /// Takes the next request of the session; returns what it missed, if that is at least
    /// [`LEAST`].
    pub fn next(&mut self, turn: Turn) -> Option<Missed> {
        let Some(at) = self.line_of(&turn.print, &turn.model) else {
            let missed = first(&turn);
            if self.0.len() >= MOST_LINES {
                self.0.remove(0);
            }
            self.0.push(Line::after(None, turn));
            return missed;
        };
        let later = self.0.get_mut(at..)?;
        let line = later.first_mut()?;
        let missed = line.missed(&turn);
        *line = Line::after(Some(line), turn);
        later.rotate_left(1);
        missed
    }

    /// Bytes in memory, about.
    pub fn size(&self) -> usize {
        let reply = |turn: &Turn| turn.reply.as_ref().map_or(0, |reply| reply.len() + 16);
        let prints =
            self.0.iter().map(|line| 4 * line.turn.print.messages.len() + reply(&line.turn));
        prints.sum::<usize>() + self.0.capacity() * size_of::<Line>()
    }

    /// The id of the reply that a request goes on from, if this provider gave it.
    pub fn last_reply(
        &self,
        print: &PromptPrint,
        model: &str,
        provider: ProviderId,
    ) -> Option<&Arc<str>> {
        let turn = &self.0.get(self.line_of(print, model)?)?.turn;
        turn.reply.as_ref().filter(|_| turn.provider == provider)
    }

    /// The line that a request continues: the one with the most in common.
    fn line_of(&self, print: &PromptPrint, model: &str) -> Option<usize> {
        let lines = self.0.iter().enumerate();
        let ranked = lines.filter_map(|(at, line)| Some((line.likeness(print, model)?, at)));
        ranked.max().map(|(_, at)| at)
    }
}

/// A conversation that is not known.
fn first(turn: &Turn) -> Option<Missed> {
    let written = turn.usage.cache_write_5m + turn.usage.cache_write_1h;
    let cause = match turn.print.is_continued {
        false => CacheMissCause::FirstUse,
        true => CacheMissCause::Unknown,
    };
    (written >= LEAST).then_some(Missed { cause, message: 0, tokens: written })
}

impl Line {
    fn after(before: Option<&Self>, turn: Turn) -> Self {
        let Usage { cache_read, cache_write_5m, cache_write_1h, .. } = turn.usage;
        let before = before.filter(|line| line.turn.provider == turn.provider);
        let has_read = cache_read > 0 || before.is_some_and(|line| line.is_automatic);
        let writes = cache_write_5m + cache_write_1h > 0 || turn.format == WireFormat::Native;
        Self {
            is_automatic: has_read && !writes,
            is_long: cache_write_1h > 0 || before.is_some_and(|line| line.is_long),
            turn,
        }
    }

    /// How much a request has in common with the line; `None` if it belongs to another
    /// conversation.
    fn likeness(&self, new: &PromptPrint, model: &str) -> Option<(usize, usize)> {
        let old = &self.turn.print;
        let common = old.common(new);
        let second = old.messages.get(1).filter(|one| new.messages.get(1) == Some(one));
        // Of most lines nothing else need be compared.
        if common == 0 && second.is_none() {
            return None;
        }
        let around = [*self.turn.model == *model, old.tools == new.tools, old.system == new.system];
        let around = around.into_iter().filter(|same| *same).count();
        let is_same = match common {
            0 => around == 3,
            1 => around >= 2,
            _ => true,
        };
        is_same.then_some((common, around))
    }

    fn missed(&self, turn: &Turn) -> Option<Missed> {
        // It began before the cache could have anything of the other.
        if turn.started < self.turn.ended {
            return None;
        }
        let (cause, message) = self.cause(turn);
        let held = if self.is_automatic && cause != CacheMissCause::Unexplained {
            self.turn.usage.total_input()
        } else {
            let Usage { cache_read, cache_write_5m, cache_write_1h, .. } = self.turn.usage;
            cache_read + cache_write_5m + cache_write_1h
        };
        let tokens = held.min(turn.usage.total_input()).saturating_sub(turn.usage.cache_read);
        (tokens >= LEAST).then_some(Missed { cause, message, tokens })
    }

    fn cause(&self, turn: &Turn) -> (CacheMissCause, u32) {
        let (old, new) = (&self.turn.print, &turn.print);
        let common = old.common(new);
        let cause = if self.turn.provider != turn.provider {
            CacheMissCause::Account
        } else if self.turn.model != turn.model {
            CacheMissCause::Model
        } else if old.tools != new.tools {
            CacheMissCause::Tools
        } else if old.system != new.system {
            CacheMissCause::System
        } else if common < old.messages.len().min(new.messages.len()) {
            let number = u32::try_from(common + 1).unwrap_or(u32::MAX);
            return (CacheMissCause::Message, new.leading.saturating_add(number));
        } else if turn.started.since(self.turn.started) >= self.lifetime_ms() {
            CacheMissCause::Lifetime
        } else {
            CacheMissCause::Unexplained
        };
        (cause, 0)
    }

    /// Milliseconds that the cache lasts without use, by the vendors' documentation.
    const fn lifetime_ms(&self) -> i64 {
        match (self.turn.format, self.is_long, self.is_automatic) {
            (WireFormat::Native, true, _) => 60 * MINUTE_MS,
            (_, true, _) => 12 * 60 * MINUTE_MS,
            (WireFormat::Responses | WireFormat::Chat, _, false) => 30 * MINUTE_MS,
            _ => 5 * MINUTE_MS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(messages: &[u32], read: u64, written: u64) -> Turn {
        Turn {
            print: PromptPrint {
                tools: 1,
                system: 2,
                leading: 0,
                is_continued: messages.len() > 1,
                messages: messages.into(),
            },
            model: "m".into(),
            reply: None,
            provider: ProviderId(1),
            format: WireFormat::Native,
            usage: Usage {
                input: 10,
                cache_read: read,
                cache_write_5m: written,
                ..Usage::default()
            },
            started: Timestamp(0),
            ended: Timestamp(1_000),
        }
    }

    fn later(turn: Turn, ms: i64) -> Turn {
        Turn { started: turn.started.plus_ms(ms), ended: turn.ended.plus_ms(ms), ..turn }
    }

    /// The cause after a first request of 5000 cached tokens.
    fn after(first: Turn, next: Turn) -> Option<(CacheMissCause, u32, u64)> {
        let mut lines = CacheLines::default();
        lines.next(first);
        lines.next(next).map(|missed| (missed.cause, missed.message, missed.tokens))
    }

    #[test]
    fn each_change_is_its_own_cause_and_the_first_one_counts() {
        use CacheMissCause::{Account, Lifetime, Message, Model, System, Tools, Unexplained};
        let next = || later(turn(&[1, 2, 3, 4], 0, 6000), 10_000);
        let with = |change: &dyn Fn(&mut Turn)| {
            let mut turn = next();
            change(&mut turn);
            turn
        };
        let cases = [
            (next(), Unexplained, 0),
            (with(&|t| t.provider = ProviderId(2)), Account, 0),
            (with(&|t| t.model = "n".into()), Model, 0),
            (with(&|t| t.print.tools = 9), Tools, 0),
            (with(&|t| t.print.system = 9), System, 0),
            (with(&|t| (t.print.tools, t.print.system) = (9, 9)), Tools, 0),
            (with(&|t| t.print.messages = [1, 9, 3].into()), Message, 2),
            (with(&|t| t.print.messages = [9, 2, 3].into()), Message, 1),
            (with(&|t| (t.print.leading, t.print.messages) = (1, [1, 9].into())), Message, 3),
            (later(next(), 5 * MINUTE_MS), Lifetime, 0),
        ];
        for (next, cause, message) in cases {
            assert_eq!(after(turn(&[1, 2], 0, 5000), next), Some((cause, message, 5000)));
        }
    }

    #[test]
    fn a_hit_a_shorter_prompt_and_a_request_at_the_same_time_miss_nothing() {
        let first = || turn(&[1, 2], 0, 5000);
        assert_eq!(after(first(), later(turn(&[1, 2, 3], 5000, 300), 10_000)), None);
        assert_eq!(after(first(), later(turn(&[1, 2, 3], 4000, 1300), 10_000)), None, "a block");
        assert_eq!(after(first(), turn(&[1, 2, 3], 0, 5300)), None, "it began before");
        let short = after(first(), later(turn(&[1], 0, 2000), 10_000));
        assert_eq!(short, Some((CacheMissCause::Unexplained, 0, 2010)), "not more than its input");
        let uncached = Turn { usage: Usage { input: 9000, ..Usage::default() }, ..first() };
        assert_eq!(after(uncached.clone(), later(uncached, 10_000)), None, "nothing was cached");
    }

    #[test]
    fn a_provider_that_reports_only_reads_has_the_complete_input() {
        let of = |input, read, tools| {
            let mut turn = turn(&[1, 2], read, 0);
            (turn.format, turn.usage.input, turn.print.tools) = (WireFormat::Chat, input, tools);
            turn
        };
        let mut lines = CacheLines::default();
        lines.next(of(3000, 0, 1));
        assert_eq!(lines.next(later(of(3500, 0, 2), 5_000)), None, "it has cached nothing yet");
        assert_eq!(lines.next(later(of(1000, 3000, 2), 10_000)), None);
        let tools = lines.next(later(of(5000, 0, 3), 20_000)).unwrap();
        assert_eq!((tools.cause, tools.tokens), (CacheMissCause::Tools, 4000));
        let again = lines.next(later(of(5500, 0, 4), 30_000)).unwrap();
        assert_eq!((again.cause, again.tokens), (CacheMissCause::Tools, 5000));
        assert_eq!(lines.next(later(of(6000, 0, 4), 40_000)), None, "nothing was reported as read");
    }

    #[test]
    fn the_longer_lifetimes_are_known() {
        for (format, long, least) in [
            (WireFormat::Native, true, 60),
            (WireFormat::Responses, false, 30),
            (WireFormat::Chat, true, 720),
            (WireFormat::AltCli, false, 5),
        ] {
            let mut first = turn(&[1], 0, 5000);
            first.format = format;
            if long {
                first.usage.cache_write_1h = std::mem::take(&mut first.usage.cache_write_5m);
            }
            let mut next = turn(&[1, 2], 0, 6000);
            next.format = format;
            for (minutes, cause) in
                [(least - 1, CacheMissCause::Unexplained), (least, CacheMissCause::Lifetime)]
            {
                let missed = after(first.clone(), later(next.clone(), minutes * MINUTE_MS));
                assert_eq!(missed.map(|missed| missed.0), Some(cause), "{format} {minutes}");
            }
        }
    }

    #[test]
    fn a_session_of_several_conversations_is_told_apart() {
        let mut lines = CacheLines::default();
        let first = lines.next(turn(&[1], 0, 5000)).unwrap();
        assert_eq!((first.cause, first.tokens), (CacheMissCause::FirstUse, 5000));
        // A sub-agent with its own tools, system text and messages; a title by a small model.
        let mut agent = later(turn(&[7], 0, 3000), 2_000);
        (agent.print.tools, agent.print.system) = (8, 8);
        assert_eq!(lines.next(agent.clone()).unwrap().cause, CacheMissCause::FirstUse);
        let mut title = later(turn(&[1], 0, 0), 2_000);
        (title.print.tools, title.print.system, title.model) = (0, 0, "small".into());
        title.usage.input = 5000;
        assert_eq!(lines.next(title), None);
        assert_eq!(lines.next(later(turn(&[1, 2, 3], 5000, 200), 4_000)), None);
        agent.print.messages = [7, 8, 9].into();
        agent.usage = turn(&[], 3000, 100).usage;
        assert_eq!(lines.next(later(agent, 4_000)), None);
        // One that is older than this node's memory.
        let unknown = lines.next(later(turn(&[4, 5, 6], 0, 2000), 9_000)).unwrap();
        assert_eq!(unknown.cause, CacheMissCause::Unknown);
        for n in 100..200 {
            lines.next(later(turn(&[n], 0, 2000), 9_000));
        }
        assert!(lines.0.len() == MOST_LINES && lines.size() < 4096);
    }
}
