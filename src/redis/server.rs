//! The Redis server, and how it is authenticated.

use redis::{Client, ClientTlsConfig, IntoConnectionInfo as _, TlsCertificates};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

use crate::domain::secret::Secret;

/// A Redis server as the configuration names it.
#[derive(Debug, Clone, Default)]
pub struct Server {
    /// `redis://…` or `rediss://…`; may hold user and password, and the number of a database.
    pub url: Secret,
    /// CAs (PEM) for its certificate, in place of the public ones.
    pub authorities: Option<Vec<u8>>,
    /// The client certificate chain and private key (PEM).
    pub identity: Option<(Vec<u8>, Secret)>,
}

impl Server {
    /// A server with public certificates, or without TLS; no client certificate.
    #[must_use]
    pub fn new(url: Secret) -> Self {
        Self { url, ..Self::default() }
    }

    /// Creates the client without connecting.
    ///
    /// # Errors
    /// When the address or a certificate is invalid; the error contains neither.
    pub fn client(&self) -> Result<Client, String> {
        // Another part may have installed it already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let address = self.url.expose().into_connection_info().map_err(|e| e.to_string())?;
        if self.url.expose().ends_with("#insecure") {
            return Err(
                "certificates are always checked; name the authority of this one in redis.tls.ca"
                    .to_owned(),
            );
        }
        if self.authorities.is_none() && self.identity.is_none() {
            return Client::open(address).map_err(|e| e.to_string());
        }
        if let Some(pem) = &self.authorities {
            let mut found = CertificateDer::pem_slice_iter(pem).peekable();
            found.peek().ok_or("redis.tls.ca holds no certificate (PEM)")?;
        }
        let client_tls = self.identity.as_ref().map(|(cert, key)| ClientTlsConfig {
            client_cert: cert.clone(),
            client_key: key.expose().as_bytes().to_vec(),
        });
        let certificates = TlsCertificates { client_tls, root_cert: self.authorities.clone() };
        Client::build_with_tls(address, certificates).map_err(|e| e.to_string())
    }

    /// The prefix of every name in it. Redis separates the names of its databases, but not
    /// published channels: so a number other than 0 is part of the names.
    ///
    /// # Errors
    /// As [`Self::client`].
    pub fn names(&self, prefix: &str) -> Result<String, String> {
        let address = self.url.expose().into_connection_info().map_err(|e| e.to_string())?;
        Ok(match address.redis_settings().db() {
            0 => prefix.to_owned(),
            number => format!("{prefix}.{number}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_refused_without_telling_it() {
        let server = |url: &str| Server::new(Secret::new(url));
        assert_eq!(server("redis://me:word@host/0").names("p").as_deref(), Ok("p"));
        assert_eq!(server("rediss://host/3").names("p").as_deref(), Ok("p.3"));
        for wrong in ["redis://:word@host/many", "rediss://:word@host#insecure", "rediss://:word@"]
        {
            let error = server(wrong).client().err();
            let error = error.unwrap_or_else(|| panic!("{wrong} was taken"));
            assert!(!error.contains("word"), "{error}");
        }
        let empty = Server { authorities: Some(b"no PEM".to_vec()), ..server("rediss://host") };
        assert!(empty.client().unwrap_err().contains("holds no certificate"));
    }
}
