//! Work on large bodies, on a thread of its own: not on one that serves other connections.

/// Bytes up to which a body is worked on where it is.
pub(super) const INLINE_MAX: usize = 512 * 1024;

/// Runs `work` on a body of `bytes` bytes: on a blocking thread if it is large. `None` if the work
/// panicked there.
pub(super) async fn by_size<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    if bytes <= INLINE_MAX { Some(work()) } else { tokio::task::spawn_blocking(work).await.ok() }
}
