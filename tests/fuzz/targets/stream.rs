//! Streams, from any format to any, cut anywhere.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate_fuzz::{events, input::Input};

fuzz_target!(|data: &[u8]| {
    if let Some(input) = Input::read(data) {
        events::convert(&input);
    }
});
