//! The stages of a request as functions that a profiler can tell apart.
//!
//! An optimised build inlines the stages into one another. With the feature `stages` each keeps a
//! frame of its own, so that `make bench-stages` can count what each one costs.

/// Runs a stage: as it is, or in a frame of its own.
#[cfg(not(feature = "stages"))]
#[inline(always)]
pub(super) const fn apart<F: Future>(stage: F) -> F {
    stage
}

/// Runs a stage: as it is, or in a frame of its own. That takes one allocation more.
#[cfg(feature = "stages")]
pub(super) fn apart<F: Future>(stage: F) -> impl Future<Output = F::Output> {
    let mut stage = Box::pin(stage);
    std::future::poll_fn(move |cx| poll_apart(stage.as_mut(), cx))
}

#[cfg(feature = "stages")]
#[inline(never)]
fn poll_apart<F: Future>(
    stage: std::pin::Pin<&mut F>,
    cx: &mut std::task::Context<'_>,
) -> std::task::Poll<F::Output> {
    stage.poll(cx)
}
