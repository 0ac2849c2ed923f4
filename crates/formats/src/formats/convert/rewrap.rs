//! alt-cli to alt-cli, if only the wrapper differs: the inner request unchanged, each reply in a
//! wrapper.
//!
//! Nothing is converted to the neutral conversation here, so nothing vendor-specific is lost.

use serde::Deserialize;

use crate::formats::conversation::schema::Members;
use crate::formats::conversation::{ReplyContext, json};
use crate::formats::json_read::{self, Json};

/// Members of the wrapped request that only its service accepts. The plain one has the model in the
/// path.
const WRAPPED_ONLY: [&str; 2] = ["session_id", "model"];

#[derive(Deserialize)]
struct Wrapper<'a> {
    #[serde(borrow)]
    request: Option<Json<'a>>,
}

/// The request within the wrapper, for the plain endpoint; `None` if the body has no wrapper.
pub(super) fn request(body: &[u8]) -> Option<Vec<u8>> {
    let inner = json_read::read::<Wrapper<'_>>(body).ok()?.request?;
    let Members(members) = json_read::from_str(inner.get()).ok()?;
    Some(json::document_of(inner.get().len(), |o| {
        for (name, value) in members.iter().filter(|(name, _)| !WRAPPED_ONLY.contains(&&**name)) {
            o.named(name).extend_from_slice(value.get().as_bytes());
        }
    }))
}

/// Puts a reply, or a chunk's JSON, into the wrapper that the client expects.
pub(super) fn reply(json: &[u8], context: &ReplyContext, out: &mut Vec<u8>) {
    if context.wrapped {
        out.extend_from_slice(b"{\"response\":");
        out.extend_from_slice(json);
        out.push(b'}');
    } else {
        out.extend_from_slice(json);
    }
}

/// A stream's chunks: as events, or as one JSON array.
#[derive(Debug, Default)]
pub(super) struct Stream {
    began: bool,
}

impl Stream {
    /// Writes one chunk, which was read before. Its JSON is put on one line, as one event's data.
    pub(super) fn chunk(&mut self, json: &[u8], context: &ReplyContext, out: &mut Vec<u8>) {
        // Some services end with another format's terminator; it is not a chunk, and no JSON.
        if matches!(json.trim_ascii(), b"" | b"null" | b"[DONE]") {
            return;
        }
        let first = !std::mem::replace(&mut self.began, true);
        let (before, after): (&[u8], &[u8]) = match (context.json_array, first) {
            (false, _) => (b"data: ", b"\r\n\r\n"),
            (true, true) => (b"[", b""),
            (true, false) => (b",\r\n", b""),
        };
        out.extend_from_slice(before);
        let start = out.len();
        reply(json, context, out);
        for byte in out[start..].iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')) {
            *byte = b' ';
        }
        out.extend_from_slice(after);
    }

    /// Whether a chunk was written.
    pub(super) const fn began(&self) -> bool {
        self.began
    }
}

#[cfg(test)]
mod tests {
    use super::Stream;
    use crate::formats::conversation::ReplyContext;
    use crate::formats::names::NameMap;

    #[test]
    fn another_formats_end_mark_is_not_wrapped_as_a_chunk() {
        for (json_array, expected) in
            [(false, "data: {\"response\":{}}\r\n\r\n"), (true, "[{\"response\":{}}")]
        {
            let context = ReplyContext {
                names: NameMap::default(),
                model: String::new(),
                seed: String::new(),
                created: 0,
                include_usage: false,
                wrapped: true,
                json_array,
                hide_thinking: false,
                estimated_input: 0,
                parallel_tools: true,
            };
            let mut stream = Stream::default();
            let mut out = Vec::new();
            for data in ["{}", "[DONE]", " [DONE] ", ""] {
                stream.chunk(data.as_bytes(), &context, &mut out);
            }
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
