//! The instructions of a request for a responses provider, by the provider's strategy.
//!
//! The official texts are the operator's files. `auto` keeps the client's instructions and uses an
//! official text if there are none; one client's text is never used for another.

use serde::Deserialize;

use crate::domain::provider::InstructionsStrategy;
use crate::formats::conversation::{Str, json};
use crate::formats::json_read::{self, Json};

/// The operator's two texts; an empty or missing file is `None`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Official<'t> {
    /// For models that are trained for coding (`codex` in their name).
    pub short: Option<&'t str>,
    /// For every other model.
    pub long: Option<&'t str>,
}

impl<'t> Official<'t> {
    /// The text for a model; the other one if that is missing.
    pub fn for_model(&self, model: &str) -> Option<&'t str> {
        if model.contains("codex") { self.short.or(self.long) } else { self.long.or(self.short) }
    }

    /// Whether the client sent an official text itself.
    pub fn is_official(&self, text: &str) -> bool {
        [self.short, self.long].into_iter().flatten().any(|official| official.trim() == text.trim())
    }
}

/// The replacement of the client's text, or `None` to leave the request unchanged.
pub fn resolve<'t>(
    strategy: InstructionsStrategy,
    model: &str,
    client: Option<&str>,
    official: &Official<'t>,
) -> Option<&'t str> {
    let said = client.map(str::trim).filter(|text| !text.is_empty());
    if said.is_some_and(|text| official.is_official(text)) {
        return None;
    }
    match (strategy, said) {
        (InstructionsStrategy::KeepOriginal, _) | (InstructionsStrategy::Auto, Some(_)) => None,
        (InstructionsStrategy::Auto, None) | (InstructionsStrategy::ForceOfficial, _) => {
            official.for_model(model)
        }
    }
}

#[derive(Deserialize)]
struct InstructedBody<'a> {
    #[serde(borrow)]
    instructions: Option<Json<'a>>,
}

/// The body with its instructions replaced according to [`resolve`]; `None` if nothing changes or
/// it cannot be read.
pub fn apply(
    body: &[u8],
    strategy: InstructionsStrategy,
    model: &str,
    official: &Official<'_>,
) -> Option<Vec<u8>> {
    if strategy == InstructionsStrategy::KeepOriginal {
        return None;
    }
    let parsed: InstructedBody<'_> = json_read::read(body).ok()?;
    let client: Option<Str<'_>> =
        parsed.instructions.and_then(|raw| json_read::from_str(raw.get()).ok());
    let text = resolve(strategy, model, client.as_deref(), official)?;
    let mut out = Vec::with_capacity(body.len() + text.len());
    match parsed.instructions {
        Some(old) => {
            let start = (old.get().as_ptr() as usize).checked_sub(body.as_ptr() as usize)?;
            out.extend_from_slice(body.get(..start)?);
            json::string(&mut out, text);
            out.extend_from_slice(body.get(start + old.get().len()..)?);
        }
        None => {
            let open = memchr::memchr(b'{', body)?;
            out.extend_from_slice(&body[..=open]);
            out.extend_from_slice(b"\"instructions\":");
            json::string(&mut out, text);
            let rest = &body[open + 1..];
            if rest.trim_ascii_start().first() != Some(&b'}') {
                out.push(b',');
            }
            out.extend_from_slice(rest);
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use InstructionsStrategy::{Auto, ForceOfficial, KeepOriginal};

    const OFFICIAL: Official<'_> =
        Official { short: Some("short text"), long: Some("long \"text\"") };

    #[test]
    fn strategies_choose() {
        let cases = [
            (KeepOriginal, "gpt-5", None, None),
            (KeepOriginal, "gpt-5", Some("mine"), None),
            (Auto, "gpt-5", Some("mine"), None),
            (Auto, "gpt-5", Some("  "), OFFICIAL.long),
            (Auto, "gpt-5-codex", None, OFFICIAL.short),
            (ForceOfficial, "gpt-5", Some("mine"), OFFICIAL.long),
            (ForceOfficial, "gpt-5-codex", Some("mine"), OFFICIAL.short),
            (ForceOfficial, "gpt-5", Some("short text\n"), None),
        ];
        for (strategy, model, client, expected) in cases {
            assert_eq!(
                resolve(strategy, model, client, &OFFICIAL),
                expected,
                "{strategy:?} {model} {client:?}"
            );
        }
        assert_eq!(resolve(ForceOfficial, "gpt-5", Some("mine"), &Official::default()), None);
    }

    #[test]
    fn only_the_instructions_change() {
        let body = br#"{ "model":"gpt-5", "instructions" : "mine" , "input":[ ] }"#;
        let out = apply(body, ForceOfficial, "gpt-5", &OFFICIAL).unwrap();
        assert_eq!(out, br#"{ "model":"gpt-5", "instructions" : "long \"text\"" , "input":[ ] }"#);
        assert_eq!(apply(&out, ForceOfficial, "gpt-5", &OFFICIAL), None, "it is there already");
        let without = apply(br#"{"input":[]}"#, Auto, "gpt-5", &OFFICIAL).unwrap();
        assert_eq!(without, br#"{"instructions":"long \"text\"","input":[]}"#);
    }
}
