//! A journal segment, as the reader of a start after a crash finds it.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| tollgate_fuzz::journal::read(data));
