//! The phase of the process: serving, stopping, or handing over to its successor.

/// The phase of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Requests are accepted: from the start until a stop or a hand-over.
    Serving,
    /// A stop was requested.
    Stopping,
    /// Another process takes over.
    HandingOver,
}
