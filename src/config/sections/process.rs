//! The process: its log, and its end.

use crate::bounded::{HOUR, OneOf, S, SpanOrNone, choices};
use crate::config::section::settings;
use crate::config::setting::at;

settings! {
    /// What is logged, and in which form; the level is in [`Live`](super::Live).
    pub struct Log {
        /// The form of the lines.
        format: OneOf<LogFormat> = at("log.format").or("auto").env("LOG_FORMAT");
        /// One line per request.
        access: bool = at("log.access").or("true");
    }

    /// How the process ends.
    #[derive(Copy)]
    pub struct Shutdown {
        /// How long replies may continue after a stop was requested.
        grace_ms: SpanOrNone<S, HOUR> = at("shutdown.grace").or("1m");
    }
}

choices! {
    /// The form of log lines.
    LogFormat {
        /// Text on a terminal, else JSON.
        Auto = "auto",
        /// One line of text for each event.
        Text = "text",
        /// One JSON object on a line for each event.
        Json = "json",
    }
}
