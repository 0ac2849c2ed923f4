//! What is secret of a provider: its credential, further ones, headers of its own, the password of its
//! proxy and the key of its client certificate.
//!
//! All are one sealed text. Without the others it is the credential itself.

use std::convert::Infallible;

use http::{HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};

use super::ids::CredentialId;
use super::proxy_address;
use super::secret::{Secret, is_masked};

/// Begins a text with more than the credential. No credential can begin so: it is sent in a header.
const WITH_MORE: char = '\u{1}';

/// The credential and the headers of a provider.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    /// The credential; empty if the provider needs none.
    pub key: Secret,
    /// Headers that are added to each request to the provider.
    pub headers: Vec<CustomHeader>,
    /// Further credentials, which take turns with the first: `domain::provider_credential`.
    pub others: Vec<(CredentialId, Secret)>,
    /// The password for its proxy, as it was written; empty if there is none.
    pub proxy_password: Secret,
    /// The private key of its client certificate, PEM; empty if there is none.
    pub tls_key: Secret,
}

/// A header as it was entered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomHeader {
    /// In lower case.
    pub name: String,
    /// The parts in `${…}` are secret; the marks are not sent.
    pub value: Secret,
}

/// The form of the sealed text.
#[derive(Serialize, Deserialize)]
struct PackedCredentials {
    key: String,
    headers: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    others: Vec<(CredentialId, String)>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    proxy_password: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    tls_key: String,
}

impl Credentials {
    /// Only a credential.
    pub fn of(key: Secret) -> Self {
        Self { key, ..Self::default() }
    }

    /// Whether there is nothing beside `key`.
    pub fn is_key_alone(&self) -> bool {
        *self == Self::of(self.key.clone())
    }

    /// Reads what [`Self::packed`] wrote.
    pub fn read(text: Secret) -> Self {
        let packed = text.expose().strip_prefix(WITH_MORE);
        let Some(packed) =
            packed.and_then(|json| serde_json::from_str::<PackedCredentials>(json).ok())
        else {
            return Self::of(text);
        };
        let header = |(name, value)| CustomHeader { name, value: Secret::new(value) };
        Self {
            key: Secret::new(packed.key),
            headers: packed.headers.into_iter().map(header).collect(),
            others: packed.others.into_iter().map(|(id, key)| (id, Secret::new(key))).collect(),
            proxy_password: Secret::new(packed.proxy_password),
            tls_key: Secret::new(packed.tls_key),
        }
    }

    /// The text to seal.
    pub fn packed(&self) -> Secret {
        if self.is_key_alone() {
            return self.key.clone();
        }
        let header =
            |header: &CustomHeader| (header.name.clone(), header.value.expose().to_owned());
        let packed = PackedCredentials {
            key: self.key.expose().to_owned(),
            headers: self.headers.iter().map(header).collect(),
            others: self.others.iter().map(|(id, key)| (*id, key.expose().to_owned())).collect(),
            proxy_password: self.proxy_password.expose().to_owned(),
            tls_key: self.tls_key.expose().to_owned(),
        };
        let json = serde_json::to_string(&packed).unwrap_or_default();
        Secret::new(format!("{WITH_MORE}{json}"))
    }

    /// The headers as they are sent. Their values are marked as sensitive.
    pub fn sent_headers(&self) -> Vec<(HeaderName, HeaderValue)> {
        let sent = |header: &CustomHeader| {
            let name = header.name.parse().ok()?;
            let mut value = HeaderValue::from_str(&header.replaced(str::to_owned)).ok()?;
            value.set_sensitive(true);
            Some((name, value))
        };
        self.headers.iter().filter_map(sent).collect()
    }

    /// The secret parts of the headers.
    pub fn header_secrets(&self) -> Vec<Secret> {
        let mut parts = Vec::new();
        for header in &self.headers {
            header.replaced(|part| {
                parts.push(Secret::new(part));
                String::new()
            });
        }
        parts
    }

    /// What no message may have beside the credentials. A password is also sent percent-decoded.
    pub fn further_secrets(&self) -> Vec<Secret> {
        let password = self.proxy_password.expose();
        let both = [password.to_owned(), proxy_address::decoded(password)];
        let mut secrets = self.header_secrets();
        secrets.extend(both.into_iter().filter(|text| !text.is_empty()).map(Secret::new));
        secrets
    }

    /// The text of one of several credentials: the first is `key`.
    pub fn text_of(&self, index: usize, id: CredentialId) -> Option<&Secret> {
        match index {
            0 => Some(&self.key),
            _ => self.others.iter().find(|(other, _)| *other == id).map(|(_, key)| key),
        }
    }

    /// Whether a header has a secret part.
    pub fn has_secret_header(&self) -> bool {
        self.headers.iter().any(|header| header.value.expose().contains("${"))
    }
}

impl CustomHeader {
    /// The value, its secret parts masked.
    pub fn masked(&self) -> String {
        self.replaced(|part| format!("${{{}}}", Secret::new(part).masked()))
    }

    /// The value with another text in place of each secret part and its marks.
    pub fn replaced(&self, mut with: impl FnMut(&str) -> String) -> String {
        let replaced = self.try_replaced(|part| Ok::<_, Infallible>(with(part)));
        replaced.unwrap_or_else(|never| match never {})
    }

    /// As [`Self::replaced`].
    ///
    /// # Errors
    /// The first error of `with`.
    pub fn try_replaced<E>(
        &self,
        mut with: impl FnMut(&str) -> Result<String, E>,
    ) -> Result<String, E> {
        let mut rest = self.value.expose();
        let mut text = String::with_capacity(rest.len());
        while let Some((before, (part, after))) =
            rest.split_once("${").and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
        {
            text.push_str(before);
            text.push_str(&with(part)?);
            rest = after;
        }
        text.push_str(rest);
        Ok(text)
    }

    /// Whether a secret part is only a mask.
    pub fn is_masked(&self) -> bool {
        let mut parts = self.value.expose().split("${").skip(1);
        parts.any(|part| part.split('}').next().is_some_and(is_masked))
    }

    /// Whether each `${` has its `}`, with something between, and there is no other `}` after one:
    /// a secret part would end at its own `}`, and the rest of it be shown.
    pub fn is_whole(value: &str) -> bool {
        value.split("${").skip(1).all(|part| {
            part.split_once('}')
                .is_some_and(|(secret, rest)| !secret.is_empty() && !rest.contains('}'))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(name: &str, value: &str) -> CustomHeader {
        CustomHeader { name: name.to_owned(), value: Secret::new(value) }
    }

    #[test]
    fn a_credential_without_headers_is_packed_as_it_is() {
        for key in ["sk-1", "", "{\"type\":\"service_account\"}"] {
            let one = Credentials::of(Secret::new(key));
            assert_eq!(one.packed().expose(), key);
            assert_eq!(Credentials::read(one.packed()), one);
        }
    }

    #[test]
    fn headers_are_packed_sent_and_masked() {
        let headers = vec![
            header("x-team", "red"),
            header("x-key", "Token ${a-secret-of-some-length};v=${b}"),
        ];
        let others = vec![(CredentialId(7), Secret::new("sk-2"))];
        let (proxy_password, tls_key) = (Secret::new("p%40ss"), Secret::new("-----BEGIN"));
        let one =
            Credentials { key: Secret::new("sk-1"), headers, others, proxy_password, tls_key };
        assert_eq!(Credentials::read(one.packed()), one);
        let sent = one.sent_headers();
        assert_eq!(sent[0].1, "red");
        assert_eq!(sent[1].1, "Token a-secret-of-some-length;v=b");
        assert!(!format!("{sent:?}").contains("a-secret"));
        assert_eq!(one.headers[0].masked(), "red");
        assert_eq!(one.headers[1].masked(), "Token ${a-se…ngth};v=${***}");
        assert!(header("x-key", &one.headers[1].masked()).is_masked());
        assert!(!one.headers[1].is_masked());
        for (value, is_whole) in [("${a}", true), ("a", true), ("${", false), ("${}", false)] {
            assert_eq!(CustomHeader::is_whole(value), is_whole, "{value}");
        }
    }
}
