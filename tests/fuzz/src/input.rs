//! The fuzzer's input: three bytes that select the operation, then the body.
//!
//! Each of the three counts from `@`, so that seeds are plain text (`corpus.sh` writes them).

use crate::domain::format::WireFormat;
use crate::formats::conversation::ReplyContext;
use crate::formats::names::NameMap;

/// One case.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    pub from: WireFormat,
    pub to: WireFormat,
    /// Six independent switches; each target defines them.
    flags: u8,
    /// How the body is cut into pieces.
    cut: u8,
    pub body: &'a [u8],
}

impl<'a> Input<'a> {
    /// `None` if there are fewer than three bytes.
    pub fn read(data: &'a [u8]) -> Option<Self> {
        let [pair, flags, cut, body @ ..] = data else { return None };
        let pair = pair.wrapping_sub(b'@');
        let format = |bits: u8| WireFormat::ALL[usize::from(bits & 3)];
        let (flags, cut) = (flags.wrapping_sub(b'@'), cut.wrapping_sub(b'@'));
        Some(Self { from: format(pair), to: format(pair >> 2), flags, cut, body })
    }

    /// The switch with this number, 0 to 5.
    pub const fn flag(&self, number: u8) -> bool {
        self.flags >> number & 1 == 1
    }

    /// The body in pieces: single bytes, or pieces of pseudo-random sizes that are the same for the
    /// same input.
    pub fn pieces(&self) -> Vec<&'a [u8]> {
        let mut state = u32::from(self.cut) + 1;
        let mut rest = self.body;
        let mut pieces = Vec::new();
        while !rest.is_empty() {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            let most = 1 << (state & 7);
            let size = if self.cut == 0 { 1 } else { 1 + (state >> 8) as usize % most };
            let (piece, behind) = rest.split_at(size.min(rest.len()));
            pieces.push(piece);
            rest = behind;
        }
        pieces
    }

    /// A reply's context, with switches 0 to 3 for the client's options.
    pub fn context(&self) -> ReplyContext {
        ReplyContext {
            names: NameMap::default(),
            model: "m-1".to_owned(),
            seed: "0a1b".to_owned(),
            created: 1_700_000_000,
            include_usage: self.flag(0),
            wrapped: self.flag(1),
            json_array: self.flag(2),
            hide_thinking: self.flag(3),
            estimated_input: 0,
            parallel_tools: true,
        }
    }
}
