//! A private PostgreSQL server for the tests: one per test process, in a temporary folder, reached
//! by a Unix socket; and a separate one for a test that kills it.
//!
//! A shell guards it. It waits for the end of its standard input, which comes when this process
//! ends for any reason, and then stops the server and removes the folder. PostgreSQL refuses to run
//! as root, so as root it runs as another user.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// A running server.
pub struct Server {
    bin: PathBuf,
    dir: PathBuf,
    /// The words that run a program as the server's user.
    user: Vec<String>,
    /// Held open as long as the server is needed: closing it makes the guard clean up.
    _alive: ChildStdin,
}

/// Or why there is none: tried once, not once per test.
static SERVER: OnceLock<Result<Server, String>> = OnceLock::new();
static DATABASES: AtomicU32 = AtomicU32::new(0);

/// Nothing that a test writes is worth waiting for a disk.
const FAST: &str = "-c fsync=off -c full_page_writes=off";

/// `$1` the programs, `$2` the folder, `$3` options of the server, `$4` the folder of the server
/// that it is to be a standby of, or nothing; the rest the words that run a program as the right
/// user. The guard ignores interrupts, which are for the tests.
const GUARD: &str = r#"
trap '' INT TERM HUP
bin=$1; dir=$2; options=$3; primary=$4; shift 4
if [ -n "$primary" ]; then
    "$@" "$bin/pg_basebackup" -h "$primary" -U postgres -D "$dir/data" -R -c fast --no-sync
else
    "$@" "$bin/initdb" -D "$dir/data" -U postgres -A trust -E UTF8 --locale=C --no-sync
fi >"$dir/log" 2>&1 &&
"$@" "$bin/pg_ctl" -D "$dir/data" -l "$dir/server.log" -w -t 60 \
    -o "-k $dir -h '' -c max_connections=300 $options" start \
    >>"$dir/log" 2>&1 &&
echo ready || { cat "$dir/log" "$dir/server.log"; echo failed; }
cat >/dev/null
read pid <"$dir/data/postmaster.pid" && kill -CONT $pid $(cat /proc/$pid/task/$pid/children)
"$@" "$bin/pg_ctl" -D "$dir/data" -m immediate stop >/dev/null 2>&1
rm -rf "$dir"
"#;

/// The URL of an empty database for one test.
pub fn fresh_database() -> String {
    server().fresh_database()
}

/// The socket of the private server.
pub fn socket() -> PathBuf {
    server().socket()
}

/// The URL of a database of that name on the private server, which may not exist.
pub fn url_of(name: &str) -> String {
    server().url_of(name)
}

impl Server {
    /// A server for one test, which may kill it. It ends when dropped.
    pub fn own() -> Self {
        Self::with(&folder(), FAST)
    }

    /// The same, with its data below this folder, and with these options of the program.
    pub fn with(folder: &Path, options: &str) -> Self {
        start(folder, options, "").unwrap_or_else(|why| panic!("{why}"))
    }

    /// A hot standby of this server, with streaming replication. It ends when dropped.
    pub fn standby(&self) -> Self {
        start(&folder(), FAST, self.socket_dir()).unwrap_or_else(|why| panic!("{why}"))
    }

    /// The URL of an empty database for one test.
    pub fn fresh_database(&self) -> String {
        let name = format!("test_{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        let made = Command::new(self.bin.join("createdb"))
            .args(["-h", self.socket_dir(), "-U", "postgres", "-T", "template0", &name])
            .output()
            .expect("createdb runs");
        assert!(made.status.success(), "createdb: {}", String::from_utf8_lossy(&made.stderr));
        self.url_of(&name)
    }

    /// The URL of a database of that name, which may not exist.
    pub fn url_of(&self, name: &str) -> String {
        format!("postgres://postgres@localhost/{name}?host={}", self.socket_dir())
    }

    /// Ends every process of the server at once, in mid-transaction.
    pub fn kill(&self) {
        self.control(&["-m", "immediate", "stop"]);
    }

    /// Starts the server again on the same data; waits until it answers.
    pub fn start_again(&self) {
        let options = format!("-k {} -h '' -c fsync=off -c max_connections=300", self.socket_dir());
        self.control(&[
            "-w",
            "-t",
            "60",
            "-o",
            &options,
            "-l",
            &format!("{}/server.log", self.socket_dir()),
            "start",
        ]);
    }

    /// Freezes every process of the server: connections stay open, and nothing answers.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    /// Continues the frozen server.
    pub fn thaw(&self) {
        self.signal("-CONT");
    }

    /// The socket that it listens on.
    pub fn socket(&self) -> PathBuf {
        self.dir.join(".s.PGSQL.5432")
    }

    fn control(&self, arguments: &[&str]) {
        let program = [self.bin.join("pg_ctl").to_str().expect("a UTF-8 path").to_owned()];
        let words: Vec<&String> = self.user.iter().chain(&program).collect();
        let done = Command::new(words[0])
            .args(&words[1..])
            .arg("-D")
            .arg(self.dir.join("data"))
            .args(arguments)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .expect("pg_ctl runs");
        assert!(done.success(), "pg_ctl {arguments:?}");
    }

    /// The postmaster first, so that it starts no new process.
    fn signal(&self, which: &str) {
        let pid_file =
            std::fs::read_to_string(self.dir.join("data/postmaster.pid")).expect("the server runs");
        let postmaster = pid_file.lines().next().expect("its first line is the pid").to_owned();
        let kill = |pids: Vec<&str>| {
            Command::new("kill").arg(which).args(pids).status().expect("kill runs")
        };
        kill(vec![&postmaster]);
        let children =
            std::fs::read_to_string(format!("/proc/{postmaster}/task/{postmaster}/children"));
        kill(children.expect("Linux lists children").split_whitespace().collect());
    }

    fn socket_dir(&self) -> &str {
        self.dir.to_str().expect("temporary folders have UTF-8 names")
    }
}

fn server() -> &'static Server {
    SERVER.get_or_init(|| start(&folder(), FAST, "")).as_ref().unwrap_or_else(|why| panic!("{why}"))
}

fn start(folder: &Path, options: &str, primary: &str) -> Result<Server, String> {
    let bin = find_programs().ok_or(
        "these tests need PostgreSQL, but its server programs (initdb, pg_ctl) are neither in \
         PATH nor in /usr/lib/postgresql/*/bin: install the package `postgresql`, or run \
         `make test`, which installs it",
    )?;
    let dir = tempfile::Builder::new()
        .prefix("tollgate-pg-")
        .tempdir_in(folder)
        .expect("a temporary folder")
        .keep();
    let user = user_to_run_as(&dir);
    let runs_as = user.clone();
    #[expect(
        clippy::zombie_processes,
        reason = "the guard outlives this process, to clean up after it"
    )]
    let mut guard = Command::new("sh")
        .args(["-c", GUARD, "guard"])
        .args([&bin, &dir])
        .args([options, primary])
        .args(user)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell");
    let alive = guard.stdin.take().expect("piped");
    let mut lines = BufReader::new(guard.stdout.take().expect("piped")).lines();
    let mut said = Vec::new();
    loop {
        match lines.next() {
            Some(Ok(line)) if line == "ready" => {
                return Ok(Server { bin, dir, user: runs_as, _alive: alive });
            }
            Some(Ok(line)) if line != "failed" => said.push(line),
            _ => return Err(format!("the private PostgreSQL did not start:\n{}", said.join("\n"))),
        }
    }
}

/// Where the servers keep their data: in memory, if that has space for the databases of all tests.
/// Each is some 400 files, and on a disk it takes a tenth of the tests' time to make them.
fn folder() -> PathBuf {
    const SPACE_KB: u64 = 8 << 20;
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let disk = Command::new("df").args(["--output=avail", "-k", "/dev/shm"]).output();
    let disk = disk.map(|df| String::from_utf8_lossy(&df.stdout).into_owned()).unwrap_or_default();
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let free = [
        disk.lines().nth(1).and_then(number),
        memory
            .lines()
            .find_map(|line| number(line.strip_prefix("MemAvailable:")?.strip_suffix("kB")?)),
    ];
    match free.into_iter().collect::<Option<Vec<u64>>>() {
        Some(free) if free.iter().all(|kb| *kb >= SPACE_KB) => PathBuf::from("/dev/shm"),
        _ => std::env::temp_dir(),
    }
}

/// The newest installed server's programs, or those in `PATH`.
fn find_programs() -> Option<PathBuf> {
    let version =
        |path: &Path| path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
    let installed = std::fs::read_dir("/usr/lib/postgresql").ok().into_iter().flatten().flatten();
    let mut installed: Vec<PathBuf> = installed.map(|entry| entry.path()).collect();
    installed.sort_by_key(|path| std::cmp::Reverse(version(path)));
    #[expect(clippy::disallowed_methods, reason = "looks for programs; no setting of the gateway")]
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders =
        installed.into_iter().map(|path| path.join("bin")).chain(std::env::split_paths(&path));
    folders
        .into_iter()
        .find(|bin| ["initdb", "pg_ctl", "createdb"].iter().all(|name| bin.join(name).is_file()))
}

/// As root: gives the folder to an ordinary user, and returns the words that run a program as that
/// user.
fn user_to_run_as(dir: &Path) -> Vec<String> {
    if std::fs::metadata(dir).expect("just made").uid() != 0 {
        return Vec::new();
    }
    let id = |user: &str, flag: &str| {
        let answer = Command::new("id").args([flag, user]).output().expect("id runs");
        String::from_utf8(answer.stdout).ok().and_then(|text| text.trim().parse::<u32>().ok())
    };
    let ids =
        ["postgres", "nobody"].iter().find_map(|user| Some((id(user, "-u")?, id(user, "-g")?)));
    let (uid, gid) = ids.expect("a user `postgres` or `nobody` to run PostgreSQL as");
    std::os::unix::fs::chown(dir, Some(uid), Some(gid)).expect("root may give a folder away");
    ["setpriv", &format!("--reuid={uid}"), &format!("--regid={gid}"), "--clear-groups"]
        .map(str::to_owned)
        .to_vec()
}
