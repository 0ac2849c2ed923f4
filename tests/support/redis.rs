//! A private Redis server, on its own port and in its own folder; it ends with the process that
//! started it.
//!
//! A shell guards it: when its standard input ends, for any reason, it kills the server and removes
//! the folder. Only processes that this file started are ended.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use super::ports::free_port;

/// `$1` the folder, the rest the server's arguments. The guard ignores interrupts, which are for
/// the tests.
const GUARD: &str = r#"
trap '' INT TERM HUP
dir=$1; shift
redis-server "$@" --dir "$dir" >"$dir/log" 2>&1 &
echo $!
cat >/dev/null
kill -9 $! 2>/dev/null
wait $! 2>/dev/null
"#;

/// How a server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Plain,
    /// TLS alone, with certificates of [`tls_file`]; clients need one.
    Tls,
}

/// The path of a certificate or key of `tests/nodes/tls`, by its name.
pub fn tls_file(name: &str) -> String {
    format!("{}/tests/nodes/tls/{name}", env!("CARGO_MANIFEST_DIR"))
}

impl Transport {
    /// A server's arguments for its port and its certificates.
    fn arguments(self, port: &str) -> Vec<String> {
        if self == Self::Plain {
            return vec!["--port".to_owned(), port.to_owned()];
        }
        let mut arguments: Vec<String> =
            ["--port", "0", "--tls-port", port].map(str::to_owned).to_vec();
        for (setting, file) in [
            ("--tls-ca-cert-file", "ca.pem"),
            ("--tls-cert-file", "server.pem"),
            ("--tls-key-file", "server.key"),
            // Towards other servers.
            ("--tls-client-cert-file", "client.pem"),
            ("--tls-client-key-file", "client.key"),
        ] {
            arguments.extend([setting.to_owned(), tls_file(file)]);
        }
        arguments.extend(["--tls-replication", "yes"].map(str::to_owned));
        arguments
    }

    pub fn scheme(self) -> &'static str {
        if self == Self::Plain { "redis" } else { "rediss" }
    }
}

/// A running server, or a stopped one that can be started again.
pub struct Redis {
    url: String,
    pub transport: Transport,
    port: u16,
    dir: tempfile::TempDir,
    arguments: Vec<String>,
    env: Vec<(&'static str, String)>,
    running: Option<Running>,
}

struct Running {
    guard: Child,
    /// Closing it ends the server.
    alive: Option<ChildStdin>,
    pid: u32,
}

impl Redis {
    /// A server that loses everything when it ends.
    pub fn start() -> Self {
        Self::with(&["--save", "", "--appendonly", "no"])
    }

    /// As [`Self::start`], with further variables.
    pub fn with_env(env: &[(&'static str, String)]) -> Self {
        let mut server = Self::prepare(Transport::Plain, &["--save", "", "--appendonly", "no"]);
        server.env = env.to_vec();
        server.start_again();
        server
    }

    /// A server that keeps its data when it is killed: it writes the data, but does not wait for
    /// the disk.
    pub fn durable() -> Self {
        Self::with(&["--save", "", "--appendonly", "yes", "--appendfsync", "no"])
    }

    /// A server that accepts only TLS with a client certificate, and only the user of
    /// [`Self::SECURE_USER`], who may only use tollgate's names in database 3.
    pub fn secure() -> Self {
        let users = "user default off\n\
            user gate on >pa:ss/word ~tollgate.3:* &tollgate.3:* +@all -@admin -@dangerous\n";
        let others = ["--save", "", "--appendonly", "no", "--aclfile", "users.acl"];
        let mut server = Self::prepare(Transport::Tls, &others);
        std::fs::write(server.dir.path().join("users.acl"), users).unwrap();
        server.url = format!("rediss://{}@127.0.0.1:{}/3", Self::SECURE_USER, server.port);
        server.start_again();
        server
    }

    /// Name and password in an address.
    pub const SECURE_USER: &str = "gate:pa%3Ass%2Fword";

    /// None: the address is of no server.
    pub fn none() -> Self {
        Self::prepare(Transport::Plain, &[])
    }

    /// A server with these arguments beside its address and folder.
    pub fn with(arguments: &[&str]) -> Self {
        Self::over(Transport::Plain, arguments)
    }

    /// As [`Self::with`], over TLS or not.
    pub fn over(transport: Transport, arguments: &[&str]) -> Self {
        let mut server = Self::prepare(transport, arguments);
        server.start_again();
        server
    }

    /// A Sentinel with this configuration, which requires this password.
    pub fn sentinel(transport: Transport, configuration: &str, password: &str) -> Self {
        let mut server = Self::prepare(transport, &[]);
        let file = server.dir.path().join("sentinel.conf");
        std::fs::write(&file, format!("{configuration}requirepass {password}\n")).unwrap();
        server.url = format!("{}://:{password}@127.0.0.1:{}", transport.scheme(), server.port);
        let first = [file.display().to_string(), "--sentinel".to_owned()];
        server.arguments.splice(..0, first);
        server.start_again();
        server
    }

    /// Everything but the process, with these arguments beside its address and certificates.
    fn prepare(transport: Transport, further: &[&str]) -> Self {
        let port = free_port();
        let mut arguments = transport.arguments(&port.to_string());
        let own = ["--bind", "127.0.0.1", "--loglevel", "warning"];
        arguments.extend(own.iter().chain(further).map(ToString::to_string));
        let dir = tempfile::Builder::new().prefix("tollgate-redis-").tempdir().unwrap();
        let url = format!("{}://127.0.0.1:{port}", transport.scheme());
        Self { url, transport, port, dir, arguments, env: Vec::new(), running: None }
    }

    pub fn url(&self) -> String {
        self.url.clone()
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Starts it on the same port and folder, and waits until it listens.
    pub fn start_again(&mut self) {
        let mut guard = Command::new("sh")
            .args(["-c", GUARD, "guard"])
            .arg(self.dir.path())
            .args(&self.arguments)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        let alive = guard.stdin.take();
        let mut line = String::new();
        BufReader::new(guard.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let pid = line.trim().parse().expect("the guard prints the server's process id");
        self.running = Some(Running { guard, alive, pid });
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let log = std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
            assert!(
                began.elapsed() < Duration::from_secs(20),
                "redis-server did not start; `make test` installs its package \
                 `redis-server`:\n{log}"
            );
            std::thread::yield_now();
        }
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        if let Some(mut running) = self.running.take() {
            drop(running.alive.take());
            let _ = running.guard.wait();
        }
    }

    /// Removes the data of a killed server: the next start finds nothing.
    pub fn forget(&self) {
        assert!(self.running.is_none(), "it was killed");
        for entry in std::fs::read_dir(self.dir.path()).unwrap().flatten() {
            if entry.path().is_dir() {
                std::fs::remove_dir_all(entry.path()).unwrap();
            } else if entry.file_name() != "log" {
                std::fs::remove_file(entry.path()).unwrap();
            }
        }
    }

    /// It accepts connections but does not answer, until [`Self::go_on`].
    pub fn hang(&self) {
        self.signal("STOP");
    }

    pub fn go_on(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let pid = self.running.as_ref().expect("it runs").pid;
        let sent =
            Command::new("kill").args([format!("-{name}"), pid.to_string()]).status().unwrap();
        assert!(sent.success());
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.kill();
    }
}
