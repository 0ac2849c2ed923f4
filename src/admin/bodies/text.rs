//! Strings in request bodies: trimmed and bounded in length; times of day; URLs.

use std::marker::PhantomData;
use std::net::Ipv6Addr;

use schemars::SchemaGenerator;
use serde_json::{Value, json};

use super::kind::{FieldKind, kind};
use super::{Fault, Faults};
use crate::admin::envelope::Code;
use crate::admin::reasons::Reason;
use crate::domain::limits::TimeOfDay;
use crate::domain::secret::is_masked;

/// A trimmed string of `MIN` … `MAX` characters without NUL.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Text<const MIN: usize, const MAX: usize>(pub String);

/// As [`Text`], of visible ASCII without blanks: a credential that is sent in a header. A mask that
/// is shown in place of one is refused.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeaderText<const MIN: usize, const MAX: usize>(pub String);

/// As [`Text`], without control characters, and without those that end a line or reverse the
/// direction of what follows: a name that people read in lists, logs and messages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NameText<const MIN: usize, const MAX: usize>(pub String);

/// As [`Text`]: a model's name, or the beginning of several with `*` after it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelText<const MIN: usize, const MAX: usize>(pub String);

/// A time of day, `HH:MM`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock(pub TimeOfDay);

/// A URL of the form `F`, of `MIN` … `MAX` characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url<F, const MIN: usize, const MAX: usize>(pub String, PhantomData<F>);

/// What a URL field accepts.
pub trait Address: 'static {
    /// Why the text is refused; `None` if it is accepted.
    fn fault(text: &str) -> Option<Reason>;
}

/// An `http` or `https` URL without credentials, query or fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl;

/// The `http://host:port` of a CONNECT proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyUrl;

/// An `http` or `https` URL, which may have a query. The action checks its destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookUrl;

impl<const MIN: usize, const MAX: usize> FieldKind for Text<MIN, MAX> {
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

impl<const MIN: usize, const MAX: usize> FieldKind for HeaderText<MIN, MAX> {
    fn take(json: &Value) -> Result<Self, Faults> {
        let text = Text::<MIN, MAX>::take(json)?.0;
        if is_masked(&text) {
            return Err(Fault::format(Reason::IsMasked).into());
        }
        match text.bytes().all(|byte| byte.is_ascii_graphic()) {
            true => Ok(Self(text)),
            false => Err(Fault::format(Reason::MustBeHeaderText).into()),
        }
    }

    fn describe(generator: &mut SchemaGenerator) -> Value {
        let mut schema = Text::<MIN, MAX>::describe(generator);
        schema["pattern"] = "^[!-~]*$".into();
        schema
    }
}

impl<const MIN: usize, const MAX: usize> FieldKind for NameText<MIN, MAX> {
    fn take(json: &Value) -> Result<Self, Faults> {
        let text = Text::<MIN, MAX>::take(json)?.0;
        match text.chars().any(spoils_names) {
            true => Err(Fault::format(Reason::HasControl).into()),
            false => Ok(Self(text)),
        }
    }

    fn describe(generator: &mut SchemaGenerator) -> Value {
        Text::<MIN, MAX>::describe(generator)
    }
}

impl<const MIN: usize, const MAX: usize> FieldKind for ModelText<MIN, MAX> {
    fn take(json: &Value) -> Result<Self, Faults> {
        let text = Text::<MIN, MAX>::take(json)?.0;
        match text.strip_suffix('*').unwrap_or(&text).contains('*') {
            true => Err(Fault::format(Reason::StarNotAtEnd).into()),
            false => Ok(Self(text)),
        }
    }

    fn describe(generator: &mut SchemaGenerator) -> Value {
        Text::<MIN, MAX>::describe(generator)
    }
}

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

impl FieldKind for Clock {
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

impl<F: Address, const MIN: usize, const MAX: usize> FieldKind for Url<F, MIN, MAX> {
    fn take(json: &Value) -> Result<Self, Faults> {
        let text = Text::<MIN, MAX>::take(json)?.0;
        match F::fault(&text) {
            Some(reason) => Err(Fault::format(reason).into()),
            None => Ok(Self(text, PhantomData)),
        }
    }

    fn describe(schemas: &mut SchemaGenerator) -> Value {
        let mut schema = Text::<MIN, MAX>::describe(schemas);
        schema["format"] = "uri".into();
        schema
    }
}

kind!([const MIN: usize, const MAX: usize] Text<MIN, MAX> => String);
kind!([const MIN: usize, const MAX: usize] HeaderText<MIN, MAX> => String);
kind!([const MIN: usize, const MAX: usize] NameText<MIN, MAX> => String);
kind!([const MIN: usize, const MAX: usize] ModelText<MIN, MAX> => String);
kind!([] Clock => TimeOfDay);
kind!([F: Address, const MIN: usize, const MAX: usize] Url<F, MIN, MAX> => String);

impl Address for BaseUrl {
    fn fault(text: &str) -> Option<Reason> {
        url_fault(text, &["http", "https"])
    }
}

impl Address for ProxyUrl {
    fn fault(text: &str) -> Option<Reason> {
        url_fault(text, &["http"]).or_else(|| {
            let bare = text.parse::<http::Uri>().is_ok_and(|uri| matches!(uri.path(), "" | "/"));
            (!bare).then_some(Reason::MustBeProxyAddress)
        })
    }
}

impl Address for WebhookUrl {
    fn fault(text: &str) -> Option<Reason> {
        let has_scheme = ["http://", "https://"]
            .iter()
            .any(|scheme| text.to_ascii_lowercase().starts_with(scheme));
        (!has_scheme || text.contains(char::is_whitespace)).then_some(Reason::MustBeWebAddress)
    }
}

fn url_fault(text: &str, schemes: &[&str]) -> Option<Reason> {
    let Ok(uri) = text.parse::<http::Uri>() else { return Some(Reason::MustBeWebAddress) };
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return Some(Reason::MustBeWebAddress);
    };
    if !schemes.contains(&scheme) || !is_host(authority.host()) {
        return Some(if schemes.contains(&"https") {
            Reason::MustBeWebAddress
        } else {
            Reason::MustBeHttpAddress
        });
    }
    if authority.as_str().contains('@') {
        return Some(Reason::AddressHasCredentials);
    }
    let port_text = authority.as_str().rsplit_once(':').filter(|(_, port)| !port.ends_with(']'));
    if port_text.is_some_and(|(_, port)| {
        port.parse::<u16>().is_ok_and(|p| p == 0) || port.parse::<u16>().is_err()
    }) {
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
