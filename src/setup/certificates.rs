//! Certificates and private keys of the configuration, as the listeners will use them.
//!
//! A start reads them before anything else. Pingora itself reads the proxy's pair when the listener
//! opens, and ends the process if it cannot be used: in an upgrade the old process has handed its
//! listeners over by then.

use std::path::Path;

use anyhow::Context as _;
use rustls::Error;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::config::{Config, TlsFiles};

/// The files of the listeners, by setting.
pub(crate) fn of_listeners(config: &Config) -> [(&'static str, Option<TlsFiles>); 2] {
    [("proxy.tls", config.proxy.tls()), ("admin.tls", config.admin.tls())]
}

/// Reads the certificates of the listeners and their keys.
///
/// # Errors
/// The first pair that cannot be used. The message names its setting and the file.
pub(crate) fn usable(config: &Config) -> anyhow::Result<()> {
    for (name, files) in of_listeners(config) {
        if let Some(files) = files {
            pair(&files).context(name)?;
        }
    }
    Ok(())
}

/// The chain of a certificate file, if the key file holds its key.
///
/// # Errors
/// A file cannot be read, or the key belongs to another certificate. The message names the file.
pub(crate) fn pair(files: &TlsFiles) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    with_key(chain(&files.cert)?, &files.key)
}

/// The certificates of a PEM file: at least one.
///
/// # Errors
/// The file cannot be read, or holds none. The message names it.
pub(crate) fn chain(file: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let about = || file.display().to_string();
    let pem = std::fs::read(file).with_context(about)?;
    let chain: Vec<_> =
        CertificateDer::pem_slice_iter(&pem).collect::<Result<_, _>>().with_context(about)?;
    anyhow::ensure!(!chain.is_empty(), "{} holds no certificate (PEM)", file.display());
    Ok(chain)
}

/// The chain, if the file holds the private key of its first certificate.
fn with_key(
    chain: Vec<CertificateDer<'static>>,
    file: &Path,
) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let about = || file.display().to_string();
    let key = any_supported_type(&PrivateKeyDer::from_pem_file(file).with_context(about)?)
        .with_context(about)?;
    let pair = CertifiedKey::new(chain, key);
    pair.keys_match().map_err(|error| match error {
        Error::InconsistentKeys(_) => {
            anyhow::anyhow!("{} is not the certificate's key", file.display())
        }
        error => anyhow::anyhow!("the certificate cannot be used: {error}"),
    })?;
    Ok(pair.cert)
}
