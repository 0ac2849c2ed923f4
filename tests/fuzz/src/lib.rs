//! What the fuzz targets share: how their input is read, and what must hold for any input.
//!
//! Only the pure rooms are built, from their own sources, so that a build with the fuzzer's instrumentation takes
//! seconds: no server, database or TLS is part of it. A check that does not hold panics, which the fuzzer reports
//! together with the input.

#[path = "../../../src/domain/mod.rs"]
pub mod domain;
#[path = "../../../src/formats/mod.rs"]
pub mod formats;
#[path = "../../../src/app/frame_watch.rs"]
pub mod frame_watch;

pub mod body;
pub mod edits;
pub mod events;
pub mod heads;
pub mod input;
