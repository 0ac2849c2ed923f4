//! Standard output behind a bounded buffer, so that a slow reader of the log never delays a
//! request.
//!
//! Lines are appended under a short lock; one thread writes the collected lines, every few
//! milliseconds. A full buffer drops lines and counts them. If the process is killed, the buffer is
//! lost: the ledger, not the log, is the record of requests.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tracing_subscriber::fmt::MakeWriter;

/// Bytes that may wait.
const CAPACITY: usize = 8 << 20;
/// How long lines are collected: limits the wake-ups under load to a hundred per second.
const GATHER: Duration = Duration::from_millis(10);

static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Lines dropped since the process began.
pub(super) fn dropped_total() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}

/// A sink of log lines; clones share it.
#[derive(Clone)]
pub(super) struct LineBuffer(Arc<SharedBuffer>);

struct SharedBuffer {
    state: Mutex<BufferState>,
    /// Lines arrived, or a flush was requested.
    arrived: Condvar,
    /// Everything present at a flush has been written.
    written: Condvar,
}

#[derive(Default)]
struct BufferState {
    waiting: Vec<u8>,
    flush_wanted: bool,
    writing: bool,
}

impl LineBuffer {
    /// Starts the writing thread.
    pub(super) fn start(mut out: impl Write + Send + 'static) -> io::Result<Self> {
        let buffer = Self(Arc::new(SharedBuffer {
            state: Mutex::default(),
            arrived: Condvar::new(),
            written: Condvar::new(),
        }));
        let shared = Arc::clone(&buffer.0);
        std::thread::Builder::new().name("log".to_owned()).spawn(move || {
            let mut lines = Vec::new();
            loop {
                shared.take(&mut lines);
                // If standard output fails, there is no place to report it.
                let _unwritable = out.write_all(&lines).and_then(|()| out.flush());
                lines.clear();
                shared.done();
            }
        })?;
        Ok(buffer)
    }

    /// Adds a complete line, including its end.
    pub(super) fn append(&self, line: &[u8]) {
        let mut state = self.0.state.lock();
        if state.waiting.len() + line.len() > CAPACITY {
            DROPPED.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let was_empty = state.waiting.is_empty();
        state.waiting.extend_from_slice(line);
        drop(state);
        if was_empty {
            self.0.arrived.notify_one();
        }
    }

    /// Waits until the present lines have been written, at most two seconds.
    pub(super) fn flush(&self) {
        let mut state = self.0.state.lock();
        state.flush_wanted = true;
        self.0.arrived.notify_one();
        let busy = |state: &mut BufferState| state.writing || !state.waiting.is_empty();
        let _timed_out = self.0.written.wait_while_for(&mut state, busy, Duration::from_secs(2));
    }
}

impl SharedBuffer {
    /// Takes the waiting lines, after a short time to collect more.
    fn take(&self, lines: &mut Vec<u8>) {
        let mut state = self.state.lock();
        self.arrived.wait_while(&mut state, |state| state.waiting.is_empty());
        if !state.flush_wanted {
            let _gathered =
                self.arrived.wait_while_for(&mut state, |state| !state.flush_wanted, GATHER);
        }
        state.flush_wanted = false;
        state.writing = true;
        std::mem::swap(&mut state.waiting, lines);
    }

    fn done(&self) {
        self.state.lock().writing = false;
        self.written.notify_all();
    }
}

/// `tracing` passes each event as one write.
impl Write for LineBuffer {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.append(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LineBuffer {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn flush_brings_every_line_out_in_order() {
        let sink = Sink::default();
        let buffer = LineBuffer::start(sink.clone()).unwrap();
        let lines: String = (0..1000).map(|n| format!("line {n}\n")).collect();
        for line in lines.split_inclusive('\n') {
            buffer.append(line.as_bytes());
        }
        buffer.flush();
        assert_eq!(String::from_utf8(sink.0.lock().clone()).unwrap(), lines);
    }

    #[test]
    fn a_reader_that_hangs_costs_lines_not_time() {
        struct Stuck(std::sync::mpsc::Receiver<()>);
        impl Write for Stuck {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                let _hung_up = self.0.recv();
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (release, held) = std::sync::mpsc::channel();
        let buffer = LineBuffer::start(Stuck(held)).unwrap();
        let before = dropped_total();
        let line = vec![b'x'; 1 << 20];
        for _ in 0..3 * (CAPACITY >> 20) {
            buffer.append(&line);
        }
        assert!(dropped_total() > before);
        drop(release);
    }
}
