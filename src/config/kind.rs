//! The kinds of settings with their bounds, and how people write them. `super::parse` reads them.

use super::units::{show_duration, show_size};

/// The kinds of settings, with their bounds (inclusive).
#[derive(Debug, Clone, Copy)]
pub enum SettingKind {
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
    /// `redis://…`, `redis+cluster://…` or `redis+sentinel://…`, or with `rediss`; a secret, since
    /// it may contain a password.
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

/// Why a text is not a value of its kind: what is wrong, and what is expected.
#[derive(Debug)]
pub struct ValueFault {
    /// What is wrong with the text; completes "the value …".
    pub wrong: String,
    /// What to write instead, as an instruction.
    pub remedy: String,
}

impl SettingKind {
    /// Values of secret kinds are never printed, not even if they are invalid.
    #[must_use]
    pub const fn is_secret(self) -> bool {
        matches!(
            self,
            Self::Secret { .. } | Self::DatabaseUrl | Self::RedisUrl | Self::Pairs { secret: true }
        )
    }

    /// The expected form as text: the remedy of most faults, and the documentation of bounds.
    #[must_use]
    pub fn shape(self) -> String {
        match self {
            Self::Address => {
                "write an IP address and a port, such as 127.0.0.1:8081 or [::]:8080".to_owned()
            }
            Self::Flag => "write true or false".to_owned(),
            Self::FlagOrAuto => "write auto, true or false".to_owned(),
            Self::Count { min, max } => format!("write a whole number from {min} to {max}"),
            Self::Size { min, max } => {
                format!(
                    "write {} to {}, with a unit: B, KiB, MiB, GiB",
                    show_size(min),
                    show_size(max)
                )
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
            Self::Choice(names) => format!("write one of {}", names.join(", ")),
            Self::Origin => {
                "write http:// or https://, a host and maybe a port, without a path".to_owned()
            }
            Self::Source => "write an http, https or file address".to_owned(),
            Self::Headers => {
                "write a list of header names, such as [x-session-id, session-id]".to_owned()
            }
            Self::Networks => {
                "write a list of networks, such as [10.0.0.0/8, 192.0.2.7]".to_owned()
            }
            Self::Path => "write a path".to_owned(),
            Self::File => "write the path of a readable file".to_owned(),
            Self::SecretFile => {
                "write the path of a file with the secret, or credential:NAME (systemd)".to_owned()
            }
            Self::Secret { min_len } => {
                format!("write at least {min_len} visible ASCII characters")
            }
            Self::DatabaseUrl => "write postgres://user:password@host:port/database".to_owned(),
            Self::RedisUrl => REDIS_REMEDY.to_owned(),
            Self::Name => "write 1 to 64 letters, digits, -, _ or .".to_owned(),
            Self::Zone => "write an IANA name, such as UTC or Europe/Berlin".to_owned(),
            Self::Endpoint => {
                "write http:// or https://, a host, maybe a port and a path".to_owned()
            }
            Self::Ratio => "write a number from 0 to 1, such as 0.01".to_owned(),
            Self::Pairs { .. } => {
                "write name=value pairs with commas between them, values percent-encoded".to_owned()
            }
            Self::Text => "write a text on one line".to_owned(),
        }
    }
}

const REDIS_REMEDY: &str = "write redis://user:password@host:port/number, redis+cluster://host,host or \
     redis+sentinel://host,host/name, each with rediss for TLS";
