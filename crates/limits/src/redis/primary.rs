//! Connects to the server that accepts writes: at each connection it is looked for again.
//!
//! In a cluster, all names are in one slot ([`Server::names`]). So they are on one server, which
//! the other nodes name (`MOVED`). It is asked for with a read, which works with any rights.
//! Requests are not sent on to other servers: after a failover or while the slot moves, the
//! connection is made again.

use std::io;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::sentinel::{SentinelClientBuilder, SentinelServerType};
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ErrorKind, RedisError, RedisResult,
    ServerErrorKind, TlsMode,
};

use super::address::{Address, Sentinels};
use super::server::{Server, install_tls};

/// A cluster's node may name one that was replaced a moment ago, and that another one.
const HOPS: usize = 4;

/// A connection to the server that accepts writes.
pub struct Primary {
    /// Makes further connections to the same server.
    pub client: Client,
    /// It has answered on this connection.
    pub connection: MultiplexedConnection,
}

impl Server {
    /// Connects to the server that accepts writes of `key`, and waits for one answer: the kernel of
    /// a server that hangs still accepts connections. `limit` bounds each attempt at one server.
    ///
    /// # Errors
    /// Why the last server that was tried cannot be used.
    pub async fn primary(&self, key: &str, limit: Duration) -> RedisResult<Primary> {
        match self.address().map_err(invalid)? {
            Address::One(server) => open(self.client(server)?, key, limit).await,
            Address::Cluster(nodes) => {
                let mut last = None;
                for node in nodes {
                    match self.follow(self.client(node)?, key, limit).await {
                        Ok(primary) => return Ok(primary),
                        Err(error) => last = Some(error),
                    }
                }
                Err(last.unwrap_or_else(|| invalid("it names no node".to_owned())))
            }
            Address::Sentinel(sentinels) => {
                let mut asked = self.sentinels(sentinels)?.build()?;
                open(within(limit, asked.async_get_client()).await?, key, limit).await
            }
        }
    }

    /// Connects to a cluster's node, or to the one that it names for the key.
    async fn follow(&self, first: Client, key: &str, limit: Duration) -> RedisResult<Primary> {
        let mut client = first;
        for _ in 0..HOPS {
            let error = match open(client.clone(), key, limit).await {
                Err(error) if error.kind() == ServerErrorKind::Moved.into() => error,
                done => return done,
            };
            let before = client.get_connection_info();
            let Some(address) =
                error.redirect_node().and_then(|(named, _)| beside(before.addr(), named))
            else {
                return Err(error);
            };
            client = self.client(before.clone().set_addr(address))?;
        }
        Err(io::Error::other("the nodes of the cluster name each other").into())
    }

    /// The Sentinels, to be asked for the primary.
    pub(super) fn sentinels(&self, sentinels: Sentinels) -> RedisResult<SentinelClientBuilder> {
        install_tls();
        let Sentinels { asked, service, login } = sentinels;
        let over_tls = matches!(asked.first(), Some(ConnectionAddr::TcpTls { .. }));
        let mut builder = SentinelClientBuilder::new(asked, service, SentinelServerType::Master)?
            .set_client_to_redis_db(login.db());
        if let Some(user) = login.username() {
            builder = builder.set_client_to_redis_username(user);
        }
        if let Some(password) = login.password() {
            builder = builder.set_client_to_redis_password(password);
        }
        if let Some(password) = &self.sentinel_password {
            builder = builder.set_client_to_sentinel_password(password.expose());
        }
        if over_tls {
            builder = builder.set_client_to_redis_tls_mode(TlsMode::Secure);
            if let Some(certificates) = self.certificates() {
                builder = builder
                    .set_client_to_redis_certificates(certificates.clone())
                    .set_client_to_sentinel_certificates(certificates);
            }
        }
        Ok(builder)
    }
}

/// The address that a node names, reached as the node itself. Without a host, it is the node's.
fn beside(node: &ConnectionAddr, named: &str) -> Option<ConnectionAddr> {
    let (named, port) = named.rsplit_once(':')?;
    let port = port.parse().ok()?;
    let mut address = node.clone();
    match &mut address {
        ConnectionAddr::Tcp(host, to) | ConnectionAddr::TcpTls { host, port: to, .. } => {
            if !named.is_empty() {
                named.clone_into(host);
            }
            *to = port;
            Some(address)
        }
        _ => None,
    }
}

/// Another connection to the server of a [`Primary`]; see [`Server::primary`].
pub async fn another(
    client: Client,
    key: &str,
    limit: Duration,
) -> RedisResult<MultiplexedConnection> {
    Ok(open(client, key, limit).await?.connection)
}

/// Connects, and reads the key.
async fn open(client: Client, key: &str, limit: Duration) -> RedisResult<Primary> {
    let config =
        AsyncConnectionConfig::new().set_connection_timeout(Some(limit)).set_response_timeout(None);
    let connecting = client.get_multiplexed_async_connection_with_config(&config);
    let mut connection = within(limit, connecting).await?;
    let answer = redis::cmd("EXISTS").arg(key).to_owned();
    within(limit, answer.query_async::<bool>(&mut connection)).await?;
    Ok(Primary { client, connection })
}

pub(super) async fn within<T>(
    limit: Duration,
    work: impl Future<Output = RedisResult<T>>,
) -> RedisResult<T> {
    tokio::time::timeout(limit, work).await.unwrap_or_else(|_| {
        let why = format!("no answer within {limit:?}");
        Err(io::Error::new(io::ErrorKind::TimedOut, why).into())
    })
}

fn invalid(why: String) -> RedisError {
    (ErrorKind::InvalidClientConfig, "the address is invalid", why).into()
}

/// Whether the error says that another server has the names now, or is about to have them. The last
/// text is that of a script that met a name which had already moved: it can break off half-way.
pub fn names_moved(error: &RedisError) -> bool {
    let moved = [ServerErrorKind::Moved, ServerErrorKind::Ask, ServerErrorKind::TryAgain];
    moved.into_iter().any(|kind| error.kind() == kind.into())
        || error.to_string().contains("access a non local key")
}
