//! Removes reasoning from a request that its provider could not verify.
//!
//! In a session with replies from providers of several formats, a client sends back reasoning with
//! the mark of another format's model. Conversion handles it. A request whose bytes pass through
//! unconverted is examined here, and only if it contains the mark at all.

use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::domain::format::WireFormat;
use crate::formats::conversation::Str;
use crate::formats::conversation::signature::{MARK, MARK_BASE64};

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    messages: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    contents: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    request: Option<&'a RawValue>,
}

/// A message whose parts are examined.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    parts: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Piece<'a> {
    #[serde(borrow)]
    signature: Option<Str<'a>>,
    #[serde(borrow)]
    encrypted_content: Option<Str<'a>>,
    #[serde(borrow, rename = "thoughtSignature", alias = "thought_signature")]
    thought_signature: Option<Str<'a>>,
}

impl Piece<'_> {
    fn is_foreign(&self) -> bool {
        let starts = |text: &Option<Str<'_>>, mark: &str| {
            text.as_ref().is_some_and(|text| text.starts_with(mark))
        };
        starts(&self.signature, MARK)
            || starts(&self.encrypted_content, MARK)
            || starts(&self.thought_signature, MARK_BASE64)
    }
}

/// The prefix of foreign reasoning in requests of a format; chat-compatible ones never contain any.
const fn mark_in(format: WireFormat) -> Option<&'static str> {
    match format {
        WireFormat::Native | WireFormat::Responses => Some(MARK),
        WireFormat::AltCli => Some(MARK_BASE64),
        WireFormat::Chat => None,
    }
}

/// Whether a body, given in pieces, may contain the format's mark: a quick search, also across the
/// pieces' boundaries.
#[must_use]
pub fn may_hold<'p>(format: WireFormat, pieces: impl Iterator<Item = &'p [u8]>) -> bool {
    let Some(mark) = mark_in(format).map(str::as_bytes) else { return false };
    let finder = memchr::memmem::Finder::new(mark);
    let mut seam: Vec<u8> = Vec::with_capacity(mark.len() * 2);
    for piece in pieces {
        seam.extend_from_slice(&piece[..piece.len().min(mark.len())]);
        if finder.find(&seam).is_some() || finder.find(piece).is_some() {
            return true;
        }
        let tail = if piece.len() >= mark.len() { piece } else { &seam[..] };
        seam = tail[tail.len().saturating_sub(mark.len() - 1)..].to_vec();
    }
    false
}

/// The body without foreign reasoning, or `None` if it contains none (or cannot be read).
#[must_use]
pub fn strip(format: WireFormat, body: &[u8]) -> Option<Vec<u8>> {
    let mark = mark_in(format)?;
    memchr::memmem::find(body, format!("\"{mark}").as_bytes())?;
    let mut gone = Vec::new();
    find(body, body, &mut gone)?;
    if gone.is_empty() {
        return None;
    }
    gone.sort_by_key(|range| range.start);
    let mut out = Vec::with_capacity(body.len());
    let mut from = 0;
    for range in gone {
        out.extend_from_slice(body.get(from..range.start)?);
        from = range.end;
    }
    out.extend_from_slice(&body[from..]);
    Some(out)
}

fn find(document: &[u8], body: &[u8], gone: &mut Vec<Range<usize>>) -> Option<()> {
    let parsed: Body<'_> = serde_json::from_slice(body).ok()?;
    if let Some(inner) = parsed.request {
        return find(document, inner.get().as_bytes(), gone);
    }
    if let Some(items) = parsed.input.filter(|input| input.get().starts_with('[')) {
        find_in_list(document, items, gone);
    }
    let messages = parsed.messages.or(parsed.contents).unwrap_or_default();
    let mut empty = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let Ok(known) = serde_json::from_str::<Message<'_>>(message.get()) else { continue };
        let Some(list) = known.content.or(known.parts).filter(|list| list.get().starts_with('['))
        else {
            continue;
        };
        // A message without any remaining part is removed completely.
        if find_in_list(document, list, gone) {
            empty.push(index);
        }
    }
    gone.extend(removal(document, &messages, &empty));
    Some(())
}

/// Whether every element is to be removed; then none of them is listed.
fn find_in_list(document: &[u8], list: &RawValue, gone: &mut Vec<Range<usize>>) -> bool {
    let Ok(elements) = serde_json::from_str::<Vec<&RawValue>>(list.get()) else { return false };
    let is_foreign = |element: &&RawValue| {
        serde_json::from_str::<Piece<'_>>(element.get()).is_ok_and(|piece| piece.is_foreign())
    };
    let foreign: Vec<usize> = elements
        .iter()
        .enumerate()
        .filter(|(_, element)| is_foreign(element))
        .map(|(index, _)| index)
        .collect();
    if !foreign.is_empty() && foreign.len() == elements.len() {
        return true;
    }
    gone.extend(removal(document, &elements, &foreign));
    false
}

/// The byte ranges that remove the elements of these indexes from their list, each with one comma.
fn removal(document: &[u8], elements: &[&RawValue], indexes: &[usize]) -> Vec<Range<usize>> {
    let span = |index: usize| -> Option<Range<usize>> {
        let text = elements.get(index)?.get();
        let start = (text.as_ptr() as usize).checked_sub(document.as_ptr() as usize)?;
        Some(start..start + text.len())
    };
    let mut ranges = Vec::new();
    // While only elements from the list's start are removed, the comma after each is; later, the
    // one before.
    let mut leading = true;
    for index in 0..elements.len() {
        if !indexes.contains(&index) {
            leading = false;
            continue;
        }
        let range = if leading {
            span(index).zip(span(index + 1)).map(|(this, next)| this.start..next.start)
        } else {
            span(index)
                .zip(index.checked_sub(1).and_then(span))
                .map(|(this, last)| last.end..this.end)
        };
        ranges.extend(range.or_else(|| span(index)));
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn stripped(format: WireFormat, body: &Value) -> Option<Value> {
        strip(format, body.to_string().as_bytes())
            .map(|bytes| serde_json::from_slice(&bytes).unwrap())
    }

    #[test]
    fn foreign_thinking_goes_and_the_rest_stays() {
        let foreign = json!({"type": "thinking", "thinking": "a, ]", "signature": "tg1.c."});
        let own = json!({"type": "thinking", "thinking": "b", "signature": "abc"});
        let text = json!({"type": "text", "text": "\"tg1.c."});
        let body = |lists: &[Vec<&Value>]| -> Value {
            let messages: Vec<Value> =
                lists.iter().map(|list| json!({"role": "assistant", "content": list})).collect();
            json!({"model": "m", "messages": messages})
        };
        let (f, o, t) = (&foreign, &own, &text);
        let check = |given: &[Vec<&Value>], expected: &[Vec<&Value>]| {
            assert_eq!(stripped(WireFormat::Native, &body(given)), Some(body(expected)));
        };
        check(&[vec![f, t]], &[vec![t]]);
        check(&[vec![t, f]], &[vec![t]]);
        check(&[vec![f, f, o, f, t, f]], &[vec![o, t]]);
        check(&[vec![t], vec![f, f], vec![o]], &[vec![t], vec![o]]);
        check(&[vec![f], vec![f, t]], &[vec![t]]);
        assert_eq!(stripped(WireFormat::Native, &body(&[vec![o, t]])), None);
    }

    #[test]
    fn every_format_with_proofs_is_cleaned() {
        let body = json!({"input": [{"type": "reasoning", "encrypted_content": "tg1.n.x", "summary": []}, {"type": "message"}]});
        assert_eq!(
            stripped(WireFormat::Responses, &body),
            Some(json!({"input": [{"type": "message"}]}))
        );
        let contents =
            json!([{"parts": [{"text": "x"}, {"thought": true, "thoughtSignature": "dGcxLm4u"}]}]);
        let expected = json!([{"parts": [{"text": "x"}]}]);
        let wrapped = |contents: &Value| json!({"model": "m", "request": {"contents": contents}});
        assert_eq!(stripped(WireFormat::AltCli, &wrapped(&contents)), Some(wrapped(&expected)));
        assert_eq!(strip(WireFormat::Native, br#"{"messages": "tg1. "#), None);
    }
}
