//! Which log lines are written: a level that can change at run time, and lower verbosity for
//! libraries.
//!
//! Pingora logs each failed request as an error, although the gateway has answered and recorded it:
//! such lines appear from `debug` on. Lines of verbose libraries appear from `warn`; with `trace`
//! from `debug`, and Pingora's from `info`. Below that, libraries write the heads and the bytes
//! that they receive and send, credentials included. A few of their error lines are part of
//! ordinary operation ([`ROUTINE`]) and appear from `debug` on too.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// The level in effect; clones share it.
#[derive(Clone)]
pub(super) struct Levels {
    verbosity: Arc<AtomicU8>,
}

/// 1 = errors only … 5 = everything.
fn verbosity_of(level: Level) -> u8 {
    match level {
        Level::ERROR => 1,
        Level::WARN => 2,
        Level::INFO => 3,
        Level::DEBUG => 4,
        Level::TRACE => 5,
    }
}

impl Levels {
    pub(super) fn new(level: Level) -> Self {
        Self { verbosity: Arc::new(AtomicU8::new(verbosity_of(level))) }
    }

    pub(super) fn set(&self, level: Level) {
        self.verbosity.store(verbosity_of(level), Ordering::Relaxed);
        tracing::callsite::rebuild_interest_cache();
    }

    /// Whether a line of this target and level is written.
    pub(super) fn allows(&self, target: &str, level: Level) -> bool {
        let verbosity = self.verbosity.load(Ordering::Relaxed);
        let module = target.split("::").next().unwrap_or(target);
        let most = match module {
            // The gateway and its packages.
            own if own == "tollgate" || own.starts_with("tollgate_") => verbosity,
            // One error line per failed request: the record and the access line have more detail.
            "pingora_proxy" if verbosity < 4 => 0,
            _ if verbosity < 5 => verbosity.min(2),
            pingora if pingora.starts_with("pingora") => verbosity_of(Level::INFO),
            _ => verbosity_of(Level::DEBUG),
        };
        verbosity_of(level) <= most
    }
}

/// Lines that libraries log as errors although they are none: the target, the beginning of the
/// text, and why.
const ROUTINE: [(&str, &str); 1] = [
    // The new process of an upgrade waits at its socket until the old one hands over. If none does,
    // it ends with a separate line ("Giving up reading socket").
    ("pingora_core::server::transfer_fd", "No incoming socket transfer"),
];

/// Pingora's errors about a head that it cannot read repeat the head.
const REPEATS_A_HEAD: &str = "buf: ";

/// A line of the `log` crate, as far as [`ROUTINE`] needs it.
#[derive(Default)]
struct LibraryLine {
    target: String,
    text: String,
}

impl Visit for LibraryLine {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "log.target" {
            value.clone_into(&mut self.target);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.text = format!("{value:?}");
        }
    }
}

impl LibraryLine {
    fn is_routine(&self) -> bool {
        ROUTINE.iter().any(|(target, text)| self.target == *target && self.text.starts_with(text))
    }

    fn repeats_a_head(&self) -> bool {
        self.target.starts_with("pingora") && self.text.contains(REPEATS_A_HEAD)
    }
}

impl<S: Subscriber> Layer<S> for Levels {
    /// Only libraries' lines that passed the level: few.
    fn event_enabled(&self, event: &Event<'_>, _context: Context<'_, S>) -> bool {
        if event.metadata().target() != "log" {
            return true;
        }
        let mut line = LibraryLine::default();
        event.record(&mut line);
        let shows_routine = self.verbosity.load(Ordering::Relaxed) >= verbosity_of(Level::DEBUG);
        !line.repeats_a_head() && (shows_routine || !line.is_routine())
    }

    /// Lines of the `log` crate share a call site but not a target, so each one is checked.
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if metadata.target() == "log" {
            Interest::sometimes()
        } else if self.allows(metadata.target(), *metadata.level()) {
            Interest::always()
        } else {
            Interest::never()
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>, _context: Context<'_, S>) -> bool {
        metadata.target() == "log" || self.allows(metadata.target(), *metadata.level())
    }

    /// Constant, since the level in effect changes.
    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::TRACE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_quieter_than_the_gateway() {
        let cases = [
            (Level::INFO, "tollgate::app", Level::INFO, true),
            (Level::INFO, "tollgate::app", Level::DEBUG, false),
            (Level::INFO, "tollgate_storage::ledger", Level::INFO, true),
            (Level::INFO, "tollgate_storage::ledger", Level::DEBUG, false),
            (Level::INFO, "pingora_proxy", Level::ERROR, false),
            (Level::INFO, "pingora_proxy::proxy_h1", Level::WARN, false),
            (Level::DEBUG, "pingora_proxy", Level::ERROR, true),
            (Level::INFO, "pingora_core::server", Level::INFO, false),
            (Level::INFO, "pingora_core::server", Level::WARN, true),
            (Level::ERROR, "sqlx::query", Level::WARN, false),
            (Level::DEBUG, "sqlx::query", Level::DEBUG, false),
            (Level::TRACE, "sqlx::query", Level::DEBUG, true),
            (Level::TRACE, "h2::codec::framed_write", Level::TRACE, false),
            (Level::TRACE, "pingora_proxy", Level::DEBUG, false),
            (Level::TRACE, "pingora_core::protocols::http::v1::client", Level::DEBUG, false),
            (Level::TRACE, "pingora_core::server", Level::INFO, true),
            (Level::TRACE, "tollgate::hook", Level::TRACE, true),
        ];
        for (level, target, line, expected) in cases {
            assert_eq!(
                Levels::new(level).allows(target, line),
                expected,
                "{level} {target} {line}"
            );
        }
    }
}
