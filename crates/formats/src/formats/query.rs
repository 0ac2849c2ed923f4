//! The part of a client's query that goes to a provider.
//!
//! The provider must read what the gateway decides on, and no parameter may remove the usage from a
//! reply. alt-cli services read system parameters from the query (`fields`, `$fields`,
//! `prettyPrint`, `$alt`, `callback`, …), so only `alt` is allowed for them, written again from its
//! decoded value. Other formats' queries are forwarded unchanged (some services need an
//! `api-version`), without those parameters, which such a provider may support too. The client's
//! key is never forwarded.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use super::bad_request::BadRequest;
use crate::domain::format::WireFormat;

/// Parameters that contain a credential or change a reply's form, in lower case and without a
/// leading `$`.
const DROPPED: [&str; 8] =
    ["key", "fields", "alt", "prettyprint", "pp", "callback", "uploadtype", "upload_protocol"];

/// Bytes of a query that are forwarded; a parameter that would make it longer is left out.
const QUERY_MAX: usize = 1024;

/// The query of the upstream call, without `?`; `None` when it is empty.
///
/// # Errors
/// alt-cli: an `alt` that is neither `sse` nor `json`, or several that differ.
pub fn upstream(format: WireFormat, query: Option<&str>) -> Result<Option<String>, BadRequest> {
    let Some(query) = query else { return Ok(None) };
    if format == WireFormat::AltCli {
        return alt(query);
    }
    let mut kept = String::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty() && !is_dropped(pair)) {
        let separator = if kept.is_empty() { "" } else { "&" };
        if kept.len() + separator.len() + pair.len() <= QUERY_MAX {
            kept.push_str(separator);
            kept.push_str(pair);
        }
    }
    Ok((!kept.is_empty()).then_some(kept))
}

fn alt(query: &str) -> Result<Option<String>, BadRequest> {
    let mut known: Option<&str> = None;
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if decode(name) != "alt" {
            continue;
        }
        let value = match decode(value).to_ascii_lowercase().as_str() {
            "sse" => "sse",
            "json" => "json",
            _ => {
                return Err(BadRequest::field(
                    "alt",
                    "the query may ask for `sse` or `json`, and for nothing else",
                ));
            }
        };
        if known.is_some_and(|known| known != value) {
            return Err(BadRequest::field(
                "alt",
                "the query has this parameter twice, with two values",
            ));
        }
        known = Some(value);
    }
    Ok(known.map(|value| format!("alt={value}")))
}

fn is_dropped(pair: &str) -> bool {
    is_named(pair, |name| DROPPED.contains(&name.trim_start_matches('$')))
}

/// Whether a parameter has such a name, given in lower case. Some servers also split a query at
/// semicolons, and take names in any case.
pub fn is_named(pair: &str, is_it: impl Fn(&str) -> bool) -> bool {
    pair.split(';').any(|part| {
        let name = decode(part.split('=').next().unwrap_or_default()).to_ascii_lowercase();
        is_it(name.trim())
    })
}

/// Percent-decoding; invalid escapes stay, and invalid UTF-8 is replaced.
pub fn decode(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

#[cfg(test)]
mod tests {
    use super::upstream;
    use crate::domain::format::WireFormat::{self, AltCli, Chat, Native, Responses};

    fn kept(format: WireFormat, query: &str) -> Option<String> {
        upstream(format, Some(query)).unwrap()
    }

    #[test]
    fn an_alt_cli_query_is_alt_alone() {
        for (query, expected) in [
            ("", None),
            ("key=sk-1", None),
            ("alt=sse", Some("alt=sse")),
            ("%61lt=ss%65&key=sk-1", Some("alt=sse")),
            ("alt=SSE", Some("alt=sse")),
            ("alt=json&alt=json", Some("alt=json")),
            ("fields=candidates", None),
            ("alt=sse&fields=candidates", Some("alt=sse")),
            ("$fields=candidates&alt=sse", Some("alt=sse")),
            ("%66ields=x&%24fields=x&FIELDS=x", None),
            ("prettyPrint=false&$alt=proto&callback=f&Alt=proto&quotaUser=1", None),
        ] {
            assert_eq!(kept(AltCli, query).as_deref(), expected, "{query}");
        }
        assert_eq!(upstream(AltCli, None), Ok(None));
        for query in [
            "alt=proto",
            "alt=media",
            "alt=",
            "alt",
            "alt=sse;fields=x",
            "alt=sse&alt=json",
            "alt=sse%26fields=x",
        ] {
            assert_eq!(
                upstream(AltCli, Some(query)).unwrap_err().field.as_deref(),
                Some("alt"),
                "{query}"
            );
        }
    }

    #[test]
    fn other_queries_stay_as_written_less_what_changes_a_reply() {
        for (query, expected) in [
            ("", None),
            ("beta=true", Some("beta=true")),
            ("api-version=2024-10-21&x=%31", Some("api-version=2024-10-21&x=%31")),
            ("k%65y=sk-1", None),
            ("beta=true&key=sk-1&keys=1", Some("beta=true&keys=1")),
            ("fields=id&%24fields=id&alt=sse&beta=true", Some("beta=true")),
            ("a=1;fields=id&b=2", Some("b=2")),
        ] {
            for format in [Native, Chat, Responses] {
                assert_eq!(kept(format, query).as_deref(), expected, "{query}");
            }
        }
    }
}
