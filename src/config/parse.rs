//! Reads the text of a setting: units, bounds, choices.
//!
//! Pure: text in, [`Value`] or a [`ValueFault`] out. `super::rules` checks later whether a file is
//! readable.

use std::path::PathBuf;

use rust_decimal::Decimal;
use serde_yaml_ng::Value as Yaml;

use super::kind::{SettingKind, ValueFault, Zero};
use super::pairs::{are_headers, read_pairs};
use super::units::{read_duration, read_size};
use super::value::Value;
use crate::domain::network::Network;
use crate::domain::secret::Secret;

/// What is wrong with a value; and what to write instead, if it is not the form of its kind.
struct Wrong {
    wrong: &'static str,
    remedy: Option<String>,
}

impl From<&'static str> for Wrong {
    fn from(wrong: &'static str) -> Self {
        Self { wrong, remedy: None }
    }
}

impl Wrong {
    fn with(wrong: &'static str, remedy: impl Into<String>) -> Self {
        Self { wrong, remedy: Some(remedy.into()) }
    }

    fn fault(self, kind: SettingKind) -> ValueFault {
        ValueFault {
            wrong: self.wrong.to_owned(),
            remedy: self.remedy.unwrap_or_else(|| kind.shape()),
        }
    }
}

impl SettingKind {
    /// Reads a value from the YAML tree. Types are strict: `"8"` is not a number, `5` is not text.
    ///
    /// # Errors
    /// What is wrong with the value, and what is expected; without the value itself.
    pub fn read_yaml(self, yaml: &Yaml) -> Result<Value, ValueFault> {
        self.of_yaml(yaml).map_err(|wrong| wrong.fault(self))
    }

    /// Reads a value from text, as in the environment.
    ///
    /// # Errors
    /// What is wrong with the text, and what is expected; without the text itself.
    pub fn read_text(self, text: &str) -> Result<Value, ValueFault> {
        self.of_text(text).map_err(|wrong| wrong.fault(self))
    }

    fn of_yaml(self, yaml: &Yaml) -> Result<Value, Wrong> {
        match (self, yaml) {
            (Self::Flag | Self::FlagOrAuto, Yaml::Bool(flag)) => Ok(Value::Flag(*flag)),
            (
                Self::Count { .. }
                | Self::Duration { .. }
                | Self::Seconds { .. }
                | Self::Size { .. }
                | Self::Ratio,
                Yaml::Number(number),
            ) => self.of_text(&number.to_string()),
            (Self::Count { .. }, _) => Err("is not a number".into()),
            (Self::Headers | Self::Networks, Yaml::Sequence(items)) => {
                let items: Option<Vec<&str>> = items.iter().map(Yaml::as_str).collect();
                self.of_list(&items.ok_or("contains a value that is not text")?)
            }
            (Self::Headers | Self::Networks, _) => Err("is not a list".into()),
            (_, Yaml::String(text)) if text.trim().is_empty() => {
                Err(Wrong::with("is empty", "give a value, or remove the line to have the default"))
            }
            (_, Yaml::String(text)) => self.of_text(text),
            (_, Yaml::Mapping(_)) => Err("is a section, where one value is expected".into()),
            (_, Yaml::Sequence(_)) => Err("is a list, where one value is expected".into()),
            _ => Err("has the wrong type".into()),
        }
    }

    fn of_text(self, text: &str) -> Result<Value, Wrong> {
        let text = text.trim();
        let own = || Value::Text(text.to_owned());
        let secret = || Value::Secret(Secret::new(text));
        Ok(match self {
            Self::Address => Value::Address(text.parse().map_err(|_| "is not an address")?),
            Self::FlagOrAuto if text == "auto" => own(),
            Self::Flag | Self::FlagOrAuto => match text.to_ascii_lowercase().as_str() {
                "true" | "on" | "yes" | "1" => Value::Flag(true),
                "false" | "off" | "no" | "0" => Value::Flag(false),
                _ => return Err("is neither true nor false".into()),
            },
            Self::Count { min, max } => {
                let count = text.parse().map_err(|_| "is not a whole number")?;
                Value::Count(within(count, min, max)?)
            }
            Self::Size { min, max } => {
                Value::Size(within(read_size(text).ok_or("is not a size")?, min, max)?)
            }
            Self::Duration { min, max, zero } => match read_duration(text) {
                Some(0) if zero == Zero::MeansNone => Value::Millis(0),
                read => read_time(text, read, min, max)?,
            },
            Self::Seconds { min, max } => {
                let seconds = text.parse::<u64>().ok().and_then(|s| s.checked_mul(1000));
                read_time(text, seconds.or_else(|| read_duration(text)), min, max)?
            }
            Self::Choice(names) => {
                let known = names.iter().find(|name| name.eq_ignore_ascii_case(text));
                Value::Text((*known.ok_or("is not one of the choices")?).to_owned())
            }
            Self::Origin => read_origin(text)?,
            Self::Source if is_source(text) => own(),
            Self::Source => return Err("is not a valid address".into()),
            Self::Headers | Self::Networks => {
                let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
                self.of_list(&items.collect::<Vec<_>>())?
            }
            Self::Path | Self::File | Self::SecretFile => Value::Path(PathBuf::from(text)),
            Self::Secret { min_len } => read_secret(text, min_len)?,
            Self::DatabaseUrl => read_database_url(text)?,
            Self::RedisUrl if is_redis_address(text) => secret(),
            Self::RedisUrl => return Err("is not a Redis address".into()),
            Self::Name if is_short_name(text) => own(),
            Self::Name => return Err("is not a short name".into()),
            Self::Zone => Value::Zone(text.parse().map_err(|_| "is not a known time zone")?),
            Self::Endpoint => read_endpoint(text)?,
            Self::Ratio => match text.parse::<Decimal>() {
                Ok(ratio) if (Decimal::ZERO..=Decimal::ONE).contains(&ratio) => {
                    Value::Decimal(ratio)
                }
                _ => return Err("is not a number from 0 to 1".into()),
            },
            Self::Pairs { secret: is_secret } => match read_pairs(text) {
                Some(pairs) if is_secret && are_headers(&pairs) => secret(),
                Some(_) if !is_secret => own(),
                _ => return Err("is not a list of name=value pairs".into()),
            },
            Self::Text if !text.contains(char::is_control) => own(),
            Self::Text => return Err("is more than one line".into()),
        })
    }

    fn of_list(self, items: &[&str]) -> Result<Value, Wrong> {
        let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        let is_header = |name: &str| !name.is_empty() && name.bytes().all(is_token);
        let items = items.iter();
        let items: Vec<String> = match self {
            Self::Networks if items.clone().any(|item| Network::parse(item).is_none()) => {
                return Err("contains a value that is not a network".into());
            }
            Self::Networks => items.map(|item| (*item).to_owned()).collect(),
            _ if !items.clone().all(|name| is_header(name)) => {
                return Err("contains a value that is not a header name".into());
            }
            _ => items.map(|name| name.to_ascii_lowercase()).collect(),
        };
        Ok(Value::List(items))
    }
}

fn within(number: u64, min: u64, max: u64) -> Result<u64, Wrong> {
    if (min..=max).contains(&number) { Ok(number) } else { Err("is out of range".into()) }
}

fn read_time(text: &str, read: Option<u64>, min: u64, max: u64) -> Result<Value, Wrong> {
    match read {
        Some(ms) => within(ms, min, max).map(Value::Millis),
        None if text.parse::<u64>().is_ok() => Err("has no unit".into()),
        None => Err("is not a duration".into()),
    }
}

fn is_short_name(text: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    (1..=64).contains(&text.len()) && text.bytes().all(fits)
}

fn read_origin(text: &str) -> Result<Value, Wrong> {
    let text = text.trim_end_matches('/');
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    match rest {
        Some(host) if !host.is_empty() && !host.contains(['/', '?', '#', '@', ' ']) => {
            Ok(Value::Text(text.to_owned()))
        }
        _ => Err("is not a web address".into()),
    }
}

/// Whether a text is a Redis address, as far as its scheme says.
fn is_redis_address(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, rest)| {
        let scheme = scheme.strip_prefix("rediss").or_else(|| scheme.strip_prefix("redis"));
        matches!(scheme, Some("" | "+cluster" | "+sentinel")) && !rest.is_empty()
    })
}

fn is_source(text: &str) -> bool {
    let known = ["http://", "https://", "file:///"];
    let rest = known.into_iter().find_map(|scheme| text.strip_prefix(scheme));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(char::is_whitespace))
}

fn read_database_url(text: &str) -> Result<Value, Wrong> {
    match text.split_once("://") {
        Some(("postgres" | "postgresql", rest)) if !rest.is_empty() => {
            Ok(Value::Secret(Secret::new(text)))
        }
        Some(("sqlite", _)) => Err(Wrong::with(
            "names the embedded database",
            "leave it out, and set data_dir to the folder of the database",
        )),
        _ => Err("is not a PostgreSQL address".into()),
    }
}

/// Without a slash at the end: the signal's path is added to it.
fn read_endpoint(text: &str) -> Result<Value, Wrong> {
    let text = text.trim_end_matches('/');
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let is_sound =
        rest.is_some_and(|rest| !rest.starts_with('/') && !rest.contains(['?', '#', '@']));
    match text.parse::<http::Uri>() {
        Ok(uri) if is_sound && uri.host().is_some_and(|host| !host.is_empty()) => {
            Ok(Value::Text(text.to_owned()))
        }
        _ => Err("is not a web address".into()),
    }
}

fn read_secret(text: &str, min_len: usize) -> Result<Value, Wrong> {
    if text.eq_ignore_ascii_case("change-me") {
        return Err(Wrong::with(
            "is the placeholder that everybody knows",
            "choose a secret of your own",
        ));
    }
    if text.len() < min_len || !text.bytes().all(|b| b.is_ascii_graphic()) {
        let wrong = if text.is_empty() {
            "is empty"
        } else {
            "is too short, or holds blanks or other odd characters"
        };
        let remedy =
            format!("choose at least {min_len} visible ASCII characters, or leave it unset");
        return Err(Wrong::with(wrong, remedy));
    }
    Ok(Value::Secret(Secret::new(text)))
}
