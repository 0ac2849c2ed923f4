//! Claude at Google's Vertex AI: the model is part of the path, and the body has the version of its
//! form instead.

use bytes::Bytes;

use super::members::BodyMembers;

/// The version there that the format's first version has.
const VERSION: &str = "vertex-2023-10-16";
/// Versions of the header `anthropic-version` that bodies there may have too, as the vendor's own
/// SDK sends them.
const NEWER: [&str; 1] = ["2026-10-21"];
/// Digits of a date in a model's name.
const DATE: usize = 8;

/// The name of a model there: `claude-x@20250929` for `claude-x-20250929`.
pub fn model_name(model: &str) -> String {
    match model.rsplit_once('-') {
        Some((name, date)) if date.len() == DATE && date.bytes().all(|b| b.is_ascii_digit()) => {
            format!("{name}@{date}")
        }
        _ => model.to_owned(),
    }
}

/// The body of a request there; `None` if it is not a JSON object. `version` is that of the client's
/// header, if there is one. `counted`: the model of a request for a token count, which stays in the
/// body.
pub fn body(body: &[Bytes], version: Option<&str>, counted: Option<&str>) -> Option<Vec<Bytes>> {
    let mut members = BodyMembers::read(body)?;
    members.remove(&["model", "output_format"]);
    members.remove_scopes()?;
    let version = version.filter(|version| NEWER.contains(version)).unwrap_or(VERSION);
    members.set_first("anthropic_version", &version.into())?;
    if let Some(model) = counted {
        let ends = ["@default", "@latest"];
        let model = ends.iter().find_map(|end| model.strip_suffix(end)).unwrap_or(model);
        members.add("model", &model_name(model).into())?;
    }
    members.write()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn edited(text: &str, counted: Option<&str>) -> String {
        let edited = body(&[Bytes::copy_from_slice(text.as_bytes())], None, counted).unwrap();
        String::from_utf8(edited.concat()).unwrap()
    }

    #[test]
    fn dates_of_models_follow_an_at_sign() {
        for (model, name) in [
            ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5@20250929"),
            ("claude-opus-4-6", "claude-opus-4-6"),
            ("claude-x@20250929", "claude-x@20250929"),
            ("claude-2025092", "claude-2025092"),
        ] {
            assert_eq!(model_name(model), name);
        }
    }

    #[test]
    fn only_what_the_form_names_is_edited() {
        let text = r#"{"model":"m","max_tokens":1, "output_format":{}, "big":1e400,
            "messages":[{"role":"user","content":"\u00e4 \"model\""}]}"#;
        let messages = r#""messages":[{"role":"user","content":"\u00e4 \"model\""}]"#;
        let rest = format!("\"max_tokens\":1,\"big\":1e400,{messages}");
        let version = format!("{{\"anthropic_version\":\"{VERSION}\"");
        assert_eq!(edited(text, None), format!("{version},{rest}}}"));
        let counted = edited(text, Some("claude-x-20250929"));
        assert_eq!(counted, format!("{version},{rest},\"model\":\"claude-x@20250929\"}}"));
        let alias = edited("{}", Some("claude-x@default"));
        assert_eq!(alias, format!("{version},\"model\":\"claude-x\"}}"));
        let marked = r#"{"system":[{"text":"scope","cache_control":{"type":"ephemeral","scope":"global","ttl":"1h"}}],
            "messages":[{"content":[{"type":"tool_result","content":[{"cache_control":{"scope":"x"}}],"input":{"scope":1}}]}]}"#;
        assert_eq!(
            edited(marked, None),
            format!(
                r#"{version},"system":[{{"text":"scope","cache_control":{{"type":"ephemeral","ttl":"1h"}}}}],"messages":[{{"content":[{{"type":"tool_result","content":[{{"cache_control":{{}}}}],"input":{{"scope":1}}}}]}}]}}"#
            )
        );
        assert!(body(&[Bytes::from_static(b"[]")], None, None).is_none());
    }

    #[test]
    fn a_newer_version_of_the_client_stays() {
        let version = |text: &'static str, header| {
            let edited = body(&[Bytes::from_static(text.as_bytes())], header, None).unwrap();
            let edited: Value = serde_json::from_slice(&edited.concat()).unwrap();
            edited["anthropic_version"].as_str().unwrap().to_owned()
        };
        assert_eq!(version("{}", Some("2023-06-01")), VERSION);
        assert_eq!(version("{}", Some("1999-01-01")), VERSION);
        assert_eq!(version("{}", Some("2026-10-21")), "2026-10-21");
        assert_eq!(version(r#"{"anthropic_version":"own"}"#, Some("2026-10-21")), "own");
    }
}
