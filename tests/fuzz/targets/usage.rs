//! The usage within replies and streams, cut anywhere.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate_fuzz::{events, input::Input};

fuzz_target!(|data: &[u8]| {
    if let Some(input) = Input::read(data) {
        events::usage(&input);
    }
});
