//! Server-sent events, split and written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate_fuzz::{events, input::Input};

fuzz_target!(|data: &[u8]| {
    if let Some(input) = Input::read(data) {
        events::split_and_write(&input);
    }
});
