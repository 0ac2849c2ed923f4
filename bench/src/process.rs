//! Programs that the bench starts: what they cost, and that they end.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Kernel clock ticks per second, as /proc counts CPU time. 100 on every Linux that this runs on.
const TICKS: u64 = 100;
const STOP_WAIT: Duration = Duration::from_secs(10);

/// A running program; dropping it stops the process by its id.
pub struct Program {
    child: Child,
}

/// Resident memory, in KiB.
#[derive(Debug, Clone, Copy, Default)]
pub struct Resident {
    pub all: u64,
    /// Without pages of files: those of the program itself, which the kernel can drop and read
    /// again.
    pub own: u64,
}

impl Program {
    /// Starts `command` without input; its output goes to `log`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(command: &mut Command, log: fs::File) -> io::Result<Self> {
        let errors = log.try_clone()?;
        let child = command.stdin(Stdio::null()).stdout(log).stderr(errors).spawn()?;
        Ok(Self { child })
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The ids of its process and of its child processes.
    pub fn pids(&self) -> Vec<u32> {
        let pid = self.child.id();
        let children =
            fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        let children = children.split_whitespace().filter_map(|child| child.parse().ok());
        std::iter::once(pid).chain(children).collect()
    }

    /// Whether the process has exited.
    pub fn ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }

    /// CPU time used so far.
    pub fn cpu(&self) -> Duration {
        let stat = |pid| fs::read_to_string(format!("/proc/{pid}/stat")).ok();
        let ticks: u64 =
            self.pids().into_iter().filter_map(stat).filter_map(|stat| ticks(&stat)).sum();
        Duration::from_millis(ticks * 1000 / TICKS)
    }

    /// CPU time used so far by the live threads, by name.
    pub fn cpu_by_thread(&self) -> BTreeMap<String, Duration> {
        let mut times = BTreeMap::new();
        for pid in self.pids() {
            for thread in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten()
            {
                let name = fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
                let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
                let time = Duration::from_millis(ticks(&stat).unwrap_or(0) * 1000 / TICKS);
                *times.entry(name.trim().to_owned()).or_default() += time;
            }
        }
        times
    }

    /// Context switches of the live threads so far, voluntary or not.
    pub fn switches(&self) -> u64 {
        let of = |pid| fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let status = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("status"));
        let texts = self.pids().into_iter().flat_map(of).filter_map(|thread| status(thread).ok());
        texts.map(|text| switches(&text)).sum()
    }

    /// Resident memory now, in KiB.
    pub fn resident_kib(&self) -> u64 {
        self.resident().all
    }

    /// Resident memory now.
    pub fn resident(&self) -> Resident {
        let status = |pid| fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        self.pids().into_iter().map(status).fold(Resident::default(), |sum, status| Resident {
            all: sum.all + kib(&status, "VmRSS:"),
            own: sum.own + kib(&status, "RssAnon:"),
        })
    }

    /// Waits until it uses no more CPU (records are written after the reply), at most `most`.
    pub fn settle(&self, most: Duration) {
        let end = Instant::now() + most;
        let mut quiet = 0;
        let mut last = self.cpu();
        while quiet < 3 && Instant::now() < end {
            pause(Duration::from_millis(120));
            let now = self.cpu();
            quiet = if now - last <= Duration::from_millis(10) { quiet + 1 } else { 0 };
            last = now;
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let pid = self.child.id().to_string();
        // SIGTERM first, so that it stops its child processes.
        let _ = Command::new("kill").args(["-TERM", &pid]).stderr(Stdio::null()).status();
        let end = Instant::now() + STOP_WAIT;
        while !self.ended() && Instant::now() < end {
            pause(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// CPU time that a process and its children have used so far, those that have ended included.
pub fn cpu_of_family(pid: u32) -> Duration {
    let children =
        fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let live = children.split_whitespace().map(|child| format!("/proc/{child}/stat"));
    let own = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let live = live.filter_map(|path| fs::read_to_string(path).ok());
    let used: u64 = live.filter_map(|stat| ticks(&stat)).sum();
    let used = used + ticks(&own).unwrap_or(0) + ticks_of_ended(&own).unwrap_or(0);
    Duration::from_millis(used * 1000 / TICKS)
}

/// Sleeps; the bench's driver has no runtime.
#[expect(
    clippy::disallowed_methods,
    reason = "the driver is a plain thread that has nothing else to do"
)]
pub fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// User and system time out of a `stat` file.
fn ticks(stat: &str) -> Option<u64> {
    sum_of_fields(stat, 11)
}

/// The same of the children that have ended.
fn ticks_of_ended(stat: &str) -> Option<u64> {
    sum_of_fields(stat, 13)
}

fn sum_of_fields(stat: &str, first: usize) -> Option<u64> {
    // The name in parentheses may contain any character; the fields after it are numbers.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some(fields.get(first)?.parse::<u64>().ok()? + fields.get(first + 1)?.parse::<u64>().ok()?)
}

/// Both counts out of a thread's `status` file.
fn switches(status: &str) -> u64 {
    let counts = status.lines().filter(|line| line.contains("voluntary_ctxt_switches:"));
    let counts = counts.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    counts.sum()
}

fn kib(status: &str, name: &str) -> u64 {
    let value = status.lines().find_map(|line| line.strip_prefix(name));
    let number = value.and_then(|value| value.split_whitespace().next()?.parse().ok());
    number.unwrap_or(0)
}
