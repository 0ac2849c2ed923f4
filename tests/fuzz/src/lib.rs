//! Common parts of the fuzz targets: reading their input, and properties that must hold for any
//! input.
//!
//! Only the pure modules and the journal's reader are built, from their own sources, without server
//! or database; the targets `bodies` and `redis` need the complete gateway. A failed check panics,
//! which the fuzzer reports together with the input.

#[path = "../../../src/domain/mod.rs"]
pub mod domain;
#[path = "../../../src/files/mod.rs"]
pub mod files;
#[path = "../../../src/formats/mod.rs"]
pub mod formats;
#[path = "../../../src/state/frame_watch.rs"]
pub mod frame_watch;
#[path = "../../../src/policy/mod.rs"]
pub mod policy;

pub mod body;
pub mod edits;
pub mod events;
pub mod heads;
pub mod input;
pub mod journal;
