//! The Redis server, and how it is authenticated.

use redis::{Client, ClientTlsConfig, ConnectionInfo, RedisResult, TlsCertificates};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

use super::address::Address;
use super::slots::ClusterPart;
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
    /// Of a cluster: which part of the counters it stands for.
    pub part: ClusterPart,
}

impl Server {
    /// A server with public certificates, or without TLS; no client certificate.
    #[must_use]
    pub fn new(url: Secret) -> Self {
        Self { url, ..Self::default() }
    }

    /// A cluster as so many servers, each with a part of the counters; any other server as itself.
    #[must_use]
    pub fn divided(self, parts: usize) -> Vec<Self> {
        if !self.is_cluster() {
            return vec![self];
        }
        ClusterPart::all(parts).map(|part| Self { part, ..self.clone() }).collect()
    }

    /// Whether it is a cluster, or a part of one.
    #[must_use]
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
    /// is a hash tag, of each part another one: all names of a part are in one slot.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn names(&self, prefix: &str) -> Result<String, String> {
        Ok(match self.address()? {
            Address::Cluster(_) => format!("{{{}}}", self.part.tag(prefix)),
            other => match other.database() {
                0 => prefix.to_owned(),
                number => format!("{prefix}.{number}"),
            },
        })
    }

    /// What it is, without user and password: its name, if the address ends with one (`#one`); else
    /// hosts, ports and the number of the database, in lower case. Of several parts of a cluster
    /// also which one.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn place(&self) -> Result<String, String> {
        let server = self.place_of(&self.address()?);
        Ok(match self.part.label() {
            Some(part) => format!("{server} {part}"),
            None => server,
        })
    }

    fn place_of(&self, address: &Address) -> String {
        if let Some((_, name)) =
            self.url.expose().split_once('#').filter(|(_, name)| !name.is_empty())
        {
            return format!("#{name}");
        }
        let (kind, hosts) = match address {
            Address::One(server) => ("", vec![server.addr().to_string()]),
            Address::Cluster(nodes) => {
                ("cluster:", nodes.iter().map(|node| node.addr().to_string()).collect())
            }
            Address::Sentinel(sentinels) => {
                let mut hosts: Vec<_> = sentinels.asked.iter().map(ToString::to_string).collect();
                hosts.push(sentinels.service.clone());
                ("sentinel:", hosts)
            }
        };
        format!("{kind}{}/{}", hosts.join(","), address.database()).to_lowercase()
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
            ("redis://me:word@host/0", "p"),
            ("rediss://host/3", "p.3"),
            ("rediss://host/3#one", "p.3"),
            ("redis+cluster://:word@host:1,host:2", "{p}"),
            ("redis+sentinel://:word@host,[::1]:7/main", "p"),
            ("rediss+sentinel://me:word@host/main/3", "p.3"),
        ] {
            assert_eq!(server(url).names("p").as_deref(), Ok(names), "{url}");
            assert_eq!(server(url).check(), Ok(()), "{url}");
        }
        for wrong in [
            "redis://:word@host/many",
            "rediss://:word@host#insecure",
            "rediss://:word@",
            "redis://:word@host,other",
            "redis+cluster://:word@host,other/1",
            "redis+cluster://:word@host,",
            "redis+sentinel://:word@host,other",
            "redis+sentinel://:word@host/main/many",
            "redis+ring://:word@host",
        ] {
            let error = server(wrong).check().err();
            let error = error.unwrap_or_else(|| panic!("{wrong} was taken"));
            assert!(!error.contains("word"), "{error}");
        }
        let parts = server("redis+cluster://host:1,host:2").divided(3);
        let names: Vec<_> = parts.iter().map(|part| part.names("p").unwrap()).collect();
        assert_eq!((names[0].as_str(), names.len()), ("{p}", 3));
        assert!(names[1..].iter().all(|name| name.starts_with("{p.") && name.ends_with('}')));
        for single in ["redis://host", "redis+sentinel://host/main", "no address"] {
            assert_eq!(server(single).divided(3).len(), 1);
        }
        let empty = Server { authorities: Some(b"no PEM".to_vec()), ..server("rediss://host") };
        assert!(empty.check().unwrap_err().contains("holds no certificate"));
    }
}
