//! Common parts of the fuzz targets: reading their input, and properties that must hold for any
//! input.
//!
//! Only the pure crate and the journal's reader are built, the latter from its sources, without
//! server or database; the targets `bodies` and `redis` need the complete gateway. A failed check
//! panics, which the fuzzer reports together with the input.

pub use tollgate_formats::{domain, formats, policy};

#[path = "../../../crates/storage/src/files/mod.rs"]
pub mod files;
#[path = "../../../src/state/frame_watch.rs"]
pub mod frame_watch;

pub mod body;
pub mod edits;
pub mod events;
pub mod heads;
pub mod input;
pub mod journal;
