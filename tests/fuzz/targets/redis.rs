//! An answer of Redis, as the shared counters read it.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| tollgate::limits::fuzz_answer(data));
