//! The stages of a request as functions that a profiler can tell apart.
//!
//! An optimised build inlines the stages into one another. With the feature `stages` each keeps a
//! frame of its own, so that `make bench-stages` can count what each one costs. That takes one
//! allocation more for each stage.

/// Declares a function for each stage, which takes the stage's future, and the name of its frame.
macro_rules! stages {
    ($($stage:ident $frame:ident),*) => {$(
        #[cfg(not(feature = "stages"))]
        #[inline(always)]
        pub(super) const fn $stage<F: Future>(stage: F) -> F {
            stage
        }

        #[cfg(feature = "stages")]
        pub(super) fn $stage<F: Future>(stage: F) -> impl Future<Output = F::Output> {
            let mut stage = Box::pin(stage);
            std::future::poll_fn(move |cx| $frame(stage.as_mut(), cx))
        }

        #[cfg(feature = "stages")]
        #[inline(never)]
        fn $frame<F: Future>(
            stage: std::pin::Pin<&mut F>,
            cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<F::Output> {
            stage.poll(cx)
        }
    )*};
}

stages!(head stage_head, intake stage_intake, screen stage_screen, admit stage_admit, plan stage_plan);
