//! Addresses of Redis: one server, a cluster's nodes, or the Sentinels that know the primary.

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _, RedisConnectionInfo};

/// The port of a Sentinel that is named without one.
const SENTINEL_PORT: u16 = 26_379;

/// How the server that accepts writes is found.
#[derive(Debug, Clone)]
pub(super) enum Address {
    /// It is this one.
    One(ConnectionInfo),
    /// A node of the cluster names it. The nodes to ask, in turn.
    Cluster(Vec<ConnectionInfo>),
    /// A Sentinel names it.
    Sentinel(Sentinels),
}

/// The Sentinels of a primary.
#[derive(Debug, Clone)]
pub(super) struct Sentinels {
    /// The Sentinels to ask.
    pub(super) asked: Vec<ConnectionAddr>,
    /// The name by which they know the primary.
    pub(super) service: String,
    /// User, password and database at the primary.
    pub(super) login: RedisConnectionInfo,
}

impl Address {
    /// Reads `redis://`, `redis+cluster://` and `redis+sentinel://`, each also as `rediss…` (TLS).
    ///
    /// # Errors
    /// What is wrong; the text does not contain the address.
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        let (scheme, rest) = url.split_once("://").ok_or("it has no scheme")?;
        if rest.contains('#') {
            return Err("it has a `#`: in a password, write %23".to_owned());
        }
        let (scheme, kind) = scheme.split_once('+').unwrap_or((scheme, ""));
        let (authority, tail) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (login, hosts) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
        let server = |host: &str, tail: &str| read(&format!("{scheme}://{login}{host}{tail}"));
        match kind {
            "" if hosts.contains(',') => {
                Err("several hosts need redis+cluster:// or redis+sentinel://".to_owned())
            }
            "" => server(hosts, tail).map(Self::One),
            "cluster" => {
                let nodes: Vec<_> =
                    hosts.split(',').map(|host| server(host, tail)).collect::<Result<_, _>>()?;
                if nodes.iter().any(|node| node.redis_settings().db() != 0) {
                    return Err("a cluster has only the database 0".to_owned());
                }
                Ok(Self::Cluster(nodes))
            }
            "sentinel" => {
                let (service, database) = tail
                    .strip_prefix('/')
                    .map_or(("", "0"), |tail| tail.split_once('/').unwrap_or((tail, "0")));
                if service.is_empty() {
                    return Err("the primary's name is missing after the Sentinels: \
                        redis+sentinel://host,host/name"
                        .to_owned());
                }
                let asked = hosts.split(',').map(|host| {
                    let port =
                        if has_port(host) { String::new() } else { format!(":{SENTINEL_PORT}") };
                    read(&format!("{scheme}://{host}{port}")).map(|info| info.addr().clone())
                });
                Ok(Self::Sentinel(Sentinels {
                    asked: asked.collect::<Result<_, _>>()?,
                    service: service.to_owned(),
                    login: server("primary", &format!("/{database}"))?.redis_settings().clone(),
                }))
            }
            _ => Err("the scheme is none of redis, redis+cluster and redis+sentinel".to_owned()),
        }
    }

    /// The number of the database.
    pub(super) fn database(&self) -> i64 {
        match self {
            Self::One(server) => server.redis_settings().db(),
            Self::Cluster(_) => 0,
            Self::Sentinel(sentinels) => sentinels.login.db(),
        }
    }
}

/// Whether the host names a port; the colons of an IPv6 address are in brackets.
fn has_port(host: &str) -> bool {
    host.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()))
}

fn read(url: &str) -> Result<ConnectionInfo, String> {
    url.into_connection_info().map_err(|error| error.to_string())
}
