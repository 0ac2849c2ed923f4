//! Strings: trimmed and bounded in length; times of day; URLs; names of headers.

use std::marker::PhantomData;
use std::net::Ipv6Addr;

use schemars::SchemaGenerator;
use serde_json::{Value, json};

use super::from_json::{FromJson, from_json};
use super::{Fault, Faults, FromText, Listed, Wrong};
use crate::domain::limits::TimeOfDay;
use crate::domain::proxy_address::{self, ProxyAddress, is_password};
use crate::domain::secret::is_masked;
use crate::reasons::{Code, Reason};

/// A trimmed string of `MIN` … `MAX` characters without NUL.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Text<const MIN: usize, const MAX: usize>(pub String);

/// A text of the form `F`, trimmed, of `MIN` … `MAX` characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Formed<F, const MIN: usize, const MAX: usize>(pub String, PhantomData<F>);

/// A form of texts.
pub trait Form: 'static {
    /// What its schema has beside the length.
    const SCHEMA: Option<(&'static str, &'static str)> = None;

    /// Why the text is refused; `None` if it is accepted.
    fn fault(text: &str) -> Option<Reason>;
}

/// Visible ASCII without blanks: a credential that is sent in a header. A mask that is shown in
/// place of one is refused.
pub type HeaderText<const MIN: usize, const MAX: usize> = Formed<InHeader, MIN, MAX>;

/// Without control characters, and without those that end a line or reverse the direction of what
/// follows: a name that people read in lists, logs and messages.
pub type NameText<const MIN: usize, const MAX: usize> = Formed<AsName, MIN, MAX>;

/// A model's name, or the beginning of several with `*` after it.
pub type ModelText<const MIN: usize, const MAX: usize> = Formed<OfModels, MIN, MAX>;

/// Certificates or a key in PEM. The action reads them.
pub type PemText = Formed<AsPem, 1, 65_536>;

/// A URL of the form `F`.
pub type Url<F, const MIN: usize, const MAX: usize> = Formed<F, MIN, MAX>;

/// Begins a secret of a document that was exported (`admin::declarative`).
pub const SEALED: &str = "sealed:";

/// A time of day, `HH:MM`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock(pub TimeOfDay);

impl<const MIN: usize, const MAX: usize> FromJson for Text<MIN, MAX> {
    fn take(json: &Value) -> Result<Self, Faults> {
        let text = json.as_str().ok_or_else(|| Fault::wrong_type(Reason::MustBeText))?.trim();
        let length = text.chars().count();
        if length < MIN {
            return Err(Fault::new(Code::MIN_LENGTH, Reason::too_short(MIN))
                .with("min", MIN)
                .into());
        }
        if length > MAX {
            return Err(Fault::new(Code::MAX_LENGTH, Reason::AtMostCharacters)
                .with("max", MAX)
                .into());
        }
        if text.contains('\0') {
            return Err(Fault::format(Reason::HasNul).into());
        }
        Ok(Self(text.to_owned()))
    }

    fn describe(_: &mut SchemaGenerator) -> Value {
        let mut schema = json!({ "type": "string", "maxLength": MAX });
        if MIN > 0 {
            schema["minLength"] = MIN.into();
        }
        schema
    }
}

impl<F: Form, const MIN: usize, const MAX: usize> FromJson for Formed<F, MIN, MAX> {
    fn take(json: &Value) -> Result<Self, Faults> {
        let text = Text::<MIN, MAX>::take(json)?.0;
        match F::fault(&text) {
            Some(reason) => Err(Fault::format(reason).into()),
            None => Ok(Self(text, PhantomData)),
        }
    }

    fn describe(schemas: &mut SchemaGenerator) -> Value {
        let mut schema = Text::<MIN, MAX>::describe(schemas);
        if let Some((name, value)) = F::SCHEMA {
            schema[name] = value.into();
        }
        schema
    }
}

/// The name of a header.
#[derive(Debug)]
pub enum HeaderName {}

impl FromText for HeaderName {
    type Out = String;

    fn read(text: &str) -> Result<String, Wrong> {
        match is_header_name(text) {
            true => Ok(text.to_ascii_lowercase()),
            false => Err("is not a header name".into()),
        }
    }

    fn text(name: &String) -> String {
        name.clone()
    }

    fn shape() -> String {
        "write the name of a header".to_owned()
    }
}

impl Listed for HeaderName {
    type List = Vec<String>;

    const SEVERAL: &'static str = "header names, such as [x-session-id, session-id]";
}

/// Whether a text can be the name of a header.
#[must_use]
pub fn is_header_name(text: &str) -> bool {
    http::HeaderName::from_bytes(text.as_bytes()).is_ok()
}

/// Whether a text has visible ASCII characters only, without blanks: a header can carry it.
#[must_use]
pub fn is_visible(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Declares forms: maybe what the schema has, and why a text is refused.
macro_rules! forms {
    ($($(#[doc = $about:literal])+ $name:ident $(, $schema:expr)? => $fault:expr;)+) => {$(
        $(#[doc = $about])+
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name;

        impl Form for $name {
            $(const SCHEMA: Option<(&'static str, &'static str)> = Some($schema);)?

            fn fault(text: &str) -> Option<Reason> {
                let fault: fn(&str) -> Option<Reason> = $fault;
                fault(text)
            }
        }
    )+};
}

forms! {
    /// The form of a [`HeaderText`].
    InHeader, ("pattern", "^[!-~]*$") => |text| {
        let masked = is_masked(text).then_some(Reason::IsMasked);
        masked.or((!is_visible(text)).then_some(Reason::MustBeHeaderText))
    };
    /// The form of a [`NameText`].
    AsName => |text| text.chars().any(spoils_names).then_some(Reason::HasControl);
    /// The form of a [`ModelText`].
    OfModels => |text| {
        text.strip_suffix('*').unwrap_or(text).contains('*').then_some(Reason::StarNotAtEnd)
    };
    /// The form of a [`PemText`].
    AsPem, ("pattern", PEM_PATTERN) => |text| {
        let stands_for_it = is_masked(text) || text.starts_with(SEALED);
        (!stands_for_it && !text.contains("-----BEGIN ")).then_some(Reason::MustBePem)
    };
    /// An `http` or `https` URL without credentials, query or fragment.
    BaseUrl, URI => url_fault;
    /// The address of a proxy, with or without a login.
    ProxyUrl, URI => |text| {
        let (url, password) = proxy_address::without_password(text);
        let is_login = password.is_none_or(|text| text.starts_with(SEALED) || is_password(text));
        let is_proxy = ProxyAddress::parse(&url).is_some_and(|proxy| is_host(&bracketed(&proxy)));
        (!is_proxy || !is_login).then_some(Reason::MustBeProxyAddress)
    };
    /// An `http` or `https` URL, which may have a query. The action checks its destination.
    WebhookUrl, URI => |text| {
        let text = text.to_ascii_lowercase();
        let has_scheme = text.starts_with("http://") || text.starts_with("https://");
        (!has_scheme || text.contains(char::is_whitespace)).then_some(Reason::MustBeWebAddress)
    };
}

/// PEM, or what stands for a stored key.
const PEM_PATTERN: &str = r"-----BEGIN |^sealed:|\*\*\*$|…";

/// Whether names may not have this character: control characters, separators of lines and
/// paragraphs, and marks of direction. Joiners are allowed: emoji and several scripts need them.
#[must_use]
pub fn spoils_names(c: char) -> bool {
    // The others have no width: two names that differ in one of them look the same.
    let is_unseen = matches!(c, '\u{AD}' | '\u{200B}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}');
    let ends_line = matches!(c, '\u{2028}' | '\u{2029}');
    let directs = matches!(c, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}');
    c.is_control() || is_unseen || ends_line || directs || matches!(c, '\u{2060}'..='\u{206F}')
}

impl FromJson for Clock {
    fn take(json: &Value) -> Result<Self, Faults> {
        let text = Text::<4, 5>::take(json)?.0;
        TimeOfDay::parse(&text)
            .map(Self)
            .ok_or_else(|| Fault::format(Reason::MustBeTimeOfDay).into())
    }

    fn describe(schemas: &mut SchemaGenerator) -> Value {
        let mut schema = Text::<4, 5>::describe(schemas);
        schema["pattern"] = "^([01]?[0-9]|2[0-3]):[0-5][0-9]$".into();
        schema
    }
}

from_json!([const MIN: usize, const MAX: usize] Text<MIN, MAX> => String);
from_json!([F: Form, const MIN: usize, const MAX: usize] Formed<F, MIN, MAX> => String);
from_json!([] Clock => TimeOfDay);

const URI: (&str, &str) = ("format", "uri");

fn bracketed(proxy: &ProxyAddress) -> String {
    let host = &proxy.host;
    if host.contains(':') { format!("[{host}]") } else { host.clone() }
}

/// What is wrong with an `http` or `https` address, which has neither credentials nor a query.
pub fn url_fault(text: &str) -> Option<Reason> {
    let Ok(uri) = text.parse::<http::Uri>() else { return Some(Reason::MustBeWebAddress) };
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return Some(Reason::MustBeWebAddress);
    };
    if !["http", "https"].contains(&scheme) || !is_host(authority.host()) {
        return Some(Reason::MustBeWebAddress);
    }
    if authority.as_str().contains('@') {
        return Some(Reason::AddressHasCredentials);
    }
    let port_text = authority.as_str().rsplit_once(':').filter(|(_, port)| !port.ends_with(']'));
    if port_text.is_some_and(|(_, port)| !port.parse::<u16>().is_ok_and(|port| port > 0)) {
        return Some(Reason::AddressHasBadPort);
    }
    (text.contains('#') || uri.query().is_some()).then_some(Reason::AddressHasQuery)
}

/// Whether it is the name or the address of a host, an IPv6 address in brackets.
fn is_host(text: &str) -> bool {
    match text.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').is_some_and(|inner| inner.parse::<Ipv6Addr>().is_ok()),
        None => {
            let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            !text.is_empty() && text.bytes().all(is_allowed)
        }
    }
}
