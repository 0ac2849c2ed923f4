//! The server of the shared counters, and its certificate files.

use std::io;
use std::path::Path;

use super::TlsFiles;
use crate::bounded::{MIN, MS, S, Span};
use crate::config::forms::{File, Hidden, Name, RedisUrl};
use crate::config::section::settings;
use crate::config::setting::at;
use crate::domain::secret::Secret;
use crate::files;
use crate::redis::Server;

settings! {
    /// The server of the shared counters.
    pub struct Redis {
        /// The address of the server, the cluster or the Sentinels, including the password.
        url: RedisUrl = at("redis.url").env("REDIS_URL");
        /// The password that the Sentinels ask for.
        sentinel_password: Option<Hidden<1>> = at("redis.sentinel_password");
        /// CAs in place of the public ones.
        ca: Option<File> = at("redis.tls.ca");
        /// The client certificate; see [`Redis::tls`].
        tls_cert: Option<File> = at("redis.tls.cert");
        /// The key of the client certificate.
        tls_key: Option<File> = at("redis.tls.key");
        /// Begins the name of every key and channel, so that several gateways can share a server.
        prefix: Name = at("redis.prefix").or("tollgate");
        /// Milliseconds that a request waits for Redis at most; after that the node counts locally.
        timeout_ms: Span<MS, { 10 * S }> = at("redis.timeout").or("50ms");
        /// Milliseconds after a node's last heartbeat until the reservations of its requests are
        /// released.
        lease_ms: Span<S, { 10 * MIN }> = at("redis.lease").or("15s");
    }
}

impl Redis {
    /// The client certificate.
    #[must_use]
    pub fn tls(&self) -> Option<TlsFiles> {
        TlsFiles::of(self.tls_cert.as_ref(), self.tls_key.as_ref())
    }

    /// The configured server, with its certificates.
    ///
    /// # Errors
    /// When a file of `redis.tls` cannot be read; the error names it.
    pub fn server(&self) -> io::Result<Server> {
        let read = |path: &Path| std::fs::read_to_string(path).map_err(files::naming(path));
        let authorities = self.ca.as_deref().map(read).transpose()?.map(String::into_bytes);
        let identity = match self.tls() {
            Some(files) => Some((read(&files.cert)?.into_bytes(), Secret::new(read(&files.key)?))),
            None => None,
        };
        Ok(Server {
            url: self.url.clone(),
            sentinel_password: self.sentinel_password.clone(),
            authorities,
            identity,
        })
    }
}
