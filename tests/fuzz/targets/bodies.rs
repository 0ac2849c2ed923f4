//! Administration bodies: any bytes as the body of every operation. It is accepted, or refused with
//! a clear error.
#![no_main]

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use http_body::Body;
use libfuzzer_sys::fuzz_target;
use tollgate::admin::envelope::ApiError;
use tollgate::admin::{body, table};

fuzz_target!(|data: &[u8]| {
    for operation in table::operations() {
        match body::parse(operation, data) {
            Ok(_) => {
                let sent: serde_json::Value = serde_json::from_slice(data).unwrap_or_default();
                for name in operation.body.names().filter(|name| operation.body.requires(name)) {
                    assert!(sent.get(name).is_some(), "{} without {name}", operation.path);
                }
            }
            Err(refusal) => is_clear(operation.path, refusal),
        }
    }
});

/// A 400 in the envelope, with a code and a message, and never an internal error.
fn is_clear(path: &str, refusal: ApiError) {
    assert!(refusal.internal_reason().is_none(), "{path}: {refusal:?}");
    let mut response = refusal.into_response();
    assert_eq!(response.status(), 400, "{path}");
    let mut context = Context::from_waker(Waker::noop());
    let Poll::Ready(Some(Ok(frame))) = Pin::new(response.body_mut()).poll_frame(&mut context) else {
        panic!("{path}: no body");
    };
    let bytes = frame.into_data().unwrap_or_default();
    let said: serde_json::Value = serde_json::from_slice(&bytes).expect("JSON");
    assert_eq!(said["ok"], false, "{path}: {said}");
    assert!(said["errorCode"].as_str().is_some_and(|code| !code.is_empty()), "{path}: {said}");
    assert!(said["error"].as_str().is_some_and(|words| !words.is_empty()), "{path}: {said}");
}
