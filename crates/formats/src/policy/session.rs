//! Derives the conversation that a request belongs to.
//!
//! The first hint with a value wins: the session header, the session inside `metadata.user_id`, the
//! prompt cache key, `metadata.session_id`, the previous response; else a hash of the first
//! messages; else the request is its own session. Clients choose these texts, so none is trusted:
//! any state is kept per (key, session).

use std::fmt::Write as _;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::domain::ids::{RequestId, SessionId};

/// The session hints in a request. Blank texts count as absent.
#[derive(Debug, Clone, Copy, Default)]
pub struct SessionHints<'a> {
    /// The first configured session header that is present.
    pub header: Option<&'a str>,
    /// `metadata.user_id`: `user_…_session_<id>`, or JSON with a `session_id`.
    pub metadata_user_id: Option<&'a str>,
    /// The body's `prompt_cache_key`.
    pub prompt_cache_key: Option<&'a str>,
    /// `metadata.session_id`.
    pub metadata_session_id: Option<&'a str>,
    /// The body's `previous_response_id`.
    pub previous_response_id: Option<&'a str>,
    /// Hash of the system text and the first user message, which stay the same through a
    /// conversation.
    pub first_messages_hash: Option<u64>,
    /// Names the session if there is no other hint.
    pub fallback: RequestId,
}

/// Derives the session id: at most [`SessionId::MAX_LEN`] visible ASCII characters, valid in a
/// header. Anything else is hashed.
pub fn derive(hints: &SessionHints<'_>) -> SessionId {
    let named = [
        hints.header,
        hints.metadata_user_id.and_then(session_in_user_id).as_deref(),
        hints.prompt_cache_key,
        hints.metadata_session_id,
        hints.previous_response_id,
    ]
    .into_iter()
    .flatten()
    .map(str::trim)
    .find(|text| !text.is_empty())
    .map(fit);
    named.unwrap_or_else(|| match hints.first_messages_hash {
        Some(hash) => SessionId(format!("m-{hash:016x}").into()),
        None => SessionId(format!("r-{}", hints.fallback).into()),
    })
}

/// The text after the last `_session_`, or the `session_id` of a JSON object.
fn session_in_user_id(user_id: &str) -> Option<String> {
    let user_id = user_id.trim();
    if user_id.starts_with('{') {
        let object: Value = serde_json::from_str(user_id).ok()?;
        return object.get("session_id")?.as_str().map(str::to_owned);
    }
    user_id.rsplit_once("_session_").map(|(_, session)| session.to_owned())
}

fn fit(text: &str) -> SessionId {
    if text.len() <= SessionId::MAX_LEN && text.bytes().all(|b| b.is_ascii_graphic()) {
        return SessionId::from(text);
    }
    let mut hashed = String::with_capacity(34);
    hashed.push_str("h-");
    for byte in &Sha256::digest(text.as_bytes())[..16] {
        // Writing to a String cannot fail.
        let _ = write!(hashed, "{byte:02x}");
    }
    SessionId(hashed.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hints() -> SessionHints<'static> {
        SessionHints::default()
    }

    #[test]
    fn the_first_hint_that_says_something_wins() {
        let all = SessionHints {
            header: Some(" from-header "),
            metadata_user_id: Some("user_ab12_account__session_5f0c"),
            prompt_cache_key: Some("cache-key"),
            metadata_session_id: Some("meta"),
            previous_response_id: Some("resp_1"),
            first_messages_hash: Some(0xab),
            fallback: RequestId::default(),
        };
        let cases = [
            (all, "from-header"),
            (SessionHints { header: Some("  "), ..all }, "5f0c"),
            (
                SessionHints { header: None, metadata_user_id: Some("user_ab12"), ..all },
                "cache-key",
            ),
            (
                SessionHints { header: None, metadata_user_id: Some("user_session_"), ..all },
                "cache-key",
            ),
            (SessionHints { metadata_session_id: Some("meta"), ..hints() }, "meta"),
            (
                SessionHints {
                    previous_response_id: Some("resp_1"),
                    first_messages_hash: Some(1),
                    ..hints()
                },
                "resp_1",
            ),
            (SessionHints { first_messages_hash: Some(0xab), ..hints() }, "m-00000000000000ab"),
        ];
        for (hints, expected) in cases {
            assert_eq!(derive(&hints).as_str(), expected);
        }
    }

    #[test]
    fn metadata_user_id_is_read_in_both_shapes() {
        let cases = [
            ("user_1_account__session_0e5a-77", Some("0e5a-77")),
            ("a_session_b_session_c", Some("c")),
            (r#"{"device_id":"d","session_id":"0e5a-77"}"#, Some("0e5a-77")),
            (r#" {"session_id":"x"} "#, Some("x")),
            (r#"{"session_id":5}"#, None),
            (r#"{"session_id":"#, None),
            ("plain", None),
        ];
        for (user_id, expected) in cases {
            assert_eq!(session_in_user_id(user_id).as_deref(), expected, "{user_id}");
        }
    }

    #[test]
    fn without_a_hint_every_request_is_its_own_session() {
        let fallback = RequestId::new();
        let alone = derive(&SessionHints { fallback, ..hints() });
        assert_eq!(alone.as_str(), format!("r-{fallback}"));
        assert_ne!(alone, derive(&SessionHints { fallback: RequestId::new(), ..hints() }));
    }

    #[test]
    fn ids_fit_a_header_whatever_the_client_sends() {
        let long = "x".repeat(SessionId::MAX_LEN + 1);
        for text in [long.as_str(), "line\r\nbreak", "größe", "two words"] {
            let id = derive(&SessionHints { header: Some(text), ..hints() });
            assert!(id.as_str().starts_with("h-") && id.as_str().len() == 34, "{id}");
            assert_eq!(
                id,
                derive(&SessionHints { header: Some(text), ..hints() }),
                "the same text, the same id"
            );
        }
        let longest = "x".repeat(SessionId::MAX_LEN);
        assert_eq!(derive(&SessionHints { header: Some(&longest), ..hints() }).as_str(), longest);
    }
}
