//! Reads the certificate files of the configured Redis.

use std::io;
use std::path::Path;

use super::types::Redis;
use crate::domain::secret::Secret;
use crate::files;
use crate::redis::Server;

impl Redis {
    /// The configured server, with its certificates.
    ///
    /// # Errors
    /// When a file of `redis.tls` cannot be read; the error names it.
    pub fn server(&self) -> io::Result<Server> {
        let read = |path: &Path| std::fs::read_to_string(path).map_err(files::naming(path));
        let authorities = self.ca.as_deref().map(read).transpose()?.map(String::into_bytes);
        let identity = match &self.tls {
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
