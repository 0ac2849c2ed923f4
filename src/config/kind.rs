//! The kinds of settings, and how their text is read: units, bounds, choices.
//!
//! Pure: text in, [`Value`] or a [`Fault`] out. `super::rules` checks later whether a file is
//! readable.

use std::path::PathBuf;

use rust_decimal::Decimal;
use serde_yaml_ng::Value as Yaml;

use super::pairs::{are_headers, read_pairs};
use super::units::{read_duration, read_size, show_duration, show_size};
use super::value::Value;
use crate::domain::network::Network;
use crate::domain::secret::Secret;

/// The kinds of settings, with their bounds (inclusive).
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// `IP:port`.
    Address,
    /// `true` or `false`.
    Flag,
    /// A flag; with `auto` the gateway decides.
    FlagOrAuto,
    /// A whole number.
    Count {
        /// The least number that is allowed.
        min: u64,
        /// The greatest number that is allowed.
        max: u64,
    },
    /// Bytes, written with a unit.
    Size {
        /// The least size in bytes.
        min: u64,
        /// The greatest size in bytes.
        max: u64,
    },
    /// Written with a unit; milliseconds internally.
    Duration {
        /// The shortest duration in milliseconds.
        min: u64,
        /// The longest duration in milliseconds.
        max: u64,
        /// Whether 0 is allowed too, as "none".
        zero: Zero,
    },
    /// Written with a unit, or as a bare number of seconds.
    Seconds {
        /// The shortest duration in milliseconds.
        min: u64,
        /// The longest duration in milliseconds.
        max: u64,
    },
    /// One of these names; letter case does not count.
    Choice(&'static [&'static str]),
    /// A choice that was a flag in earlier versions: `true` and `false` are still accepted for two
    /// of the names.
    ChoiceOrFlag {
        /// The names to choose from.
        names: &'static [&'static str],
        /// The name that `true` stands for.
        yes: &'static str,
        /// The name that `false` stands for.
        no: &'static str,
    },
    /// `http://…` or `https://…`, no path.
    Origin,
    /// The address of a file to fetch: `http`, `https` or `file`.
    Source,
    /// Names of HTTP headers.
    Headers,
    /// Networks of addresses, such as `10.0.0.0/8`.
    Networks,
    /// A folder or a socket; need not exist.
    Path,
    /// A file that must be readable.
    File,
    /// A secret text of visible ASCII characters.
    Secret {
        /// The least number of characters.
        min_len: usize,
    },
    /// A file that holds a secret: a path, or `credential:NAME` of systemd.
    SecretFile,
    /// `postgres://…`; a secret, since it may contain a password.
    DatabaseUrl,
    /// `redis://…` or `rediss://…`; a secret, since it may contain a password.
    RedisUrl,
    /// A short word of letters, digits, `-`, `_` and `.`.
    Name,
    /// The IANA name of a time zone, such as `Europe/Berlin`.
    Zone,
    /// `http://…` or `https://…`, maybe with a path.
    Endpoint,
    /// A number from 0 to 1.
    Ratio,
    /// `name=value` pairs, with commas between them; headers if they are secret.
    Pairs {
        /// Whether values are hidden where settings are shown.
        secret: bool,
    },
    /// Any text on one line.
    Text,
}

/// Whether a duration of `0` is allowed in addition to its bounds, meaning "none".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Zero {
    /// `0` is allowed, and means that there is no limit or time-out.
    MeansNone,
    /// `0` is an error, unless the bounds contain it.
    Refused,
}

/// Why a text is no value of its kind: what is wrong, and what is expected.
#[derive(Debug)]
pub struct Fault {
    /// What is wrong with the text; completes "the value …".
    pub wrong: String,
    /// What to write instead, as an instruction.
    pub remedy: String,
}

fn fault<T>(wrong: impl Into<String>, remedy: impl Into<String>) -> Result<T, Fault> {
    Err(Fault { wrong: wrong.into(), remedy: remedy.into() })
}

impl Kind {
    /// Values of secret kinds are never printed, not even if they are invalid.
    #[must_use]
    pub const fn is_secret(self) -> bool {
        matches!(self, Self::Secret { .. } | Self::DatabaseUrl | Self::RedisUrl | Self::Pairs { secret: true })
    }

    /// Reads a value from the YAML tree. Types are strict: `"8"` is no number, `5` no text.
    ///
    /// # Errors
    /// What is wrong with the value, and what is expected; without the value itself.
    pub fn read_yaml(self, yaml: &Yaml) -> Result<Value, Fault> {
        match (self, yaml) {
            (Self::Flag | Self::FlagOrAuto, Yaml::Bool(flag)) => Ok(Value::Flag(*flag)),
            (Self::ChoiceOrFlag { yes, no, .. }, Yaml::Bool(flag)) => self.read_text(if *flag { yes } else { no }),
            (Self::Count { .. }, Yaml::Number(number)) => self.read_text(&number.to_string()),
            (Self::Count { min, max }, _) => fault("is no number", count_remedy(min, max)),
            (Self::Duration { .. } | Self::Seconds { .. } | Self::Size { .. } | Self::Ratio, Yaml::Number(number)) => {
                self.read_text(&number.to_string())
            }
            (Self::Headers | Self::Networks, Yaml::Sequence(items)) => {
                let items: Option<Vec<&str>> = items.iter().map(Yaml::as_str).collect();
                match items {
                    Some(items) => self.read_list(&items),
                    None => fault("holds something that is no text", self.shape()),
                }
            }
            (Self::Headers | Self::Networks, _) => fault("is no list", self.shape()),
            (_, Yaml::String(text)) if text.trim().is_empty() => {
                fault("is empty", "give a value, or remove the line to have the default")
            }
            (_, Yaml::String(text)) => self.read_text(text),
            (_, Yaml::Mapping(_)) => fault("is a section, where one value is wanted", self.shape()),
            (_, Yaml::Sequence(_)) => fault("is a list, where one value is wanted", self.shape()),
            _ => fault("has the wrong type", self.shape()),
        }
    }

    /// Reads a value from text, as in the environment.
    ///
    /// # Errors
    /// What is wrong with the text, and what is expected; without the text itself.
    pub fn read_text(self, text: &str) -> Result<Value, Fault> {
        let text = text.trim();
        match self {
            Self::Address => match text.parse() {
                Ok(addr) => Ok(Value::Address(addr)),
                Err(_) => fault("is no address", self.shape()),
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
                Err(_) => fault("is no whole number", count_remedy(min, max)),
            },
            Self::Size { min, max } => match read_size(text) {
                Some(bytes) if (min..=max).contains(&bytes) => Ok(Value::Size(bytes)),
                Some(_) => fault("is out of range", self.shape()),
                None => fault("is no size", self.shape()),
            },
            Self::Duration { .. } | Self::Seconds { .. } => self.read_time(text),
            Self::Choice(names) => self.read_choice(names, text),
            Self::ChoiceOrFlag { names, yes, no } => self.read_choice(names, choice_or_flag(text, yes, no)),
            Self::Origin => self.read_origin(text),
            Self::Source => read_source(text),
            Self::Headers | Self::Networks => {
                let items: Vec<&str> = text.split(',').map(str::trim).filter(|item| !item.is_empty()).collect();
                self.read_list(&items)
            }
            Self::Path | Self::File | Self::SecretFile => Ok(Value::Path(PathBuf::from(text))),
            Self::Secret { min_len } => read_secret(text, min_len),
            Self::DatabaseUrl => match text.split_once("://") {
                Some(("postgres" | "postgresql", rest)) if !rest.is_empty() => Ok(Value::Secret(Secret::new(text))),
                Some(("sqlite", _)) => {
                    fault("names the embedded database", "leave it out, and set data_dir to the folder of the database")
                }
                _ => fault("is no PostgreSQL address", self.shape()),
            },
            Self::RedisUrl => match text.split_once("://") {
                Some(("redis" | "rediss", rest)) if !rest.is_empty() => Ok(Value::Secret(Secret::new(text))),
                _ => fault("is no Redis address", self.shape()),
            },
            Self::Name => {
                let fits = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
                if (1..=64).contains(&text.len()) && text.bytes().all(fits) {
                    Ok(Value::Text(text.to_owned()))
                } else {
                    fault("is no short name", self.shape())
                }
            }
            Self::Zone => match text.parse() {
                Ok(zone) => Ok(Value::Zone(zone)),
                Err(_) => fault("is no known time zone", self.shape()),
            },
            Self::Endpoint | Self::Ratio | Self::Pairs { .. } | Self::Text => self.read_telemetry(text),
        }
    }

    /// The kinds of the settings of OTLP.
    fn read_telemetry(self, text: &str) -> Result<Value, Fault> {
        match self {
            Self::Endpoint => read_endpoint(text),
            Self::Ratio => match text.parse::<Decimal>() {
                Ok(ratio) if (Decimal::ZERO..=Decimal::ONE).contains(&ratio) => Ok(Value::Decimal(ratio)),
                _ => fault("is no number from 0 to 1", self.shape()),
            },
            Self::Pairs { secret } => match read_pairs(text) {
                Some(pairs) if secret && are_headers(&pairs) => Ok(Value::Secret(Secret::new(text))),
                Some(_) if !secret => Ok(Value::Text(text.to_owned())),
                _ => fault("is no list of name=value pairs", self.shape()),
            },
            Self::Text if !text.contains(char::is_control) => Ok(Value::Text(text.to_owned())),
            _ => fault("is more than one line", self.shape()),
        }
    }

    fn read_choice(self, names: &[&str], text: &str) -> Result<Value, Fault> {
        match names.iter().find(|name| name.eq_ignore_ascii_case(text)) {
            Some(name) => Ok(Value::Text((*name).to_owned())),
            None => fault("is not one of the choices", self.shape()),
        }
    }

    fn read_list(self, items: &[&str]) -> Result<Value, Fault> {
        match self {
            Self::Networks => match items.iter().find(|item| Network::parse(item).is_none()) {
                Some(_) => fault("holds something that is no network", self.shape()),
                None => Ok(Value::List(items.iter().map(|item| (*item).to_owned()).collect())),
            },
            _ => read_headers(items),
        }
    }

    fn read_time(self, text: &str) -> Result<Value, Fault> {
        let (min, max, zero, bare) = match self {
            Self::Duration { min, max, zero } => (min, max, zero == Zero::MeansNone, false),
            Self::Seconds { min, max } => (min, max, false, true),
            _ => return fault("is no duration", self.shape()),
        };
        let in_seconds = || text.parse::<u64>().ok().and_then(|seconds| seconds.checked_mul(1000));
        let read = if bare { in_seconds().or_else(|| read_duration(text)) } else { read_duration(text) };
        match read {
            Some(0) if zero => Ok(Value::Millis(0)),
            Some(ms) if (min..=max).contains(&ms) => Ok(Value::Millis(ms)),
            Some(_) => fault("is out of range", self.shape()),
            None if text.parse::<u64>().is_ok() => fault("has no unit", self.shape()),
            None => fault("is no duration", self.shape()),
        }
    }

    fn read_origin(self, text: &str) -> Result<Value, Fault> {
        let text = text.trim_end_matches('/');
        let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        match rest {
            Some(host) if !host.is_empty() && !host.contains(['/', '?', '#', '@', ' ']) => {
                Ok(Value::Text(text.to_owned()))
            }
            _ => fault("is no web address", self.shape()),
        }
    }

    /// The expected form as text: the remedy of most faults, and the documentation of bounds.
    #[must_use]
    pub fn shape(self) -> String {
        match self {
            Self::Address => "write an IP address and a port, such as 127.0.0.1:8081 or [::]:8080".to_owned(),
            Self::Flag => "write true or false".to_owned(),
            Self::FlagOrAuto => "write auto, true or false".to_owned(),
            Self::Count { min, max } => count_remedy(min, max),
            Self::Size { min, max } => {
                format!("write {} to {}, with a unit: B, KiB, MiB, GiB", show_size(min), show_size(max))
            }
            Self::Duration { min, max, zero } => {
                let none = if zero == Zero::MeansNone { ", or 0 for none" } else { "" };
                let (min, max) = (show_duration(min), show_duration(max));
                format!("write {min} to {max}, with a unit: ms, s, m, h, d{none}")
            }
            Self::Seconds { min, max } => {
                let (min, max) = (show_duration(min), show_duration(max));
                format!("write {min} to {max}, with a unit (s, m, h, d) or as a number of seconds")
            }
            Self::Choice(names) | Self::ChoiceOrFlag { names, .. } => format!("write one of {}", names.join(", ")),
            Self::Origin => "write http:// or https://, a host and maybe a port, without a path".to_owned(),
            Self::Source => "write an http, https or file address".to_owned(),
            Self::Headers => HEADERS_REMEDY.to_owned(),
            Self::Networks => "write a list of networks, such as [10.0.0.0/8, 192.0.2.7]".to_owned(),
            Self::Path => "write a path".to_owned(),
            Self::File => "write the path of a readable file".to_owned(),
            Self::SecretFile => "write the path of a file with the secret, or credential:NAME (systemd)".to_owned(),
            Self::Secret { min_len } => format!("write at least {min_len} visible ASCII characters"),
            Self::DatabaseUrl => "write postgres://user:password@host:port/database".to_owned(),
            Self::RedisUrl => "write redis://user:password@host:port/number, or rediss:// for TLS".to_owned(),
            Self::Name => "write 1 to 64 letters, digits, -, _ or .".to_owned(),
            Self::Zone => "write an IANA name, such as UTC or Europe/Berlin".to_owned(),
            Self::Endpoint => "write http:// or https://, a host, maybe a port and a path".to_owned(),
            Self::Ratio => "write a number from 0 to 1, such as 0.01".to_owned(),
            Self::Pairs { .. } => "write name=value pairs with commas between them, values percent-encoded".to_owned(),
            Self::Text => "write a text on one line".to_owned(),
        }
    }
}

const HEADERS_REMEDY: &str = "write a list of header names, such as [x-session-id, session-id]";

/// The name that an earlier version's flag stands for; any other text unchanged.
fn choice_or_flag<'a>(text: &'a str, yes: &'a str, no: &'a str) -> &'a str {
    match text.to_ascii_lowercase().as_str() {
        "true" | "on" | "yes" | "1" => yes,
        "false" | "no" | "0" => no,
        _ => text,
    }
}

fn count_remedy(min: u64, max: u64) -> String {
    format!("write a whole number from {min} to {max}")
}

fn read_headers(names: &[&str]) -> Result<Value, Fault> {
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    match names.iter().find(|name| name.is_empty() || !name.bytes().all(is_token)) {
        Some(_) => fault("holds something that is no header name", HEADERS_REMEDY),
        None => Ok(Value::List(names.iter().map(|name| name.to_ascii_lowercase()).collect())),
    }
}

fn read_source(text: &str) -> Result<Value, Fault> {
    let known = ["http://", "https://", "file:///"].into_iter().find_map(|scheme| text.strip_prefix(scheme));
    match known {
        Some(rest) if !rest.is_empty() && !rest.contains(char::is_whitespace) => Ok(Value::Text(text.to_owned())),
        _ => fault("is no such address", Kind::Source.shape()),
    }
}

/// Without a slash at the end: the signal's path is added to it.
fn read_endpoint(text: &str) -> Result<Value, Fault> {
    let text = text.trim_end_matches('/');
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let is_sound = rest.is_some_and(|rest| !rest.starts_with('/') && !rest.contains(['?', '#', '@']));
    match text.parse::<http::Uri>() {
        Ok(uri) if is_sound && uri.host().is_some_and(|host| !host.is_empty()) => Ok(Value::Text(text.to_owned())),
        _ => fault("is no web address", Kind::Endpoint.shape()),
    }
}

fn read_secret(text: &str, min_len: usize) -> Result<Value, Fault> {
    if text.eq_ignore_ascii_case("change-me") {
        return fault("is the placeholder that everybody knows", "choose a secret of your own");
    }
    if text.len() < min_len || !text.bytes().all(|b| b.is_ascii_graphic()) {
        let wrong = if text.is_empty() { "is empty" } else { "is too short, or holds blanks or other odd characters" };
        return fault(wrong, format!("choose at least {min_len} visible ASCII characters, or leave it unset"));
    }
    Ok(Value::Secret(Secret::new(text)))
}
