//! Complete replies, from any format to any.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate_fuzz::{body, input::Input};

fuzz_target!(|data: &[u8]| {
    if let Some(input) = Input::read(data) {
        body::reply(&input);
    }
});
