//! The threads of everything except proxied requests: the ledger's writer, SQLite, the
//! administration, jobs.
//!
//! They have a lower priority than the threads that serve requests. With the same priority, the
//! writer's work made requests wait for a core: at one connection it took 145 µs of the 99th
//! percentile and 28 µs of the median.
//!
//! With Redis they keep the normal priority: they also keep the counters of all nodes, and a node
//! that loses a server must learn quickly what others spent.
//!
//! See docs/decisions/16-two-runtimes.md.

use anyhow::Context as _;
use tokio::runtime::Runtime;

/// Worker threads.
const THREADS: usize = 2;

/// How much lower the priority is, in steps of `nice`. Such a thread still gets a quarter of a core
/// that a request thread uses as much as it can. That is more than the writer needs, so a busy
/// gateway does not delay its records.
#[cfg(target_os = "linux")]
const STEPS: i32 = 5;

/// The runtime `io`, and the priority of its threads.
pub(super) struct Background {
    pub(super) io: Runtime,
    priority: Priority,
}

impl Background {
    /// Starts the runtime. `yields`: its threads get the lower priority.
    pub(super) fn start(yields: bool) -> anyhow::Result<Self> {
        let priority = if yields { Priority::below_the_caller() } else { Priority::default() };
        let io = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("io")
            .on_thread_start(move || priority.take())
            .enable_all()
            .build()
            .context("starting the runtime")?;
        Ok(Self { io, priority })
    }

    /// Waits for `work` on a thread with the runtime's priority. The threads that SQLite's driver
    /// starts for connections that `work` opens inherit it.
    ///
    /// # Errors
    /// When the system allows no thread, or `work` panicked.
    pub(super) fn wait<T: Send>(&self, work: impl Future<Output = T> + Send) -> anyhow::Result<T> {
        std::thread::scope(|scope| {
            let waiting = std::thread::Builder::new().name("io".to_owned());
            let waiting = waiting.spawn_scoped(scope, || {
                self.priority.take();
                self.io.block_on(work)
            })?;
            waiting.join().map_err(|_| anyhow::anyhow!("the start panicked"))
        })
    }
}

/// A priority that a thread can take.
#[derive(Clone, Copy, Default)]
struct Priority {
    /// `None` = as the thread that starts it.
    #[cfg(target_os = "linux")]
    nice: Option<i32>,
}

impl Priority {
    #[cfg(target_os = "linux")]
    fn below_the_caller() -> Self {
        // 19 is the lowest priority.
        let nice = rustix::process::getpriority_process(None).map(|nice| (nice + STEPS).min(19));
        Self { nice: nice.ok() }
    }

    /// Linux sets the priority of a thread; other systems would set that of the whole process.
    #[cfg(not(target_os = "linux"))]
    fn below_the_caller() -> Self {
        Self {}
    }

    /// Where the system does not allow it, the calling thread works as before.
    fn take(self) {
        #[cfg(target_os = "linux")]
        if let Some(nice) = self.nice {
            let _kept = rustix::process::setpriority_process(None, nice);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn background_threads_and_those_they_start_yield_and_the_caller_does_not() {
        let nice = || rustix::process::getpriority_process(None).unwrap();
        let before = nice();
        let below = (before + STEPS).min(19);
        let background = Background::start(true).unwrap();
        let Background { io, .. } = &background;
        let [worker, blocking] = [io.spawn(async move { nice() }), io.spawn_blocking(nice)];
        let [worker, blocking] = [worker, blocking].map(|thread| io.block_on(thread).unwrap());
        assert_eq!([worker, blocking], [below; 2]);
        let inherited = background.wait(async { std::thread::spawn(nice).join().unwrap() });
        assert_eq!(inherited.unwrap(), below);
        assert_eq!(nice(), before);
        let equal = Background::start(false).unwrap();
        assert_eq!(equal.io.block_on(equal.io.spawn(async move { nice() })).unwrap(), before);
    }
}
