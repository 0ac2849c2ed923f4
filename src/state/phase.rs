//! How far the process is in its life: serving, stopping, or handing over to its successor.

/// How far the process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Serving,
    /// A stop was asked for.
    Stopping,
    /// Another process takes over.
    HandingOver,
}
