//! Puts the operator's cache lifetime into a native request: surgically, in system, tools and messages alike.
//!
//! Only marks that the client set are changed; none is added. The rest of the body stays byte for byte.

use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::domain::key::CacheTtl;
use crate::formats::conversation::{Content, Str};

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    system: Option<Content<'a, Marked<'a>>>,
    #[serde(borrow)]
    tools: Option<Vec<Marked<'a>>>,
    #[serde(borrow)]
    messages: Option<Vec<Marked<'a>>>,
    #[serde(borrow)]
    cache_control: Option<&'a RawValue>,
}

/// A block, a tool or a message: whatever may carry a mark or hold things that do.
#[derive(Deserialize)]
struct Marked<'a> {
    #[serde(borrow)]
    cache_control: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<Content<'a, Marked<'a>>>,
}

#[derive(Deserialize)]
struct Mark<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Str<'a>>,
    #[serde(borrow)]
    ttl: Option<Str<'a>>,
}

/// The body with every cache mark's lifetime set to `ttl`, or `None` if nothing is to change.
///
/// A body that cannot be read is left as it is: the provider will say what is wrong with it.
#[must_use]
pub fn apply(body: &[u8], ttl: CacheTtl) -> Option<Vec<u8>> {
    let wanted = match ttl {
        CacheTtl::Inherit => return None,
        CacheTtl::FiveMinutes | CacheTtl::OneHour => ttl.as_str(),
    };
    memchr::memmem::find(body, b"\"cache_control\"")?;
    let parsed: Body<'_> = serde_json::from_slice(body).ok()?;
    let mut marks = Vec::new();
    marks.extend(parsed.cache_control);
    collect_content(parsed.system.as_ref(), &mut marks);
    collect(parsed.tools.as_deref(), &mut marks);
    collect(parsed.messages.as_deref(), &mut marks);
    let mut edits: Vec<(Range<usize>, String)> =
        marks.into_iter().filter_map(|mark| Some((span(body, mark.get())?, with_ttl(mark.get(), wanted)?))).collect();
    edits.sort_by_key(|(span, _)| span.start);
    if edits.is_empty() { None } else { Some(edited(body, &edits)) }
}

fn collect<'a>(list: Option<&[Marked<'a>]>, marks: &mut Vec<&'a RawValue>) {
    for marked in list.unwrap_or_default() {
        marks.extend(marked.cache_control);
        collect_content(marked.content.as_ref(), marks);
    }
}

fn collect_content<'a>(content: Option<&Content<'a, Marked<'a>>>, marks: &mut Vec<&'a RawValue>) {
    if let Some(Content::Parts(list)) = content {
        collect(Some(list), marks);
    }
}

/// Where in `body` the borrowed piece lies.
fn span(body: &[u8], piece: &str) -> Option<Range<usize>> {
    let start = (piece.as_ptr() as usize).checked_sub(body.as_ptr() as usize)?;
    let end = start.checked_add(piece.len())?;
    (end <= body.len()).then_some(start..end)
}

/// The mark's new text; `None` if it has the lifetime already, or is none that has a lifetime.
fn with_ttl(mark: &str, wanted: &str) -> Option<String> {
    let known: Mark<'_> = serde_json::from_str(mark).ok()?;
    if known.kind.as_deref() != Some("ephemeral") || known.ttl.as_deref() == Some(wanted) {
        return None;
    }
    // Five minutes is what the service does without a word.
    if known.ttl.is_none() && wanted == CacheTtl::FiveMinutes.as_str() {
        return None;
    }
    let mut members: serde_json::Map<String, serde_json::Value> = serde_json::from_str(mark).ok()?;
    members.insert("ttl".to_owned(), wanted.into());
    Some(serde_json::Value::Object(members).to_string())
}

fn edited(body: &[u8], edits: &[(Range<usize>, String)]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len() + edits.len() * 16);
    let mut from = 0;
    for (span, text) in edits {
        out.extend_from_slice(&body[from..span.start]);
        out.extend_from_slice(text.as_bytes());
        from = span.end;
    }
    out.extend_from_slice(&body[from..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = r#"{"system":[{"type":"text","text":"\"cache_control\"","cache_control":{"type":"ephemeral"}}],
 "tools":[{"name":"t","input_schema":{"properties":{"cache_control":{"type":"ephemeral"}}},"cache_control":{"type":"ephemeral","ttl":"5m"}}],
 "messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":"x","cache_control":{ "type": "ephemeral", "scope": "global" }}],"cache_control":{"type":"ephemeral","ttl":"1h"}}]}, {"role":"user","content":"plain"}]}"#;

    #[test]
    fn one_hour_reaches_every_mark_and_nothing_else() {
        let out = String::from_utf8(apply(BODY.as_bytes(), CacheTtl::OneHour).unwrap()).unwrap();
        let expected = BODY
            .replacen(
                r#""cache_control":{"type":"ephemeral"}}]"#,
                r#""cache_control":{"type":"ephemeral","ttl":"1h"}}]"#,
                1,
            )
            .replace(r#""ttl":"5m""#, r#""ttl":"1h""#)
            .replace(
                r#"{ "type": "ephemeral", "scope": "global" }"#,
                r#"{"type":"ephemeral","scope":"global","ttl":"1h"}"#,
            );
        assert_eq!(out, expected);
        assert_eq!(apply(out.as_bytes(), CacheTtl::OneHour), None, "nothing is left to do");
    }

    #[test]
    fn five_minutes_only_shortens() {
        let out = String::from_utf8(apply(BODY.as_bytes(), CacheTtl::FiveMinutes).unwrap()).unwrap();
        assert_eq!(out, BODY.replace(r#""ttl":"1h""#, r#""ttl":"5m""#));
    }

    #[test]
    fn inherit_and_unreadable_bodies_stay() {
        assert_eq!(apply(BODY.as_bytes(), CacheTtl::Inherit), None);
        assert_eq!(apply(br#"{"cache_control": "#, CacheTtl::OneHour), None);
        assert_eq!(apply(br#"{"messages":[]}"#, CacheTtl::OneHour), None);
    }
}
