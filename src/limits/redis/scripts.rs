//! The scripts that Redis runs, and how they are called: a common set of arguments, then each
//! script's own.
//!
//! Every script is a file in `lua/`, appended to `common.lua`. A call is one round trip.

use std::sync::LazyLock;

use redis::{Script, ScriptInvocation};

use super::super::settings::CounterSettings;
use crate::domain::clock::Timestamp;
use crate::domain::limits::{DailyReset, Limits, ResetMode};
use crate::domain::money::NanoUsd;
use crate::policy::window::{Span, Window};

macro_rules! scripts {
    ($($name:ident: [$($file:literal),+];)+) => {
        $(pub(super) static $name: LazyLock<Script> = LazyLock::new(|| {
            Script::new(concat!(include_str!("lua/common.lua"), $(include_str!(concat!("lua/", $file, ".lua"))),+))
        });)+
    };
}

scripts! {
    ADMIT: ["admit"];
    ENTER: ["blocked", "enter"];
    PEEK: ["blocked", "peek"];
    BATCH: ["batch"];
    BEAT: ["beat"];
    BURY: ["bury"];
    USAGE: ["usage"];
    LISTING: ["listing"];
    LOAD: ["load"];
    FLIP: ["flip"];
}

/// The week and the month that hold a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spans {
    pub(super) week: Span,
    pub(super) month: Span,
}

impl Spans {
    pub(super) fn at(now: Timestamp, settings: &CounterSettings) -> Self {
        let tz = settings.time_zone;
        Self { week: Window::Weekly.calendar(now, tz), month: Window::Monthly.calendar(now, tz) }
    }

    pub(super) fn hold(&self, now: Timestamp) -> bool {
        self.week.contains(now) && self.month.contains(now)
    }
}

/// Which counters a call is about, and for which node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) prefix: &'a str,
    pub(super) epoch: &'a str,
    pub(super) node: &'a str,
}

/// One call of a script, under construction.
pub(super) struct ScriptCall<'a>(pub(super) ScriptInvocation<'a>);

impl<'a> ScriptCall<'a> {
    /// With the arguments that all scripts have.
    pub(super) fn new(
        script: &'a Script,
        scope: Scope<'_>,
        now: &str,
        ttl_ms: i64,
        spans: &Spans,
    ) -> Self {
        let call = Self(script.prepare_invoke());
        let call = call.text(scope.prefix).text(scope.epoch).text(scope.node).text(now).int(ttl_ms);
        let Spans { week, month } = spans;
        call.int(week.start.0).int(week.end.0).int(month.start.0).int(month.end.0)
    }

    pub(super) fn text(mut self, text: &str) -> Self {
        self.0.arg(text);
        self
    }

    pub(super) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.arg(bytes);
        self
    }

    pub(super) fn int(mut self, number: i64) -> Self {
        self.0.arg(number);
        self
    }

    /// A number, or empty for none.
    pub(super) fn maybe(self, number: Option<i64>) -> Self {
        match number {
            Some(number) => self.int(number),
            None => self.text(""),
        }
    }

    /// The nine fields of a holder's limits.
    pub(super) fn limits(
        self,
        limits: &Limits,
        now: Timestamp,
        settings: &CounterSettings,
    ) -> Self {
        let nano = |limit: Option<NanoUsd>| limit.map(|limit| limit.0);
        let Limits { five_hours, daily, weekly, monthly, total, concurrent_sessions, daily_reset } =
            *limits;
        let call =
            self.maybe(nano(total)).maybe(nano(five_hours)).maybe(nano(daily)).maybe(nano(weekly));
        let call = call.maybe(nano(monthly)).int(i64::from(concurrent_sessions));
        if daily.is_some() {
            call.day(daily_reset, now, settings)
        } else {
            call.text("r").int(0).int(0)
        }
    }

    /// The mode of a daily window, and the span of the one that holds `now`.
    pub(super) fn day(self, reset: DailyReset, now: Timestamp, settings: &CounterSettings) -> Self {
        match reset.mode {
            ResetMode::Rolling => self.text("r").int(0).int(0),
            ResetMode::Fixed => {
                let span = Window::Daily(reset).calendar(now, settings.time_zone);
                self.text("f").int(span.start.0).int(span.end.0)
            }
        }
    }
}
