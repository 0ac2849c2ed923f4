//! A provider's own certificates: checked when they are entered, or when its address changes.

use super::credentials::Merged;
use crate::admin::envelope::{ApiError, Code};
use crate::admin::reasons::Reason;
use crate::domain::clock::Timestamp;
use crate::domain::provider::Provider;
use crate::domain::secret::Secret;
use crate::upstream::certificates::{self, CertificateFault};

const CA: &str = "tls_ca";
const CERTIFICATE: &str = "tls_client_certificate";
const KEY: &str = "tls_client_key";

/// Refuses certificates that no connection could use, unless they are as they were. The key goes
/// with its certificate.
///
/// # Errors
/// `INVALID_FORMAT` or `REQUIRED_FIELD` of the field, saying what is wrong.
pub(in crate::admin) fn check(
    before: Option<&Provider>,
    after: &Provider,
    merged: &mut Merged,
    now: Timestamp,
) -> Result<(), ApiError> {
    let has_key = !merged.credentials.tls_key.expose().is_empty();
    let (ca, certificate) = (after.tls.ca.as_deref(), after.tls.client_certificate.as_deref());
    if certificate.is_none() && has_key {
        if !merged.keeps_tls_key {
            return Err(refusal(Reason::CertificateMissing, KEY));
        }
        merged.credentials.tls_key = Secret::default();
        merged.keeps_tls_key = false;
    }
    let is_as_before = |old: &Provider| {
        old.tls == after.tls && old.url == after.url && (merged.keeps_tls_key || !has_key)
    };
    if after.tls.is_empty() || before.is_some_and(is_as_before) {
        return Ok(());
    }
    if !after.url.to_ascii_lowercase().starts_with("https://") {
        let field = if ca.is_some() { CA } else { CERTIFICATE };
        return Err(refusal(Reason::CertificateNeedsHttps, field));
    }
    if let Some(ca) = ca {
        certificates::check_authorities(ca, now).map_err(|fault| of(fault, CA))?;
    }
    if let Some(certificate) = certificate {
        certificates::check_chain(certificate, now).map_err(|fault| of(fault, CERTIFICATE))?;
        if !has_key {
            let refusal = ApiError::because(Code::REQUIRED_FIELD, Reason::CertificateKeyMissing);
            return Err(refusal.field(KEY));
        }
        let key = &merged.credentials.tls_key;
        certificates::check_key(certificate, key).map_err(|fault| of(fault, KEY))?;
    }
    Ok(())
}

fn of(fault: CertificateFault, field: &str) -> ApiError {
    let reason = match fault {
        CertificateFault::Unreadable => Reason::CertificateUnreadable,
        CertificateFault::Expired => Reason::CertificateExpired,
        CertificateFault::UnreadableKey => Reason::CertificateKeyUnreadable,
        CertificateFault::OtherKey => Reason::CertificateKeyOther,
    };
    refusal(reason, field)
}

fn refusal(reason: Reason, field: &str) -> ApiError {
    ApiError::because(Code::INVALID_FORMAT, reason).field(field)
}
