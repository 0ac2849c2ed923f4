//! Requests and replies of every shape: what they take in memory and in work, however many elements
//! their lists have and however deep their values are.

#![expect(
    clippy::disallowed_methods,
    reason = "two tests run this program once more, and tell it so by a variable"
)]

mod beside;
mod catalog;
mod depth;
mod memory;
mod through;
mod work;

use tollgate::domain::format::WireFormat;
use tollgate::domain::usage::Usage;
use tollgate::formats::convert::{self, ReplyContext, RequestOptions, StreamConverter};
use tollgate::formats::names::NameMap;

/// A body whose bracketed part (`⟦…⟧`) is repeated, with a comma between and a number for `#`.
#[derive(Debug, Clone)]
struct Shape {
    format: WireFormat,
    template: String,
}

impl Shape {
    fn body(&self, count: usize) -> Vec<u8> {
        let mut out = Vec::new();
        let mut rest = self.template.as_str();
        while let Some((before, more)) = rest.split_once('⟦') {
            out.extend_from_slice(before.as_bytes());
            let (element, after) = more.split_once('⟧').unwrap();
            for index in 0..count {
                if index > 0 {
                    out.push(b',');
                }
                let mut parts = element.split('#');
                out.extend_from_slice(parts.next().unwrap().as_bytes());
                for part in parts {
                    out.extend_from_slice(index.to_string().as_bytes());
                    out.extend_from_slice(part.as_bytes());
                }
            }
            rest = after;
        }
        out.extend_from_slice(rest.as_bytes());
        out
    }

    /// The same with another element.
    fn with_element(&self, element: &str) -> Self {
        let (before, rest) = self.template.split_once('⟦').unwrap();
        let (_, after) = rest.split_once('⟧').unwrap();
        Self { template: format!("{before}⟦{element}⟧{after}"), ..*self }
    }
}

/// All other formats.
fn others(format: WireFormat) -> impl Iterator<Item = WireFormat> {
    WireFormat::ALL.into_iter().filter(move |other| *other != format)
}

fn convert_request(from: WireFormat, to: WireFormat, body: &[u8]) -> Result<Vec<u8>, String> {
    let options = RequestOptions::new("m", false);
    convert::request(from, to, body, &options)
        .map(|request| request.body)
        .map_err(|refusal| refusal.to_string())
}

fn context() -> ReplyContext {
    ReplyContext {
        names: NameMap::default(),
        model: "m".to_owned(),
        seed: "s".to_owned(),
        created: 0,
        include_usage: true,
        wrapped: false,
        json_array: false,
        hide_thinking: false,
        estimated_input: 1,
        parallel_tools: true,
    }
}

fn convert_reply(from: WireFormat, to: WireFormat, body: &[u8]) -> Result<Vec<u8>, String> {
    convert::reply(from, to, body, Usage::default(), &context()).map_err(|e| e.to_string())
}

/// The body as the only event of a stream.
fn convert_event(from: WireFormat, to: WireFormat, body: &[u8]) -> Result<Vec<u8>, String> {
    let mut converter = StreamConverter::new(from, to, context());
    let mut out = Vec::new();
    let event = [b"data: ", body, b"\n\n"].concat();
    converter.feed(&event, &mut out).map_err(|e| e.to_string())?;
    let _cut = converter.finish(&mut out);
    Ok(out)
}
