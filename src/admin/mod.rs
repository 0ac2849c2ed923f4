//! The administration API on its own listener.
