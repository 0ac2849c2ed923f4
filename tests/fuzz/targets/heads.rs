//! Heads of requests: HTTP/1, paths and queries, HTTP/2 frames.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate_fuzz::{heads, input::Input};

fuzz_target!(|data: &[u8]| {
    if let Some(input) = Input::read(data) {
        match (input.flag(0), input.flag(1)) {
            (true, _) => heads::http2(&input),
            (false, true) => heads::target(&input),
            (false, false) => heads::http1(&input),
        }
    }
});
