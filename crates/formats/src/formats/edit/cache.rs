//! Forces a prompt-cache lifetime on a native request: on every cache mark that the client set, and
//! no other.
//!
//! A mark without a lifetime means five minutes, so it stays unchanged if five minutes are
//! requested. Marks are searched where the format allows them: on tools, system blocks, content
//! blocks, blocks within tool results, and at the top; in any letter case and any number, as a
//! lenient service would read them.

use std::ops::Range;

use bytes::Bytes;

use crate::domain::key::CacheTtl;
use crate::formats::bad_request::BadRequest;
use crate::formats::edit;
use crate::formats::peek::PeekLimits;
use crate::formats::scan::{Found, Kind, MemberKey, Node, Scanner, key};

#[derive(Debug, Clone, Copy)]
enum CacheTag {
    Mark,
    Ttl,
}

/// A member whose name a service may read in any letter case.
const fn loose(name: &'static str, node: Node<CacheTag>) -> MemberKey<CacheTag> {
    MemberKey { name, node, any_case: true }
}

static MARK_KEYS: [MemberKey<CacheTag>; 1] = [loose("ttl", Node::value(CacheTag::Ttl, 8))];
const MARK: Node<CacheTag> = Node::object(&MARK_KEYS).tagged(CacheTag::Mark);

static INNER_BLOCK: Node<CacheTag> = Node::object(&[loose("cache_control", MARK)]);
static BLOCK: Node<CacheTag> =
    Node::object(&[loose("cache_control", MARK), key("content", Node::array(&INNER_BLOCK))]);
static MESSAGE: Node<CacheTag> = Node::object(&[key("content", Node::array(&BLOCK))]);
static BODY: Node<CacheTag> = Node::object(&[
    loose("cache_control", MARK),
    key("tools", Node::array(&INNER_BLOCK)),
    key("system", Node::array(&INNER_BLOCK)),
    key("messages", Node::array(&MESSAGE)),
]);

/// The body with the lifetime of all its cache marks set to `ttl`; `None` if nothing changes.
///
/// # Errors
/// The body is not JSON, or nests too deep.
pub fn force_cache_ttl(
    chunks: &[Bytes],
    ttl: CacheTtl,
    limits: PeekLimits,
) -> Result<Option<Vec<Bytes>>, BadRequest> {
    if ttl == CacheTtl::Inherit {
        return Ok(None);
    }
    let mut edits: Vec<(Range<usize>, Bytes)> = Vec::new();
    let mut lifetimes: Vec<(Range<usize>, bool)> = Vec::new();
    let mut sink = |found: Found<'_, CacheTag>| match found.tag {
        CacheTag::Ttl => {
            lifetimes.push((found.span.clone(), found.text == ttl.as_str().as_bytes()))
        }
        CacheTag::Mark => {
            let had = std::mem::take(&mut lifetimes);
            if found.kind == Kind::Object {
                edits_of(&found.span, found.len == 0, had, ttl, &mut edits);
            }
        }
    };
    let mut scanner = Scanner::new(&BODY, limits.max_depth);
    for chunk in chunks {
        scanner.feed(chunk, &mut sink)?;
    }
    scanner.finish(&mut sink)?;
    Ok((!edits.is_empty()).then(|| edit::replace_all(chunks, &edits)))
}

fn edits_of(
    mark: &Range<usize>,
    empty: bool,
    had: Vec<(Range<usize>, bool)>,
    ttl: CacheTtl,
    edits: &mut Vec<(Range<usize>, Bytes)>,
) {
    if had.is_empty() && ttl != CacheTtl::FiveMinutes {
        let comma = if empty { "" } else { "," };
        let at = mark.start + 1;
        edits.push((at..at, Bytes::from(format!("\"ttl\":\"{}\"{comma}", ttl.as_str()))));
    }
    for (span, _) in had.into_iter().filter(|(_, right)| !right) {
        edits.push((span, Bytes::from(format!("\"{}\"", ttl.as_str()))));
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::force_cache_ttl;
    use crate::domain::key::CacheTtl;
    use crate::formats::peek::PeekLimits;

    const BODY: &str = r#"{"tools":[{"name":"t","cache_control":{"type":"ephemeral"}}],"system":[{"text":"s","cache_control":{"type":"ephemeral","ttl":"1h"}}],
        "messages":[{"role":"user","content":"{\"cache_control\":{}}"},{"role":"user","content":[{"type":"tool_result","content":[{"text":"x","cache_control":{"ttl":"5m","type":"ephemeral"}}],"cache_control":null},
        {"type":"text","text":"y","cache_control":{ }}]}]}"#;

    fn forced(ttl: CacheTtl, size: usize) -> Option<String> {
        let chunks: Vec<Bytes> = BODY.as_bytes().chunks(size).map(Bytes::copy_from_slice).collect();
        let out = force_cache_ttl(&chunks, ttl, PeekLimits { max_depth: 16 }).unwrap();
        out.map(|chunks| String::from_utf8(chunks.concat()).unwrap())
    }

    #[test]
    fn every_mark_gets_the_lifetime_and_nothing_else_changes() {
        let hour = BODY
            .replace(
                r#""cache_control":{"type":"ephemeral"}"#,
                r#""cache_control":{"ttl":"1h","type":"ephemeral"}"#,
            )
            .replace(r#""ttl":"5m""#, r#""ttl":"1h""#)
            .replace("{ }", r#"{"ttl":"1h" }"#);
        let five = BODY.replace(r#""ttl":"1h""#, r#""ttl":"5m""#);
        for size in [1, 9, 4096] {
            assert_eq!(forced(CacheTtl::OneHour, size).as_deref(), Some(&hour[..]));
            assert_eq!(forced(CacheTtl::FiveMinutes, size).as_deref(), Some(&five[..]));
            assert_eq!(forced(CacheTtl::Inherit, size), None);
        }
    }

    #[test]
    fn marks_in_another_spelling_are_marks() {
        let text =
            r#"{"tools":[{"Cache_Control":{"ttl":"1h","TTL":"1h"}}],"cache_controL":{"type":"e"}}"#;
        let out = |ttl| {
            let chunks = [Bytes::from_static(text.as_bytes())];
            let out = force_cache_ttl(&chunks, ttl, PeekLimits { max_depth: 16 }).unwrap();
            String::from_utf8(out.unwrap().concat()).unwrap()
        };
        assert_eq!(out(CacheTtl::FiveMinutes), text.replace("1h", "5m"));
        assert!(out(CacheTtl::OneHour).contains(r#""cache_controL":{"ttl":"1h","type":"e"}"#));
    }

    #[test]
    fn a_body_without_marks_stays_as_it_is() {
        let chunks = [Bytes::from_static(b"{\"messages\":[{\"content\":\"x\"}]}")];
        assert_eq!(
            force_cache_ttl(&chunks, CacheTtl::OneHour, PeekLimits { max_depth: 16 }),
            Ok(None)
        );
    }
}
