//! Metrics, logs, and the listener that shows them.
