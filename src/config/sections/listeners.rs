//! The listeners: clients, administration, metrics. What a reload can change of them is in `live`.

use std::path::PathBuf;

use crate::bounded::Whole;
use crate::config::forms::{Address, File, OrAuto, Origin, Place};
use crate::config::section::settings;
use crate::config::setting::at;

settings! {
    /// The listener for model clients.
    pub struct Proxy {
        /// The address to listen on.
        addr: Address = at("proxy.addr").or("0.0.0.0:8080");
        /// The certificate chain (PEM), its own certificate first; see [`Proxy::tls`].
        tls_cert: Option<File> = at("proxy.tls.cert");
        /// The private key (PEM) of the first certificate.
        tls_key: Option<File> = at("proxy.tls.key");
        /// HTTP/2 with prior knowledge on a listener without TLS.
        h2c: bool = at("proxy.h2c").or("false");
        /// Worker threads; 0 = one per core.
        threads: Whole<usize, 0, 1024> = at("proxy.threads").or("0");
        /// Also serve the administration API and the web UI here.
        expose_admin: bool = at("proxy.expose_admin").or("false");
        /// Idle upstream connections kept for reuse.
        upstream_pool_size: Whole<usize, 1, 65_536> = at("proxy.upstream_pool_size").or("512");
        /// Unix socket over which a new process takes over the listeners; see
        /// [`Config::upgrade_socket`](crate::config::Config::upgrade_socket).
        upgrade_socket: Option<Place> = at("proxy.upgrade_socket");
    }

    /// The listener of the administration API and the web UI.
    pub struct Admin {
        /// The address to listen on.
        addr: Address = at("admin.addr").or("127.0.0.1:8081");
        /// As of the clients' listener; see [`Admin::tls`].
        tls_cert: Option<File> = at("admin.tls.cert");
        /// As of the clients' listener.
        tls_key: Option<File> = at("admin.tls.key");
        /// The address that users open, `https://gateway.example`; without a trailing slash.
        app_url: Option<Origin> = at("admin.app_url").env("APP_URL");
        /// Whether login cookies carry `Secure`; see
        /// [`Config::secure_cookies`](crate::config::Config::secure_cookies).
        secure_cookies: OrAuto<bool> =
            at("admin.secure_cookies").or("auto").env("ENABLE_SECURE_COOKIES");
    }

    /// The listener of `/metrics`, `/livez` and `/readyz`.
    pub struct Metrics {
        /// The address to listen on, without TLS.
        addr: Address = at("metrics.addr").or("127.0.0.1:9464");
        /// Series for each user: the first 200 that send a request, the rest as `other`.
        per_user: bool = at("metrics.per_user").or("false");
        /// Series for each key, bounded in the same way.
        per_key: bool = at("metrics.per_key").or("false");
    }
}

/// A certificate chain and its private key, both PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate chain, the process's own certificate first.
    pub cert: PathBuf,
    /// The private key of that first certificate.
    pub key: PathBuf,
}

impl TlsFiles {
    /// Both files or neither; `rules` reports a single one.
    pub(super) fn of(cert: Option<&PathBuf>, key: Option<&PathBuf>) -> Option<Self> {
        Some(Self { cert: cert?.clone(), key: key?.clone() })
    }
}

impl Proxy {
    /// `None` = plain HTTP.
    #[must_use]
    pub fn tls(&self) -> Option<TlsFiles> {
        TlsFiles::of(self.tls_cert.as_ref(), self.tls_key.as_ref())
    }
}

impl Admin {
    /// `None` = plain HTTP.
    #[must_use]
    pub fn tls(&self) -> Option<TlsFiles> {
        TlsFiles::of(self.tls_cert.as_ref(), self.tls_key.as_ref())
    }
}
