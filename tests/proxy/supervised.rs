//! The gateway under a supervisor that implements systemd's protocol: the messages, and their time.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use crate::support::gateway::Gateway;

/// systemd's end of the socket.
struct Supervisor {
    socket: UnixDatagram,
    _dir: tempfile::TempDir,
    path: String,
}

impl Supervisor {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify").display().to_string();
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Self { socket, _dir: dir, path }
    }

    /// The next message that is not a heartbeat.
    fn receives(&self) -> String {
        loop {
            let message = self.next();
            if message != "WATCHDOG=1\n" {
                return message;
            }
        }
    }

    fn next(&self) -> String {
        let mut bytes = [0; 1024];
        let length = self.socket.recv(&mut bytes).expect("a message");
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    }

    /// Nothing but heartbeats may arrive.
    fn receives_nothing_more(&self) {
        self.socket.set_nonblocking(true).unwrap();
        let mut bytes = [0; 1024];
        while let Ok(length) = self.socket.recv(&mut bytes) {
            assert_eq!(
                &bytes[..length],
                b"WATCHDOG=1\n",
                "{}",
                String::from_utf8_lossy(&bytes[..length])
            );
        }
        self.socket.set_nonblocking(false).unwrap();
    }
}

/// The process that took over; it is killed when dropped.
struct Replacement(u32);

impl Replacement {
    /// The process that a message names as the unit's main one, from now on.
    fn named(message: &str) -> Self {
        let pid =
            message.strip_prefix("MAINPID=").and_then(|rest| rest.strip_suffix("\nREADY=1\n"));
        Self(pid.unwrap_or_else(|| panic!("{message}")).parse().unwrap())
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        let _ended =
            std::process::Command::new("kill").args(["-KILL", &self.0.to_string()]).status();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn systemd_is_notified_of_start_reload_heartbeat_and_stop() {
    let systemd = Supervisor::new();
    let mut gateway =
        Gateway::with(&[("NOTIFY_SOCKET", &systemd.path), ("WATCHDOG_USEC", "200000")]).await;
    assert_eq!(systemd.receives(), format!("MAINPID={}\nREADY=1\n", gateway.pid()));
    for _ in 0..3 {
        assert_eq!(systemd.next(), "WATCHDOG=1\n");
    }
    gateway.signal("HUP");
    let reloading = systemd.receives();
    assert!(reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{reloading}");
    assert_eq!(systemd.receives(), format!("MAINPID={}\nREADY=1\n", gateway.pid()));
    gateway.signal("TERM");
    // The grace of 20 s that tests set, and the margin for the journal.
    assert_eq!(systemd.receives(), "STOPPING=1\nEXTEND_TIMEOUT_USEC=35000000\n");
    gateway.ended().await;
    systemd.receives_nothing_more();
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_watchdog_no_heartbeat_is_sent() {
    let systemd = Supervisor::new();
    let mut gateway = Gateway::with(&[("NOTIFY_SOCKET", &systemd.path)]).await;
    assert!(systemd.next().ends_with("READY=1\n"));
    gateway.signal("TERM");
    assert!(systemd.next().starts_with("STOPPING=1\n"));
    gateway.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sigusr2_replaces_the_process_and_systemd_follows() {
    let systemd = Supervisor::new();
    let mut gateway = Gateway::with(&[("NOTIFY_SOCKET", &systemd.path)]).await;
    let old = gateway.pid();
    assert_eq!(systemd.receives(), format!("MAINPID={old}\nREADY=1\n"));
    gateway.signal("USR2");
    let new = Replacement::named(&systemd.receives());
    assert_ne!(new.0, old);
    // The old one ends; its answers come from the new one then.
    gateway.ended().await;
    let (ready, parts) = gateway.readiness().await;
    assert!(ready, "{parts}");
    let asked = gateway.client.get(format!("{}/v1/models", gateway.proxy)).send().await.unwrap();
    assert_eq!(asked.status(), 401);
    // For systemd the unit continues: it received no stop.
    systemd.receives_nothing_more();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_process_that_cannot_start_leaves_the_old_one_serving() {
    let systemd = Supervisor::new();
    let mut gateway = Gateway::prepare(&[("NOTIFY_SOCKET", &systemd.path)]);
    let config = gateway.dir.path().join("conf/tollgate.yaml");
    std::fs::create_dir(config.parent().unwrap()).unwrap();
    std::fs::write(&config, "proxy: { h2c: true }\n").unwrap();
    gateway.spawn();
    gateway.ready().await;
    assert!(systemd.receives().ends_with("READY=1\n"));
    std::fs::write(&config, "proxy: { h2c: many }\n").unwrap();
    gateway.signal("USR2");
    gateway.log_shows("no new process took over: this one goes on serving").await;
    assert!(gateway.log().contains("`many`"), "{}", gateway.log());
    assert!(gateway.readiness().await.0);
    // A second attempt succeeds.
    std::fs::write(&config, "proxy: { h2c: true }\n").unwrap();
    gateway.signal("USR2");
    let _new = Replacement::named(&systemd.receives());
    gateway.ended().await;
    assert!(gateway.readiness().await.0);
}

/// Pingora reads the pair only when it has the listeners: too late for the old process.
#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_without_its_key_leaves_the_old_process_serving() {
    let mut gateway = Gateway::prepare(&[]);
    let from = |name: &str| format!("{}/tests/{name}", env!("CARGO_MANIFEST_DIR"));
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| gateway.dir.path().join(name));
    std::fs::copy(from("admin/tls/cert.pem"), &cert).unwrap();
    std::fs::copy(from("admin/tls/key.pem"), &key).unwrap();
    gateway.set("TOLLGATE_PROXY_TLS_CERT", cert.to_str().unwrap());
    gateway.set("TOLLGATE_PROXY_TLS_KEY", key.to_str().unwrap());
    gateway.spawn();
    gateway.ready().await;
    std::fs::copy(from("doctor/tls/key.pem"), &key).unwrap();
    gateway.signal("USR2");
    gateway.log_shows("no new process took over: this one goes on serving").await;
    assert!(gateway.log().contains("is not the certificate's key"), "{}", gateway.log());
    assert!(gateway.readiness().await.0);
    let client = reqwest::Client::builder().danger_accept_invalid_certs(true).build().unwrap();
    let url = format!("https://{}/v1/models", gateway.proxy_addr());
    assert_eq!(client.get(url).send().await.unwrap().status(), 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_new_process_nothing_is_handed_over() {
    let mut gateway = Gateway::with(&[]).await;
    // Left by a process that ended.
    let socket = gateway.dir.path().join("data/upgrade.sock");
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    gateway.signal("USR1");
    gateway.signal("QUIT");
    gateway.log_shows("nothing was handed over: this process goes on serving").await;
    assert!(gateway.log().contains("SIGTERM stops"), "{}", gateway.log());
    assert!(gateway.readiness().await.0);
    // It still hands over to a process that waits.
    let mut old = gateway.upgrade().await;
    gateway.ready().await;
    assert!(old.wait().unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_process_that_is_given_nothing_has_said_what_it_waits_for() {
    let mut gateway = Gateway::with(&[]).await;
    let mut old = gateway.begin_upgrade().await;
    assert_eq!(gateway.exit_code().await, Some(1));
    assert!(gateway.log().contains("SIGQUIT asks it to"), "{}", gateway.log());
    old.kill().unwrap();
    old.wait().unwrap();
}
