//! Work that is often done at once: writes into an empty socket, bodies that came with their head.

use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

/// The future's result if it is ready.
pub(in crate::proxy) async fn now<T>(mut work: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    std::future::poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// The future's result; `None` if it is not ready within this time. Pingora's time-out reads the
/// clock when it is made, 240 instructions, so none is made for work that is ready. Work that is
/// not is polled twice: for what usually waits, such as a provider's reply, use the time-out
/// itself.
pub(in crate::proxy) async fn within<T>(
    time: Duration,
    mut work: Pin<&mut impl Future<Output = T>>,
) -> Option<T> {
    match now(work.as_mut()).await {
        Some(done) => Some(done),
        None => pingora::time::timeout(time, work).await.ok(),
    }
}
