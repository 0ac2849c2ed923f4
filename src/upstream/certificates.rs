//! A provider's own certificates: read, checked, and made into what Pingora and rustls take.

use std::sync::{Arc, OnceLock};

use pingora::protocols::tls::CaType;
use pingora::utils::tls::{CertKey, WrappedX509, parse_x509};
use rustls::crypto::ring::default_provider;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::domain::clock::Timestamp;
use crate::domain::provider_tls::ProviderTls;
use crate::domain::secret::Secret;

/// What is wrong with certificates; can be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CertificateFault {
    /// There is no certificate in PEM, or one that cannot be read.
    #[error("is not a certificate in PEM")]
    Unreadable,
    /// One is not valid any more.
    #[error("has expired")]
    Expired,
    /// The key cannot be read.
    #[error("is not a private key in PEM")]
    UnreadableKey,
    /// The key is that of another certificate.
    #[error("is not the key of the certificate")]
    OtherKey,
}

/// A certificate, as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    /// Whom it names.
    pub subject: String,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// The certificates of a text, each with what it says.
///
/// # Errors
/// There is none, or one that cannot be read.
pub fn described(pem: &str) -> Result<Vec<Described>, CertificateFault> {
    let describe = |der: &CertificateDer<'_>| {
        let (_, read) = X509Certificate::from_der(der).map_err(|_| CertificateFault::Unreadable)?;
        let expires_at = Timestamp(read.validity().not_after.timestamp().saturating_mul(1_000));
        Ok(Described { subject: read.subject().to_string(), expires_at })
    };
    chain(pem)?.iter().map(describe).collect()
}

/// The certificate of a provider whose end stops its connections first. Of several authorities the
/// last one to end counts: a new one stands beside the one that it replaces.
pub fn first_to_expire(tls: &ProviderTls) -> Option<Described> {
    let read = |pem: &Option<String>| described(pem.as_deref()?).ok();
    let ca = read(&tls.ca).and_then(|all| all.into_iter().max_by_key(|one| one.expires_at));
    let own = read(&tls.client_certificate).into_iter().flatten();
    own.chain(ca).min_by_key(|one| one.expires_at)
}

/// Whether authorities can be read, and one of them is valid now.
///
/// # Errors
/// What is wrong.
pub fn check_authorities(pem: &str, now: Timestamp) -> Result<(), CertificateFault> {
    rooted(pem)?;
    let is_valid = described(pem)?.iter().any(|one| now < one.expires_at);
    if is_valid { Ok(()) } else { Err(CertificateFault::Expired) }
}

/// Whether a chain can be read, and is valid now.
///
/// # Errors
/// What is wrong.
pub fn check_chain(pem: &str, now: Timestamp) -> Result<(), CertificateFault> {
    let is_valid = described(pem)?.iter().all(|one| now < one.expires_at);
    if is_valid { Ok(()) } else { Err(CertificateFault::Expired) }
}

/// Whether the text is the private key of the first certificate.
///
/// # Errors
/// What is wrong.
pub fn check_key(pem: &str, key: &Secret) -> Result<(), CertificateFault> {
    let signing = any_supported_type(&private_key(key)?);
    let signing = signing.map_err(|_| CertificateFault::UnreadableKey)?;
    let pair = CertifiedKey::new(chain(pem)?, signing);
    pair.keys_match().map_err(|_| CertificateFault::OtherKey)
}

/// What Pingora checks a provider's certificate with.
///
/// # Errors
/// It cannot be read.
pub(super) fn authorities(pem: &str) -> Result<Arc<CaType>, CertificateFault> {
    Ok(wrapped(pem)?.into())
}

/// What Pingora shows a provider.
///
/// # Errors
/// It cannot be read.
pub(super) fn identity(pem: &str, key: &Secret) -> Result<Arc<CertKey>, CertificateFault> {
    check_key(pem, key)?;
    described(pem)?;
    let certificates = chain(pem)?.iter().map(|der| der.to_vec()).collect();
    Ok(Arc::new(CertKey::new(certificates, private_key(key)?.secret_der().to_vec())))
}

/// The settings of TLS for the gateway's own exchanges with a provider.
///
/// # Errors
/// The provider's own certificates cannot be read.
pub(super) fn client_config(tls: &ProviderTls) -> Result<Arc<ClientConfig>, CertificateFault> {
    let roots = match &tls.ca {
        Some(pem) => Arc::new(rooted(pem)?),
        None => system(),
    };
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|_| CertificateFault::Unreadable)?
        .with_root_certificates(roots);
    let config = match &tls.client_certificate {
        Some(pem) => builder
            .with_client_auth_cert(chain(pem)?, private_key(&tls.client_key)?)
            .map_err(|_| CertificateFault::OtherKey)?,
        None => builder.with_no_client_auth(),
    };
    Ok(Arc::new(config))
}

/// The system's authorities, read once as Pingora does.
fn system() -> Arc<RootCertStore> {
    static SYSTEM: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    let read = || {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Arc::new(roots)
    };
    Arc::clone(SYSTEM.get_or_init(read))
}

fn chain(pem: &str) -> Result<Vec<CertificateDer<'static>>, CertificateFault> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    chain.ok().filter(|chain| !chain.is_empty()).ok_or(CertificateFault::Unreadable)
}

fn rooted(pem: &str) -> Result<RootCertStore, CertificateFault> {
    let mut roots = RootCertStore::empty();
    for certificate in chain(pem)? {
        roots.add(certificate).map_err(|_| CertificateFault::Unreadable)?;
    }
    Ok(roots)
}

/// Pingora's form. Its parser ends the task at what cannot be read, so it is read before.
fn wrapped(pem: &str) -> Result<Vec<WrappedX509>, CertificateFault> {
    rooted(pem)?;
    described(pem)?;
    Ok(chain(pem)?.iter().map(|der| WrappedX509::new(der.to_vec(), parse_x509)).collect())
}

/// Pingora finds the form of a key by its content.
fn private_key(key: &Secret) -> Result<PrivateKeyDer<'static>, CertificateFault> {
    let read = PrivateKeyDer::from_pem_slice(key.expose().as_bytes());
    let read = read.map_err(|_| CertificateFault::UnreadableKey)?;
    PrivateKeyDer::try_from(read.secret_der().to_vec()).map_err(|_| CertificateFault::UnreadableKey)
}
