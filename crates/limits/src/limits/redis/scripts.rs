//! The scripts that Redis runs, and how they are called.
//!
//! A script is a file in `lua/`; a line `--include name` stands for another file, or for a part that
//! is made from the rows of the limits (`made.rs`). A call is one round trip: `EVALSHA` with the
//! script's hash, and `EVAL` with its text if Redis does not know the hash (a new server, or one
//! that dropped its scripts). So `SCRIPT LOAD` is never needed.
//!
//! Numbers are sent as packed doubles, many in one argument ([`Numbers`]). A double is exact up to
//! 2^53; larger amounts of money are split ([`halves`]).

use std::sync::LazyLock;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, ErrorKind, RedisError, RedisResult, ServerErrorKind, Value};

use super::super::settings::CounterSettings;
use super::made;
use super::names::Names;
use crate::domain::clock::Timestamp;
use crate::domain::limits::{DailyReset, Limits, Period, ResetMode};
use crate::domain::money::NanoUsd;
use crate::policy::window::{Span, Window};

/// The unit of the upper part of an amount: 2^52 nano-USD.
const UNIT: i64 = 1 << 52;

/// A node's time may be this far ahead of Redis' (`lua/head.lua`). So the spans in a call are those
/// that held this long ago, and have begun by any clock. The scripts go on to the next one where a
/// span has ended by Redis' clock: all nodes enter a window at the same moment.
pub(super) const AHEAD_MS: i64 = 1_000;

/// A script: its text, and the hash by which Redis knows it.
pub(super) struct Script {
    text: String,
    hash: String,
}

impl Script {
    fn of(name: &str) -> Self {
        let text = expanded(name);
        let hash = redis::Script::new(&text).get_hash().to_owned();
        Self { text, hash }
    }
}

macro_rules! scripts {
    ($($name:ident: $file:literal;)+ [$($part:literal)+]) => {
        const FILES: &[(&str, &str)] = &[
            $(($file, include_str!(concat!("lua/", $file, ".lua"))),)+
            $(($part, include_str!(concat!("lua/", $part, ".lua"))),)+
        ];
        $(pub(super) static $name: LazyLock<Script> = LazyLock::new(|| Script::of($file));)+
    };
}

scripts! {
    ADMIT: "admit"; ENTER: "enter"; PEEK: "peek"; BATCH: "batch"; BEAT: "beat"; BURY: "bury";
    USAGE: "usage"; LISTING: "listing"; LOAD: "load"; FLIP: "flip"; FORGET: "forget"; HOLD: "hold";
    ["head" "heads" "load_user" "save_user" "put_session" "put_key" "load_place" "save_place"
     "put_place" "in_list" "full" "settled" "operations" "due" "gone" "record" "refresh" "rpm"
     "rpm_rare" "sessions" "moves" "blocked" "room" "limits" "sweep"]
}

/// The text of a file, with the files that it includes.
fn expanded(name: &str) -> String {
    if let Some(made) = made::part(name) {
        return made;
    }
    let mut text = String::new();
    let file = FILES.iter().find(|(file, _)| *file == name).map_or("", |(_, text)| text);
    for line in file.lines() {
        match line.trim_start().strip_prefix("--include ") {
            Some(included) => text.push_str(&expanded(included)),
            None => {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    text
}

/// The week and the month that hold a time: the spans of [`Window::BY_DATE`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Spans([Span; 2]);

impl Spans {
    pub(super) fn at(now: Timestamp, settings: &CounterSettings) -> Self {
        Self(Window::BY_DATE.map(|window| window.calendar(now, settings.time_zone)))
    }

    pub(super) fn hold(&self, now: Timestamp) -> bool {
        self.0.iter().all(|span| span.contains(now))
    }

    pub(super) fn of(&self, window: Window) -> Option<Span> {
        Window::BY_DATE
            .into_iter()
            .zip(self.0)
            .find_map(|(of, span)| (of == window).then_some(span))
    }
}

/// The time of a call, and what all scripts know of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Present {
    pub(super) now: Timestamp,
    /// `now` is the present, whatever Redis' clock says.
    pub(super) is_set: bool,
    pub(super) ttl_ms: i64,
    pub(super) spans: Spans,
}

/// An amount as two numbers that are exact: below [`UNIT`], and in units of it.
const fn halves(amount: NanoUsd) -> (i64, i64) {
    (amount.0 % UNIT, amount.0 / UNIT)
}

/// An amount from its two parts.
pub(super) const fn whole(low: i64, high: i64) -> NanoUsd {
    NanoUsd(low.saturating_add(high.saturating_mul(UNIT)))
}

/// Packed numbers: one argument of a script.
#[derive(Default)]
pub(super) struct Numbers(Vec<u8>);

impl Numbers {
    /// With room for so many.
    pub(super) fn of(count: usize) -> Self {
        Self(Vec::with_capacity(count * size_of::<f64>()))
    }

    fn double(mut self, number: f64) -> Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    /// A number below 2^53.
    pub(super) fn int(self, number: i64) -> Self {
        self.double(number as f64)
    }

    /// An id; 0 stands for none.
    pub(super) fn id(self, id: Option<i64>) -> Self {
        self.int(id.unwrap_or(0))
    }

    /// An amount: two numbers.
    pub(super) fn amount(self, amount: NanoUsd) -> Self {
        let (low, high) = halves(amount);
        self.int(low).int(high)
    }

    /// The numbers of a holder's limits, as `lua/limits.lua` has them.
    pub(super) fn limits(
        self,
        limits: &Limits,
        now: Timestamp,
        settings: &CounterSettings,
    ) -> Self {
        let money = Period::IN_ORDER.map(|period| period.limit_of(limits));
        let numbers = money.iter().fold(self, |numbers, limit| {
            numbers.double(limit.map_or(f64::INFINITY, |limit| limit.0 as f64))
        });
        let numbers = numbers.int(i64::from(limits.concurrent_sessions));
        if limits.daily.is_some() {
            numbers.day(limits.daily_reset, now, settings)
        } else {
            numbers.int(0).int(0).int(0)
        }
    }

    /// Whether the daily window is fixed, and the span of the one that holds `now`; just after its
    /// begin, of the one before ([`AHEAD_MS`]).
    pub(super) fn day(self, reset: DailyReset, now: Timestamp, settings: &CounterSettings) -> Self {
        match reset.mode {
            ResetMode::Rolling => self.int(0).int(0).int(0),
            ResetMode::Fixed => {
                let before = now.plus_ms(-AHEAD_MS);
                let span = Window::Daily(reset).calendar(before, settings.time_zone);
                self.int(1).int(span.start.0).int(span.end.0)
            }
        }
    }

    /// A number that stands for these, and is another for others but by a chance of 2^-52. Never 0.
    pub(super) fn mark(&self) -> i64 {
        let mixed =
            self.0.chunks(size_of::<u64>()).fold(0xcbf2_9ce4_8422_2325_u64, |hash, chunk| {
                let mut word = [0; size_of::<u64>()];
                word[..chunk.len()].copy_from_slice(chunk);
                let hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                hash ^ (hash >> 29)
            });
        i64::try_from(mixed >> 12).unwrap_or(0).max(1)
    }

    /// The packed bytes, to which others may be added.
    pub(super) fn bytes(self) -> Vec<u8> {
        self.0
    }
}

/// Redis does not know the script of a call, and has not executed it.
pub(super) fn is_unknown(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}

/// One call of a script, under construction.
pub(super) struct ScriptCall {
    script: &'static Script,
    command: Cmd,
}

impl ScriptCall {
    /// With the keys and arguments that all scripts have, then `keys`.
    pub(super) fn new<'k>(
        script: &'static Script,
        names: &Names,
        present: &Present,
        keys: impl ExactSizeIterator<Item = &'k str>,
    ) -> Self {
        let mut command = redis::cmd("EVALSHA");
        command.arg(&script.hash).arg(keys.len() + 1).arg(&names.running);
        keys.for_each(|key| {
            command.arg(key);
        });
        let Present { now, is_set, ttl_ms, spans: Spans(spans) } = *present;
        let head = Numbers::of(7).int(now.0).int(i64::from(is_set)).int(ttl_ms);
        let head = spans.iter().fold(head, |head, span| head.int(span.start.0).int(span.end.0));
        Self { script, command }.text(&names.counters).numbers(head)
    }

    /// A call with its own keys and arguments only.
    pub(super) fn bare(script: &'static Script, keys: &[&str]) -> Self {
        let mut command = redis::cmd("EVALSHA");
        command.arg(&script.hash).arg(keys.len());
        keys.iter().for_each(|key| {
            command.arg(*key);
        });
        Self { script, command }
    }

    /// Adds a text.
    pub(super) fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    /// Adds bytes.
    pub(super) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.command.arg(bytes);
        self
    }

    /// Adds a whole number, as text.
    pub(super) fn int(mut self, number: i64) -> Self {
        self.command.arg(number);
        self
    }

    /// Adds packed numbers.
    pub(super) fn numbers(self, numbers: Numbers) -> Self {
        self.bytes(&numbers.0)
    }

    /// Runs the script.
    pub(super) async fn run(&self, connection: &mut MultiplexedConnection) -> RedisResult<Value> {
        match self.send(false, connection).await {
            Err(e) if is_unknown(&e) => self.send(true, connection).await,
            answer => answer,
        }
    }

    /// Sends the call once: with the script's text, or with its hash, which Redis may not know.
    pub(super) async fn send(
        &self,
        with_text: bool,
        connection: &mut MultiplexedConnection,
    ) -> RedisResult<Value> {
        if with_text {
            self.with_text().query_async(connection).await
        } else {
            self.command.query_async(connection).await
        }
    }

    /// The same call with the script's text in place of its hash.
    fn with_text(&self) -> Cmd {
        let mut command = redis::cmd("EVAL");
        command.arg(&self.script.text);
        for argument in self.command.args_iter().skip(2) {
            if let redis::Arg::Simple(bytes) = argument {
                command.arg(bytes);
            }
        }
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_that_is_included_exists_and_amounts_survive_their_halves() {
        for (name, text) in FILES {
            let included =
                text.lines().filter_map(|line| line.trim_start().strip_prefix("--include "));
            for other in included {
                let is_known =
                    made::part(other).is_some() || FILES.iter().any(|(file, _)| *file == other);
                assert!(is_known, "{name} includes {other}");
            }
            assert!(!expanded(name).contains("--include"));
        }
        for amount in [0, 1, UNIT - 1, UNIT, UNIT + 7, i64::MAX, -3, -UNIT - 5, i64::MIN] {
            let (low, high) = halves(NanoUsd(amount));
            assert_eq!(whole(low, high), NanoUsd(amount));
            assert!(low.abs() < UNIT && high.abs() <= 2_048);
        }
    }
}
