//! Counts instructions of a running gateway with Callgrind, by the kind of thread that executed
//! them.
//!
//! The gateway starts without instrumentation, so its start takes seconds. `vgdb` switches
//! instrumentation on and writes a profile at the end of each stretch; each thread has a separate
//! profile. The functions in a profile identify the thread's work. Time spent in the kernel is not
//! counted.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::profile::Profile;

/// Keeps glibc from copying with `rep movsb`, which Callgrind counts as one instruction per byte.
pub const GLIBC: (&str, &str) = (
    "GLIBC_TUNABLES",
    "glibc.cpu.x86_rep_movsb_threshold=1000000000:glibc.cpu.x86_rep_stosb_threshold=1000000000",
);

/// The command that runs a program under Callgrind; its profiles go to `dir`. `options`: further
/// ones.
pub fn command(dir: &Path, options: &[String]) -> Vec<String> {
    let out = dir.join("profile").display().to_string();
    let fifo = dir.join("vgdb").display().to_string();
    let usual = [
        "valgrind",
        "--tool=callgrind",
        "--instr-atstart=no",
        "--separate-threads=yes",
        "--fair-sched=try",
        "--max-threads=2000",
        "--collect-systime=yes",
    ];
    let mut command: Vec<String> = usual.map(str::to_owned).into();
    command.extend_from_slice(options);
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

    /// Ends a stretch. Returns the profile of each thread since its beginning, and its file.
    ///
    /// # Errors
    /// When Valgrind does not answer or writes no valid profile.
    pub fn take(&self) -> Result<(Vec<Profile>, Vec<PathBuf>)> {
        let before = self.profiles()?;
        self.say(&["dump"])?;
        let new: Vec<_> =
            self.profiles()?.into_iter().filter(|file| !before.contains(file)).collect();
        ensure!(!new.is_empty(), "Callgrind wrote no profile into {}", self.dir.display());
        let read = |file: &PathBuf| {
            Profile::read(&fs::read_to_string(file)?).with_context(|| file.display().to_string())
        };
        let profiles = new.iter().map(read).collect::<Result<Vec<_>>>()?;
        Ok((profiles, new))
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
