//! Signs the heads of requests.

use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue};
use pingora::http::RequestHeader;
use pingora::{Error, ErrorType};

use super::AwsKeys;
use super::sigv4::{Signable, authorization, date, sha256_hex};
use crate::domain::clock::Timestamp;
use crate::domain::secret::Secret;

const DATE: &str = "x-amz-date";
const TOKEN: &str = "x-amz-security-token";
const BODY: &str = "x-amz-content-sha256";

/// Keys, and what they sign for.
#[derive(Debug)]
pub struct Signer {
    pub(super) keys: AwsKeys,
    pub(super) region: String,
    pub(super) service: String,
}

/// SHA-256 of a body in pieces, as [`Signer::sign`] needs it.
pub fn body_hash(pieces: &[impl AsRef<[u8]>]) -> String {
    sha256_hex(pieces)
}

impl Signer {
    /// Signs a head that is complete. `target`: path and query as they are sent; `authority`: the
    /// host, with the port unless it is the usual one; `body`: the hash of the body.
    ///
    /// # Errors
    /// A part of the credential cannot be sent in a header.
    pub fn sign(
        &self,
        head: &mut RequestHeader,
        (target, authority): (&str, &str),
        body: &str,
        now: Timestamp,
    ) -> pingora::Result<()> {
        let date = date(now);
        let token = self.keys.token.as_ref().map(Secret::expose);
        let content_type = head.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let mut headers: Vec<(&str, &str)> = Vec::with_capacity(5);
        headers.extend(content_type.map(|kind| (CONTENT_TYPE.as_str(), kind)));
        headers.push(("host", authority));
        headers.push((BODY, body));
        headers.push((DATE, &date));
        headers.extend(token.map(|token| (TOKEN, token)));
        let (region, service) = (&*self.region, &*self.service);
        let method = head.method.as_str();
        let what = Signable { method, target, headers: &headers, body, region, service };
        let signed = authorization(&self.keys, &date, &what);
        let secret = |text: &str| -> pingora::Result<HeaderValue> {
            let invalid = |_| Error::explain(ErrorType::InvalidHTTPHeader, "the keys of AWS");
            let mut value = HeaderValue::from_str(text).map_err(invalid)?;
            value.set_sensitive(true);
            Ok(value)
        };
        let token = token.map(secret).transpose()?;
        let values = [
            Some(("authorization", secret(&signed)?)),
            Some((DATE, secret(&date)?)),
            Some((BODY, secret(body)?)),
            token.map(|token| (TOKEN, token)),
        ];
        let mut values = values.into_iter().flatten();
        values
            .try_for_each(|(name, value)| head.insert_header(HeaderName::from_static(name), value))
    }

    /// What no message may have.
    pub fn secrets(&self) -> impl Iterator<Item = Secret> {
        [Some(&self.keys.secret), self.keys.token.as_ref()].into_iter().flatten().cloned()
    }

    /// Whether the keys are the same.
    pub fn is_same(&self, other: &Self) -> bool {
        let token = |one: &Self| one.keys.token.as_ref().map(|token| token.expose().to_owned());
        self.keys.id == other.keys.id && token(self) == token(other)
    }
}
