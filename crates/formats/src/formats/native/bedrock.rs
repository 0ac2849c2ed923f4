//! Claude at Amazon Bedrock by `InvokeModel`: the model and whether the reply is streamed are part
//! of the path, the betas part of the body.
//!
//! `conf/bedrock.json` lists the betas that Bedrock accepts. One that it does not know would fail
//! the request. It also has the rows of [`super::converse`].

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::converse::model::ConverseModel;
use super::members::BodyMembers;

const VERSION: &str = "bedrock-2023-05-31";
/// Versions of the header `anthropic-version` that bodies there may have too, as the vendor's own
/// SDK sends them.
const NEWER: [&str; 1] = ["2026-10-21"];
const SHIPPED: &str = include_str!("../../../../../conf/bedrock.json");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BetaRows {
    /// The betas that are accepted.
    betas: Vec<String>,
    /// Betas that have another name there.
    other_names: std::collections::BTreeMap<String, String>,
    /// What a model's name begins with if requests to it may be served in several regions.
    cross_region: Vec<String>,
    /// What models take by `Converse`, by their names.
    converse: Vec<ConverseModel>,
}

#[expect(clippy::expect_used, reason = "the file is part of the program, and a test reads it")]
static ROWS: LazyLock<BetaRows> =
    LazyLock::new(|| serde_json::from_str(SHIPPED).expect("conf/bedrock.json is invalid"));

/// What the model of this name takes by `Converse`; of one that is not known, what all take.
pub(super) fn converse_model(name: &str) -> &'static ConverseModel {
    static PLAIN: LazyLock<ConverseModel> = LazyLock::new(ConverseModel::default);
    ROWS.converse.iter().find(|row| row.is_of(name)).unwrap_or(&PLAIN)
}

/// Those of these betas that Bedrock accepts, by its names, each once.
pub fn betas<'a>(wanted: impl Iterator<Item = &'a str>) -> Vec<&'static str> {
    let rows = &*ROWS;
    let mut accepted = Vec::new();
    for beta in wanted {
        let name = rows.other_names.get(beta).map_or(beta, String::as_str);
        if let Some(known) = rows.betas.iter().find(|known| *known == name)
            && !accepted.contains(&known.as_str())
        {
            accepted.push(known.as_str());
        }
    }
    accepted
}

/// What the format has in headers, and `InvokeModel` in the body.
#[derive(Debug, Clone, Copy, Default)]
pub struct InHeaders<'a> {
    /// The client's `anthropic-version`.
    pub version: Option<&'a str>,
    /// As [`betas`] returns them.
    pub betas: &'a [&'a str],
    /// `anthropic-user-profile-id`.
    pub profile: Option<&'a str>,
}

/// The body of a request there; `None` if it is not a JSON object.
pub fn body(body: &[Bytes], headers: InHeaders<'_>) -> Option<Vec<Bytes>> {
    members(body, headers)?.write()
}

/// The body of a request for a token count; `None` if it is not a JSON object.
pub fn count(body: &[Bytes], headers: InHeaders<'_>) -> Option<Vec<Bytes>> {
    let mut members = members(body, headers)?;
    if !members.has("max_tokens") {
        members.add("max_tokens", &1.into())?;
    }
    let body = STANDARD.encode(members.write()?.concat());
    Some(vec![json!({"input": {"invokeModel": {"body": body}}}).to_string().into()])
}

fn members(body: &[Bytes], headers: InHeaders<'_>) -> Option<BodyMembers> {
    let mut members = BodyMembers::read(body)?;
    members.remove(&["model", "stream"]);
    members.remove_scopes()?;
    let version = headers.version.filter(|version| NEWER.contains(version)).unwrap_or(VERSION);
    members.set_first("anthropic_version", &version.into())?;
    if !headers.betas.is_empty() && !members.has("anthropic_beta") {
        members.add("anthropic_beta", &Value::from(headers.betas))?;
    }
    if let Some(profile) = headers.profile.filter(|_| !members.has("user_profile_id")) {
        members.add("user_profile_id", &profile.into())?;
    }
    Some(members)
}

/// The model whose tokens are counted: without the mark of several regions.
pub fn counted_model(model: &str) -> &str {
    match model.split_once('.') {
        Some((region, rest)) if ROWS.cross_region.iter().any(|known| known == region) => rest,
        _ => model,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(text: &'static str, betas: &[&str]) -> String {
        let headers = InHeaders { betas, ..InHeaders::default() };
        let edited = body(&[Bytes::from_static(text.as_bytes())], headers).unwrap();
        String::from_utf8(edited.concat()).unwrap()
    }

    #[test]
    fn only_known_betas_are_sent_each_once() {
        let wanted = [
            "interleaved-thinking-2025-05-14",
            "prompt-caching-2024-07-31",
            "advanced-tool-use-2025-11-20",
            "tool-search-tool-2025-10-19",
            "interleaved-thinking-2025-05-14",
            "",
        ];
        let sent = betas(wanted.into_iter());
        assert_eq!(sent, ["interleaved-thinking-2025-05-14", "tool-search-tool-2025-10-19"]);
        for name in ROWS.other_names.values() {
            assert!(ROWS.betas.contains(name), "{name}");
        }
    }

    #[test]
    fn only_what_the_form_names_is_edited() {
        let text = r#"{"model":"m","stream":true,"max_tokens":1, "big":1e400,
            "system":[{"text":"s","cache_control":{"type":"ephemeral","scope":"global"}}]}"#;
        let rest = r#""max_tokens":1,"big":1e400,"system":[{"text":"s","cache_control":{"type":"ephemeral"}}]"#;
        let version = format!("{{\"anthropic_version\":\"{VERSION}\"");
        assert_eq!(edited(text, &[]), format!("{version},{rest}}}"));
        let with = format!("{version},{rest},\"anthropic_beta\":[\"a\",\"b\"]}}");
        assert_eq!(edited(text, &["a", "b"]), with);
        let own = r#"{"anthropic_version":"own","anthropic_beta":["c"]}"#;
        assert_eq!(edited(own, &["a"]), own);
        assert!(body(&[Bytes::from_static(b"[]")], InHeaders::default()).is_none());
    }

    #[test]
    fn a_newer_version_and_the_profile_of_the_client_go_on() {
        let made = |version| {
            let headers = InHeaders { version, profile: Some("p"), ..InHeaders::default() };
            String::from_utf8(body(&[Bytes::from_static(b"{}")], headers).unwrap().concat())
                .unwrap()
        };
        let wanted =
            |version| format!("{{\"anthropic_version\":\"{version}\",\"user_profile_id\":\"p\"}}");
        for (sent, version) in
            [(None, VERSION), (Some("2023-06-01"), VERSION), (Some("2026-10-21"), "2026-10-21")]
        {
            assert_eq!(made(sent), wanted(version));
        }
    }

    #[test]
    fn a_token_count_has_the_body_of_a_request() {
        let text = Bytes::from_static(br#"{"model":"m","messages":[]}"#);
        let counted: Value =
            serde_json::from_slice(&count(&[text], InHeaders::default()).unwrap().concat())
                .unwrap();
        let inner = counted["input"]["invokeModel"]["body"].as_str().unwrap();
        let inner = String::from_utf8(STANDARD.decode(inner).unwrap()).unwrap();
        let wanted = r#"{"anthropic_version":"bedrock-2023-05-31","messages":[],"max_tokens":1}"#;
        assert_eq!(inner, wanted);
        for (model, name) in [
            ("us.anthropic.claude-x", "anthropic.claude-x"),
            ("global.anthropic.claude-x", "anthropic.claude-x"),
            ("anthropic.claude-x-v1:0", "anthropic.claude-x-v1:0"),
            (
                "arn:aws:bedrock:us-east-1:1:inference-profile/us.a",
                "arn:aws:bedrock:us-east-1:1:inference-profile/us.a",
            ),
        ] {
            assert_eq!(counted_model(model), name);
        }
    }
}
