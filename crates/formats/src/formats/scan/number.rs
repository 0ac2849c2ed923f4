//! The grammar of JSON numbers, in steps between which a chunk may end.

/// The position within a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Digits {
    Start,
    Minus,
    /// A leading zero: no digit may follow.
    Zero,
    Whole,
    Point,
    Fraction,
    Exponent,
    Sign,
    Power,
}

impl Digits {
    /// The number may end here.
    pub(super) const fn may_end(self) -> bool {
        matches!(self, Self::Zero | Self::Whole | Self::Fraction | Self::Power)
    }
}

/// The index after the complete number that begins at `from`; `None` if there is none.
pub fn number_end(bytes: &[u8], from: usize) -> Option<usize> {
    run(bytes, from, Digits::Start).ok().filter(|(_, digits)| digits.may_end()).map(|(end, _)| end)
}

/// Continues in a number; returns the index of the first byte after it, or the chunk's length, and
/// the state there.
///
/// # Errors
/// The index of a byte that violates the grammar. (`may_end` detects a number that ends too early.)
pub(super) fn run(bytes: &[u8], from: usize, digits: Digits) -> Result<(usize, Digits), usize> {
    let mut state = digits;
    let mut at = from;
    while let Some(&byte) = bytes.get(at) {
        state = match (state, byte) {
            (Digits::Start, b'-') => Digits::Minus,
            (Digits::Start | Digits::Minus, b'0') => Digits::Zero,
            (Digits::Start | Digits::Minus, b'1'..=b'9') | (Digits::Whole, b'0'..=b'9') => {
                Digits::Whole
            }
            (Digits::Zero, b'0'..=b'9') => return Err(at),
            (Digits::Zero | Digits::Whole, b'.') => Digits::Point,
            (Digits::Point | Digits::Fraction, b'0'..=b'9') => Digits::Fraction,
            (Digits::Zero | Digits::Whole | Digits::Fraction, b'e' | b'E') => Digits::Exponent,
            (Digits::Exponent, b'+' | b'-') => Digits::Sign,
            (Digits::Exponent | Digits::Sign | Digits::Power, b'0'..=b'9') => Digits::Power,
            (state, _) => return Ok((at, state)),
        };
        at += 1;
    }
    Ok((at, state))
}
