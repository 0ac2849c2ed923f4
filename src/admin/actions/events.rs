//! `GET /api/events`: events as they happen, as server-sent events. `admin::live` creates them.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body as Stream;
use axum::http::{HeaderValue, Response, header};
use futures_util::stream;

use crate::admin::call::Call;
use crate::admin::envelope::{ApiError, Code};
use crate::admin::live::Viewer;
use crate::admin::live::client::FrameStream;
use crate::admin::operation::{Operation, Permission};
use crate::admin::reasons::Reason;
use crate::admin::records::live::LiveEvent;

/// The operations of this file, for the table of all.
pub fn operations() -> Vec<Operation> {
    vec![
        Operation::whole::<LiveEvent, _>("events", Permission::Any, "text/event-stream", events)
            .doc(
                "What happens, as it happens: server-sent events. Users hear of their own \
                 requests only, and a read-only key of its own, without the day's figures.",
            )
            .errors(&[Code::TOO_MANY_ATTEMPTS]),
    ]
}

async fn events(call: Call) -> Result<Response<Stream>, ApiError> {
    let viewer = Viewer::of(call.who()?);
    let joined = call.live.join(viewer).ok_or_else(|| {
        let refusal = ApiError::because(Code::TOO_MANY_ATTEMPTS, Reason::TooManyWatchers);
        refusal.header(header::RETRY_AFTER, 10)
    })?;
    let client = FrameStream::new(Arc::clone(&call.ctx), joined, call.credentials, viewer);
    let frames = stream::unfold(client, |mut client| async move {
        let frame = client.next().await?;
        Some((Ok::<_, Infallible>(frame), client))
    });
    let mut response = Response::new(Stream::from_stream(frames));
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
        // Asks a buffering proxy in between to pass each event on at once.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}
