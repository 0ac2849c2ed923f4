//! Counts instructions of a running gateway with Callgrind, by the kind of thread that executed
//! them.
//!
//! The gateway starts without instrumentation, so its start takes seconds. `vgdb` switches
//! instrumentation on and writes a profile at the end of each stretch; each thread has a separate
//! profile. The functions in a profile identify the thread's work. Time spent in the kernel is not
//! counted.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// What a thread works on, and a part of a function's name that no other kind of thread runs.
const KINDS: [(&str, &str); 2] = [(WRITER, "sqlite3VdbeExec"), (PROXY, "pingora_proxy")];
/// The threads that serve requests.
pub const PROXY: &str = "proxy";
/// The threads that execute SQLite's statements.
pub const WRITER: &str = "sqlite";
/// All others: the runtime that feeds the writer, access lines, timers.
pub const OTHER: &str = "other";

/// Keeps glibc from copying with `rep movsb`, which Callgrind counts as one instruction per byte.
pub const GLIBC: (&str, &str) = (
    "GLIBC_TUNABLES",
    "glibc.cpu.x86_rep_movsb_threshold=1000000000:glibc.cpu.x86_rep_stosb_threshold=1000000000",
);

/// Instructions by kind of thread.
pub type Counts = BTreeMap<&'static str, u64>;

/// The command that runs a program under Callgrind; its profiles go to `dir`.
pub fn command(dir: &Path) -> Vec<String> {
    let out = dir.join("profile").display().to_string();
    let fifo = dir.join("vgdb").display().to_string();
    let options = [
        "valgrind",
        "--tool=callgrind",
        "--instr-atstart=no",
        "--separate-threads=yes",
        "--fair-sched=try",
        "--max-threads=2000",
    ];
    let mut command: Vec<String> = options.map(str::to_owned).into();
    command.extend([format!("--callgrind-out-file={out}"), format!("--vgdb-prefix={fifo}")]);
    command
}

/// A program under Callgrind.
pub struct Profiled<'d> {
    pub process: u32,
    /// The folder given to [`command`].
    pub dir: &'d Path,
}

impl Profiled<'_> {
    /// Starts counting.
    ///
    /// # Errors
    /// When Valgrind does not answer.
    pub fn start(&self) -> Result<()> {
        self.say(&["instrumentation", "on"])
    }

    /// Ends a stretch. Returns the counts since its beginning and the profiles, which give the
    /// functions.
    ///
    /// # Errors
    /// When Valgrind does not answer or writes no valid profile.
    pub fn take(&self) -> Result<(Counts, Vec<PathBuf>)> {
        let before = self.profiles()?;
        self.say(&["dump"])?;
        let new: Vec<_> =
            self.profiles()?.into_iter().filter(|file| !before.contains(file)).collect();
        ensure!(!new.is_empty(), "Callgrind wrote no profile into {}", self.dir.display());
        let mut counts: Counts = [PROXY, WRITER, OTHER].map(|kind| (kind, 0)).into();
        for file in &new {
            let text = fs::read_to_string(file)?;
            let count =
                total(&text).with_context(|| format!("{} has no totals", file.display()))?;
            let kind =
                KINDS.iter().find(|(_, name)| text.contains(name)).map_or(OTHER, |(kind, _)| kind);
            *counts.entry(kind).or_default() += count;
        }
        Ok((counts, new))
    }

    fn profiles(&self) -> Result<Vec<PathBuf>> {
        let files = fs::read_dir(self.dir)?.flatten().map(|entry| entry.path());
        let named = |file: &PathBuf| {
            file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("profile."))
        };
        Ok(files.filter(named).collect())
    }

    fn say(&self, words: &[&str]) -> Result<()> {
        let prefix = format!("--vgdb-prefix={}", self.dir.join("vgdb").display());
        let output = Command::new("vgdb")
            .arg(prefix)
            .arg(format!("--pid={}", self.process))
            .args(words)
            .output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "vgdb {words:?}: {said}");
        Ok(())
    }
}

/// The instructions of one profile.
fn total(profile: &str) -> Option<u64> {
    let line = profile.lines().rev().find_map(|line| line.strip_prefix("totals: "))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::total;

    #[test]
    fn a_profile_ends_with_its_total() {
        assert_eq!(total("events: Ir\nfn=(1) main\n1 5\n\ntotals: 1234\n"), Some(1234));
        assert_eq!(total("events: Ir\n"), None);
    }
}
