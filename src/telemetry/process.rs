//! Memory, CPU time and open files of this process, under the names that dashboards expect
//! (`process_…`).
//!
//! Read from `/proc` at scrape time; on systems other than Linux they stay 0.

use std::time::Duration;

use prometheus::{Counter, Error, IntGauge, Registry};

/// Linux reports CPU time in hundredths of a second on every architecture that Rust supports.
const TICK: Duration = Duration::from_millis(10);

pub(super) struct ProcessMetrics {
    resident_bytes: IntGauge,
    open_files: IntGauge,
    threads: IntGauge,
    cpu: Counter,
}

impl ProcessMetrics {
    pub(super) fn register(registry: &Registry) -> Result<Self, Error> {
        let gauge = |name: &str, help: &str| {
            let gauge = IntGauge::new(name, help)?;
            registry.register(Box::new(gauge.clone()))?;
            Ok::<_, Error>(gauge)
        };
        let cpu = Counter::new("process_cpu_seconds_total", "Processor time, user and system.")?;
        registry.register(Box::new(cpu.clone()))?;
        Ok(Self {
            resident_bytes: gauge("process_resident_memory_bytes", "Resident memory.")?,
            open_files: gauge("process_open_fds", "Open file descriptors.")?,
            threads: gauge("process_threads", "Threads.")?,
            cpu,
        })
    }

    /// Reads the figures again.
    pub(super) fn update(&self) {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<i64>().ok()
        };
        if let Some(kib) = field("VmRSS:") {
            self.resident_bytes.set(kib.saturating_mul(1024));
        }
        if let Some(threads) = field("Threads:") {
            self.threads.set(threads);
        }
        if let Ok(files) = std::fs::read_dir("/proc/self/fd") {
            // Without the one that reads the folder.
            self.open_files.set(i64::try_from(files.count()).unwrap_or(i64::MAX).saturating_sub(1));
        }
        if let Some(ticks) = cpu_ticks() {
            let total = TICK.saturating_mul(ticks).as_secs_f64();
            self.cpu.reset();
            self.cpu.inc_by(total);
        }
    }
}

/// User and system time; the command's name, second field, may contain blanks and brackets.
fn cpu_ticks() -> Option<u32> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let user: u32 = fields.next()?.parse().ok()?;
    let system: u32 = fields.next()?.parse().ok()?;
    user.checked_add(system)
}
