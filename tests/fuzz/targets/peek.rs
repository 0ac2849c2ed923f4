//! Peeking into requests, and the edits that rely on it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate_fuzz::{edits, input::Input};

fuzz_target!(|data: &[u8]| {
    if let Some(input) = Input::read(data) {
        edits::peek_and_edit(&input);
    }
});
