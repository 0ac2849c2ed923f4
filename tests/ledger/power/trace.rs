//! A process's file operations, in order, parsed from the output of `strace`.
//!
//! `-y` prints the path behind each descriptor and `-xx` makes strings and paths hexadecimal, so
//! that `, ` always separates two arguments.

use crate::support::wait;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// What is recorded: everything that changes or syncs a file or a directory.
const CALLS: &str = "openat,open,creat,write,writev,pwrite64,pwritev,pwritev2,ftruncate,truncate,fallocate,fsync,\
                     fdatasync,sync_file_range,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,rmdir,link,linkat";

/// The words before the program's name. The tracer runs beside the program (`-D`), which keeps its
/// own process id.
pub fn runner(out: &Path) -> Vec<String> {
    let trace = format!("trace={CALLS}");
    let words = [
        "strace",
        "-D",
        "-f",
        "--seccomp-bpf",
        "-q",
        "-y",
        "-xx",
        "-s",
        "100000000",
        "-e",
        "signal=kill",
        "-e",
    ];
    words
        .map(str::to_owned)
        .into_iter()
        .chain([trace, "-o".to_owned(), out.display().to_string()])
        .collect()
}

/// One successful call: its effect, and where in the recording it began and ended.
#[derive(Debug)]
pub struct Op {
    pub began: usize,
    pub ended: usize,
    pub call: Call,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Call {
    /// Opened for writing or creation; truncated if requested.
    Open {
        path: PathBuf,
        create: bool,
        truncate: bool,
    },
    Write {
        path: PathBuf,
        offset: u64,
        bytes: Vec<u8>,
    },
    Truncate {
        path: PathBuf,
        length: u64,
    },
    Sync {
        path: PathBuf,
    },
    Rename {
        from: PathBuf,
        to: PathBuf,
    },
    Link {
        from: PathBuf,
        to: PathBuf,
    },
    Unlink {
        path: PathBuf,
    },
    MakeDir {
        path: PathBuf,
    },
}

impl Call {
    /// The file or directory that it changes; of two names, the new one.
    fn path(&self) -> &Path {
        match self {
            Self::Open { path, .. } | Self::Write { path, .. } | Self::Truncate { path, .. } => {
                path
            }
            Self::Sync { path } | Self::Unlink { path } | Self::MakeDir { path } => path,
            Self::Rename { to, .. } | Self::Link { to, .. } => to,
        }
    }
}

/// Waits until the tracer has written everything, then reads the operations below `root`.
pub async fn read(out: &Path, pid: u32, root: &Path, first_line: usize) -> Vec<Op> {
    let pid = pid.to_string();
    let ended = |line: &str| line.split_whitespace().take(2).eq([pid.as_str(), "+++"]);
    let written = || std::fs::read_to_string(out).unwrap_or_default();
    let why = "strace writes nothing: may this process trace others (ptrace)?";
    let text = wait::found(
        || format!("{why}\n{}", written()),
        async || Some(written()).filter(|text| text.lines().any(ended)),
    )
    .await;
    let mut reader = Reader { offsets: HashMap::new() };
    let mut unfinished: HashMap<&str, (usize, &str)> = HashMap::new();
    let mut ops = Vec::new();
    for (number, line) in (first_line..).zip(text.lines()) {
        let (pid, said) = line.split_once(' ').unwrap();
        let said = said.trim_start();
        if let Some(begun) = said.strip_suffix(" <unfinished ...>") {
            unfinished.insert(pid, (number, begun));
            continue;
        }
        let (began, whole) = match said.strip_prefix("<... ") {
            Some(rest) => {
                let (began, begun) = unfinished.remove(pid).expect("what is resumed was begun");
                (began, format!("{begun}{}", rest.split_once(" resumed>").unwrap().1))
            }
            None => (number, said.to_owned()),
        };
        if let Some(call) = reader.call(&whole, root) {
            ops.push(Op { began, ended: number, call });
        }
    }
    ops
}

struct Reader {
    /// The position of the next `write` of a descriptor.
    offsets: HashMap<i64, u64>,
}

impl Reader {
    /// The call of a line, if it succeeded and changed something below `root`.
    fn call(&mut self, line: &str, root: &Path) -> Option<Call> {
        let (name, rest) = line.split_once('(')?;
        let (arguments, result) = rest.rsplit_once(" = ")?;
        let result: i64 =
            result.split(['<', ' ']).next()?.parse().ok().filter(|result| *result >= 0)?;
        let arguments: Vec<&str> = arguments.trim_end().strip_suffix(')')?.split(", ").collect();
        let call = match name {
            "openat" => self.open(&arguments, result)?,
            "write" => self.write(&arguments, result)?,
            "pwrite64" => {
                let offset = arguments[3].parse().unwrap();
                Call::Write {
                    path: descriptor(arguments[0])?.1,
                    offset,
                    bytes: taken(arguments[1], result),
                }
            }
            "ftruncate" => Call::Truncate {
                path: descriptor(arguments[0])?.1,
                length: arguments[1].parse().unwrap(),
            },
            "fsync" | "fdatasync" => Call::Sync { path: descriptor(arguments[0])?.1 },
            "rename" | "link" => two_names(name, path_of(arguments[0]), path_of(arguments[1])),
            "renameat" | "renameat2" | "linkat" => {
                let name = if name == "linkat" { "link" } else { "rename" };
                two_names(
                    name,
                    named(arguments[0], arguments[1]),
                    named(arguments[2], arguments[3]),
                )
            }
            "unlink" | "rmdir" => Call::Unlink { path: path_of(arguments[0]) },
            "unlinkat" => Call::Unlink { path: named(arguments[0], arguments[1]) },
            "mkdir" => Call::MakeDir { path: path_of(arguments[0]) },
            "mkdirat" => Call::MakeDir { path: named(arguments[0], arguments[1]) },
            other => {
                let (_, path) = descriptor(arguments[0])?;
                assert!(!below(&path, root), "{other} is not understood: {line}");
                return None;
            }
        };
        below(call.path(), root).then_some(call)
    }

    fn open(&mut self, arguments: &[&str], descriptor: i64) -> Option<Call> {
        self.offsets.insert(descriptor, 0);
        let flags = arguments[2];
        let (create, truncate) = (flags.contains("O_CREAT"), flags.contains("O_TRUNC"));
        (create || truncate).then(|| Call::Open {
            path: named(arguments[0], arguments[1]),
            create,
            truncate,
        })
    }

    fn write(&mut self, arguments: &[&str], written: i64) -> Option<Call> {
        let (descriptor, path) = descriptor(arguments[0])?;
        let bytes = taken(arguments[1], written);
        let offset = self.offsets.entry(descriptor).or_default();
        let at = *offset;
        *offset += bytes.len() as u64;
        Some(Call::Write { path, offset: at, bytes })
    }
}

/// SQLite's shared memory is created again after a crash, and sockets are not files.
fn below(path: &Path, root: &Path) -> bool {
    let name = path.to_string_lossy();
    path.starts_with(root) && !name.ends_with("-shm") && !name.ends_with(".sock")
}

fn two_names(name: &str, from: PathBuf, to: PathBuf) -> Call {
    if name == "link" { Call::Link { from, to } } else { Call::Rename { from, to } }
}

/// `11<\x2f…>`; nothing for a file that has no name any more.
fn descriptor(text: &str) -> Option<(i64, PathBuf)> {
    let (number, rest) = text.split_once('<')?;
    let path = rest.strip_suffix('>')?;
    Some((number.parse().ok()?, text_of(path)))
}

/// A path relative to its directory argument.
fn named(dir: &str, path: &str) -> PathBuf {
    let dir = dir
        .split_once('<')
        .map_or_else(PathBuf::new, |(_, rest)| text_of(rest.trim_end_matches('>')));
    dir.join(path_of(path))
}

fn path_of(text: &str) -> PathBuf {
    text_of(text.trim_matches('"'))
}

fn text_of(hexadecimal: &str) -> PathBuf {
    PathBuf::from(String::from_utf8(bytes_of(hexadecimal)).unwrap())
}

fn taken(text: &str, result: i64) -> Vec<u8> {
    let mut bytes = bytes_of(text.trim_matches('"'));
    bytes.truncate(usize::try_from(result).unwrap());
    bytes
}

fn bytes_of(text: &str) -> Vec<u8> {
    let digits = |pair: &str| {
        u8::from_str_radix(pair, 16).unwrap_or_else(|_| panic!("not hexadecimal: {text}"))
    };
    text.split("\\x").skip(1).map(digits).collect()
}
