//! The Redis server, and how it is authenticated.

use redis::{Client, ClientTlsConfig, ConnectionInfo, RedisResult, TlsCertificates};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

use super::address::Address;
use crate::domain::secret::Secret;

/// A Redis server as the configuration names it.
#[derive(Debug, Clone, Default)]
pub struct Server {
    /// `redis://…`, `redis+cluster://…` or `redis+sentinel://…`, with TLS `rediss…`; may hold user
    /// and password, and the number of a database.
    pub url: Secret,
    /// The Sentinels' password, if they ask for one.
    pub sentinel_password: Option<Secret>,
    /// CAs (PEM) for its certificate, in place of the public ones.
    pub authorities: Option<Vec<u8>>,
    /// The client certificate chain and private key (PEM).
    pub identity: Option<(Vec<u8>, Secret)>,
}

impl Server {
    /// A server with public certificates, or without TLS; no client certificate.
    pub fn new(url: Secret) -> Self {
        Self { url, ..Self::default() }
    }

    /// Whether it is a cluster.
    pub fn is_cluster(&self) -> bool {
        matches!(self.address(), Ok(Address::Cluster(_)))
    }

    /// Checks the address and the certificates without connecting.
    ///
    /// # Errors
    /// When the address or a certificate is invalid; the error contains neither.
    pub fn check(&self) -> Result<(), String> {
        if self.url.expose().ends_with("#insecure") {
            return Err(
                "certificates are always checked; name the authority of this one in redis.tls.ca"
                    .to_owned(),
            );
        }
        if let Some(pem) = &self.authorities {
            let mut found = CertificateDer::pem_slice_iter(pem).peekable();
            found.peek().ok_or("redis.tls.ca holds no certificate (PEM)")?;
        }
        let clients = match self.address()? {
            Address::One(server) => vec![self.client(server)],
            Address::Cluster(nodes) => nodes.into_iter().map(|node| self.client(node)).collect(),
            Address::Sentinel(sentinels) => {
                return self.sentinels(sentinels).map(|_| ()).map_err(|e| e.to_string());
            }
        };
        clients.into_iter().try_for_each(|client| client.map(|_| ()).map_err(|e| e.to_string()))
    }

    /// The prefix of every name in it. Redis separates the names of its databases, but not
    /// published channels: so a number other than 0 is part of the names. In a cluster the prefix
    /// is a hash tag: all names are in one slot, so on one primary.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn names(&self, prefix: &str) -> Result<String, String> {
        Ok(match self.address()? {
            Address::Cluster(_) => format!("{{{prefix}}}"),
            other => match other.database() {
                0 => prefix.to_owned(),
                number => format!("{prefix}.{number}"),
            },
        })
    }

    pub(super) fn address(&self) -> Result<Address, String> {
        Address::parse(self.url.expose())
    }

    /// Creates the client of one server without connecting.
    pub(super) fn client(&self, server: ConnectionInfo) -> RedisResult<Client> {
        install_tls();
        match self.certificates() {
            Some(certificates) => Client::build_with_tls(server, certificates),
            None => Client::open(server),
        }
    }

    /// The configured certificates.
    pub(super) fn certificates(&self) -> Option<TlsCertificates> {
        if self.authorities.is_none() && self.identity.is_none() {
            return None;
        }
        let client_tls = self.identity.as_ref().map(|(cert, key)| ClientTlsConfig {
            client_cert: cert.clone(),
            client_key: key.expose().as_bytes().to_vec(),
        });
        Some(TlsCertificates { client_tls, root_cert: self.authorities.clone() })
    }
}

/// Another part may have installed it already.
pub(super) fn install_tls() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_refused_without_telling_it() {
        let server = |url: &str| Server::new(Secret::new(url));
        for (url, names) in [
            ("redis://me:s3cret@host/0", "p"),
            ("rediss://host/3", "p.3"),
            ("redis+cluster://:s3cret@host:1,host:2", "{p}"),
            ("redis+sentinel://:s3cret@host,[::1]:7/main", "p"),
            ("rediss+sentinel://me:s3cret@host/main/3", "p.3"),
        ] {
            assert_eq!(server(url).names("p").as_deref(), Ok(names), "{url}");
            assert_eq!(server(url).check(), Ok(()), "{url}");
        }
        for wrong in [
            "redis://:s3cret@host/many",
            "rediss://:s3cret@host#insecure",
            "rediss://:s3cret@host#one",
            "rediss://:s3cret@",
            "redis://:s3cret@host,other",
            "redis+cluster://:s3cret@host,other/1",
            "redis+cluster://:s3cret@host,",
            "redis+sentinel://:s3cret@host,other",
            "redis+sentinel://:s3cret@host/main/many",
            "redis+ring://:s3cret@host",
        ] {
            let error = server(wrong).check().err();
            let error = error.unwrap_or_else(|| panic!("{wrong} was taken"));
            assert!(!error.contains("s3cret"), "{error}");
        }
        let empty = Server { authorities: Some(b"no PEM".to_vec()), ..server("rediss://host") };
        assert!(empty.check().unwrap_err().contains("holds no certificate"));
    }
}
