//! A journal segment, as a start after a crash reads it.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| tollgate_fuzz::journal::read(data));
