//! Types of fields that only providers have: credential, headers, parameters, form of paths.

use schemars::{JsonSchema, SchemaGenerator};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Fault, Faults, HeaderText, Plain, Text};
use crate::admin::reasons::Reason;
use crate::bounded::{FromJson, differ, from_json, is_header_name, texts};
use crate::domain::credentials::CustomHeader;
use crate::domain::path_template;
use crate::domain::provider_credential::ProviderCredential;
use crate::domain::secret::{Secret, is_masked};
use crate::upstream::headers::may_be_added;

/// Headers or parameters of one provider.
const MOST: usize = 32;
/// The forms of a credential.
const PATTERN: &str = "^([!-~]*|\\s*\\{[\\s\\S]*\\}\\s*)$";
/// Characters of a credential that is JSON.
const LARGEST_JSON: usize = 16_384;

/// A credential that is sent in a header, or one as a JSON object that is exchanged for a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialText(pub String);

/// As [`CredentialText`]; a masked one stands for the stored one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptCredential(pub String);

/// One of a provider's further credentials.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CredentialFields {
    /// What it is called: no two of a provider have one name, and none is called `key`.
    pub name: Text<1, 64>,
    /// Its text. Left out or masked: the stored one of this name.
    #[serde(default)]
    pub key: Option<KeptCredential>,
    /// Whether requests use it. Left out: as before, and true if it is new or its text is sent.
    #[serde(default)]
    pub is_enabled: Option<bool>,
}

/// The same without bounds.
#[derive(Debug, Clone)]
pub struct CredentialEntry {
    /// Its name.
    pub name: String,
    /// Its new text; `None`: the stored one.
    pub key: Option<Secret>,
    /// Whether requests use it; `None`: as before.
    pub is_enabled: Option<bool>,
}

impl CredentialEntry {
    /// A stored one that stays as it is.
    pub fn kept(stored: &ProviderCredential) -> Self {
        Self { name: stored.name.clone(), key: None, is_enabled: Some(stored.is_enabled) }
    }
}

impl Plain for CredentialFields {
    type Out = CredentialEntry;

    fn plain(self) -> CredentialEntry {
        let key = self.key.map(|key| key.0).filter(|key| !is_masked(key)).map(Secret::new);
        CredentialEntry { name: self.name.plain(), key, is_enabled: self.is_enabled }
    }
}

/// Names and values of headers. Names are in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomHeaders(pub Vec<(String, String)>);

/// Names and values of query parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryParameters(pub Vec<(String, String)>);

/// The form of a provider's paths: see `domain::path_template`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathTemplate(pub String);

impl FromJson for CredentialText {
    fn take(json: &Value) -> Result<Self, Faults> {
        let is_object = |text: &str| {
            let read = serde_json::from_str::<Value>(text);
            text.starts_with('{') && read.is_ok_and(|read| read.is_object())
        };
        match json.as_str().map(str::trim).filter(|text| is_object(text)) {
            Some(text) if is_masked(text) => Err(Fault::format(Reason::IsMasked).into()),
            Some(_) => Text::<1, LARGEST_JSON>::take(json).map(|text| Self(text.0)),
            None => HeaderText::<1, 4096>::take(json).map(|text| Self(text.0)),
        }
    }

    fn describe(_: &mut SchemaGenerator) -> Value {
        json!({ "type": "string", "pattern": PATTERN, "minLength": 1, "maxLength": LARGEST_JSON })
    }
}

impl FromJson for KeptCredential {
    fn take(json: &Value) -> Result<Self, Faults> {
        match json.as_str().filter(|text| is_masked(text)) {
            Some(mask) => Ok(Self(mask.to_owned())),
            None => CredentialText::take(json).map(|text| Self(text.0)),
        }
    }

    fn describe(_: &mut SchemaGenerator) -> Value {
        json!({ "type": "string", "minLength": 1, "maxLength": LARGEST_JSON })
    }
}

fn describe_texts() -> Value {
    json!({
        "type": "object",
        "maxProperties": MOST,
        "propertyNames": { "minLength": 1, "maxLength": 100 },
        "additionalProperties": { "type": "string", "minLength": 1, "maxLength": 4096 },
    })
}

impl FromJson for CustomHeaders {
    fn take(json: &Value) -> Result<Self, Faults> {
        let mut pairs = texts::<100, 4096>(json, MOST)?;
        for (name, value) in &mut pairs {
            name.make_ascii_lowercase();
            let refused = |reason| Fault::format(reason).with("name", name.clone());
            if !is_header_name(name) {
                return Err(refused(Reason::HeaderName).into());
            }
            if !may_be_added(name) {
                return Err(refused(Reason::HeaderOfGateway).into());
            }
            let is_sent = |c: char| c == ' ' || c.is_ascii_graphic();
            let is_plain = value.chars().all(is_sent) || is_masked_part(name, value);
            if !is_plain || !CustomHeader::is_whole(value) {
                return Err(refused(Reason::HeaderValue).into());
            }
        }
        differ(&pairs)?;
        Ok(Self(pairs))
    }

    fn describe(_: &mut SchemaGenerator) -> Value {
        describe_texts()
    }
}

/// A mask has a character that no header has; its place is taken by what is stored.
fn is_masked_part(name: &str, value: &str) -> bool {
    let header = CustomHeader { name: name.to_owned(), value: Secret::new(value) };
    let without = header.replaced(|_| String::new());
    header.is_masked() && without.chars().all(|c| c == ' ' || c.is_ascii_graphic())
}

impl FromJson for QueryParameters {
    fn take(json: &Value) -> Result<Self, Faults> {
        let pairs = texts::<100, 4096>(json, MOST)?;
        differ(&pairs)?;
        Ok(Self(pairs))
    }

    fn describe(_: &mut SchemaGenerator) -> Value {
        describe_texts()
    }
}

impl FromJson for PathTemplate {
    fn take(json: &Value) -> Result<Self, Faults> {
        let text = Text::<1, 500>::take(json)?.0;
        match path_template::is_valid(&text) {
            true => Ok(Self(text)),
            false => Err(Fault::format(Reason::MustBePathTemplate).into()),
        }
    }

    fn describe(schemas: &mut SchemaGenerator) -> Value {
        let mut schema = Text::<1, 500>::describe(schemas);
        schema["pattern"] = "^/".into();
        schema
    }
}

from_json!([] CredentialText => String);
from_json!([] KeptCredential => String);
from_json!([] CustomHeaders => Vec<(String, String)>);
from_json!([] QueryParameters => Vec<(String, String)>);
from_json!([] PathTemplate => String);
