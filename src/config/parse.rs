//! Reads the text of a setting: units, bounds, choices.
//!
//! Pure: text in, [`Value`] or a [`ValueFault`] out. `super::rules` checks later whether a file is
//! readable.

use std::path::PathBuf;

use rust_decimal::Decimal;
use serde_yaml_ng::Value as Yaml;

use super::kind::{HEADERS_REMEDY, SettingKind, ValueFault, Zero, count_remedy};
use super::pairs::{are_headers, read_pairs};
use super::units::{read_duration, read_size};
use super::value::Value;
use crate::domain::network::Network;
use crate::domain::secret::Secret;

fn fault<T>(wrong: impl Into<String>, remedy: impl Into<String>) -> Result<T, ValueFault> {
    Err(ValueFault { wrong: wrong.into(), remedy: remedy.into() })
}

impl SettingKind {
    /// Reads a value from the YAML tree. Types are strict: `"8"` is not a number, `5` is not text.
    ///
    /// # Errors
    /// What is wrong with the value, and what is expected; without the value itself.
    pub fn read_yaml(self, yaml: &Yaml) -> Result<Value, ValueFault> {
        match (self, yaml) {
            (Self::Flag | Self::FlagOrAuto, Yaml::Bool(flag)) => Ok(Value::Flag(*flag)),
            (Self::Count { .. }, Yaml::Number(number)) => self.read_text(&number.to_string()),
            (Self::Count { min, max }, _) => fault("is not a number", count_remedy(min, max)),
            (
                Self::Duration { .. } | Self::Seconds { .. } | Self::Size { .. } | Self::Ratio,
                Yaml::Number(number),
            ) => self.read_text(&number.to_string()),
            (Self::Headers | Self::Networks, Yaml::Sequence(items)) => {
                let items: Option<Vec<&str>> = items.iter().map(Yaml::as_str).collect();
                match items {
                    Some(items) => self.read_list(&items),
                    None => fault("contains a value that is not text", self.shape()),
                }
            }
            (Self::Headers | Self::Networks, _) => fault("is not a list", self.shape()),
            (_, Yaml::String(text)) if text.trim().is_empty() => {
                fault("is empty", "give a value, or remove the line to have the default")
            }
            (_, Yaml::String(text)) => self.read_text(text),
            (_, Yaml::Mapping(_)) => {
                fault("is a section, where one value is expected", self.shape())
            }
            (_, Yaml::Sequence(_)) => fault("is a list, where one value is expected", self.shape()),
            _ => fault("has the wrong type", self.shape()),
        }
    }

    /// Reads a value from text, as in the environment.
    ///
    /// # Errors
    /// What is wrong with the text, and what is expected; without the text itself.
    pub fn read_text(self, text: &str) -> Result<Value, ValueFault> {
        let text = text.trim();
        match self {
            Self::Address => match text.parse() {
                Ok(addr) => Ok(Value::Address(addr)),
                Err(_) => fault("is not an address", self.shape()),
            },
            Self::FlagOrAuto if text == "auto" => Ok(Value::Text(text.to_owned())),
            Self::Flag | Self::FlagOrAuto => match text.to_ascii_lowercase().as_str() {
                "true" | "on" | "yes" | "1" => Ok(Value::Flag(true)),
                "false" | "off" | "no" | "0" => Ok(Value::Flag(false)),
                _ => fault("is neither true nor false", self.shape()),
            },
            Self::Count { min, max } => match text.parse::<u64>() {
                Ok(count) if (min..=max).contains(&count) => Ok(Value::Count(count)),
                Ok(_) => fault("is out of range", count_remedy(min, max)),
                Err(_) => fault("is not a whole number", count_remedy(min, max)),
            },
            Self::Size { min, max } => match read_size(text) {
                Some(bytes) if (min..=max).contains(&bytes) => Ok(Value::Size(bytes)),
                Some(_) => fault("is out of range", self.shape()),
                None => fault("is not a size", self.shape()),
            },
            Self::Duration { .. } | Self::Seconds { .. } => self.read_time(text),
            Self::Choice(names) => self.read_choice(names, text),
            Self::Origin => self.read_origin(text),
            Self::Source => read_source(text),
            Self::Headers | Self::Networks => {
                let items: Vec<&str> =
                    text.split(',').map(str::trim).filter(|item| !item.is_empty()).collect();
                self.read_list(&items)
            }
            Self::Path | Self::File | Self::SecretFile => Ok(Value::Path(PathBuf::from(text))),
            Self::Secret { min_len } => read_secret(text, min_len),
            Self::DatabaseUrl => read_database_url(text),
            Self::RedisUrl if is_redis_address(text) => Ok(Value::Secret(Secret::new(text))),
            Self::RedisUrl => fault("is not a Redis address", self.shape()),
            Self::Name => {
                let fits = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
                if (1..=64).contains(&text.len()) && text.bytes().all(fits) {
                    Ok(Value::Text(text.to_owned()))
                } else {
                    fault("is not a short name", self.shape())
                }
            }
            Self::Zone => match text.parse() {
                Ok(zone) => Ok(Value::Zone(zone)),
                Err(_) => fault("is not a known time zone", self.shape()),
            },
            Self::Endpoint | Self::Ratio | Self::Pairs { .. } | Self::Text => {
                self.read_telemetry(text)
            }
        }
    }

    /// The kinds of the settings of OTLP.
    fn read_telemetry(self, text: &str) -> Result<Value, ValueFault> {
        match self {
            Self::Endpoint => read_endpoint(text),
            Self::Ratio => match text.parse::<Decimal>() {
                Ok(ratio) if (Decimal::ZERO..=Decimal::ONE).contains(&ratio) => {
                    Ok(Value::Decimal(ratio))
                }
                _ => fault("is not a number from 0 to 1", self.shape()),
            },
            Self::Pairs { secret } => match read_pairs(text) {
                Some(pairs) if secret && are_headers(&pairs) => {
                    Ok(Value::Secret(Secret::new(text)))
                }
                Some(_) if !secret => Ok(Value::Text(text.to_owned())),
                _ => fault("is not a list of name=value pairs", self.shape()),
            },
            Self::Text if !text.contains(char::is_control) => Ok(Value::Text(text.to_owned())),
            _ => fault("is more than one line", self.shape()),
        }
    }

    fn read_choice(self, names: &[&str], text: &str) -> Result<Value, ValueFault> {
        match names.iter().find(|name| name.eq_ignore_ascii_case(text)) {
            Some(name) => Ok(Value::Text((*name).to_owned())),
            None => fault("is not one of the choices", self.shape()),
        }
    }

    fn read_list(self, items: &[&str]) -> Result<Value, ValueFault> {
        match self {
            Self::Networks => match items.iter().find(|item| Network::parse(item).is_none()) {
                Some(_) => fault("contains a value that is not a network", self.shape()),
                None => Ok(Value::List(items.iter().map(|item| (*item).to_owned()).collect())),
            },
            _ => read_headers(items),
        }
    }

    fn read_time(self, text: &str) -> Result<Value, ValueFault> {
        let (min, max, zero, bare) = match self {
            Self::Duration { min, max, zero } => (min, max, zero == Zero::MeansNone, false),
            Self::Seconds { min, max } => (min, max, false, true),
            _ => return fault("is not a duration", self.shape()),
        };
        let in_seconds = || text.parse::<u64>().ok().and_then(|seconds| seconds.checked_mul(1000));
        let read =
            if bare { in_seconds().or_else(|| read_duration(text)) } else { read_duration(text) };
        match read {
            Some(0) if zero => Ok(Value::Millis(0)),
            Some(ms) if (min..=max).contains(&ms) => Ok(Value::Millis(ms)),
            Some(_) => fault("is out of range", self.shape()),
            None if text.parse::<u64>().is_ok() => fault("has no unit", self.shape()),
            None => fault("is not a duration", self.shape()),
        }
    }

    fn read_origin(self, text: &str) -> Result<Value, ValueFault> {
        let text = text.trim_end_matches('/');
        let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        match rest {
            Some(host) if !host.is_empty() && !host.contains(['/', '?', '#', '@', ' ']) => {
                Ok(Value::Text(text.to_owned()))
            }
            _ => fault("is not a web address", self.shape()),
        }
    }
}

/// Whether a text is a Redis address, as far as its scheme says.
fn is_redis_address(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, rest)| {
        let scheme = scheme.strip_prefix("rediss").or_else(|| scheme.strip_prefix("redis"));
        matches!(scheme, Some("" | "+cluster" | "+sentinel")) && !rest.is_empty()
    })
}

fn read_headers(names: &[&str]) -> Result<Value, ValueFault> {
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    match names.iter().find(|name| name.is_empty() || !name.bytes().all(is_token)) {
        Some(_) => fault("contains a value that is not a header name", HEADERS_REMEDY),
        None => Ok(Value::List(names.iter().map(|name| name.to_ascii_lowercase()).collect())),
    }
}

fn read_source(text: &str) -> Result<Value, ValueFault> {
    let known = ["http://", "https://", "file:///"]
        .into_iter()
        .find_map(|scheme| text.strip_prefix(scheme));
    match known {
        Some(rest) if !rest.is_empty() && !rest.contains(char::is_whitespace) => {
            Ok(Value::Text(text.to_owned()))
        }
        _ => fault("is not a valid address", SettingKind::Source.shape()),
    }
}

fn read_database_url(text: &str) -> Result<Value, ValueFault> {
    match text.split_once("://") {
        Some(("postgres" | "postgresql", rest)) if !rest.is_empty() => {
            Ok(Value::Secret(Secret::new(text)))
        }
        Some(("sqlite", _)) => fault(
            "names the embedded database",
            "leave it out, and set data_dir to the folder of the database",
        ),
        _ => fault("is not a PostgreSQL address", SettingKind::DatabaseUrl.shape()),
    }
}

/// Without a slash at the end: the signal's path is added to it.
fn read_endpoint(text: &str) -> Result<Value, ValueFault> {
    let text = text.trim_end_matches('/');
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let is_sound =
        rest.is_some_and(|rest| !rest.starts_with('/') && !rest.contains(['?', '#', '@']));
    match text.parse::<http::Uri>() {
        Ok(uri) if is_sound && uri.host().is_some_and(|host| !host.is_empty()) => {
            Ok(Value::Text(text.to_owned()))
        }
        _ => fault("is not a web address", SettingKind::Endpoint.shape()),
    }
}

fn read_secret(text: &str, min_len: usize) -> Result<Value, ValueFault> {
    if text.eq_ignore_ascii_case("change-me") {
        return fault("is the placeholder that everybody knows", "choose a secret of your own");
    }
    if text.len() < min_len || !text.bytes().all(|b| b.is_ascii_graphic()) {
        let wrong = if text.is_empty() {
            "is empty"
        } else {
            "is too short, or holds blanks or other odd characters"
        };
        return fault(
            wrong,
            format!("choose at least {min_len} visible ASCII characters, or leave it unset"),
        );
    }
    Ok(Value::Secret(Secret::new(text)))
}
