//! Types of values that only settings have: addresses, paths, secrets. `super::rules` checks later
//! whether a file is readable.

use std::net::SocketAddr;
use std::path::PathBuf;

use chrono_tz::Tz;

use super::pairs::{are_headers, read_pairs, show_pairs};
use crate::bounded::{FromText, Handling, HeaderName, InYaml, List, Wrong, is_visible, url_fault};
use crate::domain::network::Network;
use crate::domain::secret::Secret;

/// Names of headers.
pub type HeaderNames = List<HeaderName, 0, { usize::MAX }>;

/// Networks of addresses.
pub type NetworkList = List<Network, 0, { usize::MAX }>;

/// Declares types: the plain value, maybe its handling, the shape, how a text is read, and how a
/// value is written.
macro_rules! forms {
    ($($(#[doc = $about:literal])+ $name:ident: $out:ty $(, $handling:ident)?;
        $shape:expr; $read:expr; $text:expr;)+
    ) => {$(
        $(#[doc = $about])+
        #[derive(Debug)]
        pub enum $name {}

        impl FromText for $name {
            type Out = $out;

            $(const HANDLING: Handling = Handling::$handling;)?

            fn read(text: &str) -> Result<$out, Wrong> {
                let read: fn(&str) -> Result<$out, Wrong> = $read;
                read(text)
            }

            fn text(value: &$out) -> String {
                let text: fn(&$out) -> String = $text;
                text(value)
            }

            fn shape() -> String {
                $shape.to_owned()
            }
        }
    )+};
}

forms! {
    /// `IP:port`.
    Address: SocketAddr;
        "write an IP address and a port, such as 127.0.0.1:8081 or [::]:8080";
        |text| text.parse().map_err(|_| "is not an address".into());
        ToString::to_string;
    /// `http://…` or `https://…`, no path.
    Origin: String;
        "write http:// or https://, a host and maybe a port, without a path";
        |text| {
            let has_no_path = |text: &String| text.matches('/').count() == 2;
            web_address(text).filter(has_no_path).ok_or_else(no_address)
        };
        Clone::clone;
    /// `http://…` or `https://…`, maybe with a path; without a slash at the end, as the signal's
    /// path is added to it.
    Endpoint: String;
        "write http:// or https://, a host, maybe a port and a path";
        |text| web_address(text).ok_or_else(no_address);
        Clone::clone;
    /// The address of a file to fetch: `http`, `https` or `file`.
    Source: String;
        "write an http, https or file address";
        |text| if_fits(text, is_source, "is not a valid address");
        Clone::clone;
    /// A short word of letters, digits, `-`, `_` and `.`.
    Name: String;
        "write 1 to 64 letters, digits, -, _ or .";
        |text| if_fits(text, is_short_name, "is not a short name");
        Clone::clone;
    /// Any text on one line.
    Line: String;
        "write a text on one line";
        |text| if_fits(text, |text| !text.contains(char::is_control), "is more than one line");
        Clone::clone;
    /// The IANA name of a time zone, such as `Europe/Berlin`.
    Zone: Tz;
        "write an IANA name, such as UTC or Europe/Berlin";
        |text| text.parse().map_err(|_| "is not a known time zone".into());
        ToString::to_string;
    /// A folder or a socket; need not exist.
    Place: PathBuf;
        "write a path";
        |text| Ok(text.into());
        |path| path.display().to_string();
    /// A file that must be readable.
    File: PathBuf, File;
        "write the path of a readable file";
        |text| Ok(text.into());
        |path| path.display().to_string();
    /// A file that holds a secret: a path, or `credential:NAME` of systemd.
    SecretFile: PathBuf, SecretFile;
        "write the path of a file with the secret, or credential:NAME (systemd)";
        |text| Ok(text.into());
        |path| path.display().to_string();
    /// `postgres://…`; a secret, since it may contain a password.
    DatabaseUrl: Secret, Secret;
        "write postgres://user:password@host:port/database";
        read_database_url;
        |secret| secret.expose().to_owned();
    /// `redis://…`, `redis+cluster://…` or `redis+sentinel://…`, or with `rediss`; a secret, since
    /// it may contain a password.
    RedisUrl: Secret, Secret;
        "write redis://user:password@host:port/number, redis+cluster://host,host or \
         redis+sentinel://host,host/name, each with rediss for TLS";
        |text| if_fits(text, is_redis_address, "is not a Redis address").map(Secret::new);
        |secret| secret.expose().to_owned();
    /// `name=value` pairs with commas between them.
    Attributes: Vec<(String, String)>;
        PAIRS;
        |text| read_pairs(text).ok_or_else(no_pairs);
        |pairs| show_pairs(pairs.iter().map(|(name, value)| (name, value.as_str())));
    /// The same as headers of a request: names in lower case, and values that may be secret.
    Headers: Vec<(String, Secret)>, Secret;
        PAIRS;
        |text| {
            let pairs = read_pairs(text).filter(|pairs| are_headers(pairs)).ok_or_else(no_pairs)?;
            let pairs = pairs.into_iter();
            Ok(pairs.map(|(name, value)| (name.to_ascii_lowercase(), Secret::new(value))).collect())
        };
        |pairs| show_pairs(pairs.iter().map(|(name, value)| (name, value.expose())));
}

const PAIRS: &str = "write name=value pairs with commas between them, values percent-encoded";

fn no_pairs() -> Wrong {
    "is not a list of name=value pairs".into()
}

fn no_address() -> Wrong {
    "is not a web address".into()
}

fn if_fits(text: &str, fits: fn(&str) -> bool, wrong: &'static str) -> Result<String, Wrong> {
    if fits(text) { Ok(text.to_owned()) } else { Err(wrong.into()) }
}

/// The address without a slash at its end.
fn web_address(text: &str) -> Option<String> {
    let text = text.trim_end_matches('/');
    let is_lower_case = text.starts_with("https://") || text.starts_with("http://");
    (is_lower_case && url_fault(text).is_none()).then(|| text.to_owned())
}

fn is_short_name(text: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    (1..=64).contains(&text.len()) && text.bytes().all(fits)
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

fn read_database_url(text: &str) -> Result<Secret, Wrong> {
    match text.split_once("://") {
        Some(("postgres" | "postgresql", rest)) if !rest.is_empty() => Ok(Secret::new(text)),
        Some(("sqlite", _)) => Err(Wrong::with(
            "names the embedded database",
            "leave it out, and set data_dir to the folder of the database",
        )),
        _ => Err("is not a PostgreSQL address".into()),
    }
}

/// A secret of at least `MIN` visible ASCII characters.
#[derive(Debug)]
pub enum Hidden<const MIN: usize> {}

impl<const MIN: usize> FromText for Hidden<MIN> {
    type Out = Secret;

    const HANDLING: Handling = Handling::Secret;

    fn read(text: &str) -> Result<Secret, Wrong> {
        if text.eq_ignore_ascii_case("change-me") {
            let wrong = "is the placeholder that everybody knows";
            return Err(Wrong::with(wrong, "choose a secret of your own"));
        }
        let wrong = match text {
            "" => "is empty",
            text if text.len() >= MIN && is_visible(text) => return Ok(Secret::new(text)),
            _ => "is too short, or holds blanks or other odd characters",
        };
        let remedy = format!("choose at least {MIN} visible ASCII characters, or leave it unset");
        Err(Wrong::with(wrong, remedy))
    }

    fn text(secret: &Secret) -> String {
        secret.expose().to_owned()
    }

    fn shape() -> String {
        format!("write at least {MIN} visible ASCII characters")
    }
}

/// A value, or `auto`: the gateway decides.
#[derive(Debug)]
pub struct OrAuto<T>(std::marker::PhantomData<T>);

impl<T: FromText> FromText for OrAuto<T> {
    type Out = Option<T::Out>;

    const YAML: InYaml = T::YAML;
    const HANDLING: Handling = T::HANDLING;

    fn read(text: &str) -> Result<Self::Out, Wrong> {
        if text == "auto" { Ok(None) } else { T::read(text).map(Some) }
    }

    fn text(value: &Self::Out) -> String {
        value.as_ref().map_or_else(|| "auto".to_owned(), T::text)
    }

    fn shape() -> String {
        T::shape().replacen("write ", "write auto, ", 1)
    }
}
