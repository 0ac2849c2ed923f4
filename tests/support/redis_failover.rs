//! Redis servers that stand in for each other: a cluster, and a primary with its Sentinels.

use std::process::Command;

use redis::{ClientTlsConfig, FromRedisValue, TlsCertificates};

use super::ports::free_port;
use super::redis::{Redis, Transport, tls_file};
use super::wait;

const NO_FILES: [&str; 4] = ["--save", "", "--appendonly", "no"];

/// Three primaries with a replica each.
pub struct Cluster {
    pub nodes: Vec<Redis>,
}

fn node(transport: Transport) -> Redis {
    let bus = free_port().to_string();
    let own = [
        "--cluster-enabled",
        "yes",
        "--cluster-node-timeout",
        "1500",
        "--cluster-port",
        &bus,
        "--tls-cluster",
        if transport == Transport::Tls { "yes" } else { "no" },
    ];
    Redis::over(transport, &[&NO_FILES[..], &own[..]].concat())
}

impl Cluster {
    pub async fn start() -> Self {
        Self::over(Transport::Plain).await
    }

    pub async fn over(transport: Transport) -> Self {
        let nodes: Vec<Redis> = (0..6).map(|_| node(transport)).collect();
        let credentials = ["--tls", "--cacert", &tls_file("ca.pem")]
            .into_iter()
            .chain(["--cert", &tls_file("client.pem"), "--key", &tls_file("client.key")])
            .map(str::to_owned)
            .collect::<Vec<String>>();
        let made = Command::new("redis-cli")
            .args(credentials.iter().filter(|_| transport == Transport::Tls))
            .args(["--cluster", "create"])
            .args(nodes.iter().map(|node| format!("127.0.0.1:{}", node.port())))
            .args(["--cluster-replicas", "1", "--cluster-yes"])
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stdout));
        // A replica that has not copied its primary yet, or that the others do not know, is not
        // elected.
        wait(|| {
            let ready = nodes.iter().all(|node| {
                let nodes: String = tell(node, &["CLUSTER", "NODES"]).unwrap();
                let replication: String = tell(node, &["INFO", "replication"]).unwrap();
                nodes.matches("slave").count() == 3
                    && !nodes.contains("handshake")
                    && !replication.contains("master_link_status:down")
            });
            ready.then_some(())
        })
        .await;
        Self { nodes }
    }

    /// The address of the cluster, by its first three nodes.
    pub fn url(&self) -> String {
        let hosts = self.nodes.iter().take(3).map(|node| format!("127.0.0.1:{}", node.port()));
        let hosts: Vec<String> = hosts.collect();
        format!("{}+cluster://{}", self.nodes[0].transport.scheme(), hosts.join(","))
    }

    /// The node that has a name.
    pub async fn owner(&self, name: &str) -> usize {
        wait(|| self.nodes.iter().position(|node| tell::<bool>(node, &["EXISTS", name]).is_ok()))
            .await
    }

    /// Another primary than this one.
    pub fn other(&self, than: usize) -> usize {
        let is_other = |(index, node): (usize, &Redis)| {
            let role: Vec<redis::Value> = tell(node, &["ROLE"]).unwrap();
            index != than && role[0] == redis::Value::BulkString(b"master".to_vec())
        };
        self.nodes.iter().enumerate().position(is_other).expect("three primaries")
    }

    /// Moves the slot of a name to another node, as operators do: name by name, while it is in use.
    pub async fn move_slot(&self, name: &str, to: usize) {
        let from = &self.nodes[self.owner(name).await];
        let to = &self.nodes[to];
        let id = |node| tell::<String>(node, &["CLUSTER", "MYID"]).unwrap();
        let (from_id, to_id) = (id(from), id(to));
        let slot: u16 = tell(from, &["CLUSTER", "KEYSLOT", name]).unwrap();
        let (slot, port) = (slot.to_string(), to.port().to_string());
        tell::<()>(to, &["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from_id]).unwrap();
        tell::<()>(from, &["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to_id]).unwrap();
        loop {
            let some: Vec<String> = tell(from, &["CLUSTER", "GETKEYSINSLOT", &slot, "2"]).unwrap();
            if some.is_empty() {
                break;
            }
            for name in some {
                let migrate = ["MIGRATE", "127.0.0.1", &port, &name, "0", "5000"];
                tell::<String>(from, &migrate).unwrap();
            }
        }
        for node in [to, from] {
            tell::<()>(node, &["CLUSTER", "SETSLOT", &slot, "NODE", &to_id]).unwrap();
        }
    }
}

/// A primary, its replica and three Sentinels.
pub struct Watched {
    pub primary: Redis,
    replica: Redis,
    sentinels: [Redis; 3],
}

impl Watched {
    /// What the Sentinels require; the primary requires none.
    pub const PASSWORD: &str = "the-word-of-the-sentinels";

    pub async fn start() -> Self {
        Self::over(Transport::Plain).await
    }

    pub async fn over(transport: Transport) -> Self {
        let primary = Redis::over(transport, &NO_FILES);
        let of = format!("127.0.0.1 {}", primary.port());
        let replica = Redis::over(transport, &[&NO_FILES[..], &["--replicaof", &of]].concat());
        let configuration = format!(
            "sentinel monitor main {of} 2\nsentinel down-after-milliseconds main 1500\n\
             sentinel failover-timeout main 6000\n"
        );
        let sentinel = |()| Redis::sentinel(transport, &configuration, Self::PASSWORD);
        let sentinels = [(); 3].map(sentinel);
        let watched = Self { primary, replica, sentinels };
        // A failover needs a replica and two votes.
        wait(|| {
            let ready = watched.sentinels.iter().all(|sentinel| {
                let knows = |what: &str| {
                    tell::<Vec<redis::Value>>(sentinel, &["SENTINEL", what, "main"])
                        .map_or(0, |known| known.len())
                };
                knows("REPLICAS") == 1 && knows("SENTINELS") == 2
            });
            ready.then_some(())
        })
        .await;
        watched
    }

    /// The address of the primary, by its Sentinels.
    pub fn url(&self) -> String {
        let hosts =
            self.sentinels.each_ref().map(|sentinel| format!("127.0.0.1:{}", sentinel.port()));
        format!("{}+sentinel://{}/main", self.primary.transport.scheme(), hosts.join(","))
    }

    /// Waits until the replica is the primary.
    pub async fn failed_over(&self) {
        wait(|| {
            let role: Vec<redis::Value> = tell(&self.replica, &["ROLE"]).ok()?;
            (role[0] == redis::Value::BulkString(b"master".to_vec())).then_some(())
        })
        .await;
    }
}

/// Sends one command to one server.
fn tell<T: FromRedisValue>(server: &Redis, words: &[&str]) -> redis::RedisResult<T> {
    let mut connection = client(server)?.get_connection()?;
    let mut command = redis::cmd(words[0]);
    words[1..].iter().for_each(|word| {
        command.arg(*word);
    });
    command.query(&mut connection)
}

fn client(server: &Redis) -> redis::RedisResult<redis::Client> {
    if server.transport == Transport::Plain {
        return redis::Client::open(server.url());
    }
    let _ = rustls::crypto::ring::default_provider().install_default();
    let read = |name: &str| std::fs::read(tls_file(name)).unwrap();
    let client_tls =
        ClientTlsConfig { client_cert: read("client.pem"), client_key: read("client.key") };
    let certificates =
        TlsCertificates { client_tls: Some(client_tls), root_cert: Some(read("ca.pem")) };
    redis::Client::build_with_tls(server.url(), certificates)
}

async fn wait<T>(reached: impl Fn() -> Option<T>) -> T {
    wait::found(|| "the servers do not agree".to_owned(), async || reached()).await
}
