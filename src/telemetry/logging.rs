//! The log: `tracing` to standard output, as text or JSON, including the libraries' `log` lines.

use std::io::IsTerminal as _;

use tracing::{Dispatch, Level};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use super::access;
use super::forward::Forward;
use super::json_line::Style;
use super::levels::Levels;
use super::line_buffer::LineBuffer;

/// Why the log could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The thread that writes the lines could not be started.
    #[error("the log's thread could not be started: {0}")]
    Thread(#[from] std::io::Error),
    /// The process has a log already.
    #[error("another log is installed already: {0}")]
    Installed(#[from] tracing_subscriber::util::TryInitError),
}

/// Changes the level, flushes. Dropping it flushes too: keep it until the process ends.
#[derive(Clone)]
pub struct LogHandle {
    levels: Levels,
    lines: LineBuffer,
}

impl LogHandle {
    /// `error`, `warn`, `info`, `debug` or `trace`; anything else changes nothing and is `false`.
    pub fn set_level(&self, level: &str) -> bool {
        let parsed = level.parse::<Level>();
        if let Ok(level) = parsed {
            self.levels.set(level);
            log::set_max_level(bridge_level(level));
        }
        parsed.is_ok()
    }

    /// Waits (two seconds at most) until everything logged so far is written.
    pub fn flush(&self) {
        self.lines.flush();
    }
}

impl Drop for LogHandle {
    fn drop(&mut self) {
        self.flush();
    }
}

/// Installs the process's log, once.
///
/// `level` as in [`LogHandle::set_level`], `info` when unknown; `json: None` = text on a terminal,
/// else JSON; `access` = write a line per request.
///
/// # Errors
/// When a log is installed already, or its thread cannot be started.
pub fn init_logging(level: &str, json: Option<bool>, access: bool) -> Result<LogHandle, LogError> {
    let level = level.parse::<Level>().unwrap_or(Level::INFO);
    let levels = Levels::new(level);
    let lines = LineBuffer::start(std::io::stdout())?;
    let on_terminal = std::io::stdout().is_terminal();
    let look =
        if json.unwrap_or(!on_terminal) { Look::Json } else { Look::Text { colours: on_terminal } };
    let style = if matches!(look, Look::Json) { Style::Json } else { Style::Text };
    dispatch(levels.clone(), lines.clone(), look).try_init()?;
    if access {
        access::open(lines.clone(), style);
    }
    log::set_max_level(bridge_level(level));
    Ok(LogHandle { levels, lines })
}

enum Look {
    Json,
    Text { colours: bool },
}

fn dispatch<W>(levels: Levels, writer: W, look: Look) -> Dispatch
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let registry = tracing_subscriber::registry().with(levels).with(Forward);
    let layer = tracing_subscriber::fmt::layer().with_writer(writer);
    match look {
        Look::Json => {
            let layer =
                layer.json().flatten_event(true).with_current_span(false).with_span_list(false);
            Dispatch::new(registry.with(layer))
        }
        Look::Text { colours } => Dispatch::new(registry.with(layer.with_ansi(colours).compact())),
    }
}

/// The level at which the `log` crate, which only libraries use, forwards lines: avoids the work
/// for lines that are filtered out.
fn bridge_level(level: Level) -> log::LevelFilter {
    match level {
        Level::ERROR => log::LevelFilter::Error,
        Level::WARN | Level::INFO => log::LevelFilter::Warn,
        Level::DEBUG | Level::TRACE => log::LevelFilter::Debug,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Sink {
        type Writer = Self;

        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

    /// The lines that a level admits of those that libraries write with the `log` crate.
    fn of_libraries(level: Level, write: impl FnOnce()) -> Vec<String> {
        let sink = Sink::default();
        // Both are global: another test may have installed them.
        let _ = tracing_log::LogTracer::init();
        log::set_max_level(log::LevelFilter::Trace);
        tracing::dispatcher::with_default(
            &dispatch(Levels::new(level), sink.clone(), Look::Json),
            write,
        );
        let text = String::from_utf8(sink.0.lock().clone()).unwrap();
        let messages =
            text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        messages.map(|line| line["message"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn a_hand_over_that_is_awaited_is_not_an_error_below_debug() {
        // The line that Pingora 0.9 writes in `server/transfer_fd/mod.rs`.
        let waiting = "No incoming socket transfer, sleep 1s and try again";
        let write = || {
            log::error!(target: "pingora_core::server::transfer_fd", "{waiting}");
            log::error!(target: "pingora_core::server::transfer_fd", "another error");
            log::error!(target: "elsewhere", "{waiting}");
        };
        let others = ["another error", waiting];
        for level in [Level::ERROR, Level::INFO] {
            assert_eq!(of_libraries(level, write), others, "{level}");
        }
        assert_eq!(of_libraries(Level::DEBUG, write).len(), 3);
    }

    #[test]
    fn every_json_line_is_an_object_and_the_level_changes() {
        let sink = Sink::default();
        let levels = Levels::new(Level::INFO);
        tracing::dispatcher::with_default(
            &dispatch(levels.clone(), sink.clone(), Look::Json),
            || {
                tracing::info!(target: "tollgate::app", port = 8080, "started");
                tracing::debug!(target: "tollgate::app", "not wanted");
                levels.set(Level::DEBUG);
                tracing::debug!(target: "tollgate::app", "wanted now");
            },
        );
        let text = String::from_utf8(sink.0.lock().clone()).unwrap();
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert_eq!((&lines[0]["message"], &lines[0]["port"]), (&"started".into(), &8080.into()));
        assert_eq!(lines[1]["message"], "wanted now");
    }
}
