//! Fuzz target: the journal's reader on any bytes. `tests/fuzz/src/journal.rs` states the
//! requirements.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| tollgate_fuzz::journal::read(data));
